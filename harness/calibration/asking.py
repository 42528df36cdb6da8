"""Calls of the judge for a grade of each row, answered by stubs, by the cassette, or for real."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from harness.calibration.cassette import Cassette
from harness.calibration.document import LabelFile, LabelledRow
from harness.errors import HarnessError
from harness.graph.effects import LLMCall
from harness.graph.messages import to_messages
from harness.judges.grade import read_grade
from harness.scenario.judge import JUDGE_NODE
from harness.time.clock import VirtualTimeLoop
from harness.time.paced import PacedTimeLoop
from harness.world.network import closed_network, open_network
from harness.world.scripted import ScriptedWorld
from harness.world.spec import WorldSpec


@dataclass(frozen=True)
class GradedRow:
    """A row with the judge's grade and reason. If there is no grade, `reason` says why."""

    row: LabelledRow
    grade: float | None
    reason: str


@dataclass
class Answers:
    """The grades so far, in the order of the rows.

    stopped  the reason why no further rows were asked for: a call cannot be answered
    cut      remarks on material that was shortened
    unused   stubs that were not used
    """

    graded: list[GradedRow] = field(default_factory=list)
    stopped: str = ""
    cut: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)


def ask(labels: LabelFile, cassette: Cassette, answers: Answers, on_row: Callable[[], object]) -> None:
    """Ask the judge for each row and add the grades to `answers`; call `on_row` after each.

    Raises:
        KeyboardInterrupt: interrupted; `answers` has the grades so far.
    """
    backend = None if cassette.is_empty and labels.stubs else cassette.backend
    is_real = backend is not None and backend.is_real
    intercepted: AbstractContextManager[None] = (
        backend.intercepted() if backend is not None else nullcontext()
    )
    with (
        open_network() if is_real else closed_network(),
        intercepted,
        asyncio.Runner(loop_factory=PacedTimeLoop if is_real else VirtualTimeLoop) as runner,
    ):
        world = ScriptedWorld(WorldSpec(llm=labels.stubs), backend=backend)
        runner.run(_ask(labels, world, answers, on_row))


async def _ask(
    labels: LabelFile, world: ScriptedWorld, answers: Answers, on_row: Callable[[], object]
) -> None:
    try:
        for row in labels.rows:
            try:
                answers.graded.append(await _grade_row(labels, row, world, answers))
            except HarnessError as error:
                answers.stopped = f"{row.span}: {error}"
                return
            on_row()
        answers.unused = world.unused()
    finally:
        await world.close()


async def _grade_row(
    labels: LabelFile, row: LabelledRow, world: ScriptedWorld, answers: Answers
) -> GradedRow:
    question = labels.question
    messages, cut = question.messages(row.material)
    if cut:
        answers.cut.append(f"{row.span}: the judge was shown {cut}")
    call = LLMCall(name=question.model, node=JUDGE_NODE, messages=tuple(to_messages(messages)))
    answer = await world.answer(call, {})
    if answer.latency_s:
        await asyncio.sleep(answer.latency_s)
    if isinstance(answer.error, HarnessError):
        raise answer.error
    if answer.error is not None:
        return GradedRow(row, None, f"the judge failed: {answer.error}")
    return GradedRow(row, *read_grade(answer.value.text, strict=question.metric is not None))
