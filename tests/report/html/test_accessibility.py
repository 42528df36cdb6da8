"""axe-core finds no violations in any view of report.html, light and dark, wide and narrow."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.report.history.file import HistoryWriter
from harness.report.html.page import write_page
from harness.report.reading import SCORE
from tests.report.html.conftest import HOSTILE, outcome, run_events, write, wrong_path
from tests.report.html.test_evolution import evolution

AXE = Path(__file__).parent / "node_modules/axe-core/axe.min.js"

pytestmark = pytest.mark.skipif(
    not AXE.is_file(), reason="axe-core is not installed: make installs it where there is npm"
)

VIEWS = (
    "#scenarios",
    "#scenario=triage.scenario.yaml%3A%3Aa%20double%20charge&variant=terse",
    "#manifests",
    "#manifest=triage.yaml",
    "#variants",
    "#pair=triage.scenario.yaml%3A%3Aa%20double%20charge&variant=small",
    "#latency",
    "#groups",
    "#warnings",
    "#history",
    "#scenario=nothing",
)
SAID = {"type": HOSTILE, "code": None, "message": HOSTILE, "node": "classify", "where": None}
FIGURES = {"runs": 1, "pass_rate": 0.5, "latency": {"p50": 1.5, "p95": 1.5}, "tokens": 0, "cost": 0.0}
BETTER = {"fitness": 0.5, "low": 0.1, "high": 0.9, "p": 0.04, "verdict": "better"}
SAYS = {
    "format": "harness-score/1",
    "baseline": "terse",
    "variants": [
        {"name": "terse", **FIGURES, "fitness": 0.5, "difference": None},
        {"name": "small", **FIGURES, "fitness": 1.0, "difference": BETTER, "note": "so it is"},
    ],
    "changed": [
        {"id": "triage.scenario.yaml::a double charge", "variant": "small", "before": 0.5, "after": 1.0}
    ],
    "pareto": ["small"],
}
LIGHT = {"resultTypes": ["violations"]}
DARK = {"resultTypes": ["violations"], "runOnly": ["color-contrast"]}
"""The other theme differs in its colours only."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    history = HistoryWriter(folder / "history.jsonl", folder)
    write(
        folder,
        [
            outcome(
                "a double charge",
                "failed",
                checks=[wrong_path()],
                events=run_events(),
                variant="terse",
                tags=["a"],
            ),
            outcome("a double charge", events=run_events("No."), variant="small", warnings=["mind the gap"]),
            outcome("it breaks", "error", status="failed", error=SAID, repeat=0),
            outcome("it breaks", repeat=1),
        ],
        history,
    )
    (folder / SCORE).write_text(json.dumps(SAYS))
    return write_page(folder)


@pytest.mark.parametrize(
    ("scheme", "width", "options"), [("light", 1280, LIGHT), ("dark", 1280, DARK), ("dark", 390, DARK)]
)
def test_axe_finds_nothing(browser: Any, report: Path, scheme: str, width: int, options: Any) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True
    )
    page = context.new_page()
    page.goto(report.as_uri())
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = []
    for view in VIEWS:
        page.evaluate("hash => { location.hash = hash }", view)
        page.locator("#view > *").first.wait_for()
        for each in page.evaluate("options => axe.run(options)", options)["violations"]:
            found.append((view, each["id"], [node["html"][:200] for node in each["nodes"][:3]]))
    context.close()
    assert not found


def test_axe_finds_nothing_in_the_page_of_an_evolution(browser: Any, tmp_path: Path) -> None:
    page = browser.new_page(bypass_csp=True)
    page.goto(evolution(tmp_path).as_uri())
    page.evaluate(AXE.read_text(encoding="utf-8"))
    violations = page.evaluate("options => axe.run(options)", LIGHT)["violations"]
    page.close()
    assert [(each["id"], [node["html"][:200] for node in each["nodes"][:3]]) for each in violations] == []
