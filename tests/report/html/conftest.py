"""Outcomes of a run, and their report.html."""

import shutil
from collections.abc import Callable, Iterator
from copy import copy
from pathlib import Path
from typing import Any

import pytest

from harness.graph.sharing import with_shared
from harness.report.history.file import HistoryWriter
from harness.report.results import ResultsWriter
from harness.scenario.outcome import CheckResult, Observation, Outcome

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
    """Return an outcome of the triage agent. Keywords set fields of the Outcome, or of its Observation."""
    observed = Observation(
        path=["classify", "answer"],
        latency={"total": 1.5, "nodes": {"classify": 0.5, "answer": 1.0}},
        calls=[{"kind": "llm", "name": "gpt-4o", "node": "classify", "args": {}, "ok": True, "latency": 0.5}],
        output="We open at nine.",
        state={"intent": "question"},
    )
    for key in [key for key in fields if hasattr(observed, key)]:
        setattr(observed, key, fields.pop(key))
    score = 1.0 if verdict == "passed" else 0.5
    values = {"score": score, "manifest": "triage.yaml", "coverage": TAKEN, "shape": SHAPE, **fields}
    return Outcome(
        suite="triage.scenario.yaml",
        scenario=name,
        dialect="sherma",
        agent="triage",
        observed=observed,
        verdict=verdict,  # type: ignore[arg-type]
        **values,
    )


def wrong_path() -> CheckResult:
    """Return a failed check of the path."""
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
def write_run(tmp_path: Path) -> MakeRun:
    """Return a function that writes outcomes as a run and returns its folder."""

    def make(*outcomes: Outcome, folder: str = "run", incomplete: str = "") -> Path:
        with ResultsWriter(tmp_path / folder) as writer:
            for each in outcomes:
                writer.add(each)
            writer.finish(incomplete)
        return tmp_path / folder

    return make


@pytest.fixture
def mixed_outcomes() -> list[Outcome]:
    """Return outcomes with every verdict, and with repeats."""
    return [
        outcome("a question is answered", tags=["opening"]),
        outcome("a double charge", "failed", checks=[wrong_path()], tags=["billing"]),
        outcome("it may rain", repeat=0),
        outcome("it may rain", "failed", repeat=1, checks=[wrong_path()]),
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


def llm(number: int, at: float, node: str, reply: str, *texts: str) -> list[dict[str, Any]]:
    """Return the events of a model call, answered after half a second."""
    messages = [{"type": "human", "content": text} for text in texts]
    request = {"messages": messages}
    value = {"text": reply}
    usage = {"input_tokens": 12, "output_tokens": 3}
    asked = {"kind": "llm", "name": "gpt-4o", "node": node, "request": request}
    answered = {"ok": True, "latency": 0.5, "value": value, "usage": usage}
    return [
        {"event": "call", "at": at, "call": number, **asked},
        {"event": "answer", "at": at + 0.5, "call": number, **answered},
    ]


def run_events(reply: str = "We open at nine.") -> list[dict[str, Any]]:
    """Return the events of a run that took the default branch."""
    here = {"graph": "", "invocation": 1}
    return with_shared(
        [
            {"event": "input", "at": 0.0, "graph": "", "value": "When do you open?"},
            {"event": "node_start", "at": 0.0, "node": "classify", "step": 1, **here},
            *llm(1, 0.0, "classify", "question", "When do you open?"),
            {"event": "node_end", "at": 0.5, "node": "classify", "update": {}, "latency": 0.5, **here},
            {
                "event": "route",
                "at": 0.5,
                "source": "classify",
                "target": "answer",
                "condition": "default",
                **here,
            },
            {"event": "node_start", "at": 0.5, "node": "answer", "step": 2, **here},
            *llm(2, 0.5, "answer", reply, "When do you open?", "Answer it."),
            {
                "event": "node_end",
                "at": 1.0,
                "node": "answer",
                "update": {"answer": reply},
                "latency": 0.5,
                **here,
            },
            {"event": "end", "at": 1.0, "status": "completed", "output": reply, "error": None, "node": None},
        ]
    )


def write(folder: Path, outcomes: list[Outcome], history: HistoryWriter | None = None) -> Path:
    """Write the page of these outcomes. They are copied, since the writer removes their events."""
    with ResultsWriter(folder, history=history) as writer:
        for each in outcomes:
            writer.add(copy(each))
        writer.finish()
    return folder / "report.html"


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """Headless Chromium."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no chromium is installed: apt-get install chromium")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(scope="package")
def tab(browser: Any) -> Iterator[tuple[Any, list[str]]]:
    """Return a page and its problems: exceptions, policy violations, requests for anything but the file."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    opened = context.new_page()
    wrong: list[str] = []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    opened.on("request", lambda sent: None if sent.url.startswith("file:") else wrong.append(sent.url))
    opened.on("dialog", lambda dialog: wrong.append(dialog.message))
    yield opened, wrong
    context.close()


@pytest.fixture
def page(tab: tuple[Any, list[str]]) -> Iterator[Any]:
    """Yield an empty page; the test fails if it has problems."""
    opened, wrong = tab
    opened.goto("about:blank")
    wrong.clear()
    yield opened
    assert not wrong
