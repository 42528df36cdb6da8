"""The layout of report.html on a laptop and on a phone: nothing is cut, and what scrolls shows that it does."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.report.html.conftest import llm, outcome, run_events, write, wrong_path
from tests.report.html.test_score import outcomes as scored_outcomes
from tests.report.html.test_score import scored
from tests.report.html.test_variants_and_costs import usage

NAME = "a customer who was charged twice for one order in December gets a ticket with both of its receipts"
PLACE = "billing/agents/triage_of_customers.yaml:112"
SHAPE = {
    "nodes": ["classify", "answer"],
    "edges": [["__start__", "classify"], ["classify", "answer"]],
    "branches": [],
    "kinds": ["call_llm", "call_llm"],
    "lines": {"nodes": [PLACE, PLACE], "edges": [10, 20], "branches": []},
}
LONG = [*run_events()[:-1], *(event for n in range(3, 40) for event in llm(n, 1.0, "answer", "ok", "x"))]

CUT = """all => all
    .filter(each => each.scrollWidth > each.clientWidth + 1 || each.scrollHeight > each.clientHeight + 1)
    .map(each => each.innerText)"""
FADES = "each => getComputedStyle(each).maskImage !== 'none'"
OVERFLOWS = "each => each.scrollWidth > each.clientWidth"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spent = usage("gpt-4o", "answer", 123_456, 0.00016)
    failed = outcome("it may rain", "failed", checks=[wrong_path()])
    return write(
        tmp_path_factory.mktemp("run"), [outcome(NAME, usage=spent, shape=SHAPE, events=LONG), failed]
    )


@pytest.fixture(scope="module")
def score_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("score")
    write(folder, scored_outcomes())
    return scored(folder)


def sized(page: Any, width: int, height: int) -> Iterator[Any]:
    before = page.viewport_size
    page.set_viewport_size({"width": width, "height": height})
    yield page
    page.set_viewport_size(before)


@pytest.fixture
def laptop(page: Any) -> Iterator[Any]:
    yield from sized(page, 1366, 768)


@pytest.fixture
def phone(page: Any) -> Iterator[Any]:
    yield from sized(page, 390, 844)


@pytest.fixture(params=[1366, 390])
def either(page: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    yield from sized(page, request.param, 800)


def opened(page: Any, report: Path, view: str, wait: str) -> Any:
    page.goto(report.as_uri() + view)
    page.locator(wait).first.wait_for()
    return page


def test_names_costs_and_verdicts_are_whole(either: Any, report: Path) -> None:
    cells = opened(either, report, "#scenarios", "#rows .name a").locator("#rows tbody :is(td, td *)")
    assert cells.evaluate_all(CUT) == []
    if either.viewport_size["width"] > 760:
        assert either.locator("#rows td.cost").all_inner_texts() == ["$0", "$0.00016"]


def test_cause_has_a_column_where_a_listed_scenario_has_a_cause(laptop: Any, report: Path) -> None:
    opened(laptop, report, "#scenarios", "#rows .name a")
    assert laptop.locator("#rows th.cause").count() == 1
    laptop.select_option("#filter-verdict", "passed")
    assert laptop.locator("#rows th.cause").count() == 0


def test_every_tab_is_in_sight_on_a_phone(phone: Any, score_report: Path) -> None:
    tabs = opened(phone, score_report, "#scenarios", "#tabs a").locator("#tabs a")
    ends = tabs.evaluate_all("all => all.map(each => each.getBoundingClientRect().right)")
    assert len(ends) == 6
    assert max(ends) <= 390


def test_tables_of_a_run_fit(either: Any, report: Path) -> None:
    opened(either, report, "#scenario=triage.scenario.yaml%3A%3A" + NAME, ".waterfall")
    tables = either.locator("#view .scroll")
    assert tables.count() == 2
    assert [table for table in tables.all() if table.evaluate(OVERFLOWS)] == []
    assert PLACE in either.locator("section[aria-label=Nodes]").inner_text()


def test_table_that_scrolls_fades_out_until_its_end(phone: Any, report: Path) -> None:
    table = opened(phone, report, "#groups", "#view .scroll").locator("#view .scroll").first
    assert [table.evaluate(OVERFLOWS), table.evaluate(FADES)] == [True, True]
    table.evaluate("each => new Promise(done => { each.onscroll = done; each.scrollLeft = 9999 })")
    assert not table.evaluate(FADES)


def test_conversation_that_scrolls_fades_out_until_its_end(laptop: Any, report: Path) -> None:
    opened(laptop, report, "#scenario=triage.scenario.yaml%3A%3A" + NAME, ".story")
    conversation, graph = (laptop.get_by_label(f"{name}, scrollable") for name in ("Conversation", "Graph"))
    assert [conversation.evaluate(FADES), graph.evaluate(FADES)] == [True, False]
    conversation.evaluate("each => new Promise(done => { each.onscroll = done; each.scrollTop = 99999 })")
    assert not conversation.evaluate(FADES)


def test_matrix_scrolls_beside_its_scenarios(phone: Any, score_report: Path) -> None:
    opened(phone, score_report, "#variants", "#rows tbody th")
    scenario, cell = phone.locator("#rows tbody th").first, phone.locator("#rows tbody .cell").nth(1)
    before = scenario.bounding_box()["x"], cell.bounding_box()["x"]
    phone.locator("#rows .scroll").evaluate("each => { each.scrollLeft = 100 }")
    assert (scenario.bounding_box()["x"], cell.bounding_box()["x"]) == (before[0], before[1] - 100)


def test_whole_cell_of_the_matrix_opens_its_conversations(laptop: Any, score_report: Path) -> None:
    cell = opened(laptop, score_report, "#variants", "#rows .cell").locator("#rows .cell.better")
    box = cell.bounding_box()
    cell.click(position={"x": box["width"] - 5, "y": box["height"] - 5})
    laptop.locator(".beside h3").first.wait_for()
    assert "#pair=" in laptop.url


SCROLLED = """y => new Promise(done => {
    addEventListener('scroll', () => requestAnimationFrame(done), {once: true}); scrollTo(0, y)
})"""
PLACES = """() => Object.fromEntries([...document.querySelectorAll('#rows tr[data-at]')]
    .map(each => [each.dataset.at, Math.round(each.getBoundingClientRect().top + scrollY)]))"""


def test_rows_of_a_large_table_stay_where_they_are_while_it_scrolls(phone: Any, tmp_path: Path) -> None:
    opened(
        phone, write(tmp_path, [outcome(f"{NAME} {n}") for n in range(300)]), "#scenarios", "#rows .name a"
    )
    phone.evaluate(SCROLLED, 6000)
    before = phone.evaluate(PLACES)
    phone.evaluate(SCROLLED, 7000)
    after = phone.evaluate(PLACES)
    both = before.keys() & after.keys()
    assert len(before) < 120
    assert max(abs(before[at] - after[at]) for at in both) <= 1
