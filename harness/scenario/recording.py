"""Recording and replay of a scenario's cassette while it runs, and its writing when all its repeats have ended.

load the recordings ─▶ a backend for each repeat ─▶ `RunRecording` ─▶ `CassetteWriter`
└─▶ .unfinished: each call as it ends, for the next recording

A repeat may run in another process than the one that writes: its outcome brings what it recorded. The cassette is not
touched while the scenario runs, nor if one of its repeats did not complete. It has no secrets.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import date, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from harness import DISTRIBUTION, __version__
from harness.errors import BudgetSpent, CassetteBroken, CassetteError, CassetteTooOld, OwnerEnded
from harness.graph.model import Graph
from harness.graph.native import NativeGraph
from harness.recording.backend import BackendOptions, RecordedBackend
from harness.recording.folder import CassetteFolder
from harness.recording.human import Ask
from harness.recording.interactions import (
    Exchange,
    Interaction,
    Recording,
    RecordingMetadata,
    RunRecording,
    Traffic,
    merged,
)
from harness.recording.mcp.replay import message_key
from harness.recording.permits import current_source
from harness.recording.scrubber import Scrubber
from harness.recording.unfinished import UnfinishedRun
from harness.scenario.cassette import (
    ONLY_MISSING,
    WRITING,
    cassette_name,
    command_to_record,
    effective_record_mode,
    request_matcher,
)
from harness.scenario.evaluation import outcome_of
from harness.scenario.model import Scenario
from harness.scenario.outcome import Outcome, RecordingResult, failed_result
from harness.scenario.real_limit import progress
from harness.secrets import Secrets
from harness.settings import RecordMode, Settings
from harness.source.document import relative_path
from harness.time.real import real
from harness.units import instant_text, parse_instant

CLIENTS: Final = (
    "anthropic",
    "langchain-anthropic",
    "langchain-openai",
    "mcp",
    "openai",
    "vcrpy",
)


def fingerprints(files: Sequence[Path], base: Path) -> dict[str, str]:
    """Return the SHA-256 of each file by its path relative to `base`; "" for a file that cannot be read."""
    found = {}
    for file in dict.fromkeys(path.resolve() for path in files):
        try:
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
        except OSError:
            digest = ""
        found[relative_path(file, base.resolve())] = digest
    return found


@cache  # the look-up takes several milliseconds
def versions() -> Mapping[str, str]:
    """Return the installed versions of this package and of the clients of providers."""
    found = {DISTRIBUTION: __version__}
    for package in CLIENTS:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def age_days(metadata: RecordingMetadata) -> int | None:
    """Return the age of a recording in days, or None if it has no date."""
    return (real.now().date() - date.fromisoformat(metadata.recorded)).days if metadata.recorded else None


def is_too_old(age: int | None, settings: Settings) -> bool:
    """True if the age exceeds the limit, or is unknown although there is a limit."""
    return settings.max_age_days < math.inf and (age is None or age > settings.max_age_days)


@cache
def _first_import() -> datetime:
    """Return the instant at which the apps that this command records are imported: one for all, as they share it."""
    source = current_source()
    return (source.began if source is not None else real.now()).replace(microsecond=0)


def as_recorded(scenario: Scenario, settings: Settings) -> Scenario:
    """Return a scenario of an app with the instant of its import; for a replay, also with its addresses and clock.

    The app is imported with them: it reads both itself, and a machine that only replays need not have the addresses.
    """
    name, mode = cassette_name(scenario, settings), effective_record_mode(settings)
    recorded = None
    if name is not None and mode in (RecordMode.NONE, *ONLY_MISSING):
        with suppress(CassetteBroken):  # the run tells that
            recorded = CassetteFolder(settings.cassettes, name).load()
    if recorded is None:
        return scenario if mode is RecordMode.NONE else replace(scenario, imported=_first_import())
    then = recorded.metadata
    imported = parse_instant(then.imported) if then.imported else None
    if mode is not RecordMode.NONE:
        return replace(scenario, imported=imported or (parse_instant(then.now) if then.now else None))
    kept = {
        key: value
        for key, value in then.environment.items()
        if not (key in scenario.env_passthrough and key in os.environ)
    }
    now = scenario.now or settings.now or (parse_instant(then.now) if then.now else None)
    return replace(scenario, env={**kept, **scenario.env}, now=now, imported=imported)


def recording_session(
    scenario: Scenario, settings: Settings, secrets: Secrets, ask: Ask | None = None
) -> RecordingSession | None:
    """Return the session of a scenario; None if it has no cassette and the record mode is not `live`.

    Raises:
        CassetteError: the cassette is damaged.
    """
    name, is_live = cassette_name(scenario, settings), effective_record_mode(settings) is RecordMode.LIVE
    if name is None and not is_live:
        return None
    folder = CassetteFolder(settings.cassettes, name) if name is not None and not is_live else None
    return RecordingSession(scenario, settings, folder, secrets, ask)


class RecordingSession:
    """Opens the cassette of a scenario for its repeats. Without `folder`, nothing is recorded."""

    def __init__(
        self,
        scenario: Scenario,
        settings: Settings,
        folder: CassetteFolder | None,
        secrets: Secrets,
        ask: Ask | None,
    ) -> None:
        self._scenario, self._settings, self._folder = scenario, settings, folder
        self._secrets, self._ask = secrets, ask
        self._environment = {**os.environ, **scenario.env}
        self._mode, self._matcher = effective_record_mode(settings), request_matcher(settings)
        self._known = folder.numbers() if folder is not None else []

    def open(self, repeat: int) -> tuple[RecordedBackend, list[str]]:
        """Return the backend that answers in this repeat (from 0) when no stub does, and warnings.

        Raises:
            CassetteBroken: the recording cannot be read.
        """
        number, warnings = repeat + 1, []
        if number not in self._known and self._known and self._mode in (RecordMode.NONE, RecordMode.ONCE):
            number = self._known[repeat % len(self._known)]
            warnings.append(f"repeat {repeat + 1} was not recorded and plays recording {number} again")
        recorded = self._recorded(number)
        mode = self._mode
        sends = mode is not RecordMode.NONE and not (mode is RecordMode.ONCE and self._known)
        scrubber = Scrubber(self._secrets)
        unfinished = None
        if sends and self._folder is not None:
            unfinished = UnfinishedRun(self._folder.unfinished(mode, number), scrubber)
        source = BackendOptions(
            recorded=recorded if mode in (RecordMode.NONE, *ONLY_MISSING) else None,
            unfinished=unfinished,
            scenario=self._scenario.id,
            sends=sends,
            cassette=self._folder.name if self._folder is not None else "",
            folder=self._folder.folder_of(number) if self._folder is not None else Path(),
            number=number,
            record_command=command_to_record(self._scenario),
            matcher=self._matcher,
            scrubber=scrubber,
            environment=self._provider_variables(recorded, sends=sends),
            ask=self._ask,
        )
        return RecordedBackend(source), warnings

    def age_warnings(self, backend: RecordedBackend) -> list[str]:
        """Return a warning of the age of the replayed recording if it is too old.

        No check sees it, so that no verdict depends on the date. It contains the date and not the age, so that the
        text is the same every day.

        Raises:
            CassetteTooOld: the recording is too old, and the settings make that an error.
        """
        if self._folder is None or backend.is_real or backend.number is None:
            return []
        if not is_too_old(age_days(backend.metadata), self._settings):
            return []
        day = backend.metadata.recorded
        recorded = f"was recorded on {day}" if day else "does not say when it was recorded"
        limit = f"{self._settings.max_age_days:g} days (max_age_days) is the limit"
        again = command_to_record(self._scenario, "--rewrite")
        text = f"cassette '{self._folder.name}' {recorded}, and {limit}; record it again: {again}"
        if self._settings.stale_cassettes == "fail":
            raise CassetteTooOld(text)
        return [text]

    def _recorded(self, number: int) -> Recording | None:
        """Return the earlier recording of this number, or None.

        In mode `rewrite` it is replaced, so that it need not be readable.
        """
        if self._folder is None:
            return None
        try:
            return self._folder.load(number)
        except CassetteBroken:
            if self._mode is not RecordMode.REWRITE:
                raise
            return None

    def _provider_variables(self, recorded: Recording | None, *, sends: bool) -> Mapping[str, str]:
        """Return the environment variables that contain the addresses and keys of providers.

        For a replay, they have the values of the recording. When requests are really sent, only the values of
        the process and the scenario count: a cassette never determines where keys are sent.
        """
        if sends:
            return self._environment
        then = recorded.metadata.environment if recorded is not None else {}
        return {**then, **self._scenario.env}

    def keep(self, backend: RecordedBackend, outcome: Outcome, graph: Graph | None) -> None:
        """Give the outcome of a run what it adds to the cassette, and warnings.

        A run whose checks fail is kept, so that they can be corrected against the replay. A run that did not
        complete is kept only if the scenario expects that. Its calls answer the next recording, but for the last.
        """
        if self._folder is None:
            return
        number, traffic = outcome.repeat + 1, backend.traffic()
        broke_off = outcome.observed.status in ("failed", "timeout", "invalid")
        if outcome.verdict == "error" or (broke_off and not outcome.passed):
            outcome.made = RunRecording(traffic=traffic, problem="the run did not come to its end")
            refused = (outcome.observed.error or {}).get("code") in (BudgetSpent.code, OwnerEnded.code)
            last_is_at_fault = not (refused or progress.stopped)
            kept = backend.unfinished.kept(but_last=last_is_at_fault) if backend.unfinished is not None else 0
            again = f"; the first {kept} of its calls will not be made again" if kept else ""
            # All scenarios give the same text, so that it is shown once; the list of cassettes has the names.
            text = f"the cassette is not written: the run did not come to its end{again}"
            outcome.observed.warnings.append(text)
            return
        made, day, left = backend.recording(), real.now().date().isoformat(), 0
        before = self._folder.load(number) if self._mode is not RecordMode.REWRITE else None
        if self._mode is RecordMode.NEW_EPISODES:
            unused = backend.unused()
            left = len(unused)
            made = merged(made, unused) if backend.added else Recording()
            day = before.metadata.recorded if before else day
        elif self._mode is RecordMode.ALL:
            kept_calls = self._not_replaced(before or Recording(), made)
            made, day = merged(made, kept_calls), before.metadata.recorded if before and kept_calls else day
        recording = None
        if made or self._mode is RecordMode.REWRITE:
            metadata = self._metadata(graph, backend, outcome, day)
            if isinstance(graph, NativeGraph):  # the app reads its addresses itself
                metadata = replace(metadata, environment={**metadata.environment, **self._addresses(made)})
            recording = replace(made, metadata=metadata)
        outcome.made = RunRecording(recording, traffic, left)
        if outcome.observed.status == "interrupted" and not backend.can_ask:
            text = "it was recorded as it paused: there is no terminal to ask at, and no `human` stub answers"
            outcome.observed.warnings.append(text)

    def _not_replaced(self, old: Recording, new: Recording) -> Recording:
        """Return the interactions of the old recording that the new one does not replace."""

        def http_key(one: Interaction) -> str:
            return self._matcher.key(one.request)

        def mcp_key(name: str, one: Exchange) -> tuple[str, str]:
            return name, message_key(one.sent, self._matcher)

        asked = {(turn, http_key(one)) for one in new.http for turn in (None, one.turn)}
        exchanges = [(name, one) for name, of in new.mcp.items() for one in of]
        asked_of_servers = {(turn, mcp_key(*each)) for each in exchanges for turn in (None, each[1].turn)}
        replies = [(reply.node, reply.asked, reply.turn) for reply in new.human]
        return old.where(
            lambda one: (one.turn, http_key(one)) not in asked,
            lambda name, one: (one.turn, mcp_key(name, one)) not in asked_of_servers,
            lambda reply: (reply.node, reply.asked, reply.turn) not in replies,
        )

    def _metadata(
        self, graph: Graph | None, backend: RecordedBackend, outcome: Outcome, day: str
    ) -> RecordingMetadata:
        """Return the metadata of a recording. `day` is the date of its oldest interaction."""
        files = graph.sources if graph is not None else self._scenario.manifests
        return RecordingMetadata(
            scenario=self._scenario.id,
            recorded=day,
            now=outcome.now,
            manifests=fingerprints(files, self._scenario.file.parent),
            versions=versions(),
            environment={**backend.address_variables, **self._passed_variables()},
            imported=instant_text(self._scenario.imported) if self._scenario.imported else "",
        )

    def _addresses(self, made: Recording) -> dict[str, str]:
        """Return the variables whose value is an address that requests were sent to, without secrets."""
        called = {urlsplit(each.request.url).netloc for each in made.http}
        return {
            name: self._secrets.url(value)
            for name, value in sorted(os.environ.items())
            if value.startswith(("http://", "https://")) and urlsplit(value).netloc in called
        }

    def _passed_variables(self) -> dict[str, str]:
        """Return the variables passed to the manifest, without secrets, since a replay may lack them."""
        names = set(self._scenario.env_passthrough).difference(self._scenario.env)
        return {
            name: self._secrets.variable(name, os.environ[name])
            for name in sorted(names)
            if name in os.environ
        }


# ---------------------------------------------------------------- after the repeats


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
        kept = self._folder.numbers() if self._made and self._mode is not RecordMode.REWRITE else ()
        loaded = {number: self._folder.load(number) for number in kept if number not in self._made}
        others = {number: recording for number, recording in loaded.items() if recording is not None}
        if self._made and self._folder.save({**others, **self._made}):
            self._result = replace(self._result, files=tuple(self._folder.files()))
        self._folder.discard_unfinished()
