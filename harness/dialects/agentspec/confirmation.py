"""Tools that the user must confirm before they run (25.4.2): the request, and the decision.

Both have the form that LangChain gives to them. spec: `requires_confirmation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from harness.dialects.agentspec.tools import Tool
from harness.engine.context import NodeContext
from harness.errors import HarnessError
from harness.graph.to_json import to_json
from harness.source.models import describe

_APPROVE: Final = "approve"
_REJECT: Final = "reject"


class ToolDenied(HarnessError):
    """A tool that the user did not allow to run."""

    code = "tool-denied"


class BadDecision(HarnessError):
    """An answer to the request for a confirmation that is no decision."""

    code = "bad-decision"


async def confirm(
    tool: Tool, args: Mapping[str, Any], ctx: NodeContext, partial_update: Mapping[str, Any] | None
) -> None:
    """Pause for the user's decision, and return if it is to run the tool.

    Raises:
        ToolDenied: the user rejects it.
        BadDecision: the answer is not `{decisions: [{type: approve | reject, reason?}]}`.
    """
    request = {
        "action_requests": [{"name": tool.name, "arguments": to_json(dict(args))}],
        "review_configs": [{"action_name": tool.name, "allowed_decisions": [_APPROVE, _REJECT]}],
    }
    decision = _decision(tool, await ctx.pause(request, partial_update=partial_update))
    if decision["type"] == _REJECT:
        reason = decision.get("reason", "No reason was provided.")
        raise ToolDenied(f"the {tool} was denied by the user (reason: {reason})")


def _decision(tool: Tool, answer: Any) -> Mapping[str, Any]:
    decisions = answer.get("decisions") if isinstance(answer, Mapping) else None
    only = decisions[0] if isinstance(decisions, list) and len(decisions) == 1 else None
    if isinstance(only, Mapping) and only.get("type") in (_APPROVE, _REJECT):
        return only
    wanted = f"{{decisions: [{{type: {_APPROVE}}}]}}, or {_REJECT} with a reason"
    raise BadDecision(f"the {tool}: expected the decision {wanted}; found {describe(answer)}")
