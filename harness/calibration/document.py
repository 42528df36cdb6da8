"""The formats of a file of labelled rows, and the choice of the judge to measure. Source: docs/judges.md.

labels.csv    one row per line; the command names the judge
labels.jsonl  one row per line; the first line may be {"judge": {…}, "llm": […]}
labels.yaml   a list of rows, or {judge: …, llm: …, rows: [the list]}
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

from pydantic import ConfigDict, Field

from harness.errors import FormatError, Problem, Span
from harness.judges.library import METRICS, library_prompt, project_prompts, read_prompt
from harness.judges.request import Messages, metric_messages, rubric_messages
from harness.scenario.case_table import READERS, Case, Row, read_list
from harness.scenario.checks.conditions import DEFAULT_THRESHOLD
from harness.scenario.document_judge import JudgeKeys
from harness.settings import Settings
from harness.source.display import did_you_mean
from harness.source.document import Document, parse, read, shown_path
from harness.source.models import describe, validate
from harness.world.field_types import LEFT_OUT, Strict
from harness.world.spec import LLMStubs, WorldSpec
from harness.world.stub_models import LLMStub

COLUMNS: Final = ("name", "input", "output", "context", "tools", "tool_calls", "label")
_WORDS: Final = {"pass": 1.0, "true": 1.0, "fail": 0.0, "false": 0.0}
_MAX_PROBLEMS: Final = 20
"""Maximum number of problems listed for one file."""
_DOCUMENTS: Final = (".yaml", ".yml", ".json")


class Header(Strict):
    """The header of a file of labels."""

    model_config = ConfigDict(title="a file of labels")

    judge: JudgeKeys = Field(LEFT_OUT)
    llm: LLMStubs = Field(LEFT_OUT)
    rows: list[Any] = Field(LEFT_OUT)


@dataclass(frozen=True)
class Question:
    """The question to the judge: its model, and a metric with its prompt or a rubric."""

    model: str
    threshold: float
    metric: str | None = None
    rubric: str | None = None
    prompt: str = ""

    def messages(self, material: Mapping[str, Any]) -> tuple[Messages, str]:
        """Return the messages for a row, and a description of what was shortened in them."""
        if self.metric is None:
            return rubric_messages(self.rubric or "", material["output"]), ""
        messages, cuts = metric_messages(METRICS[self.metric], self.prompt, material)
        return messages, ", ".join(map(str, cuts))


@dataclass(frozen=True)
class LabelledRow:
    """A labelled row: the material for the judge, and the label, a grade from 0 (fail) to 1 (pass)."""

    number: int
    name: str
    material: Mapping[str, Any]
    label: float
    span: Span


@dataclass(frozen=True)
class LabelFile:
    """A file of labelled rows, and the judge to measure with them."""

    file: Path
    question: Question
    rows: tuple[LabelledRow, ...]
    stubs: tuple[LLMStub, ...] = ()

    @property
    def graded(self) -> bool:
        """True if the labels include grades other than pass and fail."""
        return any(row.label not in (0, 1) for row in self.rows)


def read_labels(path: Path, options: Mapping[str, Any], settings: Settings) -> LabelFile:
    """Read the rows of a file, and the judge named by the file or by options, which override it.

    Raises:
        FormatError: lists everything that is wrong.
    """
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        text = f"{shown_path(path)}: its name must end in one of {', '.join(READERS)}"
        raise _refused("bad-value", text)
    at, found = _read_header(path, reader)
    head = validate(Header, at, error=FormatError) if at is not None else None
    question = _question(head, at, options, path, settings)
    rows = _rows(found, question)
    if not rows:
        raise _refused("no-cases", f"no rows in {shown_path(path)}")
    return LabelFile(path, question, rows, _stubs(at) if at is not None and "llm" in at.value else ())


def _stubs(at: Document) -> tuple[LLMStub, ...]:
    only = at.without(*(key for key in at.value if key != "llm"))
    return tuple(validate(WorldSpec, only, error=FormatError).placed(only).llm)


def _read_header(
    path: Path, reader: Callable[[Path, Span], Iterator[Row]]
) -> tuple[Document | None, Iterator[Row]]:
    """Return the header of the file, None if it has none, and its rows."""
    start = Span(shown_path(path), 1, 1)
    if path.suffix.lower() in _DOCUMENTS:
        document = read(path, yaml="1.2", error=FormatError)
        if not isinstance(document.value, dict):
            return None, read_list(document)
        if "rows" not in document.value:
            validate(Header, document, error=FormatError)
            raise _refused("missing-key", "missing key 'rows' in a file of labels", document.span())
        return document, read_list(document.at(("rows",)))
    rows = reader(path, start)
    first = next(rows, None)
    if first is None:
        return None, iter(())
    if not first.is_text and "judge" in first.values and not {"output", "label"} & set(first.values):
        line = json.dumps(first.values, ensure_ascii=False)
        document = parse(
            "\n" * (first.span.line - 1) + line, file=first.span.file, json=True, error=FormatError
        )
        return document, rows
    return None, chain((first,), rows)


# ---------------------------------------------------------------- the judge


def _question(
    head: Header | None, at: Document | None, options: Mapping[str, Any], path: Path, settings: Settings
) -> Question:
    judge = head.judge if head is not None else None
    if options["metric"] is not None and options["rubric"] is not None:
        raise _refused(
            "conflicting-keys", "--metric and --rubric are mutually exclusive: a judge has one of them"
        )
    metric, rubric, prompt = options["metric"], options["rubric"], options["prompt"]
    prompt_at: Span | None = None
    if metric is None and rubric is None and judge is not None and at is not None:
        metric, rubric = judge.metric, judge.rubric
        if prompt is None and judge.prompt is not None:
            prompt, prompt_at = path.parent / judge.prompt.file, at.span(("judge", "prompt", "file"))
    if metric is None and rubric is None:
        in_file = "" if path.suffix.lower() == ".csv" else ", or with 'judge' in the file"
        hint = f"name the judge with --metric or --rubric{in_file}"
        raise _refused("missing-key", f"{shown_path(path)}: which judge is to be measured?", None, hint)
    if metric is not None and metric not in METRICS:
        raise _refused("unknown-metric", f"no metric '{metric}'", None, did_you_mean(metric, METRICS))
    if prompt is not None and metric is None:
        raise _refused("conflicting-keys", "--prompt replaces the prompt of a metric, so it needs a metric")
    model = options["model"] or (judge.model if judge is not None else None) or settings.judge_model
    if not model:
        hint = "name it with --model, with 'model' in the file, or as judge_model in [tool.harness]"
        raise _refused("missing-key", "which model is the judge?", None, hint)
    written = judge.threshold if judge is not None else None
    given = (each for each in (options["threshold"], written) if each is not None)
    threshold = next(given, DEFAULT_THRESHOLD)
    if not threshold:
        text = "every grade reaches a threshold of 0, so there is nothing to measure"
        raise _refused("bad-value", text, at.span(("judge", "threshold")) if at is not None else None)
    return Question(model, threshold, metric, rubric, _prompt(metric, prompt, prompt_at, settings))


def _refused(code: str, text: str, span: Span | None = None, hint: str = "") -> FormatError:
    return FormatError(Problem(code, text, span, hint))


def _prompt(metric: str | None, file: Path | None, named_at: Span | None, settings: Settings) -> str:
    if metric is None:
        return ""
    if file is not None:
        return read_prompt(file, named_at).text
    return (project_prompts(settings.judge_prompts).get(metric) or library_prompt(metric)).text


# ---------------------------------------------------------------- the rows


def _rows(rows: Iterator[Row], question: Question) -> tuple[LabelledRow, ...]:
    labelled: list[LabelledRow] = []
    problems: list[Problem] = []
    for number, row in enumerate(rows, start=1):
        try:
            labelled.append(_labelled_row(number, row, question))
        except FormatError as error:
            problems += error.problems
        if len(problems) >= _MAX_PROBLEMS:
            break
    if problems:
        raise FormatError(problems)
    return tuple(labelled)


def _labelled_row(number: int, row: Row, question: Question) -> LabelledRow:
    cells = Case(str(number), row.values, row.span, row.is_text)
    for column in ("output", "label"):
        if column not in row.values and (column == "label" or question.metric != "tool_choice"):
            others = [each for each in row.values if each not in COLUMNS]
            meant = did_you_mean(column, others, listing=False)
            raise _refused("missing-key", f"row {number} has no '{column}'", row.span, meant)
    material = _material(cells)
    if question.metric is not None:
        metric = METRICS[question.metric]
        absent = [key for key in metric.needs if key not in material]
        if absent:
            text = f"row {number} has no '{absent[0]}', which {metric.name} needs"
            raise _refused("missing-key", text, row.span)
    name = cells.text("name") if "name" in row.values else ""
    return LabelledRow(number, name, material, _label(cells.value("label"), number, row.span), row.span)


def _material(cells: Case) -> dict[str, Any]:
    """Return the material of a row. `input` and `output` in CSV are text; empty cells are left out."""
    material: dict[str, Any] = {"tool_calls": []}
    for key in ("input", "output", "context", "tools", "tool_calls"):
        if key not in cells.values:
            continue
        value = cells.value(key)
        if cells.is_text and (key == "output" or (key == "input" and not isinstance(value, list))):
            value = cells.text(key)
        if value is None or (value in ("", []) and key != "output"):
            continue
        if key in ("context", "tools", "tool_calls") and not isinstance(value, list):
            value = [value]
        material[key] = value
    return material


def _label(value: Any, number: int, span: Span) -> float:
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and value.strip().lower() in _WORDS:
        return _WORDS[value.strip().lower()]
    if isinstance(value, int | float) and math.isfinite(value) and 0 <= value <= 1:
        return float(value)
    text = f"the label of row {number} is pass or fail, or a grade from 0 to 1, found {describe(value)}"
    raise _refused("bad-value", text, span)
