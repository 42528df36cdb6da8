"""The cases: which commands run on which files, and what of their output is golden."""

from __future__ import annotations

from collections.abc import Iterator

from harness.cli.main import COMMANDS
from tests.goldens.session import Case

DIALECTS = ("sherma", "agentspec", "yagra", "loki", "leafmesh")
INVALID = {
    "sherma": "scenarios/sherma/manifests/invalid",
    "agentspec": "scenarios/agentspec/configs/invalid",
    "yagra": "scenarios/yagra/workflows/invalid",
    "loki": "scenarios/loki/broken",
    "leafmesh": "scenarios/leafmesh/meshes/invalid",
}
"""Folders of the project with manifests that are refused."""


BROKEN = ("scenarios", "sherma", "agentspec", "yagra", "leafmesh")
"""Archives of files with a mistake each: `broken_NAME`."""
SLOW = ("scenarios", "agentspec", "leafmesh")
"""Those with many."""


def report(folder: str = "reports/latest") -> tuple[str, ...]:
    """Return the files of a report folder whose text counts."""
    return tuple(f"{folder}/{name}" for name in ("summary.md", "summary.json", "junit.xml", "results.jsonl"))


def large(folder: str = "reports/latest") -> tuple[str, ...]:
    """Return the files of a report folder whose SHA-256 counts."""
    return (f"{folder}/report.html", f"{folder}/traces/*.gz")


def helps() -> Iterator[str]:
    yield "harness --help"
    yield from (f"harness {name} --help" for name in COMMANDS)
    yield "harness baseline save --help"


def first_steps(dialect: str) -> Iterator[str]:
    """Yield what one does with the example of a dialect."""
    agent = {"loki": "agents/shop/graph.yaml", "leafmesh": "configs/config.yaml"}.get(
        dialect, "agents/shop.yaml"
    )
    yield f"harness init . --dialect {dialect}"
    yield f"harness init . --dialect {dialect}"
    yield "harness validate . --imports"
    yield "harness run . --narrate"
    yield "harness trace 'scenarios/shop.scenario.yaml::anything else is turned away'"
    yield "harness trace 'scenarios/shop.scenario.yaml::anything else is turned away' --json"
    yield "harness summary --coverage"
    yield f"harness show {agent}"
    yield f"harness show {agent} --format mermaid --data"
    yield f"harness show {agent} --format svg -o graph.svg"
    yield f"harness prompts {agent}"
    yield f"harness prompts {agent} --json"


TWO_RUNS = (
    "harness run desk.scenario.yaml --history history.jsonl",
    "harness summary",
    "harness summary --by tag --by manifest --coverage",
    "harness summary --markdown --by tag",
    "harness summary --json -",
    "harness trace 'desk.scenario.yaml::an order'",
    "harness trace 'desk.scenario.yaml::an ordr'",
    "harness trace 'desk.scenario.yaml::not today'",
    "harness trace 'desk.scenario.yaml::a joke' --repeat 2 --json",
    "harness export --file - --start 2026-01-01T00:00:00Z",
    "harness export --file spans.jsonl --content --start 2026-01-01T00:00:00Z",
    "harness export --otlp localhost:4318",
    "harness gate",
    "harness baseline save baseline.json",
    "harness gate --json gate_passed.json --markdown -",
    "cp reports/latest first",
    "cp second/desk.scenario.yaml desk.scenario.yaml",
    "harness run desk.scenario.yaml -v --history history.jsonl",
    "harness run desk.scenario.yaml --debug -q --report debug",
    "harness run desk.scenario.yaml -q --report again --env A=b --now 2026-05-05T05:05:05 --fail-under 0.9",
    "harness gate --json gate.json --markdown gate.md",
    "harness gate --policy lenient.yaml",
    "harness gate --policy unknown_rule.yaml",
    "harness compare first reports/latest",
    "harness compare first reports/latest --json -",
    "harness compare first reports/latest --scenario 'desk.scenario.yaml::an order'",
    "harness compare first first",
    "harness report --baseline first --history history.jsonl -o compared.html --markdown -",
    "harness history --file history.jsonl",
    "harness history --file history.jsonl --json history.json",
    "harness history first reports/latest",
    "harness summary first reports/latest",
    "harness run desk.scenario.yaml -k 'song or joke' -x --report part",
    "harness run desk.scenario.yaml --tag orders --json - --report part2",
    "harness run desk.scenario.yaml --shard 2/2 --report part3",
    "harness gate part",
    "harness gate part --partial",
    "harness run desk.scenario.yaml -k 'song and'",
    "harness run desk.scenario.yaml -k sonnet --report nothing",
    "harness run 'desk.scenario.yaml::a sog'",
)

REFUSED = (
    "harness",
    "harness rnu",
    "harness run",
    "harness run empty",
    "harness run shop/missing.scenario.yaml",
    "harness run shop/a.scenario.yaml --jbos 2",
    "harness run shop/a.scenario.yaml --shard 3/2",
    "harness run shop/a.scenario.yaml --now soon",
    "harness run shop --tag nothing",
    "harness run shop/checks.yaml",
    "harness run shop -k counts --traces none",
    "harness run shop -k counts --report base.json",
    "harness run shop -k counts --report none_kept --traces none -q",
    "harness trace shop/a.scenario.yaml::counts none_kept",
    "harness run shop --changed -q",
    "harness run wrong",
    "harness run toml",
    "harness run bad_name",
    "harness validate wrong",
    "harness validate empty",
    "harness validate shop/nobody.yaml",
    "harness validate shop",
    "harness validate shop/missing.yaml",
    "harness show shop/a.scenario.yaml",
    "harness show shop/nobody.yaml",
    "harness show shop/m.yaml --agent countr",
    "harness show shop/m.yaml --dialect shermi",
    "harness prompts shop/a.scenario.yaml",
    "harness prompts shop/asks.yaml",
    "harness prompts shop/m.yaml",
    "harness record shop/a.scenario.yaml -k counts",
    "harness record shop/a.scenario.yaml",
    "harness record shop/asks.scenario.yaml::asks",
    "harness run shop/asks.scenario.yaml::asks",
    "harness run shop/asks.scenario.yaml --live",
    "harness run shop/asks.scenario.yaml --record-mode once",
    "harness cassettes shop",
    "harness cassettes shop --json",
    "harness serve shop/a.scenario.yaml",
    "harness serve shop/a.scenario.yaml::d",
    "harness serve shop/a.scenario.yaml::counts --stdio desk",
    "harness history --file history.jsonl",
    "harness history --file missing.jsonl",
    "harness history",
    "harness summary missing",
    "harness summary damaged",
    "harness summary none",
    "harness report none",
    "harness gate none",
    "harness gate missing",
    "harness gate damaged --baseline base.json",
    "harness compare damaged none",
    "harness export missing --file -",
    "harness export --file -",
    "harness summary --json /nonexistent/x",
    "harness report damaged",
    "harness report score",
    "harness report evolution",
    "harness baseline save base2.json damaged",
    "harness judges ton",
    "harness judge-check labels.yaml",
    "harness judge-check missing.yaml",
    "harness evolve shop/asks.yaml shop/asks.scenario.yaml --config mutants.yaml",
    "harness evolve evolve/m.yaml evolve",
    "harness evolve shop/m.yaml shop/a.scenario.yaml",
    "harness evolve shop/m.yaml",
    "harness score shop/a.scenario.yaml --variants missing.yaml",
    "harness init shop/m.yaml",
    "harness init . --dialect shermi",
    "harness schema -o /nonexistent/schema.json",
)

SCORES = (
    "harness score desk.scenario.yaml --variants variants.yaml --json -",
    "harness score desk.scenario.yaml --variants variants.yaml --variant shrt",
    "harness score desk.scenario.yaml --variants variants.yaml --require short",
    "harness score desk.scenario.yaml --variants broken_variants.yaml",
    "harness report reports/score --markdown -",
)

SEARCHES = (
    "harness score tutorial_variants/customers.scenario.yaml --variants tutorial_variants/variants.yaml",
    "harness evolve tutorial_variants/agents/desk.yaml tutorial_variants/customers.scenario.yaml"
    " --config tutorial_variants/evolve.yaml --population 3 --generations 2",
    "harness evolve tutorial_variants/agents/desk.yaml tutorial_variants/customers.scenario.yaml"
    " --config tutorial_variants/evolve.yaml --population 3 --generations 2 --seed 3",
    "harness report tutorial_variants/reports/evolution --markdown -",
)

JUDGES = (
    "harness judges",
    "harness judges --json",
    "harness judges tone",
    "harness judge-check judges/labels.yaml",
    "harness judge-check judges/labels.yaml --json - --require-agreement 0.99 --threshold 0.3",
    "harness run judges -q",
)

PYTEST = (
    "pytest checks.scenario.yaml -p no:cacheprovider -q",
    "pytest checks.scenario.yaml -p no:cacheprovider -k 'status or path' -v --no-header --tb=short"
    " --harness-report rep",
    "pytest weak.scenario.yaml -p no:cacheprovider -q",
    "pytest checks.scenario.yaml -p no:cacheprovider --collect-only -q",
)

CASES = (
    Case("help", tuple(helps())),
    *(
        Case(
            f"first_steps_{dialect}",
            tuple(first_steps(dialect)),
            keeps=(
                "*.toml",
                ".gitignore",
                "agents/**/*",
                "configs/*",
                "agency/*.py",
                "scenarios/*.scenario.yaml",
                *report(),
            ),
            hashes=("scenarios/*.json", "graph.svg", *large()),
        )
        for dialect in DIALECTS
    ),
    Case("checks", ("harness run checks.scenario.yaml",), ("failing",), keeps=report(), hashes=large()),
    Case(
        "weak",
        ("harness validate weak.scenario.yaml", "harness run weak.scenario.yaml --narrate"),
        ("failing",),
        keeps=report()[:1],
    ),
    Case(
        "names",
        ("harness validate names.scenario.yaml --imports", "harness run names.scenario.yaml"),
        ("failing",),
        keeps=report()[:1],
    ),
    Case(
        "unanswered",
        (
            "harness init loki --dialect loki",
            "harness init leafmesh --dialect leafmesh",
            "harness run " + " ".join(f"{name}.scenario.yaml" for name in (*DIALECTS, "remote")),
        ),
        ("unanswered",),
        copies=("tests/docs/rows", "scenarios/loki/agents/archive-search"),
        keeps=report(),
        hashes=large(),
    ),
    Case(
        "two_runs",
        TWO_RUNS,
        ("two_runs",),
        keeps=(*report("first"), *report(), "baseline.json", "gate*", "spans.jsonl", "history.*"),
        hashes=(*large(), "compared.html"),
    ),
    Case("scores", SCORES, ("two_runs",), hashes=("reports/score/*",), slow=True),
    Case("searches", SEARCHES, copies=("scenarios/tutorial_variants",), hashes=("reports/*/*",), slow=True),
    Case("judges", JUDGES, copies=("scenarios/judges",)),
    Case("refused", REFUSED, ("faults",)),
    Case(
        "github",
        ("harness run checks.scenario.yaml -k 'path or cost'", "harness validate names.scenario.yaml"),
        ("failing",),
        keeps=("step.md",),
        env={"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": "step.md"},
    ),
    Case("pytest", PYTEST[:1], ("failing",)),
    Case("pytest_options", PYTEST[1:], ("failing",), keeps=report("rep")[:1], slow=True),
    Case(
        "recorded",
        ("harness cassettes recorded --json", "harness run recorded -q"),
        ("project",),
        copies=("scenarios/recorded", "cassettes"),
        slow=True,
    ),
    Case(
        "not_recorded",
        ("harness cassettes recorded", "harness run recorded -q"),
        copies=("scenarios/recorded",),
        slow=True,
    ),
    *(
        Case(
            f"invalid_{dialect}",
            (f"harness validate {folder.rpartition('/')[2]} --imports",),
            copies=(folder,),
        )
        for dialect, folder in INVALID.items()
    ),
    *(
        Case(f"broken_{name}", ("harness validate . --imports",), (f"broken_{name}",), slow=name in SLOW)
        for name in BROKEN
    ),
    *(
        Case(
            f"cases_{dialect}",
            ("harness validate cases --imports",),
            copies=(f"tests/dialects/{dialect}/cases",),
            slow=True,
        )
        for dialect in DIALECTS
    ),
)
