"""Models that grade an output (`expect.judge`): who is asked what, and where their grades go.

    item of `judge` ─▶ the messages (`harness.judges`) ─▶ an LLM call of the node `judge` ─▶ the grade, and its reason

A ready judge (`metric`) sees what the run has of the material that it needs; where that is not there it is not asked,
and the check could not be judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from harness.errors import HarnessError
from harness.graph.effects import LLMCall
from harness.graph.messages import to_messages
from harness.judges.grade import read_grade
from harness.judges.library import METRICS, library_prompt
from harness.judges.request import Material, Messages, lacking, metric_messages, rubric_messages
from harness.scenario.model import Expectations
from harness.scenario.outcome import Observed
from harness.scenario.run_result import error_json

if TYPE_CHECKING:
    from harness.engine.context import RunContext

JUDGE_NODE: Final = "judge"
"""Judges are called from a node of this name, which no graph has."""


async def grade(
    observed: Observed, expect: Expectations, run: RunContext, material: Callable[[], Material]
) -> Sequence[str]:
    """Have a model grade the output for each item of `judge`, into `observed.grades`; gives warnings.

    `material` is asked for only where a metric needs it. What cannot be judged is in `observed.ungraded`.
    """
    warnings: list[str] = []
    for index, item in enumerate(expect.values.get("judge", ())):
        key = str(index)
        try:
            if "metric" in item:
                missing = lacking(METRICS[item["metric"]], material())
                if missing:
                    observed.ungraded[key] = missing
                    continue
            messages, cut = _messages(item, expect.prompts.get(index), observed, material)
            call = LLMCall(name=item["model"], messages=tuple(to_messages(messages)))
            reply = await run.perform(call, {}, JUDGE_NODE)
        except HarnessError as error:
            observed.error = observed.error or error_json(error)
            observed.ungraded[key] = str(error)
        except Exception as error:
            observed.ungraded[key] = f"the judge failed: {error}"
        else:
            observed.grades[key] = read_grade(reply.text, strict="metric" in item)
            if cut:
                warnings.append(f"judge[{index}] was shown {cut}")
    return warnings


def _messages(
    item: Mapping[str, Any], prompt: str | None, observed: Observed, material: Callable[[], Material]
) -> tuple[Messages, str]:
    """What to send, and what was cut of it, in words."""
    if "metric" not in item:
        return rubric_messages(item["rubric"], observed.output), ""
    metric = METRICS[item["metric"]]
    messages, cuts = metric_messages(metric, prompt or library_prompt(metric.name).text, material())
    return messages, ", ".join(map(str, cuts))
