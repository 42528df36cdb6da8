"""The cassette of a scenario while it runs: which recording a repeat plays, and what is written when all have ended.

    load the recordings ─▶ a backend for each repeat ─▶ keep what it recorded ─▶ save, once, without secrets

Nothing is written while a scenario runs, nor when one of its repeats did not come to its end.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path

from harness.errors import CassetteBroken
from harness.graph.model import Graph
from harness.recording.backend import BackendOptions, RecordedBackend
from harness.recording.folder import CassetteFolder
from harness.recording.human import Ask
from harness.recording.interactions import Recording, RecordingMetadata
from harness.recording.mcp.replay import message_key
from harness.recording.scrubber import Scrubber
from harness.recording.traffic import Traffic
from harness.scenario.cassette import (
    WRITING,
    cassette_name,
    command_to_record,
    matcher_of,
    mode_of,
)
from harness.scenario.model import Scenario
from harness.scenario.outcome import Outcome, Recorded
from harness.scenario.provenance import fingerprints, versions
from harness.scenario.recording_age import age_warning
from harness.secrets import Secrets
from harness.settings import RecordMode, Settings


@contextmanager
def recording_session(
    scenario: Scenario, settings: Settings, secrets: Secrets, ask: Ask | None = None
) -> Iterator[RecordingSession | None]:
    """The cassette of a scenario; None when it has none and nothing is live.

    Raises:
        CassetteError: the cassette is damaged, or being recorded by another process.
    """
    mode = mode_of(settings)
    name = cassette_name(scenario, settings)
    if mode is not RecordMode.LIVE and name is None:
        yield None
        return
    folder = None if mode is RecordMode.LIVE or name is None else CassetteFolder(settings.cassettes, name)
    with ExitStack() as lock:
        if folder is not None and mode in WRITING:
            lock.enter_context(folder.reserved())
        yield RecordingSession(scenario, settings, mode, folder, secrets, ask)


class RecordingSession:
    """What is known of a scenario's cassette, and what its repeats add to it. Without `folder` nothing is kept."""

    def __init__(
        self,
        scenario: Scenario,
        settings: Settings,
        mode: RecordMode,
        folder: CassetteFolder | None,
        secrets: Secrets,
        ask: Ask | None = None,
    ) -> None:
        self._scenario, self._mode, self._folder, self._ask = scenario, mode, folder, ask
        self._matcher = matcher_of(settings)
        environment = {**os.environ, **scenario.env}
        self._environment = environment
        self._secrets = secrets
        self._known = folder.numbers() if folder is not None else []
        self._made: dict[int, Recording] = {}
        self._discarded = ""
        self._traffic = Traffic()
        self._settings = settings
        self._written: tuple[str, ...] = ()
        self._unused = 0

    def open(self, repeat: int) -> tuple[RecordedBackend, list[str]]:
        """What answers in this repeat (from 0) when no stub does, and warnings.

        Raises:
            CassetteBroken: what was recorded cannot be read.
        """
        number, warnings = repeat + 1, []
        if number not in self._known and self._known and self._mode in (RecordMode.NONE, RecordMode.ONCE):
            number = self._known[repeat % len(self._known)]
            warnings.append(f"repeat {repeat + 1} was not recorded and plays recording {number} again")
        recorded = self._recorded(number)
        mode = self._mode
        sends = mode is not RecordMode.NONE and not (mode is RecordMode.ONCE and self._known)
        source = BackendOptions(
            recorded=recorded,
            replays=mode in (RecordMode.NONE, RecordMode.ONCE, RecordMode.NEW_EPISODES),
            sends=sends,
            cassette=self._folder.name if self._folder is not None else "",
            folder=self._folder.folder_of(number) if self._folder is not None else Path(),
            number=number,
            record_command=command_to_record(self._scenario),
            matcher=self._matcher,
            scrubber=Scrubber(self._secrets),
            environment=self._places(recorded, sends=sends),
            ask=self._ask,
        )
        return RecordedBackend(source), warnings

    def age_warnings(self, backend: RecordedBackend) -> list[str]:
        """What to warn of the age of what a backend plays. No check sees it: the calendar decides no verdict.

        Raises:
            CassetteTooOld: it is too old, and that is to be an error.
        """
        if self._folder is None or backend.is_real or backend.number is None:
            return []
        again = command_to_record(self._scenario, "--rewrite")
        text = age_warning(self._folder.name, backend.metadata, self._settings, again)
        return [text] if text else []

    def _recorded(self, number: int) -> Recording | None:
        """What was recorded before. Where everything is replaced it need not be readable."""
        if self._folder is None:
            return None
        try:
            return self._folder.load(number)
        except CassetteBroken:
            if self._mode is not RecordMode.REWRITE:
                raise
            return None

    def _places(self, recorded: Recording | None, *, sends: bool) -> Mapping[str, str]:
        """Variables that say where providers are, and hold their keys.

        For a replay they are as they were when it was recorded. A cassette never says where keys are sent.
        """
        if sends:
            return self._environment
        then = recorded.metadata.environment if recorded is not None else {}
        return {**then, **self._scenario.env}

    def keep(self, repeat: int, backend: RecordedBackend, outcome: Outcome, graph: Graph | None) -> list[str]:
        """Keep what a repeat that has ended recorded; returns warnings.

        A run whose checks fail is kept: they can be mended against the replay. One that did not come to its end is
        not, unless that is what the scenario expects.
        """
        if self._folder is None:
            return []
        self._traffic += backend.traffic()
        broke_off = outcome.observed.status in ("failed", "timeout", "invalid")
        if outcome.verdict == "error" or (broke_off and not outcome.passed):
            self.discard("the run did not come to its end")
            return [f"cassette '{self._folder.name}' stays as it was: the run did not come to its end"]
        made, day = backend.recording(), date.today().isoformat()
        if self._mode is RecordMode.NEW_EPISODES:
            unused = backend.unused()
            self._unused += len(unused)
            made = _together(made, unused) if backend.added else Recording()
            day = backend.metadata.recorded if self._folder.load(repeat + 1) else day
        elif self._mode is RecordMode.ALL:
            old = self._folder.load(repeat + 1) or Recording()
            kept = self._not_asked_again(old, made)
            made, day = _together(made, kept), old.metadata.recorded if kept else day
        if made or self._mode is RecordMode.REWRITE:
            self._made[repeat + 1] = replace(made, metadata=self._metadata(graph, backend, day))
        if outcome.observed.status == "interrupted" and self._ask is None:
            return [
                "it was recorded as it paused: there is no terminal to ask at, and no `human` stub answers"
            ]
        return []

    def discard(self, why: str) -> None:
        """Nothing of this scenario is written."""
        self._discarded = self._discarded or why

    def recorded(self) -> Recorded | None:
        """What recording came to so far; None where nothing is recorded."""
        if self._folder is None or self._mode not in WRITING:
            return None
        return Recorded(self._folder.path, self._traffic, self._unused, self._written, self._discarded)

    def save(self) -> None:
        """Write what was kept, if all repeats came to their end.

        Raises:
            CassetteError: it cannot be written.
        """
        if self._folder is None or self._discarded or not self._made:
            return
        others: dict[int, Recording] = {}
        if self._mode is not RecordMode.REWRITE:
            for number in self._known:
                recording = self._folder.load(number) if number not in self._made else None
                if recording is not None:
                    others[number] = recording
        if self._folder.save({**others, **self._made}):
            self._written = tuple(self._folder.files())

    def _not_asked_again(self, old: Recording, new: Recording) -> Recording:
        """What was recorded before, where nothing of now takes its place."""
        asked = {(turn, self._matcher.key(one.request)) for one in new.http for turn in (None, one.turn)}
        asked_of_servers = {
            (name, turn, message_key(one.sent, self._matcher))
            for name, of in new.mcp.items()
            for one in of
            for turn in (None, one.turn)
        }
        replies = [(reply.node, reply.asked, reply.turn) for reply in new.human]
        return Recording(
            tuple(one for one in old.http if (one.turn, self._matcher.key(one.request)) not in asked),
            {
                name: tuple(
                    one
                    for one in of
                    if (name, one.turn, message_key(one.sent, self._matcher)) not in asked_of_servers
                )
                for name, of in old.mcp.items()
            },
            tuple(reply for reply in old.human if (reply.node, reply.asked, reply.turn) not in replies),
        )

    def _metadata(self, graph: Graph | None, backend: RecordedBackend, day: str) -> RecordingMetadata:
        """Where a recording comes from; `day` is that of its oldest call: one that is kept is as old as it was."""
        files = graph.sources if graph is not None else self._scenario.manifests
        return RecordingMetadata(
            scenario=self._scenario.id,
            recorded=day,
            manifests=fingerprints(files, self._scenario.file.parent),
            versions=versions(),
            environment={**backend.places, **self._passed()},
        )

    def _passed(self) -> dict[str, str]:
        """The variables that the manifest was given, without secrets: a replay may have none of them."""
        names = set(self._scenario.env_passthrough).difference(self._scenario.env)
        return {
            name: self._secrets.variable(name, os.environ[name])
            for name in sorted(names)
            if name in os.environ
        }


def _together(made: Recording, rest: Recording) -> Recording:
    mcp = {name: (*made.mcp.get(name, ()), *rest.mcp.get(name, ())) for name in {**made.mcp, **rest.mcp}}
    return replace(made, http=(*made.http, *rest.http), mcp=mcp, human=(*made.human, *rest.human))
