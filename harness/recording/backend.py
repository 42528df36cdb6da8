"""The backend of a run that is recorded, replayed or live.

    effect ──▶ LiveBackend: the providers' clients ──▶ HTTPRecorder ──▶ the recording, or the network
               MCP sessions                        ──▶ MCPRecorder  ──▶ the recording, or a server
               questions to people                 ──▶ HumanRecorder ──▶ the recording, or the terminal

The same clients (`harness.world.backend`) make the requests in all three modes. Recording and replay happen below the
clients, at the transport.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from harness.errors import CassetteError, CassetteMissing
from harness.graph.effects import Effect, HTTPCall, HumanCall, LLMCall, MCPEndpoint
from harness.graph.model import State
from harness.graph.world import Answer
from harness.interception.intercept import intercepted
from harness.interception.interceptor import Interceptor
from harness.interception.messages import Request
from harness.recording.human import Ask, HumanRecorder
from harness.recording.interactions import (
    Recording,
    RecordingMetadata,
    Traffic,
    merged,
    traffic_of,
    without,
)
from harness.recording.matching import Matcher
from harness.recording.mcp.proxy import MCPRecorder
from harness.recording.mismatch import mismatch_error
from harness.recording.permits import current_source
from harness.recording.recorder import HTTPRecorder, InteractionIndex
from harness.recording.scrubber import Scrubber
from harness.recording.unfinished import UnfinishedRun
from harness.source.document import shown_path
from harness.time.real import real
from harness.world.backend import LiveBackend
from harness.world.mcp.tools import MCPSession

_CLIENTS: Final = r"(langchain_)?(openai|anthropic)\b"


@dataclass(frozen=True)
class BackendOptions:
    """The options of a `RecordedBackend`: which answers it may use in one run.

    recorded     the existing recording that may answer; None if there is none
    unfinished   the calls of an earlier recording that did not end, and those of this one; None if none are made
    sends        True if calls without a recorded answer are really made, and recorded
    scenario     the id of the scenario
    cassette     name of the cassette, "" if there is none; `folder` holds its files
    number       number of this recording in the cassette, from 1
    record_command  shell command that records it again, shown in errors
    scrubber     removes secrets from what is compared and saved
    environment  variables with the providers' keys and addresses
    ask          asks a person at the terminal; None if nobody can be asked
    """

    recorded: Recording | None = None
    unfinished: UnfinishedRun | None = None
    sends: bool = False
    scenario: str = ""
    cassette: str = ""
    folder: Path = Path()
    number: int = 1
    record_command: str = ""
    matcher: Matcher = field(default_factory=Matcher)
    scrubber: Scrubber = field(default_factory=Scrubber)
    environment: Mapping[str, str] = field(default_factory=dict)
    ask: Ask | None = None


class RecordedBackend:
    """Answers, in one run, what no stub answers: from a recording, or live and recorded."""

    def __init__(self, options: BackendOptions) -> None:
        self._options = options
        self._recorded = options.recorded or Recording()
        self.unfinished = options.unfinished
        self._continued = (self.unfinished and self.unfinished.load()) or Recording()
        first, second = (
            (self._recorded, self._continued) if self._recorded else (self._continued, Recording())
        )
        self._playable = merged(first, second)
        source = current_source()
        ask = options.ask or (source.ask if source is not None and source.asks else None)
        self.can_ask = ask is not None
        """True if a person can be asked."""
        self._http = HTTPRecorder(
            self._playable.http,
            InteractionIndex(self._playable.http, options.matcher, options.scrubber).find,
            sends=options.sends,
            mismatch_error=self._refusal,
            # Scrub at once: a secret gets the placeholder of the place where it was found first, as on replay.
            on_recorded=options.scrubber.interaction,
            on_received=lambda interaction: self._keep(http=(interaction,)),
            buffers_streams=bool(options.cassette),
            source=source,
        )
        self._human = HumanRecorder(
            self._playable.human,
            ask if options.sends else None,
            options.scrubber.secrets.data,
            on_reply=lambda reply: self._keep(human=(reply,)),
        )
        self._mcp: dict[str, MCPRecorder] = {}
        self.now = self._playable.metadata.now
        """The instant at which the run begins; set by it."""
        self._turn = 1
        self._limited: Callable[[Any], Any] | None = None
        self._live = LiveBackend(options.environment, replayed=not options.sends)

    @property
    def is_real(self) -> bool:
        """True if real systems may be called: the network is open, and real time passes."""
        return self._options.sends

    @property
    def is_live(self) -> bool:
        """True if real systems answer everything and nothing is recorded."""
        return self.is_real and not self._options.cassette

    @property
    def number(self) -> int | None:
        """The number of the recording that is replayed; None if real systems may be called or nothing is recorded."""
        return self._options.number if self._playable and not self.is_real else None

    @property
    def is_available(self) -> bool:
        """True if a real system or a recording can answer."""
        return self.is_real or bool(self._playable)

    @property
    def metadata(self) -> RecordingMetadata:
        """The metadata of the recording that is replayed."""
        return self._playable.metadata

    @property
    def address_variables(self) -> dict[str, str]:
        """The environment variables with provider addresses that were used, by name, without secrets."""
        url = self._options.scrubber.secrets.url
        return {name: url(value) for name, value in sorted(self._live.address_variables.items())}

    @property
    def interceptor(self) -> Interceptor:
        """The interceptor that replays or records HTTP requests."""
        return self._http

    @contextmanager
    def intercepted(self, interceptor: Interceptor | None = None) -> Iterator[None]:
        """Intercept the HTTP requests of this process within the context.

        Args:
            interceptor: is asked first and forwards to this backend's interceptor; None uses this backend's alone.
        """
        with intercepted(interceptor or self.interceptor), warnings.catch_warnings():
            # Clients warn of deprecated models. Where warnings are errors, that must not end a replay.
            warnings.filterwarnings("ignore", category=DeprecationWarning, module=_CLIENTS)
            yield

    def begin_turn(self, number: int, *, is_resumed: bool = False) -> None:
        """Start a turn: the calls that follow belong to it.

        Args:
            number: the number of the conversation's input, from 1.
            is_resumed: True if the next input answers the questions of this turn, so that nobody is asked for them.
        """
        self._human.asks = not is_resumed
        self._turn = self._http.turn = self._human.turn = number
        for recorder in self._mcp.values():
            recorder.turn = number

    async def answer(self, effect: Effect, state: State) -> Answer | None:
        """Return the answer to an effect; None for a kind of effect that no backend answers.

        Raises:
            CassetteError: the call was not recorded.
            ProviderError: the provider cannot be called.
        """
        if isinstance(effect, HumanCall):
            return await self._human.answer(effect)
        if not self.is_real and not self._playable and isinstance(effect, (LLMCall, HTTPCall)):
            raise CassetteMissing(self._missing(f"{effect.kind} {effect.name}"))
        if isinstance(effect, LLMCall):
            self._options.scrubber.learn("api_key", effect.api_key)
        return await self._live.answer(effect, state)

    def can_answer(self, effects: Sequence[Effect], state: State) -> Sequence[bool]:
        """Return True for each effect if all are questions to a person and have a reply. Consumes nothing."""
        return [self._human.has_answers(effects)] * len(effects)

    def session(self, endpoint: MCPEndpoint) -> AbstractAsyncContextManager[MCPSession]:
        """Return a session with an MCP server, real or replayed. `MCPRecorder` documents its exceptions."""
        options = self._options
        recorder = self._mcp.get(endpoint.id)
        if recorder is None:
            recorded = self._playable.mcp.get(endpoint.id, ())
            recorder = MCPRecorder(
                recorded,
                server=endpoint.id,
                hint=f"record it{' again' * bool(recorded)}: {options.record_command}",
                file=shown_path(options.folder / "mcp.yaml"),
                matcher=options.matcher,
                comparable=options.scrubber.secrets.data,
                learn=options.scrubber.learn,
                on_answer=lambda exchange: self._keep(mcp={endpoint.id: (exchange,)}),
            )
            recorder.turn = self._turn
            self._mcp[endpoint.id] = recorder
        return recorder.session(endpoint, replays=bool(self._playable), sends=options.sends)

    def recording(self) -> Recording:
        """Return the calls of this run and their answers, without secrets."""
        mcp = {name: recorder.exchanges() for name, recorder in self._mcp.items()}
        recording = Recording(
            self._http.interactions(), {k: v for k, v in mcp.items() if v}, tuple(self._human.replies)
        )
        return self._options.scrubber.recording(recording)

    @property
    def added(self) -> bool:
        """True if a real system or a person was called, now or for a recording that did not end."""
        return (
            bool(self._continued)
            or self._human.asked > 0
            or self._http.added
            or any(each.added for each in self._mcp.values())
        )

    def traffic(self) -> Traffic:
        """Return the counts of the calls that were really made, replayed ones excluded."""
        exchanges = [exchange for recorder in self._mcp.values() for exchange in recorder.asked()]
        return traffic_of(self._http.asked(), exchanges, self._human.asked)

    def unused(self) -> Recording:
        """Return the part of the recording that was not replayed, without what an unfinished one left."""
        mcp = {name: tuple(recorder.unused()) for name, recorder in self._mcp.items()}
        others = {name: of for name, of in self._playable.mcp.items() if name not in self._mcp}
        left = {name: of for name, of in {**others, **mcp}.items() if of}
        unused = Recording(tuple(self._http.unused()), left, tuple(self._human.unused))
        return without(unused, self._continued) if self._continued else unused

    def unused_warnings(self, *, named: bool = True) -> list[str]:
        """Return a warning for the unused part of the recording; empty unless the run only replays.

        Args:
            named: True if the scenario names the cassette. Only then a cassette without a recording is warned of.
        """
        if self.is_real:
            return []
        if not self._playable and self._options.cassette:
            text = f"cassette {self._options.cassette!r} is not recorded, and nothing asks for it"
            return [text] if named else []
        left = self.unused()
        file = shown_path(self._options.folder / "http.yaml")
        texts = [f"{each.request.method} {each.request.url} ({file}:{each.line})" for each in left.http]
        texts += [
            f"MCP {name} {exchange.sent.get('method')}" for name, of in left.mcp.items() for exchange in of
        ]
        texts += [f"the reply to {reply.node!r}" for reply in left.human]
        if not texts:
            return []
        shown = ", ".join(texts[:3]) + (f" and {len(texts) - 3} more" if len(texts) > 3 else "")
        return [f"cassette {self._options.cassette!r}: recorded and not used: {shown}"]

    def learn_secrets(self) -> None:
        """Collect the secrets in all calls and answers of the run, for `without_secrets`.

        In a run that only replays, the recording has no secrets in it, and each call was searched when it was made.
        """
        recording = self.recording() if self.is_real else self._playable
        self._limited = self._options.scrubber.limited(recording)

    def without_secrets(self, value: Any) -> Any:
        """Return JSON of the results with its secrets replaced as in the recording.

        The result is the same on every machine that replays the recording, and so is its digest.
        """
        if self._limited is None:
            self.learn_secrets()
        return self._limited(value) if self._limited is not None else value

    async def close(self) -> None:
        """Close the clients. Sessions close themselves."""
        await self._live.close()

    def _keep(self, **call: Any) -> None:
        """Write a call that has ended, so that it need not be made again if this recording does not end."""
        if self.unfinished is not None:
            day = real.now().date().isoformat()
            metadata = RecordingMetadata(self._options.scenario, recorded=day, now=self.now)
            self.unfinished.add(Recording(**call, metadata=metadata))

    def _refusal(self, request: Request, used: set[int]) -> CassetteError:
        options = self._options
        if not self._playable:
            return CassetteMissing(
                self._missing(f"{request.method} {options.scrubber.secrets.url(request.url)}")
            )
        return mismatch_error(
            options.scrubber.request(request),
            [replace(one, request=options.scrubber.request(one.request)) for one in self._playable.http],
            used,
            options.matcher,
            cassette=options.cassette,
            folder=options.folder,
            record_command=options.record_command,
            turn=self._turn,
        )

    def _missing(self, asked: str) -> str:
        options = self._options
        return (
            f"nothing answers {asked}: no stub does, and cassette {options.cassette!r} is not recorded "
            f"(no {shown_path(options.folder)})\n  record it: {options.record_command}"
        )
