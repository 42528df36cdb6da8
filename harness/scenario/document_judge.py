"""The pydantic models of a judge, as `expect.judge` and the labels of a calibration have them, and its completion.

Source: docs/judges.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema, model_validator

from harness.errors import FormatError, Problem
from harness.judges.library import METRICS, project_prompts, read_prompt
from harness.settings import Settings, load_settings
from harness.source.display import clip, did_you_mean
from harness.source.document import Document
from harness.source.models import Mistake, mistaken
from harness.units import LARGEST_FIGURE
from harness.world.field_types import LEFT_OUT, Name, PromptFile, Share, Strict

CheckWeight = Annotated[float, Field(ge=0, le=LARGEST_FIGURE)]


def _metric(name: str) -> str:
    if name not in METRICS:
        raise mistaken(Mistake(f"unknown metric '{clip(name, 60)}'", hint=did_you_mean(name, METRICS)))
    return name


MetricName = Annotated[
    str, AfterValidator(_metric), WithJsonSchema({"anyOf": [{"enum": list(METRICS)}, {"type": "string"}]})
]


class JudgeKeys(Strict):
    """A question to a judge, and the grade that passes."""

    model_config = ConfigDict(title="a judge")

    metric: MetricName = Field(LEFT_OUT, description="A predefined judge (`harness judges` lists them).")
    rubric: Name = Field(LEFT_OUT, description="Description of a good output, instead of a metric.")
    model: Name = Field(
        LEFT_OUT, description="The model that grades; by default `judge_model` of the settings."
    )
    prompt: PromptFile = Field(LEFT_OUT, description="A prompt that replaces the metric's own.")
    threshold: Share = Field(LEFT_OUT, description="The lowest grade that passes.")

    @model_validator(mode="after")
    def _one_question(self) -> Self:
        given = self.written("metric", "rubric")
        if not given:
            hint = "metrics are listed by `harness judges`"
            raise mistaken(Mistake("a judge needs a metric or a rubric", code="missing-key", hint=hint))
        if len(given) > 1:
            message = "a judge has a metric or a rubric: 'rubric' cannot be combined with 'metric'"
            raise mistaken(Mistake(message, ("rubric",), True, code="conflicting-keys"))
        if self.written("prompt") and given == ["rubric"]:
            message = "'prompt' replaces the prompt of a metric, so it needs 'metric'"
            raise mistaken(Mistake(message, ("prompt",), True, code="conflicting-keys"))
        return self


class Judge(JudgeKeys):
    """A grade that a model gives to the output."""

    weight: CheckWeight = Field(1.0, description="Its weight in the score.")


def complete_judges(
    items: Sequence[Document], folder: Path
) -> tuple[list[Mapping[str, Any]], dict[int, str]]:
    """Return the judges written at `items`, each with a model, and by index the prompts that replace the library's.

    `folder` is the folder of the scenario file.

    Raises:
        FormatError: a judge has no model, or a prompt that cannot be used.
    """
    if all("rubric" in item.value and "model" in item.value for item in items):
        return [item.value for item in items], {}
    settings = load_settings(folder)
    prompts: dict[int, str] = {}
    problems: list[Problem] = []
    for index, item in enumerate(items):
        try:
            found = _prompt(item, folder, settings)
        except FormatError as error:
            problems += error.problems
        else:
            prompts |= {index: found} if found is not None else {}
        if "model" not in item.value and not settings.judge_model:
            hint = "or set judge_model in [tool.harness]"
            problems.append(Problem("missing-key", "missing key 'model' in a judge", item.span(), hint))
    if problems:
        raise FormatError(problems)
    return [_with_model(item.value, settings.judge_model) for item in items], prompts


def _with_model(item: Mapping[str, Any], default: str) -> Mapping[str, Any]:
    return item if "model" in item else {**item, "model": default}


def _prompt(item: Document, folder: Path, settings: Settings) -> str | None:
    """Return the prompt that replaces the library's; None if there is none, or the judge has a rubric."""
    if "metric" not in item.value:
        return None
    if "prompt" in item.value:
        return read_prompt(folder / item.value["prompt"]["file"], item.span(("prompt", "file"))).text
    own = project_prompts(settings.judge_prompts).get(item.value["metric"])
    return own.text if own is not None else None
