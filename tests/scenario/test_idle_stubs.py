"""A stub that can never answer is a warning of its file: one that may answer any number of times is not missed."""

from pathlib import Path

import pytest

from tests.scenario.reading import read, warning

EXPECTING = " expect: {path: []},"


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("tools: {a: [{return: 1}, {args: {n: 1}, return: 2}]}", "5:26 this stub never answers: the one before it"),
        ("tools: {a: [{args: {n: 1}, return: 1}, {args: {n: 1}, return: 2}]}", "5:40 this stub never answers"),
        ("llm: {n: [{reply: a, times: any}, b, {reply: c}]}", "5:38 this stub never answers: the one before it"),
        ("llm: [{reply: a, node: n, times: any}, {reply: b, node: n, when: 'true'}]", "5:40 this stub never"),
        ("mcp: {s: {tools: [{name: t, stubs: [{return: 1}, {return: 2}]}]}}", "5:50 this stub never answers"),
        ("turns: [{http: [{url: a, times: any}, {url: a}]}]", "5:39 this stub never answers"),
        (
            "llm: {n: [{node: m, reply: a}]}",
            "5:18 this stub never answers: it is listed under 'n', but asks for node 'm'",
        ),
        ("llm: [{args: {q: 1}, reply: a}]", "5:15 this stub never answers: no call has an argument 'q' under 'llm'"),
        ("http: [{args: {jsn: {}}}]", "5:16 this stub never answers: no call has an argument 'jsn'"),
        ("retrieval: {r: {args: {qery: x}, return: []}}", "5:24 this stub never answers: no call has an argument"),
        ("llm: [{when: 'false', reply: a}]", "5:14 this stub never answers: 'false' is not true for any call"),
        ("tools: {a: {when: '1 > 2', return: 1}}", "5:19 this stub never answers: '1 > 2' is not true for any call"),
        ("llm: [{when: has(request.promt), reply: a}]", "5:14 'request' has no 'promt' here"),
        ("tools: {a: {when: request.model == 'm', return: 1}}", "5:19 'request' has no 'model' here"),
    ],
)  # fmt: skip
def test_a_stub_that_never_answers_is_a_warning(tmp_path: Path, keys: str, expected: str) -> None:
    code, text = warning(read(tmp_path, keys, EXPECTING))
    assert code == "idle-stub"
    assert text.startswith(expected)


@pytest.mark.parametrize(
    "keys",
    [
        "tools: {a: [{args: {n: 1}, return: 1}, {return: 2}]}",
        "tools: {a: [{return: 1, times: 2}, {return: 2}]}",
        "tools: {a: [{args: {n: 1}, return: 1}, {args: {n: 2}, return: 2}], b: real, c: pkg.f}",
        "llm: {n: [{reply: a}, {reply: b}], m: [{reply: a, times: any}]}",
        "llm: {'n*': [{node: nm, reply: a}], outer/n: [{node: n, reply: b}]}",
        "llm: [{when: 'true', reply: a}, {when: 'request.prompt == state.q', reply: b}]",
        "human: [{args: {question: x, options: [a]}, reply: y}, {args: {value: {a: 1}}, reply: z}]",
        "http: [{url: a, args: {json: {}}, query: {q: 1}, when: 'request.json.a == 1'}]",
    ],
)
def test_stubs_that_may_answer(tmp_path: Path, keys: str) -> None:
    assert read(tmp_path, keys, EXPECTING).warnings == ()
