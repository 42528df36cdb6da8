"""report.html in a real browser: what people do with it, and what a hostile model cannot do."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.graph.sharing import with_shared
from harness.report.history.file import HistoryWriter
from harness.report.results import ResultsWriter, line
from harness.report.summary import summarise
from harness.scenario.outcome import Outcome
from tests.report.html.conftest import HOSTILE, NOTHING, TURNED, astray, outcome

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
AXE = Path(__file__).parent / "node_modules/axe-core/axe.min.js"
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed: apt-get install chromium")
pytest.importorskip("playwright", reason="playwright is not installed")


def llm(number: int, at: float, node: str, reply: str, *texts: str) -> list[dict[str, Any]]:
    """A call of a model, and its answer half a second later."""
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


def told(reply: str = "We open at nine.") -> list[dict[str, Any]]:
    """The events of a run that went by the default."""
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


OUTCOMES = [
    outcome("a question is answered", tags=["opening"], events=told()),
    outcome("a double charge", "failed", checks=[astray()], tags=["billing"], events=told()),
    outcome("it may rain", repeat=0),
    outcome("it may rain", "failed", repeat=1, checks=[astray()]),
    outcome("a person is asked", status="interrupted", interrupts=["ok?"]),
    outcome("not yet", "skipped", status="skipped", reason="later", coverage=NOTHING, shape=NOTHING),
    outcome(
        HOSTILE + TURNED, "error", status="failed", tags=[HOSTILE], warnings=[HOSTILE],
        output=HOSTILE + "x" * 100_000,
        error={"type": HOSTILE, "code": None, "message": HOSTILE + TURNED, "node": HOSTILE, "where": None},
        events=told(HOSTILE + TURNED + "y" * 100_000),
    ),
]  # fmt: skip


PASSED = [outcome("a question is answered"), outcome("a double charge"), outcome(HOSTILE)]


def write(folder: Path, outcomes: list[Outcome], history: HistoryWriter | None = None) -> Path:
    with ResultsWriter(folder, history=history) as writer:
        for each in outcomes:
            writer.add(each)
        writer.finish()
    return folder / "report.html"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run that is the third of its project."""
    folder = tmp_path_factory.mktemp("run")
    history = HistoryWriter(folder / "history.jsonl", folder)
    for outcomes, incomplete in ((PASSED, ""), (OUTCOMES[:1], HOSTILE)):
        earlier = HistoryWriter(history.file, folder)
        lines = [line(each) for each in outcomes]
        for each in lines:
            earlier.add(each)
        earlier.append({**summarise(lines), "complete": not incomplete, "reason": incomplete or None})
    return write(folder, OUTCOMES, history)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page on which nothing may go wrong: no exception, no refusal of the policy, no request but for the file."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    opened = context.new_page()
    wrong: list[str] = []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    opened.on("request", lambda sent: None if sent.url.startswith("file:") else wrong.append(sent.url))
    opened.on("dialog", lambda dialog: wrong.append(dialog.message))
    yield opened
    context.close()
    assert not wrong


def names(page: Any) -> list[str]:
    return page.locator("#rows .name a").all_inner_texts()  # type: ignore[no-any-return]


def test_scenarios_are_searched_filtered_and_sorted_and_the_address_keeps_it(page: Any, report: Path) -> None:
    page.goto(report.as_uri())
    assert len(names(page)) == 6
    page.keyboard.press("/")
    page.keyboard.type("double")
    assert names(page) == ["a double charge"]
    page.fill("#search", "")
    page.select_option("#filter-verdict", "failed")
    assert sorted(names(page)) == ["a double charge", "it may rain"]
    page.get_by_role("button", name="score").click()
    page.get_by_role("button", name="score").click()
    assert names(page) == ["a double charge", "it may rain"]
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    assert names(page) == ["a double charge", "it may rain"]


def test_a_scenario_opens_with_the_keyboard_and_esc_leads_back(page: Any, report: Path) -> None:
    page.goto(report.as_uri() + "#scenarios&verdict=failed")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    assert page.locator("#view h2").inner_text() == "a double charge"
    page.keyboard.press("Escape")
    assert len(names(page)) == 2
    page.keyboard.press("n")
    page.keyboard.press("n")
    assert page.locator("#view h2").inner_text() == "it may rain"
    assert page.get_by_role("link", name="✗ 2").get_attribute("aria-current") == "true"  # the run that failed


def test_a_scenario_shows_its_check_its_path_and_where_it_went_astray(page: Any, report: Path) -> None:
    page.goto(report.as_uri() + "#scenario=triage.scenario.yaml%3A%3Aa%20double%20charge")
    assert page.locator(".diff .gone").inner_text().strip() == '-  "open_ticket"'
    assert page.locator(".diff .there").inner_text().strip() == '+  "answer"'
    assert page.locator("g.node.taken .name").all_text_contents() == ["classify", "answer"]
    assert page.locator("g.node.wrong .steps text").text_content() == "2"
    assert (
        "Step 2 is where it left the expected path: open_ticket was to follow."
        in page.locator("#view").inner_text()
    )
    page.locator(".event.current").wait_for()
    assert "answer starts" in page.locator(".event.current").inner_text()


def test_the_conversation_is_gone_through_step_by_step(page: Any, report: Path) -> None:
    page.goto(report.as_uri() + "#scenario=triage.scenario.yaml%3A%3Aa%20question%20is%20answered")
    page.locator(".story").wait_for()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    current = page.locator(".event.current")
    assert "gpt-4o" in current.inner_text()
    assert "500 ms, 12/3 tokens" in current.inner_text()
    assert page.locator("g.node.lit .name").text_content() == "classify"
    assert page.locator(".waterfall tr.lit th").all_inner_texts() == ["classify", "llm gpt-4o"]
    page.get_by_role("button", name="answer; call_llm; step 2").focus()
    page.keyboard.press("Enter")
    assert "answer starts" in current.inner_text()
    page.get_by_role("button", name="step ›").click()
    assert "1 message it had been sent before" in current.inner_text()
    assert "Answer it." in current.inner_text()


def test_a_manifest_shows_what_no_scenario_took_with_its_line(page: Any, report: Path) -> None:
    page.goto(report.as_uri() + "#manifests")
    page.get_by_role("link", name="triage.yaml").click()
    rows = page.locator("section[aria-label='Not taken'] tbody tr").all_inner_texts()
    assert 'branch\tclassify → open_ticket [state.intent == "billing"]\tmore.yaml:19' in rows
    assert page.locator("g.node.untaken .name").all_text_contents() == ["open_ticket"]


def test_what_a_hostile_model_said_is_only_text(page: Any, report: Path) -> None:
    page.goto(report.as_uri())
    title = page.title()
    page.get_by_role("link", name="gnp.exe").first.click()
    page.locator(".story").wait_for()
    for view in (
        "#scenarios",
        "#warnings",
        "#groups",
        "#latency",
        "#manifests",
        f"#scenario={HOSTILE}",
        "#run=</script>",
    ):
        page.evaluate("hash => { location.hash = hash }", view)
        page.wait_for_timeout(20)
    assert page.title() == title
    assert page.locator("img, iframe, object, a[href^=javascript], script[src]").count() == 0


def test_long_texts_are_folded_with_their_size(page: Any, report: Path) -> None:
    page.goto(report.as_uri())
    page.get_by_role("link", name="gnp.exe").first.click()
    more = page.locator("section[aria-label='State and output'] button.link").first
    assert more.inner_text().endswith("more characters")
    more.click()
    assert "x" * 100_000 in page.locator("section[aria-label='State and output']").inner_text()


def test_the_history_has_a_line_a_table_and_what_changed_when(page: Any, report: Path) -> None:
    page.goto(report.as_uri() + "#history")
    fitness = page.get_by_role("img", name="fitness over 3 runs: 1.000 first")
    assert fitness.locator("circle").count() == 3
    assert fitness.locator("circle.part").count() == 1
    runs = page.get_by_role("group", name="Runs, scrollable").get_by_role("row")
    assert runs.count() == 4
    assert f"no: {HOSTILE}" in runs.nth(2).inner_text()
    changed = page.get_by_role("row").filter(has_text="a double charge")
    assert "failing" in changed.inner_text()
    assert "last passed at 20" in changed.inner_text()
    assert changed.get_by_role("img", name="verdicts, the newest last: passed, failed").is_visible()
    changed.get_by_role("link").click()
    page.get_by_role("heading", name="a double charge").wait_for()
    assert page.title() != "owned"


def test_without_javascript_and_on_paper_there_are_totals_and_failures(browser: Any, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    text = page.locator("body").inner_text()
    assert "2 of 5 scenarios fail and 1 could not be judged; 1 skipped." in text
    assert "step 2: expected open_ticket, was answer" in text
    assert "triage.scenario.yaml" in text
    page.emulate_media(media="print")
    assert page.locator(".tiles").is_visible()
    context.close()


def test_ten_thousand_scenarios_open_at_once_and_scroll(page: Any, tmp_path: Path) -> None:
    report = write(
        tmp_path, [outcome(f"number {n}", *(["failed"] if n % 997 == 0 else [])) for n in range(10_000)]
    )
    assert report.stat().st_size < 30_000_000
    began = time.perf_counter()
    page.goto(report.as_uri() + "#scenarios&sort=name&verdict=passed")
    page.locator("#rows .name a").first.wait_for()
    assert time.perf_counter() - began < 10  # two seconds on a quiet machine
    assert page.locator("#rows tbody tr").count() < 120
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.get_by_role("link", name="number 9999", exact=True).wait_for()


@pytest.mark.skipif(
    not AXE.is_file(), reason="axe-core is not installed: make installs it where there is npm"
)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Any, report: Path, scheme: str) -> None:
    context = browser.new_context(
        viewport={"width": 1280, "height": 800}, color_scheme=scheme, bypass_csp=True
    )
    page = context.new_page()
    page.goto(report.as_uri())
    page.evaluate(AXE.read_text(encoding="utf-8"))
    double = "#scenario=triage.scenario.yaml%3A%3Aa%20double%20charge"
    found = []
    for view in (
        "#scenarios",
        double,
        "#manifests",
        "#manifest=triage.yaml",
        "#latency",
        "#groups",
        "#history",
    ):
        page.evaluate("hash => { location.hash = hash }", view)
        page.wait_for_timeout(50)
        for each in page.evaluate("axe.run()")["violations"]:
            found.append((view, each["id"], [node["html"][:120] for node in each["nodes"][:3]]))
    context.close()
    assert not found
