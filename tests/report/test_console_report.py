import io
from typing import Any

import pytest
from rich.console import Console

from harness.report.console import RunReporter, open_console, print_summary
from harness.report.formatting import wrapped
from harness.report.results import line
from harness.report.summary import summarise
from tests.report.fixtures import MakeCheck, MakeOutcome


def _console(**settings: Any) -> Any:
    return Console(file=io.StringIO(), width=80, markup=False, highlight=False, emoji=False, **settings)


def _terminal(width: int = 80) -> Any:
    """Return a terminal without colours and without a progress bar."""
    stream = io.StringIO()
    settings: Any = {"force_terminal": True, "color_system": None, "_environ": {"TERM": "dumb"}}
    return Console(
        file=stream, width=width, height=25, markup=False, highlight=False, emoji=False, **settings
    )


def _lines(console: Any) -> Any:
    return console.file.getvalue().splitlines()


def _summary(outcomes: Any) -> Any:
    return summarise(line(outcome) for outcome in outcomes)


def _report(
    console: Any, outcomes: Any, total: Any = None, coverage: Any = False, incomplete: str = ""
) -> Any:
    reporter = RunReporter(console, coverage=coverage)
    reporter.start(len(outcomes) if total is None else total)
    for outcome in outcomes:
        reporter.done(outcome)
    reporter.finish(_summary(outcomes) | {"reason": incomplete or None})
    return _lines(console)


def test_the_summary_is_one_block_of_figures(outcome: MakeOutcome) -> None:
    usage = {"llm_calls": 1, "input_tokens": 1200, "output_tokens": 34, "cost": 0.5, "by_model": {}}
    shape = {"nodes": ["a", "b"], "edges": [["a", "b"]], "branches": ["a -> b [x]"]}
    coverage = {"nodes": ["a"], "edges": [], "branches": []}
    runs = [
        outcome(usage=usage, wall=0.25, shape=shape, coverage=coverage),
        outcome("failed", repeat=1, score=0.5, latency={"total": 2.0, "nodes": {}}, warnings=["a", "b", "b"]),
        outcome("skipped", scenario="later"),
    ]
    console = _terminal()
    print_summary(_summary(runs), console, coverage=True)
    assert _lines(console) == [
        "",
        "3 warnings, 2 different:",
        "  b",
        "    triage.scenario.yaml::a double charge",
        "  a",
        "    triage.scenario.yaml::a double charge",
        "",
        "1 passed · 1 failed · 1 skipped   (3 runs of 2 scenarios)",
        "pass rate  50.0 %",
        "fitness    0.750",
        "repeats    pass@2 100 % · pass^2 0 %",
        "latency    p50 1.25 s · p95 1.92 s · max 2.00 s  (virtual)",
        "tokens     1,200 in · 34 out · cost 0.5",
        "real time  250 ms",
        "flaky      triage.scenario.yaml::a double charge  (1 of 2 passed)",
        "slowest    2.00 s  triage.scenario.yaml::a double charge",
        "coverage   triage.yaml  nodes 1/2 · edges 0/1 · branches 0/1",
        "             not taken: node b",
        "             not taken: edge a → b",
        "             not taken: branch a -> b [x]",
    ]


def _labels(outcomes: Any) -> list[str]:
    console = _console()
    print_summary(_summary(outcomes), console)
    return [line.partition("  ")[0] for line in _lines(console) if "  " in line]


def test_figures_that_are_zero_because_stubs_answer_are_left_out(outcome: MakeOutcome) -> None:
    quick = {"latency": {"total": 0.0, "nodes": {}}}
    assert _labels([outcome(**quick)]) == ["1 passed", "pass rate", "fitness", "real time"]


@pytest.mark.parametrize("real", [{"varies": True}, {"recording": 1}])
def test_figures_that_are_zero_though_real_models_answer_are_shown(outcome: MakeOutcome, real: Any) -> None:
    runs = [outcome(latency={"total": 0.0, "nodes": {}}, **real)]
    assert _labels(runs) == ["1 passed", "pass rate", "fitness", "latency", "tokens", "real time"]
    console = _console()
    print_summary(_summary(runs), console)
    assert "tokens  0 in · 0 out · cost 0" in _lines(console)


@pytest.mark.parametrize(
    ("cost", "shown"), [(0.0, "7 in · 2 out"), (0.5, "7 in · 2 out · cost 0.5"), (None, "(no price of ours)")]
)
def test_tokens_of_stubs_have_a_cost_if_there_is_one_or_a_price_is_missing(
    outcome: MakeOutcome, cost: float | None, shown: str
) -> None:
    tokens = {"llm_calls": 1, "input_tokens": 7, "output_tokens": 2, "cost": cost}
    console = _console()
    print_summary(_summary([outcome(usage={**tokens, "by_model": {"ours": tokens}})]), console)
    assert [line for line in _lines(console) if line.startswith("tokens") and line.endswith(shown)]


@pytest.mark.parametrize(("runs", "interval"), [(9, ""), (10, "  (95 % interval 72.2 % to 100 %)")])
def test_the_interval_of_a_few_runs_is_left_out(outcome: MakeOutcome, runs: int, interval: str) -> None:
    console = _console()
    print_summary(_summary(outcome(scenario=f"s{n}") for n in range(runs)), console)
    assert f"pass rate  100 %{interval}" in _lines(console)


def test_nothing_is_padded_if_output_is_no_terminal(outcome: MakeOutcome) -> None:
    shown = _report(_console(), [outcome(warnings=["odd"], score=0.5), outcome("failed", scenario="two")])
    assert shown[0].startswith("passed  500 ms  triage.scenario.yaml::a double charge")
    assert "fitness  0.250" in shown
    assert not [line for line in shown if line != line.rstrip()]


def test_run_below_the_full_score_lists_failed_checks(outcome: MakeOutcome, failed_check: MakeCheck) -> None:
    checks = [failed_check("path", "step 2: expected b, was c\n  ran a → c")]
    for console in (_console(), _terminal()):
        shown = _report(console, [outcome(score=0.75, checks=checks), outcome(scenario="whole")])
        at = shown.index("1 run passed below the full score:")
        assert shown[at + 1 : at + 4] == [
            "  triage.scenario.yaml::a double charge  score 0.75",
            "    path: step 2: expected b, was c",
            "      ran a → c",
        ]
        assert [line for line in shown[:at] if line.endswith("a double charge  score 0.75: path")]


def test_run_with_a_latency_penalty_has_a_note(outcome: MakeOutcome) -> None:
    shown = _report(_console(), [outcome(score=0.8, latency_penalty=0.2)])
    assert "    latency: over the bound of `latency.total`, penalty 0.20" in shown


def test_warning_of_many_scenarios_is_shown_once_with_one_name(outcome: MakeOutcome) -> None:
    runs = [outcome(scenario=f"s{n}", warnings=["no such\n  field"]) for n in range(5)]
    shown = _report(_console(), runs)
    at = shown.index("5 warnings, 1 different:")
    assert shown[at + 1 : at + 3] == [
        "  no such field",
        "    5 scenarios, such as triage.scenario.yaml::s0",
    ]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_terminal_lines_wrap_between_words_and_names_keep_their_end(
    outcome: MakeOutcome, failed_check: MakeCheck, width: int
) -> None:
    checks = [failed_check("state", f"expected {'one word after another ' * 10}")]
    runs = [outcome("failed", scenario=f"{'a long name ' * 10}number {n}", checks=checks) for n in range(2)]
    console = _terminal(width=width)
    shown = [line for line in _report(console, runs) if not line.startswith("  rerun")]
    assert max(map(len, shown)) <= width
    assert [line for line in shown if line.startswith("failed ") and line.endswith("number 1")]
    words = " ".join(shown).split()
    assert "anoth" not in words
    assert words.count("another") == 20


def test_failures_are_emphasised_on_a_terminal_with_colours(
    outcome: MakeOutcome, failed_check: MakeCheck
) -> None:
    check = failed_check("state", "expected 'a', was 'b'")
    console = _console(force_terminal=True, color_system="standard", _environ={"TERM": "xterm"})
    shown = _report(console, [outcome("failed", checks=[check])])
    assert "\x1b[1ma double charge — score 0.00, failed\x1b[0m" in shown
    assert "    expected \x1b[32m'a'\x1b[0m, was \x1b[1;31m'b'\x1b[0m" in shown


def test_no_escape_sequences_without_colours(outcome: MakeOutcome, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("NO_COLOR", "1")
    console = open_console(Terminal())
    shown = _report(console, [outcome(), outcome("failed", scenario="two")])
    assert "\x1b" not in "\n".join(shown)
    assert max(map(len, shown)) <= console.width


def test_summary_without_warnings_does_not_mention_them(outcome: MakeOutcome) -> None:
    assert not [text for text in _report(_console(), [outcome()]) if "warnings" in text]


def test_long_names_of_untaken_nodes_are_cut(outcome: MakeOutcome) -> None:
    node = "n" * 10_000
    shape = {"nodes": ["a", node], "edges": [["a", node]], "branches": []}
    shown = _report(_console(), [outcome(shape=shape)], coverage=True)
    assert len("".join(shown)) < 1000
    assert f"{'n' * 59}…" in "".join(shown)


def test_the_summary_fits_eighty_columns(outcome: MakeOutcome) -> None:
    console = _terminal()
    print_summary(_summary([outcome(scenario="a long name " * 20, repeat=i) for i in range(2)]), console)
    assert max(map(len, console.file.getvalue().splitlines())) <= 80


def test_empty_run_has_a_summary() -> None:
    console = _console()
    print_summary(summarise([]), console)
    assert _lines(console)[1] == "0 passed   (0 runs of 0 scenarios)"


def test_each_scenario_has_a_plain_line_if_output_is_no_terminal(
    outcome: MakeOutcome, failed_check: MakeCheck
) -> None:
    runs = [
        outcome(),
        outcome("failed", scenario="broken", checks=[failed_check("path"), failed_check("state")]),
    ]
    shown = _report(_console(), runs)
    assert shown[:2] == [
        "passed  500 ms  triage.scenario.yaml::a double charge",
        "failed  500 ms  triage.scenario.yaml::broken  path, state",
    ]
    assert "\x1b" not in "\n".join(shown)


def test_failures_are_printed_before_the_summary(outcome: MakeOutcome, failed_check: MakeCheck) -> None:
    shown = _report(_console(), [outcome("failed", checks=[failed_check("path", "expected b, was c")])])
    assert shown.index("    expected b, was c") < shown.index("0 passed · 1 failed   (1 run of 1 scenario)")


def test_incomplete_run_shows_the_reason(outcome: MakeOutcome) -> None:
    shown = _report(_console(), [outcome()], incomplete="interrupted after 1 of 40 runs")
    assert "not whole  interrupted after 1 of 40 runs" in shown


def test_complete_run_shows_no_reason(outcome: MakeOutcome) -> None:
    assert not [text for text in _report(_console(), [outcome()]) if "stopped" in text]


def test_only_the_first_of_many_failures_are_printed_in_full(outcome: MakeOutcome) -> None:
    shown = _report(_console(), [outcome("failed", scenario=f"s{i}") for i in range(25)])
    assert len([text for text in shown if "rerun" in text]) == 20
    assert "… and 5 more that did not pass" in shown


def test_fault_of_many_scenarios_is_printed_once_with_their_names(outcome: MakeOutcome) -> None:
    error = {"type": "ManifestError", "code": "unknown-node", "message": "m.yaml:3:1: no node 'x'"}
    runs = [
        outcome("error", scenario=name, status="invalid", error=error) for name in ("one", "two", "three")
    ]
    shown = _report(_console(), runs)
    assert len([text for text in shown if "no node 'x'" in text]) == 2  # as it happens, and at the end
    at = shown.index("  same   triage.scenario.yaml::two")
    assert shown[at + 1] == "         triage.scenario.yaml::three"
    assert "one, and 2 more runs — score 0.00, error" in shown
    assert [text for text in shown if text.endswith("two  the same as above")]


def test_reference_to_an_earlier_failure_names_it_unless_it_is_directly_above(outcome: MakeOutcome) -> None:
    error = {"type": "ManifestError", "code": "unknown-node", "message": "m.yaml:3:1: no node 'x'"}
    broken = [
        outcome("error", scenario=name, status="invalid", error=error) for name in ("one", "two", "three")
    ]
    shown = _report(_console(), [broken[0], outcome(scenario="fine"), *broken[1:]])
    assert [text for text in shown if text.endswith("two  the same as triage.scenario.yaml::one")]
    assert [text for text in shown if text.endswith("three  the same as above")]


def test_on_a_terminal_there_is_a_bar_and_a_line_for_each_failure(
    outcome: MakeOutcome, failed_check: MakeCheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "CI"):  # a log of CI has no bar
        monkeypatch.delenv(name, raising=False)
    console = _console(
        force_terminal=True, color_system="truecolor", legacy_windows=False, _environ={"TERM": "xterm"}
    )
    _report(console, [outcome(), outcome("failed", scenario="broken", checks=[failed_check()])])
    shown = console.file.getvalue()
    assert "2 of 2 · 1 passed · 1 failed" in shown
    assert "\x1b[31mfailed" in shown
    assert "\x1b[32mpassed " not in shown


@pytest.mark.parametrize("name", ["[red]not markup[/red]", "[/]", ":smile:", "\x1b[31mred"])
def test_names_are_never_markup(outcome: MakeOutcome, name: Any) -> None:
    shown = "\n".join(_report(_console(), [outcome(scenario=name)], coverage=True))
    assert f"::{name}".replace("\x1b", "\\x1b") in shown


def test_unencodable_characters_are_escaped(outcome: MakeOutcome) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    print_summary(_summary([outcome()]), open_console(stream))
    stream.flush()
    assert b"1 passed   (1 run of 1 scenario)" in stream.buffer.getvalue()


def test_repeats_with_the_same_loss_are_one_line(outcome: MakeOutcome, failed_check: MakeCheck) -> None:
    checks = [failed_check("path", "step 2: expected b, was c")]
    shown = _report(_console(), [outcome(score=0.75, checks=checks, repeat=n) for n in range(3)])
    at = shown.index("3 runs passed below the full score:")
    assert shown[at + 1 : at + 4] == [
        "  triage.scenario.yaml::a double charge  score 0.75  × 3",
        "    path: step 2: expected b, was c",
        "",
    ]


def test_at_most_ten_different_warnings_are_listed(outcome: MakeOutcome) -> None:
    shown = _report(_console(), [outcome(warnings=[f"w{n:02}" for n in range(14)])])
    at = shown.index("14 warnings:")
    assert shown[at + 19 : at + 22] == [
        "  w09",
        "    triage.scenario.yaml::a double charge",
        "  … and 4 more, in summary.json",
    ]


def test_overlong_word_keeps_its_indentation() -> None:
    assert wrapped(f"  {'x' * 50} and more", 40).split("\n") == [f"  {'x' * 50}", "    and more"]
