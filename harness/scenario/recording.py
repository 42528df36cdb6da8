"""Recording and replay of a scenario's cassette while it runs.

    load the recordings ─▶ a backend for each repeat ─▶ keep what it recorded ─▶ save, once, without secrets

Nothing is written while the scenario runs, nor if one of its repeats did not complete.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import date
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from harness import DISTRIBUTION, __version__
from harness.errors import CassetteBroken, CassetteTooOld
from harness.graph.model import Graph
from harness.graph.native import NativeGraph
from harness.recording.backend import BackendOptions, RecordedBackend
from harness.recording.folder import CassetteFolder
from harness.recording.human import Ask
from harness.recording.interactions import Recording, RecordingMetadata, Traffic
from harness.recording.mcp.replay import message_key
from harness.recording.scrubber import Scrubber
from harness.scenario.cassette import (
    WRITING,
    cassette_name,
    command_to_record,
    effective_record_mode,
    request_matcher,
)
from harness.scenario.model import Scenario
from harness.scenario.outcome import Outcome, RecordingResult
from harness.secrets import Secrets
from harness.settings import RecordMode, Settings
from harness.source.document import relative_path
from harness.time.real import real
from harness.units import parse_instant

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
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def age_days(metadata: RecordingMetadata) -> int | None:
    """Return the age of a recording in days, or None if it has no date."""
    return (real.now().date() - date.fromisoformat(metadata.recorded)).days if metadata.recorded else None


def is_too_old(age: int | None, settings: Settings) -> bool:
    """True if the age exceeds the limit, or is unknown although there is a limit."""
    return settings.max_age_days < math.inf and (age is None or age > settings.max_age_days)


def age_warning(name: str, metadata: RecordingMetadata, settings: Settings, again: str) -> str:
    """Return the warning for a recording of cassette `name` that is too old, or "".

    It contains the date and not the age, so that the text is the same every day.

    Raises:
        CassetteTooOld: the recording is too old, and the settings make that an error.
    """
    if not is_too_old(age_days(metadata), settings):
        return ""
    limit = f"{settings.max_age_days:g} days (max_age_days)"
    recorded = (
        f"was recorded on {metadata.recorded}" if metadata.recorded else "does not say when it was recorded"
    )
    text = f"cassette '{name}' {recorded}, and {limit} is the limit; record it again: {again}"
    if settings.stale_cassettes == "fail":
        raise CassetteTooOld(text)
    return text


@contextmanager
def recording_session(
    scenario: Scenario, settings: Settings, secrets: Secrets, ask: Ask | None = None
) -> Iterator[RecordingSession | None]:
    """Open the cassette of a scenario. Yields None if it has none and the record mode is not `live`.

    Raises:
        CassetteError: the cassette is damaged, or another process is recording it.
    """
    mode = effective_record_mode(settings)
    name = cassette_name(scenario, settings)
    if mode is not RecordMode.LIVE and name is None:
        yield None
        return
    folder = None if mode is RecordMode.LIVE or name is None else CassetteFolder(settings.cassettes, name)
    with ExitStack() as lock:
        if folder is not None and mode in WRITING:
            lock.enter_context(folder.reserved())
        yield RecordingSession(scenario, settings, mode, folder, secrets, ask)


def as_recorded(scenario: Scenario, settings: Settings) -> Scenario:
    """Return a scenario of an app that is replayed, with the addresses and the clock of its recording.

    The app is imported with them: it reads both itself, and a machine that only replays need not have the addresses.
    """
    name = cassette_name(scenario, settings)
    if name is None or effective_record_mode(settings) is not RecordMode.NONE:
        return scenario
    with suppress(CassetteBroken):  # the run tells that
        if recorded := CassetteFolder(settings.cassettes, name).load():
            kept = {
                key: value
                for key, value in recorded.metadata.environment.items()
                if not (key in scenario.env_passthrough and key in os.environ)
            }
            then = recorded.metadata.now
            now = scenario.now or settings.now or (parse_instant(then) if then else None)
            return replace(scenario, env={**kept, **scenario.env}, now=now)
    return scenario


class RecordingSession:
    """The cassette of a scenario, and the recordings that its repeats add to it.

    Without `folder`, nothing is kept.
    """

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
        self._matcher = request_matcher(settings)
        self._environment = {**os.environ, **scenario.env}
        self._secrets = secrets
        self._known = folder.numbers() if folder is not None else []
        self._made: dict[int, Recording] = {}
        self._discarded = ""
        self._traffic = Traffic()
        self._settings = settings
        self._written: tuple[str, ...] = ()
        self._unused = 0

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
            environment=self._provider_variables(recorded, sends=sends),
            ask=self._ask,
        )
        return RecordedBackend(source), warnings

    def age_warnings(self, backend: RecordedBackend) -> list[str]:
        """Return warnings of the age of the replayed recording.

        No check sees them, so that no verdict depends on the date.

        Raises:
            CassetteTooOld: the recording is too old, and the settings make that an error.
        """
        if self._folder is None or backend.is_real or backend.number is None:
            return []
        again = command_to_record(self._scenario, "--rewrite")
        text = age_warning(self._folder.name, backend.metadata, self._settings, again)
        return [text] if text else []

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

    def keep(self, repeat: int, backend: RecordedBackend, outcome: Outcome, graph: Graph | None) -> list[str]:
        """Keep the recording of a completed repeat; return warnings.

        A run whose checks fail is kept, so that they can be corrected against the replay. A run that did not
        complete is kept only if the scenario expects that.
        """
        if self._folder is None:
            return []
        self._traffic += backend.traffic()
        broke_off = outcome.observed.status in ("failed", "timeout", "invalid")
        if outcome.verdict == "error" or (broke_off and not outcome.passed):
            self.discard("the run did not come to its end")
            return [f"cassette '{self._folder.name}' stays as it was: the run did not come to its end"]
        made, day = backend.recording(), real.now().date().isoformat()
        if self._mode is RecordMode.NEW_EPISODES:
            unused = backend.unused()
            self._unused += len(unused)
            made = _merge(made, unused) if backend.added else Recording()
            day = backend.metadata.recorded if self._folder.load(repeat + 1) else day
        elif self._mode is RecordMode.ALL:
            old = self._folder.load(repeat + 1) or Recording()
            kept = self._not_replaced(old, made)
            made, day = _merge(made, kept), old.metadata.recorded if kept else day
        if made or self._mode is RecordMode.REWRITE:
            metadata = self._metadata(graph, backend, outcome, day)
            if isinstance(graph, NativeGraph):  # the app reads its addresses itself
                metadata = replace(metadata, environment={**metadata.environment, **self._addresses(made)})
            self._made[repeat + 1] = replace(made, metadata=metadata)
        if outcome.observed.status == "interrupted" and self._ask is None:
            return [
                "it was recorded as it paused: there is no terminal to ask at, and no `human` stub answers"
            ]
        return []

    def discard(self, why: str) -> None:
        """Prevent this scenario's recordings from being written."""
        self._discarded = self._discarded or why

    def recorded(self) -> RecordingResult | None:
        """Return the result of recording so far, or None if the mode does not record."""
        if self._folder is None or self._mode not in WRITING:
            return None
        return RecordingResult(self._folder.path, self._traffic, self._unused, self._written, self._discarded)

    def save(self) -> None:
        """Write the recordings that were kept, if all repeats completed.

        Raises:
            CassetteError: the cassette cannot be written.
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

    def _not_replaced(self, old: Recording, new: Recording) -> Recording:
        """Return the interactions of the old recording that the new one does not replace."""
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


def _merge(made: Recording, rest: Recording) -> Recording:
    mcp = {name: (*made.mcp.get(name, ()), *rest.mcp.get(name, ())) for name in {**made.mcp, **rest.mcp}}
    return replace(made, http=(*made.http, *rest.http), mcp=mcp, human=(*made.human, *rest.human))
