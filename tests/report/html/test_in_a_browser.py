"""report.html in a real browser: navigation, and protection against hostile replies."""

import unicodedata
from pathlib import Path
from typing import Any

import pytest

from harness.report.encoding import encode
from harness.report.history.file import HistoryWriter
from harness.report.html.overview import Baseline
from harness.report.html.page import page as page_of
from harness.report.results import line
from harness.report.summary import summarise, summary_of
from harness.source.display import printable
from harness.time.real import real
from tests.report.html.conftest import (
    HOSTILE,
    NOTHING,
    SHAPE,
    TAKEN,
    TURNED,
    outcome,
    run_events,
    write,
    wrong_path,
)

AXE = Path(__file__).parent / "node_modules/axe-core/axe.min.js"

OUTCOMES = [
    outcome("a question is answered", tags=["opening"], events=run_events()),
    outcome("a double charge", "failed", checks=[wrong_path()], tags=["billing"], events=run_events()),
    outcome("it may rain", repeat=0),
    outcome("it may rain", "failed", repeat=1, checks=[wrong_path()]),
    outcome("a person is asked", status="interrupted", interrupts=["ok?"]),
    outcome("not yet", "skipped", status="skipped", reason="later", coverage=NOTHING, shape=NOTHING),
    outcome(
        HOSTILE + TURNED, "error", status="failed", tags=[HOSTILE], warnings=[HOSTILE],
        output=HOSTILE + "x" * 100_000,
        error={"type": HOSTILE, "code": None, "message": HOSTILE + TURNED, "node": HOSTILE, "where": None},
        events=run_events(HOSTILE + TURNED + "y" * 100_000),
    ),
]  # fmt: skip


PASSED = [outcome("a question is answered"), outcome("a double charge"), outcome(HOSTILE)]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the page of the third run in the history of a project."""
    folder = tmp_path_factory.mktemp("run")
    history = HistoryWriter(folder / "history.jsonl", folder)
    for outcomes, incomplete in ((PASSED, ""), (OUTCOMES[:1], HOSTILE)):
        earlier = HistoryWriter(history.file, folder)
        lines = [line(each) for each in outcomes]
        for each in lines:
            earlier.add(each)
        earlier.append({**summarise(lines), "complete": not incomplete, "reason": incomplete or None})
    return write(folder, OUTCOMES, history)


def names(page: Any) -> list[str]:
    """Return the names in the table, once it has rows."""
    page.locator("#rows .name a").first.wait_for()
    return page.locator("#rows .name a").all_inner_texts()  # type: ignore[no-any-return]


LISTED = "name => [...document.querySelectorAll('#rows .name a')].map(each => each.innerText).join() === name"


def wait_for(page: Any, scenario: str) -> None:
    """Wait until the page of this scenario is shown."""
    page.locator("#view h2").get_by_text(scenario, exact=True).wait_for()


def test_search_filters_and_sorting_are_kept_in_the_address(page: Any, report: Path) -> None:
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


LEFT = "text => Array.from(text).filter(each => shown(`a${each}a`) === `a${each}a`).join('')"


def test_the_page_escapes_what_the_terminal_escapes(page: Any, report: Path) -> None:
    page.goto(report.as_uri())
    known = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) not in ("Cs", "Cn")]
    plain = [each for each in known if each in "\t\n" or printable(f"a{each}a") == f"a{each}a"]
    assert page.evaluate(LEFT, "".join(known)) == "".join(plain)
    for text in ("👩🏽‍🚀 ❤️‍🔥 🏳️‍🌈 1️⃣ ☎️", "می‌خواهم", "क्‍ष ශ්‍රී"):
        assert page.evaluate("shown", text) == text == printable(text)


def test_enter_opens_a_scenario_and_esc_leads_back(page: Any, report: Path) -> None:
    page.goto(report.as_uri() + "#scenarios&verdict=failed")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    wait_for(page, "a double charge")
    page.keyboard.press("Escape")
    assert len(names(page)) == 2
    page.keyboard.press("n")
    page.keyboard.press("n")
    wait_for(page, "it may rain")
    assert page.get_by_role("link", name="✗ 2").get_attribute("aria-current") == "true"  # the run that failed


def test_scenario_shows_why_a_node_ran_again_as_text(page: Any, tmp_path: Path) -> None:
    why = f"classify ran again because it failed: {HOSTILE}"
    report = write(tmp_path, [outcome("it may rain", "failed", checks=[wrong_path()], causes=[why])])
    page.goto(report.as_uri() + "#scenario=triage.scenario.yaml%3A%3Ait%20may%20rain")
    wait_for(page, "it may rain")
    assert page.locator("#view p.note").all_text_contents() == [why]


def test_scenario_shows_its_check_and_the_step_where_the_path_diverged(page: Any, report: Path) -> None:
    page.goto(report.as_uri() + "#scenario=triage.scenario.yaml%3A%3Aa%20double%20charge")
    assert page.locator(".diff .gone").inner_text().strip() == '-  "open_ticket"'
    assert page.locator(".diff .there").inner_text().strip() == '+  "answer"'
    assert page.locator("g.node.taken .name").all_text_contents() == ["classify", "answer"]
    assert page.locator("g.node.wrong .steps text").text_content() == "2"
    assert (
        "Step 2 differs from the expected path, which has open_ticket." in page.locator("#view").inner_text()
    )
    page.locator(".event.current").wait_for()
    assert "answer starts" in page.locator(".event.current").inner_text()


def test_conversation_can_be_stepped_through(page: Any, report: Path) -> None:
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
    assert "1 message as before" in current.inner_text()
    assert "Answer it." in current.inner_text()


def test_manifest_shows_untaken_parts_with_their_line(page: Any, report: Path) -> None:
    page.goto(report.as_uri() + "#manifests")
    page.get_by_role("link", name="triage.yaml").click()
    rows = page.locator("section[aria-label='Not taken'] tbody tr").all_inner_texts()
    assert 'branch\tclassify → open_ticket [state.intent == "billing"]\tmore.yaml:19' in rows
    assert page.locator("g.node.untaken .name").all_text_contents() == ["open_ticket"]


def test_manifests_with_untaken_branches_come_first(page: Any, tmp_path: Path) -> None:
    whole = {**SHAPE, "branches": TAKEN["branches"], "lines": {}}
    report = write(tmp_path, [outcome("a", manifest="a.yaml", shape=whole), outcome("b", manifest="b.yaml")])
    page.goto(report.as_uri() + "#manifests")
    assert page.locator("#view tbody th").all_inner_texts() == ["b.yaml", "a.yaml"]


def test_head_links_to_the_changes_since_the_baseline(page: Any, tmp_path: Path) -> None:
    before, now = tmp_path / "before", tmp_path / "now"
    write(before, [outcome("broken"), outcome("mended", "failed"), outcome("another way")])
    later = [
        outcome("broken", "failed", checks=[wrong_path()]),
        outcome("mended"),
        outcome("another way", path=["classify", "open_ticket"]),
    ]
    report = write(now, later)
    report.write_text(page_of(now, summary_of(now), Baseline.read(before)), encoding="utf-8")
    page.goto(report.as_uri())
    assert page.locator(".members .new").count() == 1
    for link, name in (
        ("1 fixed", "mended"),
        ("1 newly failing", "broken"),
        ("1 on another path", "another way"),
    ):
        page.get_by_role("link", name=link).click()
        page.wait_for_function(LISTED, arg=name)
    page.get_by_role("link", name="another way").click()
    page.get_by_text("Step 2 differs from the path of the baseline, which has answer.").wait_for()
    assert page.locator("g.node.wrong .name").text_content() == "open_ticket"


def test_only_unexpected_failures_are_marked_in_the_graph(page: Any, tmp_path: Path) -> None:
    error = {"type": "E", "code": None, "message": "no", "node": "answer", "where": None}
    failing = [outcome("as expected", error=error), outcome("unexpected", "failed", error=error)]
    report = write(tmp_path, failing)
    page.goto(report.as_uri() + "#scenario=triage.scenario.yaml::as expected")
    assert page.locator("g.node").count() == 3
    assert page.locator("g.node.wrong").count() == 0
    page.goto(report.as_uri() + "#scenario=triage.scenario.yaml::unexpected")
    assert page.locator("g.node.wrong title").text_content() == "answer; call_llm; step 2; it failed here"


def test_hostile_replies_are_shown_as_text(page: Any, report: Path) -> None:
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


ODD = ["100% + more & less #1 = ?", "a/b\\c 'd' \"e\" <f>", "ünï → 漢字 🙂", "%2B%", "a::b[c]"]


@pytest.mark.parametrize("name", ODD)
def test_a_copied_link_opens_the_same_scenario_whatever_its_name(
    page: Any, tmp_path: Path, name: str
) -> None:
    report = write(
        tmp_path, [outcome("another"), outcome(name, "failed", checks=[wrong_path()], variant=name)]
    )
    page.goto(report.as_uri())
    page.locator("#causes .members a").click()  # the address that stands in the page
    wait_for(page, f"{name} [{name}]")
    page.keyboard.press("Escape")
    page.locator("#rows .name a").first.click()  # the one that the script makes
    wait_for(page, f"{name} [{name}]")
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    wait_for(page, f"{name} [{name}]")


def test_esc_stays_on_a_page_that_was_opened_by_a_link(page: Any, report: Path) -> None:
    page.goto(report.as_uri() + "#scenario=triage.scenario.yaml%3A%3Aa%20double%20charge")
    page.keyboard.press("n")
    wait_for(page, "it may rain")
    page.keyboard.press("Escape")
    wait_for(page, "a double charge")
    page.keyboard.press("Escape")
    page.locator("#rows").wait_for()
    assert len(names(page)) == 6


def test_pointing_at_a_node_highlights_it_in_all_panes(page: Any, report: Path) -> None:
    page.goto(report.as_uri() + "#scenario=triage.scenario.yaml%3A%3Aa%20question%20is%20answered")
    page.locator(".story").wait_for()
    line = page.locator("section[aria-label=Nodes] tr", has_text="classify")
    assert line.locator(".place").inner_text() == "line 12"
    everywhere = [
        line,
        page.locator("g.node", has_text="classify"),
        page.locator(".waterfall tr", has_text="classify"),
        page.locator(".story .node_start", has_text="classify"),
        page.locator("p.path button", has_text="classify"),
    ]
    for pointed in everywhere:
        pointed.hover()
        assert [["lit" in each.get_attribute("class").split() for each in everywhere]] == [[True] * 5]
        assert page.locator(".lit", has_text="answer starts").count() == 0
    page.mouse.move(0, 0)  # where the page scrolls to what has the focus, it would point at something else
    for focused in (
        line.get_by_role("button"),
        everywhere[1],
        everywhere[2].get_by_role("button"),
        everywhere[4],
    ):
        page.locator("#main").focus()
        focused.focus()
        assert all("lit" in each.get_attribute("class").split() for each in everywhere)


def test_long_texts_are_folded_with_their_length(page: Any, report: Path) -> None:
    page.goto(report.as_uri())
    page.get_by_role("link", name="gnp.exe").first.click()
    more = page.locator("section[aria-label='State and output'] button.link").first
    assert more.inner_text().endswith("more characters")
    more.click()
    assert "x" * 100_000 in page.locator("section[aria-label='State and output']").inner_text()


def test_history_has_curves_a_table_and_changed_scenarios(page: Any, report: Path) -> None:
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


def test_totals_and_failures_are_shown_without_javascript_and_in_print(browser: Any, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    text = page.locator("body").inner_text()
    assert "2 of 5 scenarios fail and 1 could not be judged; 1 skipped." in text
    assert "step 2: expected open_ticket, was answer" in text
    assert "harness trace 'triage.scenario.yaml::a double charge'" in text
    assert "triage.scenario.yaml" in text
    page.emulate_media(media="print")
    assert page.locator(".tiles").is_visible()
    context.close()


def test_ten_thousand_scenarios_open_and_scroll_quickly(page: Any, tmp_path: Path) -> None:
    passed, failed = (encode(line(outcome("number N", verdict))) for verdict in ("passed", "failed"))
    lines = [(passed if n % 997 else failed).replace("number N", f"number {n}") for n in range(10_000)]
    (tmp_path / "results.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    report = tmp_path / "report.html"
    report.write_text(page_of(tmp_path, summary_of(tmp_path)), encoding="utf-8")
    assert report.stat().st_size < 30_000_000
    began = real.perf_counter()
    page.goto(report.as_uri() + "#scenarios&sort=name&verdict=passed")
    page.locator("#rows .name a").first.wait_for()
    took = real.perf_counter() - began
    assert took < 10, f"{took:.1f} s"  # one or two seconds on a quiet machine
    assert page.locator("#rows tbody tr").count() < 120
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.get_by_role("link", name="number 9999", exact=True).wait_for()
