"""Everything that is wrong with a scenario file, told at once, at its place, with what to do about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import FormatError
from harness.scenario.load import load_file
from tests.scenario.load_errors import in_scenario, problems, told


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path("a.scenario.yaml")


SCENARIOS = "write scenarios: [{name: …, input: …}]"


def test_all_problems_of_a_file_are_told_at_once_in_its_order(file: Path) -> None:
    text = """\
harness: 2
manifset: m.yaml
defaults: {timeout: 0}
scenarios:
  - name: a
    llm: {n: [{repaly: hi}]}
    expect: {state: {x: {$conatins: y}}}
  - {name: a, turns: [{input: x}], input: y}
  - 5
"""
    assert told(file, text) == [
        "1:10 this file is of format version 2; version 1 can be read|",
        "2:1 unknown key 'manifset' in a scenario file|did you mean 'manifest'?",
        "3:21 timeout: must be greater than 0, found the number 0|",
        "5:11 missing key 'manifest': neither the file nor the scenario names one|",
        "6:16 unknown key 'repaly' in a stub|did you mean 'reply'?",
        "7:26 unknown matcher '$conatins'|did you mean '$contains'?",
        "8:12 a second scenario 'a' (first in line 5)|",
        "8:12 missing key 'manifest': neither the file nor the scenario names one|",
        "8:36 'input' cannot be combined with 'turns'|it is that of the first turn: turns: [{input: …}, …]",
        f"9:5 scenarios[2]: expected a mapping, found the number 5|{SCENARIOS}",
    ]


def test_codes_are_stable(file: Path) -> None:
    text = (
        "harness: 1\nmanifest: m.yaml\nscenarios:\n"
        "  - {name: a, tags: x, timout: 1, llm: [{}], expect: {routes: [{to: b}]}}"
    )
    assert [problem.code for problem in problems(file, text)] == [
        "wrong-type",
        "unknown-key",
        "missing-answer",
        "missing-key",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1:1 the file is empty|"),
        ("a: [", "1:4 not valid YAML: this '[' is never closed|close it with ']'"),
        ("- 1", "1:1 expected a mapping, found a list|"),
        (
            "manifest: m\nscenarios: [{name: x}]",
            "1:1 missing key 'harness' in a scenario file|write harness: 1",
        ),
        ("harness: 1\nmanifest: m", f"1:1 missing key 'scenarios' in a scenario file|{SCENARIOS}"),
        (
            "harness: 1\nmanifest: m\ntests: []\nscenarios: [{name: x}]",
            "3:1 unknown key 'tests' in a scenario file|did you mean 'scenarios'?",
        ),
        (
            "harness: 1\nmanifest: m\nexpect: {}\nscenarios: [{name: x}]",
            "3:1 unknown key 'expect' in a scenario file|"
            "'expect' belongs in an item of 'scenarios', or under 'defaults'",
        ),
        (
            "harness: '1'\nmanifest: m\nscenarios: [{name: x}]",
            "1:10 harness: expected a whole number, found text '1'|write it without quotes",
        ),
        (
            "harness: 1\nmanifest: m\nscenarios: []",
            f"3:12 scenarios: must have at least 1 item, found an empty list|{SCENARIOS}",
        ),
        (
            "harness: 1\nmanifest: []\nscenarios: [{name: x}]",
            "2:11 manifest: must have at least 1 item, found an empty list|",
        ),
        (
            "harness: 1\nmanifest: m\nharness: 1\nscenarios: [{name: x}]",
            "3:1 key 'harness' is given twice (first in line 1)|",
        ),
        (
            "harness: 1\nmanifest: m\nenv: {A: [1]}\nscenarios: [{name: x}]",
            "3:10 A: expected text, found a list|",
        ),
        (
            "harness: 1\nmanifest: m\ndialect: shrema\nscenarios: [{name: x}]",
            "3:10 unknown dialect 'shrema'|did you mean 'sherma'?",
        ),
        (
            "harness: 1\nmanifest: m\nagent: a\nentry_point: b\nscenarios: [{name: x}]",
            "3:1 'agent' cannot be combined with 'entry_point'|",
        ),
        (
            "harness: 1\nmanifest: m\ndefaults: {name: y}\nscenarios: [{name: x}]",
            "3:12 a name cannot have a default|",
        ),
        ("harness: 1\nmanifest: m\nscenarios: [{input: x}]", "3:13 missing key 'name' in a scenario|"),
    ],
)
def test_mistakes_in_a_file(file: Path, text: str, expected: str) -> None:
    assert expected in told(file, text)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("timout: 3", "5:1 unknown key 'timout' in a scenario|did you mean 'timeout'?"),
        ("agent: a, entry_point: b", "5:1 'agent' cannot be combined with 'entry_point'|"),
        (
            "turns: [{input: a}], human: [x]",
            "5:22 'human' cannot be combined with 'turns'|each answer is a turn: turns: [{input: …}, {resume: …}]",
        ),
        ("path: [a]", "5:1 unknown key 'path' in a scenario|'path' belongs under 'expect'"),
        ("assert: {}", "5:1 unknown key 'assert' in a scenario|did you mean 'expect'?"),
        (
            "turns: [{timeout: 3}]",
            "5:10 unknown key 'timeout' in a turn|'timeout' belongs further out, in a scenario",
        ),
        ("turns: []", "5:8 turns: must have at least 1 item, found an empty list|"),
        ("turns: [{resume: a}]", "5:10 the first turn has nothing to resume, and nothing to run again|"),
        (
            "turns: [{input: a}, {input: a, resume: b}]",
            "5:32 a turn has an input, or resumes, or reruns: only one of these|",
        ),
        (
            "turns: [{input: a}, {resume: b, agent: c}]",
            "5:33 a turn with an input has one entry; one that resumes or reruns has none|",
        ),
        (
            "turns: [{input: a}, {agent: b, entry_point: c}]",
            "5:32 a turn with an input has one entry; one that resumes or reruns has none|",
        ),
        ("turns: [{input: a, expct: 1}]", "5:20 unknown key 'expct' in a turn|did you mean 'expect'?"),
        ("input: 5", "5:8 input: expected text or a mapping, found the number 5|quote it to make it text"),
        ("weight: 0", "5:9 weight: must be greater than 0, found the number 0|"),
        (
            "weight: 1e308",
            "5:9 weight: must be less than or equal to 1000000000000000, found the number 1e+308|",
        ),
        (
            "expect: {weights: {state: 1e308}}",
            "5:27 state: must be less than or equal to 1000000000000000, found the number 1e+308|",
        ),
        (
            "timeout: 30s",
            "5:10 timeout: expected a number, found text '30s'|write the number without its unit",
        ),
        ("timeout: soon", "5:10 timeout: expected a number, found text 'soon'|"),
        ("tags: 'a: b'", "5:7 tags: expected a list, found text 'a: b'|"),
        (
            "timeout: 1e10",
            "5:10 timeout: must be less than or equal to 1000000000, found the number 10000000000.0|",
        ),
        (
            "llm: [{reply: a, usage: {input_tokens: 1000000000000000}}]",
            "5:40 input_tokens: must be less than 1000000000000000, found the number 1000000000000000|",
        ),
        ("weight: .inf", "5:9 weight: expected a finite number, found the number inf|"),
        ("repeat: 0", "5:9 repeat: must be greater than or equal to 1, found the number 0|"),
        ("repeat: 1.5", "5:9 repeat: expected a whole number, found the number 1.5|"),
        ("pass_score: 2", "5:13 pass_score: must be less than or equal to 1, found the number 2|"),
        ("skip: true", "5:7 skip: expected text, found true|quote it to make it text"),
        ("tags: a", "5:7 tags: expected a list, found text 'a'|a list of one is written [a]"),
        ("tags: [a, 3]", "5:11 tags[1]: expected text, found the number 3|quote it to make it text"),
        ("tags: [skip]", "5:8 the tag 'skip' is one of pytest's own marks|use the keys 'skip' and 'xfail'"),
        ("tags: [usefixtures]", "5:8 the tag 'usefixtures' is one of pytest's own marks|choose another word"),
        ("description: 3", "5:14 description: expected text, found the number 3|quote it to make it text"),
        ("allow_unused: yes", "5:15 allow_unused: expected true or false, found text 'yes'|"),
    ],
)
def test_mistakes_in_a_scenario(file: Path, keys: str, expected: str) -> None:
    assert in_scenario(file, keys) == [expected]


def test_tags_are_words_that_can_be_selected(file: Path) -> None:
    for tag in ("'a b'", "not", "_x", "'a,b'", "''"):
        (text,) = in_scenario(file, f"tags: [{tag}]")
        assert "cannot be selected with -m" in text


def test_a_name_is_one_line(file: Path) -> None:
    for name in ("''", '"a\\nb"', "' '"):
        assert told(file, f"harness: 1\nmanifest: m\nscenarios: [{{name: {name}}}]") == [
            "3:20 a name is one line of text|"
        ]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (
            "llm: 3",
            "5:6 llm: expected a list of stubs, or a mapping from node to such a list, found the number 3|",
        ),
        ("llm: {a: x}", "5:10 a: expected a list, found text 'x'|a list of one is written [x]"),
        ("llm: [3]", "5:7 llm[0]: expected a text or a stub, found the number 3|quote it to make it text"),
        (
            "llm: [{reply: a, json: 1}]",
            "5:18 a stub gives one answer: 'json' cannot be combined with 'reply'|",
        ),
        (
            "llm: [{json: 1, tool_calls: []}]",
            "5:17 a stub gives one answer: 'tool_calls' cannot be combined with 'json'|",
        ),
        ("llm: [{error: auth, reply: a}]", "5:21 a stub answers with 'error' or with 'reply', not both|"),
        ("llm: [{error: auth, usage: {}}]", "5:21 a stub answers with 'error' or with 'usage', not both|"),
        (
            "llm: [{latency: 1}]",
            "5:7 this stub has no answer|give it reply, json, tool_calls, chunks or error",
        ),
        (
            "llm: [{reply: a, times: 0}]",
            "5:25 times: expected a whole number from 1, or any, found the number 0|",
        ),
        (
            "llm: [{reply: a, times: all}]",
            "5:25 times: expected a whole number from 1, or any, found text 'all'|",
        ),
        (
            "llm: [{reply: a, latency: -1}]",
            "5:27 latency: must be greater than or equal to 0, found the number -1|",
        ),
        ("llm: [{reply: null}]", "5:15 reply: expected text, found nothing (null)|"),
        ("llm: [{tool_calls: [{nme: a}]}]", "5:22 unknown key 'nme' in a tool call|did you mean 'name'?"),
        ("llm: [{error: {type: KeyError}}]", "5:15 missing key 'kind' in an error|"),
        ("llm: [{error: {kind: auth, type: KeyError}}]", "5:28 'type' goes with kind: exception|"),
        (
            "llm: [{error: {kind: exception, type: ValueEror}}]",
            "5:39 there is no built-in exception 'ValueEror'|did you mean 'ValueError'?",
        ),
        (
            "llm: [{error: {kind: exception, type: SystemExit}}]",
            "5:39 'SystemExit' is not the name of an exception|",
        ),
        (
            "tools: {t: rael}",
            "5:12 'rael' is neither 'real' nor the dotted path of a callable|did you mean 'real'?",
        ),
        (
            "tools: {t: sunny}",
            "5:12 'sunny' is neither 'real' nor the dotted path of a callable|to return it, write {return: sunny}",
        ),
        ("tools: {t: {real: fn}}", "5:19 'fn' is not a dotted path, such as package.module.name|"),
        (
            "tools: {t: {real: a.b, return: 1}}",
            "5:24 unknown key 'return' in an entry with 'real'|known: real",
        ),
        ("tools: {t: {retrun: 1, return: 1}}", "5:13 unknown key 'retrun' in a stub|did you mean 'return'?"),
        (
            "scripts: {s: pkg.fn}",
            "5:14 s: expected real, found text 'pkg.fn'|write scripts: {check: {return: {…}}}",
        ),
        (
            "tools: {t: [sunny]}",
            "5:13 t[0]: expected a mapping, found text 'sunny'|write tools: {find_order: {return: …}}",
        ),
        (
            "tools: {t: tools/a.py}",
            "5:12 'tools/a.py' is neither 'real' nor the dotted path of a callable|"
            "a function is written module.function, its module as Python imports it",
        ),
        ("llm: [{content: a}]", "5:8 unknown key 'content' in a stub|did you mean 'reply'?"),
        (
            "llm: [{tool_calls: [{name: a, function: a}]}]",
            "5:31 unknown key 'function' in a tool call|write {name: …, args: {…}}",
        ),
        (
            "mcp: {s: {tools: [{name: a, return: 1}]}}",
            "5:29 unknown key 'return' in an MCP tool|'return' belongs in an item of 'stubs'",
        ),
        ("http: [{url: '*', body: a}]", "5:19 unknown key 'body' in a stub|the body is 'json' or 'text'"),
        ("mcp: {s: {tools: [{name: a}, {name: a}]}}", "5:37 a second tool 'a'|"),
        (
            "mcp: {s: {tools: [{name: a, stubs: [{return: 1, content: []}]}]}}",
            "5:49 a stub gives one answer: 'content' cannot be combined with 'return'|",
        ),
        ("http: [{status: 700}]", "5:17 status: must be less than or equal to 599, found the number 700|"),
        (
            "http: [{json: 1, text: a}]",
            "5:18 a stub gives one answer: 'text' cannot be combined with 'json'|",
        ),
        (
            "http: [{query: {a: 1}, args: {query: {}}}]",
            "5:9 'query' is short for 'query' in 'args': write it there|",
        ),
        ("human: [{reply: a, other: 1}]", "5:20 'other' is not sent: 'reply' gives the whole answer|"),
        ("human: [{error: auth, other: 1}]", "5:23 a stub answers with 'error' or with 'other', not both|"),
        ("hooks: [Hook]", "5:9 'Hook' is not a dotted path, such as package.module.name|"),
        ("faults: [{effect: llm, error: auth}]", "5:10 a fault needs one of nth, every, rate|"),
        ("faults: [{effect: llm, nth: 1}]", "5:10 a fault needs one of error, latency, truncate|"),
        (
            "faults: [{effect: llm, nth: 1, rate: 0.1, error: auth}]",
            "5:32 a fault has one of nth, every, rate: 'rate' cannot be combined with 'nth'|",
        ),
        (
            "faults: [{effect: human, nth: 1, error: auth}]",
            "5:19 effect: expected one of llm, tool, mcp, http, script, agent, found text 'human'|",
        ),
    ],
)
def test_mistakes_in_a_world(file: Path, keys: str, expected: str) -> None:
    assert expected in in_scenario(file, keys)


def test_cel_is_located_inside_block_texts(file: Path) -> None:
    text = (
        "harness: 1\nmanifest: m\nscenarios:\n  - name: x\n    llm:\n      - reply: a\n        when: |\n"
        "          state.a == 1\n          && state.b ==\n"
    )
    (problem,) = problems(file, text)
    assert problem.span is not None
    assert (problem.span.line, problem.span.column) == (9, 24)


def test_a_condition_of_a_stub_that_names_neither_request_nor_state_shows_both(file: Path) -> None:
    (text,) = in_scenario(file, "llm: [{when: 'prompt.contains(\"a\")', reply: b}]")
    assert text.endswith(
        "undeclared name 'prompt'|the names here are request, state; a field of the call is read as request.prompt"
    )


def test_a_mistake_in_the_defaults_is_told_once(file: Path) -> None:
    text = "harness: 1\nmanifest: m\ndefaults: {weight: -1}\nscenarios: [{name: x}, {name: y}]"
    assert told(file, text) == ["3:20 weight: must be greater than 0, found the number -1|"]


def test_a_file_that_is_not_there_is_a_format_error(file: Path) -> None:
    file.write_text("")
    with pytest.raises(FormatError, match=r"did you mean 'a.scenario.yaml'"):
        load_file(Path("b.scenario.yaml"))
