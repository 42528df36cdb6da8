"""A LangGraph checkpointer that keeps the state in memory, by reference: nothing changes the state in place."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver


class _ByReference:
    """A LangGraph serialiser that returns values as they are."""

    def dumps_typed(self, value: Any) -> tuple[str, Any]:
        return ("reference", value)

    def loads_typed(self, data: tuple[str, Any]) -> Any:
        return data[1]


class Checkpoints(InMemorySaver):
    """The checkpoints of one thread. LangGraph changes its bookkeeping in place, so that part is copied."""

    def __init__(self) -> None:
        super().__init__(serde=_ByReference())

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return super().put(config, _detached(checkpoint), metadata, new_versions)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        found = super().get_tuple(config)
        if found is None:
            return None
        # The list of answers to the pauses of a task grows later.
        writes = [
            (task, channel, list(value) if type(value) is list else value)
            for task, channel, value in found.pending_writes or ()
        ]
        return found._replace(checkpoint=_detached(found.checkpoint), pending_writes=writes)


def _detached(checkpoint: Checkpoint) -> Checkpoint:
    copy = checkpoint.copy()
    copy["channel_versions"] = dict(checkpoint["channel_versions"])
    copy["versions_seen"] = {node: dict(seen) for node, seen in checkpoint["versions_seen"].items()}
    return copy
