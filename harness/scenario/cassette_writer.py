"""Writes the cassette of a scenario when all its repeats have ended, once, without secrets.

A repeat may run in another process than this one: its outcome brings what it recorded. The cassette is not touched
while the scenario runs, nor if one of its repeats did not complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from harness.errors import CassetteError
from harness.recording.folder import CassetteFolder
from harness.recording.interactions import Recording, Traffic
from harness.scenario.cassette import WRITING, cassette_name, effective_record_mode
from harness.scenario.evaluation import outcome_of
from harness.scenario.model import Scenario
from harness.scenario.outcome import Outcome, RecordingResult, failed_result
from harness.settings import RecordMode, Settings


@contextmanager
def cassette_writer(scenario: Scenario, settings: Settings) -> Iterator[CassetteWriter | None]:
    """Reserve the cassette of a scenario for recording. Yields None if it is not recorded.

    Raises:
        CassetteError: the cassette is damaged, or another process is recording it.
    """
    name = cassette_name(scenario, settings)
    if name is None or effective_record_mode(settings) not in WRITING:
        yield None
        return
    folder = CassetteFolder(settings.cassettes, name)
    with folder.reserved():
        yield CassetteWriter(scenario, folder, effective_record_mode(settings))


class CassetteWriter:
    """Collects the recordings that the repeats of a scenario made, and saves them after the last one."""

    def __init__(self, scenario: Scenario, folder: CassetteFolder, mode: RecordMode) -> None:
        self._scenario, self._folder, self._mode = scenario, folder, mode
        self._made: dict[int, Recording] = {}
        self._result = RecordingResult(folder.path, Traffic())

    def add(self, outcome: Outcome) -> Outcome:
        """Take the recording of a repeat from its outcome, and save all of them if it is the last.

        Returns:
            The outcome, with what was recorded so far, or with the error that prevented it from being saved.
        """
        run, outcome.made = outcome.made, None
        broke = (outcome.observed.error or {}).get("message", "") if outcome.verdict == "error" else ""
        why = run.problem if run is not None else broke
        result = self._result
        if run is not None:
            result = replace(result, traffic=result.traffic + run.traffic, unused=result.unused + run.unused)
            if run.recording is not None:
                self._made[outcome.repeat + 1] = run.recording
        self._result = replace(result, problem=result.problem or why)
        if outcome.repeat + 1 == self._scenario.repeat and not self._result.problem:
            try:
                self._save()
            except CassetteError as error:
                self._result = replace(self._result, problem=str(error))
                outcome = outcome_of(self._scenario, outcome.repeat, failed_result(error), 0.0)
        outcome.recorded = self._result
        return outcome

    def _save(self) -> None:
        """Write the recordings that were made, beside those of other repeats.

        Raises:
            CassetteError: the cassette cannot be written.
        """
        others: dict[int, Recording] = {}
        if self._made and self._mode is not RecordMode.REWRITE:
            for number in self._folder.numbers():
                recording = self._folder.load(number) if number not in self._made else None
                if recording is not None:
                    others[number] = recording
        if self._made and self._folder.save({**others, **self._made}):
            self._result = replace(self._result, files=tuple(self._folder.files()))
        self._folder.discard_unfinished()
