"""What is missing in a suite that does not provoke a part: the fault, or the input."""

from __future__ import annotations

from harness.mutation.mutant import Mutant


def unread(mutant: Mutant) -> str:
    """Return what a prompt needs to matter."""
    return (
        "no stub or recording reads the prompt: give a stub a condition such as "
        '`when: request.messages[0].content.contains("…")`, or record the scenario'
    )


def unprovoked(mutant: Mutant, *, reached: bool) -> str:
    """Return what would lead to the part of a mutant that no run showed."""
    at = f"`{mutant.node}`" if mutant.node else "the agent"
    if not reached:
        target = f" with an input that leads to {at}" if mutant.node else ""
        return f"no scenario runs {at}: add one{target}"
    return (
        f"{_NEEDED.get(mutant.operator, _OTHER).format(at=at, to=(mutant.route[1:] or ('another way',))[0])}"
    )


_OTHER = "nothing in the suite provokes it: add a scenario in which {at} matters"
_NEEDED = {
    "guard": "nothing fails at {at}, is late, or reaches the limit: add a scenario with a fault there, such as "
    "`{{error: rate_limit}}` as an answer, or an answer with a `latency`",
    "route": "no input takes the way that it changes: add a scenario in which {at} goes to {to}",
    "state": "no run reads the value, or it is written before it is read: add a scenario that reads it at {at}",
    "call": "no run uses it: add a scenario in which a model asks for it at {at}",
    "prompt": 'no answer depends on this part: add `when: request.messages[0].content.contains("…")` to a stub',
    "output": "no run breaks the schema or reads the key: add a scenario in which {at} answers with something else",
    "node": "the node changes nothing in these runs: add a scenario in which what {at} does matters",
}
