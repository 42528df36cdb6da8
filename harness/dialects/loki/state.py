"""`state_updates`: templates whose results are stored in the state. spec: "state_updates"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.dialects.loki.document import NodeSpec
from harness.dialects.loki.templates import render_leniently


def updated(state: Mapping[str, Any], node: NodeSpec, result: Any = None) -> dict[str, Any]:
    """The state after the `state_updates` of a node; every stored value is text.

    `result` is seen under the node's scoped variable (`output`, `choice` or `input`), while the updates are made. A
    key of that name in the state is put back afterwards.
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
