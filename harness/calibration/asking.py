"""Calls of the judge for a grade of each row, answered by stubs, by the cassette, or for real."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from harness.calibration.document import LabelFile, LabelledRow
from harness.errors import HarnessError
from harness.graph.effects import LLMCall
from harness.graph.messages import to_messages
from harness.judges.request import read_grade
from harness.recording.backend import BackendOptions, RecordedBackend
from harness.recording.folder import CassetteFolder
from harness.recording.interactions import Interaction, Recording, RecordingMetadata
from harness.recording.matching import Matcher
from harness.recording.scrubber import Scrubber
from harness.recording.unfinished import UnfinishedRun
from harness.scenario.cassette import ONLY_MISSING, WRITING, effective_record_mode
from harness.scenario.judge import JUDGE_NODE
from harness.scenario.recording import versions
from harness.secrets import Secrets
from harness.settings import RecordMode, Settings
from harness.source.document import shown_path
from harness.time.clock import VirtualTimeLoop
from harness.time.paced import PacedTimeLoop
from harness.time.real import real
from harness.world.network import closed_network, open_network
from harness.world.scripted import ScriptedWorld
from harness.world.spec import WorldSpec

_SUFFIX: Final = ".cassette"


class Cassette:
    """The recorded answers of the judge, and the backend that replays or records them."""

    def __init__(
        self, file: Path, folder: CassetteFolder, settings: Settings, secrets: Secrets, again: str
    ) -> None:
        self._file, self._folder, self._mode = file, folder, effective_record_mode(settings)
        self._matcher = Matcher(settings.cassette_ignore)
        self._known = folder.load() if self._mode is not RecordMode.REWRITE else None
        sends = self._mode in WRITING and not (self._mode is RecordMode.ONCE and self._known is not None)
        then = self._known.metadata.environment if self._known is not None and not sends else {}
        scrubber = Scrubber(secrets)
        self.backend = RecordedBackend(
            BackendOptions(
                recorded=self._known if self._mode in (RecordMode.NONE, *ONLY_MISSING) else None,
                unfinished=UnfinishedRun(folder.unfinished(self._mode, 1), scrubber) if sends else None,
                sends=sends,
                cassette=folder.name,
                folder=folder.path,
                record_command=again,
                matcher=self._matcher,
                scrubber=scrubber,
                environment={**then, **os.environ},
            )
        )

    def save(self, *, whole: bool) -> bool:
        """Save the new answers and the old ones that are still valid; return False if there is nothing to save.

        With `whole` false (the work was interrupted), old answers are kept in all modes.

        Raises:
            CassetteError: it cannot be written.
        """
        if not self.backend.is_real or not self.backend.added:
            return False
        made = [interaction for interaction in self.backend.recording().http if _is_answer(interaction)]
        keys = {self._matcher.key(interaction.request) for interaction in made}
        before = self._folder.load() if self._mode is not RecordMode.REWRITE or not whole else None
        rest = (
            [interaction for interaction in before.http if self._matcher.key(interaction.request) not in keys]
            if before
            else []
        )
        metadata = RecordingMetadata(
            scenario=f"judge-check {shown_path(self._file)}",
            recorded=real.now().date().isoformat(),
            versions=versions(),
            environment=self.backend.address_variables,
        )
        recording = Recording(
            tuple(replace(interaction, turn=None) for interaction in (*made, *rest)), metadata=metadata
        )
        saved = self._folder.save({1: recording}) if recording.http else False
        self._folder.discard_unfinished()
        return saved

    @property
    def place(self) -> str:
        """The path of its folder, for messages."""
        return shown_path(self._folder.path)


def _is_answer(interaction: Interaction) -> bool:
    return interaction.response is not None and interaction.response.status < 400


@contextmanager
def open_cassette(file: Path, settings: Settings, secrets: Secrets, again: str) -> Iterator[Cassette]:
    """Open the cassette beside a file; `again` is the command that records missing answers, for messages.

    Raises:
        CassetteError: it is damaged, or being recorded by another process.
    """
    folder = CassetteFolder(file.parent, f"{file.name}{_SUFFIX}")
    with ExitStack() as held:
        if effective_record_mode(settings) in WRITING:
            held.enter_context(folder.reserved())
        yield Cassette(file, folder, settings, secrets, again)


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
    unused   a text for each stub with uses left
    """

    graded: list[GradedRow] = field(default_factory=list)
    stopped: str = ""
    cut: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)


def ask(
    labels: LabelFile, cassette: Cassette, answers: Answers, on_row: Callable[[], object], *, at_once: int = 1
) -> None:
    """Ask the judge for each row and add the grades to `answers`; call `on_row` after each.

    A real judge is asked for `at_once` rows at a time.

    Raises:
        KeyboardInterrupt: interrupted; `answers` has the grades so far.
    """
    backend = cassette.backend if cassette.backend.is_available or not labels.stubs else None
    is_real = backend is not None and backend.is_real
    intercepted: AbstractContextManager[None] = (
        backend.intercepted() if backend is not None else nullcontext()
    )
    with (
        open_network() if is_real else closed_network(),
        intercepted,
        asyncio.Runner(loop_factory=PacedTimeLoop if is_real else VirtualTimeLoop) as runner,
    ):
        world = ScriptedWorld(WorldSpec(llm=[*labels.stubs]), backend=backend)
        runner.run(_ask(labels, world, answers, on_row, asyncio.Semaphore(at_once if is_real else 1)))


async def _ask(
    labels: LabelFile,
    world: ScriptedWorld,
    answers: Answers,
    on_row: Callable[[], object],
    room: asyncio.Semaphore,
) -> None:
    async def grade(row: LabelledRow) -> None:
        async with room:
            if answers.stopped:
                return
            try:
                answers.graded.append(await _grade_row(labels, row, world, answers))
            except HarnessError as error:
                answers.stopped = answers.stopped or f"{row.span}: {error}"
            else:
                on_row()

    order = {id(row): number for number, row in enumerate(labels.rows)}
    try:
        await asyncio.gather(*map(grade, labels.rows))
        answers.unused = [] if answers.stopped else world.unused()
    finally:
        answers.graded.sort(key=lambda graded: order[id(graded.row)])
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
