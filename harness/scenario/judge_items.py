"""Completes the judges of an `expect` with their models and prompts.

prompt of the scenario  ─▶  `judge_prompts` of the project  ─▶  the library     the first that exists
model of the scenario   ─▶  `judge_model` of the project
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import FormatError, Problem
from harness.judges.library import project_prompts, read_prompt
from harness.settings import Settings, load_settings
from harness.source.document import Document


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
