"""The form of a workflow's document: a valid one, and changes that break one rule each.

spec: "Top-Level Structure", "Node Specification", "Edge Specification"; validation rule 1.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.dialects.yagra.loader import Loader
from tests.dialects.yagra.valid import PROMPTS, changed

# the rule: the change that breaks it; the code, a part of the message, the place it points to, the hint
FAULTS = {
    "a version": (
        ('version: "1.0"\n', ""),
        "missing-key",
        "missing key 'version' in a workflow",
        "start_at: sort",
        "",
    ),
    "the version is text": (
        ('"1.0"', "1.0"),
        "wrong-type",
        "version: expected text, found the number 1.0",
        "1.0",
        "quote it to make it text",
    ),
    "a start": (
        ("start_at: sort\n", ""),
        "missing-key",
        "missing key 'start_at' in a workflow",
        'version: "1.0"',
        "",
    ),
    "an end at least": (("[file, bin]", "[]"), "bad-value", "end_at: ", "[]", ""),
    "no key of a workflow is unknown": (
        ("interrupt_after", "interupt_after"),
        "unknown-key",
        "unknown key 'interupt_after' in a workflow",
        "interupt_after",
        "did you mean 'interrupt_after'?",
    ),
    "no key of a node is unknown": (
        ("timeout_seconds", "timeout"),
        "unknown-key",
        "unknown key 'timeout' in a node",
        "timeout",
        "did you mean 'timeout_seconds'?",
    ),
    "ids are not empty": (("id: bin", 'id: ""'), "bad-value", "id: ", '""', ""),
    "ten attempts at most": (
        ("max_attempts: 2", "max_attempts: 11"),
        "bad-value",
        "max_attempts: must be less than or equal to 10",
        "11",
        "",
    ),
    "a minute of delay at most": (
        ("base_delay_seconds: 1", "base_delay_seconds: 61"),
        "bad-value",
        "base_delay_seconds: must be less than or equal to 60",
        "61",
        "",
    ),
    "a known back-off": (
        ("max_attempts: 2", "backoff: fixd"),
        "bad-value",
        "backoff: expected one of exponential, fixed",
        "fixd",
        "did you mean 'fixed'?",
    ),
    "timeouts are whole seconds": (
        ("timeout_seconds: 9", "timeout_seconds: 0.5"),
        "wrong-type",
        "timeout_seconds: expected a whole number",
        "0.5",
        "",
    ),
    "ten minutes at most": (
        ("timeout_seconds: 9", "timeout_seconds: 601"),
        "bad-value",
        "timeout_seconds: must be less than or equal to 600",
        "601",
        "",
    ),
    "a state type that is known": (
        ("{type: messages}", "{type: string}"),
        "bad-value",
        "state type 'string' is not known: expected one of str, int, float, bool, list, dict, messages",
        "string",
        "did you mean 'str'?",
    ),
    "a state type as in JSON Schema": (
        ("{type: messages}", "{type: object}"),
        "bad-value",
        "state type 'object' is not known",
        "object",
        "did you mean 'dict'?",
    ),
    "a state field in short": (
        ("{type: messages}", "str"),
        "wrong-type",
        ": expected a mapping, found text 'str'",
        "str",
        "write {type: str}",
    ),
    "retry in short": (
        ("retry: {max_attempts: 2, base_delay_seconds: 1}", "retry: 2"),
        "wrong-type",
        "retry: expected a mapping, found the number 2",
        "2",
        "write {max_attempts: 2}",
    ),
    "a fan-out in short": (
        ("{items_key: sheets, item_key: sheet}", "sheets"),
        "wrong-type",
        "fan_out: expected a mapping, found text 'sheets'",
        "sheets",
        "write {items_key: sheets, item_key: …}",
    ),
    "messages need no reducer": (
        ("{type: messages}", "{type: messages, reducer: add_messages}"),
        "bad-value",
        "reducer 'add_messages' is not known: expected add",
        "add_messages",
        "messages are appended without a reducer",
    ),
    "a reducer that is known": (
        ("reducer: add", "reducer: ad"),
        "bad-value",
        "reducer 'ad' is not known: expected add",
        "ad",
        "did you mean 'add'?",
    ),
    "params have names": (
        ("params: {paper: thin,", "params: {7: thin,"),
        "key-not-text",
        "this key is read as a number, not as text",
        "7",
        "quote it",
    ),
    "keys of a node are text": (
        ("handler: discard", "handler: discard, 2.5: x"),
        "unknown-key",
        "unknown key '2.5' in a node",
        "2.5",
        "known: id, handler, params, retry, timeout_seconds, fallback",
    ),
    "an edge branches or maps": (
        ("condition: torn", "condition: torn, fan_out: {items_key: sheets, item_key: sheet}"),
        "edge-kind",
        "the edge 'sort' -> 'bin' has both 'condition' and 'fan_out'",
        "fan_out",
        "",
    ),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_an_error_in_the_document_is_located(loader: Loader, fault: tuple[Any, ...]) -> None:
    loader.assert_problem(*fault)


def test_all_errors_in_the_document_are_reported_at_once_before_the_rules(loader: Loader) -> None:
    text = changed(
        ("handler: discard", "handlr: discard"),
        ("{type: messages}", "{type: strr}"),
        ("start_at: sort", "start_at: x"),
    )
    codes = [problem.code for problem in loader.problems(text, PROMPTS)]
    assert codes == ["bad-value", "missing-key", "unknown-key"]
