"""Structured output: `output_schema` of llm and agent nodes. spec: "Structured Output"."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from langchain_core.messages import HumanMessage, SystemMessage

from harness.dialects.kit.templates import strip_code_fence
from harness.dialects.loki.models import ModelSettings
from harness.dialects.loki.strict_json import parse_json
from harness.engine.context import NodeContext
from harness.errors import HarnessError
from harness.graph.effects import LLMReply

_HINT: Final = """\
Respond with a JSON object that matches this schema. Output ONLY the JSON
object with no surrounding prose or markdown fences.

Schema:
{schema}"""

_EXTRACT: Final = """\
Extract a JSON object that matches this schema from the text that the user gives you. Output ONLY the JSON object, \
without surrounding prose or markdown fences.

Schema:
{schema}"""

_EXTRACTOR_CALLS: Final = 2  # the second is the repair


class ExtractionFailed(HarnessError):
    """An output that is not JSON, and from which the extractor made no JSON either."""

    code = "extraction"


def schema_hint(schema: Any) -> str:
    """Return the text that is appended to the prompt of an llm node. spec: "schema-hint injection"."""
    return _HINT.format(schema=_shown(schema))


async def parse_structured_output(text: str, schema: Any, model: ModelSettings, ctx: NodeContext) -> Any:
    """Parse an output as JSON. If it is not JSON, let the extractor, a call of `model`, extract JSON from it.

    The value is not checked against the schema.

    Raises:
        ExtractionFailed: both replies of the extractor are not JSON.
        Exception: the error of a call of the extractor.
    """
    system = SystemMessage(content=_EXTRACT.format(schema=_shown(schema)))
    why = ""
    for calls_left in range(_EXTRACTOR_CALLS, -1, -1):
        try:
            return parse_json(strip_code_fence(text))
        except ValueError as error:
            why = str(error)
        if calls_left:
            reply: LLMReply = await ctx.perform(model.call((system, HumanMessage(content=text))))
            text = reply.text
    raise ExtractionFailed(
        f"the output does not match output_schema: it is not JSON, and neither are the answers of "
        f"{_EXTRACTOR_CALLS} calls that were to extract it ({why})"
    )


def merge_output(state: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """Return the state with the top-level keys of a structured output merged in. Only objects have keys."""
    return {**state, **value} if isinstance(value, Mapping) else dict(state)


def _shown(schema: Any) -> str:
    return json.dumps(schema, ensure_ascii=False, indent=2)
