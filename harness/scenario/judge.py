"""Judges: models that grade an output (`expect.judge`).

    item of `judge` ─▶ the messages (`harness.judges`) ─▶ an LLM call of the node `judge` ─▶ the grade and its reason

A predefined judge (`metric`) is shown the material from the run that it requires. If that is missing, the model
is not called, and the check cannot be evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from harness.errors import HarnessError
from harness.graph.effects import LLMCall
from harness.graph.messages import to_messages
from harness.judges.library import METRICS, library_prompt
from harness.judges.request import (
    Material,
    Messages,
    metric_messages,
    missing_material,
    read_grade,
    rubric_messages,
)
from harness.scenario.model import Expectations
from harness.scenario.outcome import Observation, error_json

if TYPE_CHECKING:
    from harness.engine.context import RunContext

JUDGE_NODE: Final = "judge"
"""The node name from which judges are called. No graph has a node of this name."""


async def grade(
    observed: Observation, expect: Expectations, run: RunContext, material: Callable[[], Material]
) -> Sequence[str]:
    """Have a model grade the output for each item of `judge`, and return warnings.

    Grades are stored in `observed.grades`, reasons why there is none in `observed.ungraded`.

    Args:
        observed: the run or turn to grade.
        expect: its expectations.
        run: the context that performs the calls.
        material: returns the material of the run; called only if a metric requires it.
    """
    warnings: list[str] = []
    for index, item in enumerate(expect.values.get("judge", ())):
        key = str(index)
        try:
            if "metric" in item:
                missing = missing_material(METRICS[item["metric"]], material())
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
    item: Mapping[str, Any], prompt: str | None, observed: Observation, material: Callable[[], Material]
) -> tuple[Messages, str]:
    """Return the messages to send, and a description of the parts that were cut to fit."""
    if "metric" not in item:
        return rubric_messages(item["rubric"], observed.output), ""
    metric = METRICS[item["metric"]]
    messages, cuts = metric_messages(metric, prompt or library_prompt(metric.name).text, material())
    return messages, ", ".join(map(str, cuts))
