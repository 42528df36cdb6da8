"""A run to look at, written as runs are, and its page."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.report.results import ResultsWriter
from harness.scenario.outcome import CheckResult, Observed, Outcome

HOSTILE = '</script><script>document.title="owned"</script><img src=x onerror=document.title="owned">'
TURNED = "user‮gnp.exe\u2028 [x](javascript:document.title='owned')"
SHAPE = {
    "nodes": ["answer", "classify", "open_ticket"],
    "edges": [
        ["__start__", "classify"],
        ["classify", "answer"],
        ["classify", "open_ticket"],
        ["open_ticket", "__end__"],
    ],
    "branches": ["classify -> answer [default]", 'classify -> open_ticket [state.intent == "billing"]'],
    "kinds": ["call_llm", "call_llm", "set_state"],
    "lines": {"nodes": [31, 12, 25], "edges": [10, 20, 19, None], "branches": [20, "more.yaml:19"]},
}
NOTHING: dict[str, list[str]] = {"nodes": [], "edges": [], "branches": []}
TAKEN = {
    "nodes": ["classify", "answer"],
    "edges": [["__start__", "classify"], ["classify", "answer"]],
    "branches": ["classify -> answer [default]"],
}

MakeRun = Callable[..., Path]


def outcome(name: str, verdict: str = "passed", **fields: Any) -> Outcome:
    """An outcome of the triage agent; keywords go to the Outcome, or to what was observed."""
    observed = Observed(
        path=["classify", "answer"],
        latency={"total": 1.5, "nodes": {"classify": 0.5, "answer": 1.0}},
        calls=[{"kind": "llm", "name": "gpt-4o", "node": "classify", "args": {}, "ok": True, "latency": 0.5}],
        output="We open at nine.",
        state={"intent": "question"},
    )
    for key in [key for key in fields if hasattr(observed, key)]:
        setattr(observed, key, fields.pop(key))
    values = {"score": 1.0 if verdict == "passed" else 0.5, "coverage": TAKEN, "shape": SHAPE, **fields}
    return Outcome(
        suite="triage.scenario.yaml",
        scenario=name,
        manifest="triage.yaml",
        dialect="sherma",
        agent="triage",
        observed=observed,
        verdict=verdict,  # type: ignore[arg-type]
        **values,
    )


def astray() -> CheckResult:
    """A path that was another."""
    return CheckResult(
        "path",
        False,
        0.5,
        1.0,
        ["classify", "open_ticket"],
        ["classify", "answer"],
        "step 2: expected open_ticket, was answer",
    )


@pytest.fixture
def written(tmp_path: Path) -> MakeRun:
    """Writes the run of these outcomes, and gives its folder."""

    def make(*outcomes: Outcome, folder: str = "run", incomplete: str = "") -> Path:
        with ResultsWriter(tmp_path / folder) as writer:
            for each in outcomes:
                writer.add(each)
            writer.finish(incomplete)
        return tmp_path / folder

    return make


@pytest.fixture
def several() -> list[Outcome]:
    """Outcomes of every verdict, repeats among them."""
    return [
        outcome("a question is answered", tags=["opening"]),
        outcome("a double charge", "failed", checks=[astray()], tags=["billing"]),
        outcome("it may rain", repeat=0),
        outcome("it may rain", "failed", repeat=1, checks=[astray()]),
        outcome(
            "nobody answers",
            "error",
            error={
                "type": "UnscriptedCall",
                "code": "unscripted-call",
                "message": "no stub answers",
                "node": "classify",
                "where": None,
            },
            status="failed",
        ),
        outcome("a person is asked", status="interrupted", interrupts=["ok?"]),
        outcome("time is up", "failed", status="timeout"),
        outcome("not yet", "skipped", status="skipped", reason="later", coverage=NOTHING, shape=NOTHING),
    ]
