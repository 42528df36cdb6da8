"""The lifecycle of a run: its input becomes the first state, an edit updates it, the final state is the output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.dialects.kit.manifest import BadInput, input_values
from harness.dialects.yagra.document import TEXT_INPUT
from harness.dialects.yagra.state import StateKeys
from harness.engine.context import RunContext
from harness.graph.model import Lifecycle, State
from harness.source.models import describe


def lifecycle(keys: StateKeys) -> Lifecycle:
    """Return the lifecycle of a workflow with these state keys."""

    async def accept(value: Any, run: RunContext) -> Mapping[str, Any]:
        values = input_values(value, TEXT_INPUT, "an input is text or a mapping of state keys")
        return keys.kept(values, run.new_id)

    async def update_state(value: Any, run: RunContext) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise BadInput(f"a run is resumed with a mapping of state keys, not {describe(value)}")
        return {**keys.dropped(value), **keys.kept(value, run.new_id)}

    async def finish(state: State, _run: RunContext) -> Any:
        return dict(state)

    return Lifecycle(accept=accept, update_state=update_state, finish=finish)
