"""The handler `streaming_llm`, which writes a reply as a stream of chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.dialects.yagra.document import NodeSpec
from harness.dialects.yagra.model_nodes import call_model, model_request
from harness.engine.context import NodeContext


class Stream(Iterator[str]):
    """An iterator over the chunks of a reply, which can be read once. `str` gives the whole reply at any time."""

    __slots__ = ("_left", "_text")

    def __init__(self, chunks: Sequence[str]) -> None:
        self._text = "".join(chunks)
        self._left = iter([chunk for chunk in chunks if chunk])

    def __next__(self) -> str:
        return next(self._left)

    def __str__(self) -> str:
        return self._text


async def streaming_llm(
    node: NodeSpec, params: Mapping[str, Any], state: Mapping[str, Any], ctx: NodeContext
) -> Mapping[str, Any]:
    """Call the model and return a `Stream` of its reply under `output_key`.

    Only failures before the stream begins are retried.

    Raises:
        ModelParamsError: the params are not valid, or the prompt cannot be filled.
        ModelCallError: the model failed in every attempt.
    """
    key, model, prompts = model_request(params, state)
    streamed = replace(model, settings={"stream": True, **model.settings})
    reply = await call_model(streamed, prompts, node, state, ctx)
    return {key: Stream(reply.chunks or (reply.text,))}
