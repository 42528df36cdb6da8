"""Warnings of graph agents: a valid one, and one change for each warning. spec: "Validation"."""

from __future__ import annotations

import pytest

from tests.dialects.loki.loader import Loader
from tests.dialects.loki.valid import FILES, changed

# the change, the code of the warning, a part of its message, the place
WARNINGS = {
    "a node no declared edge leads to": (
        ("  sorry: {", "  lost: {type: end}\n  sorry: {"),
        "unreachable",
        "to node lost",
        "lost",
    ),
    "a route without an option": (('["yes", later]', '["yes"]'), "spare-route", "the route 'later'", "later"),
    "a search that goes nowhere": (
        ('    state_updates: {found: "{{output.context}}"}\n', ""),
        "unused-retrieval",
        "'recall'",
        "recall",
    ),
    "a key that is put back": (("{found:", "{output:"), "scoped-key", "'output' is restored", "output"),
    "a seed of the prompt": (
        ("{place: Holm}", "{place: a, initial_prompt: b}"),
        "seeded-prompt",
        "is replaced",
        "init",
    ),
    "an unknown key": (("initial_state:", "initial_sate:"), "unknown-key", "'initial_sate'", "initial_sate"),
    "an unknown key of settings": (
        ("timeout: 60", "time_out: 60"),
        "unknown-key",
        "'time_out' in the settings",
        "time",
    ),
    "an unknown key of a node": (
        ("> 0, next", "> 0, max: 1, next"),
        "unknown-key",
        "'max' in an input node",
        "max",
    ),
    "a script that nothing runs": (
        ("scripts/weigh.py", "scripts/weigh.js"),
        "no-runtime",
        "the script of node 'weigh' has no runtime",
        "scripts/weigh.js",
    ),
    "a validation of another form": (
        ("len(input) > 0", "len(input) != 0"),
        "bad-validation",
        "the validation of node 'note' cannot be read",
        "len(input) != 0",
    ),
    "the next of an approval": (
        ("    on_other: note\n", "    on_other: note\n    next: done\n"),
        "unused-key",
        "the next of the approval node 'ask' is ignored",
        "next",
    ),
    "the next of an end": (
        ("output: ok}", "output: ok, next: sorry}"),
        "unused-key",
        "the next of the end node 'done' is ignored",
        "next",
    ),
    "a variable without a value": (
        ("initial_state:", "variables: [{name: berth, default: a}, {name: pier-no}]\ninitial_state:"),
        "missing-variable",
        "the variable 'pier-no' has neither a default nor a value",
        "{name: pier-no}",
    ),
    "a tool without a file": (
        ("[gauge.sh]", "[gauge.sh, wind.sh]"),
        "unread-tool",
        "tools/wind.sh",
        "wind.sh",
    ),
}


@pytest.mark.parametrize("which", WARNINGS)
def test_a_warning_is_located(which: str, loader: Loader) -> None:
    change, code, message, place = WARNINGS[which]
    (problem,) = loader.graph(changed(change), FILES).warnings
    assert (problem.code, message in problem.message, problem.severity) == (code, True, "warning"), problem
    assert loader.place(problem).startswith(place)


def test_an_end_node_that_only_a_script_can_reach_is_a_warning(loader: Loader) -> None:
    text = "start: a\nnodes:\n  a: {type: script, script: scripts/weigh.py}\n  b: {type: end}\n"
    assert [warning.code for warning in loader.graph(text, FILES).warnings] == [
        "unreachable",
        "unreachable-end",
    ]
