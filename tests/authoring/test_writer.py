"""The scenario writer: what it writes is read as it was, and looks as if a person had written it."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.authoring.writer import Gap, appended, file_text, scenario_text
from harness.errors import FormatError
from harness.source.document import parse

# fmt: off
TEXTS = st.one_of(
    st.text(max_size=30),
    st.sampled_from([
        "a: b", "- x", "# c", "yes", "null", "~", "1", "1e3", "0x1", ".inf", "x #y", "[a]", "{a}", 'say "hi"', "it's",
        "a\nb", "a\n\n  b\n", "\n", "a\n\n", " a", "a ", "&a", "*a", "!x", "%x", "@x", "key:", "? a", "<<", "=",
        "tab\tx", "\x85", "\u2028", "true", "1:30", "2020-01-01", "-", "...", "x" * 200, "\ufeff", "\U000e0041",
    ]),
)
# fmt: on
VALUES = st.recursive(
    st.one_of(
        TEXTS, st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False, allow_infinity=False)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=20,
)
SCENARIOS = st.lists(
    st.fixed_dictionaries({"name": TEXTS}, optional={"input": VALUES, "llm": VALUES, "expect": VALUES}),
    min_size=1,
    max_size=3,
)


@given(SCENARIOS)
def test_what_is_written_is_read_as_it_was(scenarios: list[dict[str, Any]]) -> None:
    text = file_text({"harness": 1, "manifest": "a.yaml"}, scenarios)
    assert parse(text, file="", yaml="1.2").value["scenarios"] == scenarios


@given(SCENARIOS, SCENARIOS)
def test_scenarios_are_added_behind_the_others_which_stay_as_they_are(
    before: list[dict[str, Any]], added: list[dict[str, Any]]
) -> None:
    text = file_text({"harness": 1}, before)
    more = appended(text, Path("a.scenario.yaml"), added)
    assert more.startswith(text.rstrip("\n"))
    assert parse(more, file="", yaml="1.2").value["scenarios"] == before + added


@pytest.mark.parametrize("text", [
    "harness: 1\r\nscenarios:\r\n- name: a  # the first\r\n  input: |\r\n    b\r\n",
    "harness: 1\nscenarios:\n    -   name: a\n        llm: &x [b]\n# the end",
])  # fmt: skip
def test_a_file_is_continued_in_its_own_style(text: str) -> None:
    more = appended(text, Path("a.scenario.yaml"), [{"name": "new", "input": "x"}])
    assert more.startswith(text.rstrip("\r\n"))
    assert ("\r\n" in text) == ("\r\n" in more.removeprefix(text))
    assert parse(more, file="", yaml="1.2").value["scenarios"][1] == {"name": "new", "input": "x"}


@pytest.mark.parametrize("text", [
    "harness: 1\nscenarios: [{name: a}]\n", "scenarios:\n  - name: a\nharness: 1\n", "harness: 1\n", "[]\n"
])  # fmt: skip
def test_a_file_that_cannot_be_continued_is_refused(text: str) -> None:
    with pytest.raises(FormatError) as refused:
        appended(text, Path("a.scenario.yaml"), [{"name": "new"}])
    assert refused.value.code == "cannot-append"


def test_a_question_inside_of_brackets_is_quoted_since_other_readers_take_it_for_a_key() -> None:
    text = file_text({"harness": 1}, [{"name": "a", "expect": {"output": {"input": "where to?"}}}])
    assert '{input: "where to?"}' in text
    assert yaml.safe_load(text)["scenarios"][0]["expect"] == {"output": {"input": "where to?"}}


def test_it_is_written_as_a_person_writes() -> None:
    scenario = {
        "name": "the weather is looked up",
        "input": "Rain in Bergen, tomorrow?",
        "llm": {"tell": [{"tool_calls": [{"name": "forecast", "args": {"city": "Bergen"}}]}, "Yes, rain."]},
        "tools": {"forecast": {"return": "Bergen: rain\n18 degrees\n"}},
        "expect": {"path": ["tell", ["a", "b"]], "output": 'It says "yes"', "state": {"n": 3, "ok": "true"}},
    }
    assert scenario_text(scenario, 2) == (
        "  - name: the weather is looked up\n"
        "    input: Rain in Bergen, tomorrow?\n"
        "    llm:\n"
        "      tell:\n"
        "        - tool_calls: [{name: forecast, args: {city: Bergen}}]\n"
        "        - Yes, rain.\n"
        "    tools:\n"
        "      forecast:\n"
        "        return: |\n"
        "          Bergen: rain\n"
        "          18 degrees\n"
        "    expect:\n"
        "      path: [tell, [a, b]]\n"
        "      output: 'It says \"yes\"'\n"
        '      state: {n: 3, ok: "true"}\n'
    )


def test_a_gap_is_marked() -> None:
    text = scenario_text({"name": "a", "llm": [Gap("the reply\nwas not exported")]}, 0)
    assert "- …  # the reply was not exported" in text or '- "…"  # the reply was not exported' in text


def test_matchers_need_no_quotes() -> None:
    assert "output: {$contains: Sorry}" in scenario_text({"expect": {"output": {"$contains": "Sorry"}}}, 2)
