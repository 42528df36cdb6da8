"""The application of `state_updates`. spec: "state_updates"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.dialects.loki.document import NodeSpec
from harness.dialects.loki.templates import render_leniently


def apply_state_updates(state: Mapping[str, Any], node: NodeSpec, result: Any = None) -> dict[str, Any]:
    """Return the state after the `state_updates` of a node. Every stored value is text.

    The templates see `result` as the node's scoped variable (`output`, `choice` or `input`). A state key of that
    name is restored afterwards.
    """
    after, scoped = dict(state), node.scoped
    if not node.state_updates:
        return after
    if scoped is not None:
        after[scoped] = result
    for key, template in node.state_updates.items():
        after[key] = render_leniently(template, after)
    if scoped is not None:
        del after[scoped]
        if scoped in state:
            after[scoped] = state[scoped]
    return after
