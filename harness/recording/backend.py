"""The backend of a world that is recorded, replayed, or live.

In each of these the same clients ask (`harness.world.backend`). They differ below them, where HTTP and MCP traffic is
recorded or replayed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from harness.errors import CassetteError, CassetteMissing
from harness.graph.effects import Answer, Effect, HTTPCall, HumanCall, LLMCall, MCPEndpoint
from harness.graph.model import State
from harness.interception.intercept import intercepted
from harness.interception.interceptor import Interceptor
from harness.interception.messages import Request
from harness.recording.human import Ask, HumanRecorder
from harness.recording.interaction_index import InteractionIndex
from harness.recording.interactions import Interaction, Recording, RecordingMetadata
from harness.recording.matching import Matcher
from harness.recording.mcp.recorder import MCPRecorder
from harness.recording.mismatch import mismatch_error
from harness.recording.recorder import HTTPRecorder
from harness.recording.scrubber import Scrubber
from harness.recording.spending import current_spending
from harness.recording.traffic import Traffic, traffic_of
from harness.source.document import shown_path
from harness.world.backend import LiveBackend
from harness.world.mcp.tools import MCPSession

_CLIENTS: Final = r"(langchain_)?(openai|anthropic)\b"


@dataclass(frozen=True)
class BackendOptions:
    """Where answers come from, in one run.

    recorded     what was recorded before; None where nothing was
    plays        whether that may answer
    sends        whether what it does not answer goes to the real thing, and is recorded
    cassette     the cassette's name, "" where there is none; `folder` its place
    number       which of its recordings this is
    record_command   the command that records it anew
    scrubber     takes secrets out of what is compared and kept
    environment  where the providers' keys and places are read from
    ask          asks a person at the terminal; None where there is nobody
    """

    recorded: Recording | None = None
    replays: bool = True
    sends: bool = False
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
        self._spending = current_spending()
        self._playable = (options.recorded if options.replays else None) or Recording()
        self._http = HTTPRecorder(
            self._playable.http,
            InteractionIndex(self._playable.http, options.matcher, options.scrubber).find,
            sends=options.sends,
            mismatch_error=self._refusal,
            # At once, so that what is found goes by the name it came with, here as on replay.
            on_recorded=self._on_recorded,
            buffers_streams=bool(options.cassette),
            budget_error=self._spending.refusal if self._spending is not None else lambda _: None,
        )
        self._human = HumanRecorder(
            self._playable.human, options.ask if options.sends else None, options.scrubber.data
        )
        self._mcp: dict[str, MCPRecorder] = {}
        self._turn = 1
        self._limited: Callable[[Any], Any] | None = None
        self._live = LiveBackend(options.environment, replayed=not options.sends)

    @property
    def is_real(self) -> bool:
        """Whether real things may be asked: the network is open, and time passes."""
        return self._options.sends

    @property
    def is_live(self) -> bool:
        """Whether real things answer everything, and nothing of it is recorded."""
        return self.is_real and not self._options.cassette

    @property
    def number(self) -> int | None:
        """Which recording of the cassette alone answers; None where the real thing may, or nothing is recorded."""
        return self._options.number if self._playable and not self.is_real else None

    @property
    def is_available(self) -> bool:
        """Whether anything can answer: the real thing, or a recording."""
        return self.is_real or bool(self._playable)

    @property
    def metadata(self) -> RecordingMetadata:
        """Where the recording that may answer comes from."""
        return self._playable.metadata

    @property
    def places(self) -> dict[str, str]:
        """The variables that said where providers are, without secrets."""
        url = self._options.scrubber.url
        return {name: url(value) for name, value in sorted(self._live.places.items())}

    @property
    def interceptor(self) -> Interceptor:
        """Answers HTTP requests from the recording, or records them."""
        return self._http

    @contextmanager
    def intercepted(self, interceptor: Interceptor | None = None) -> Iterator[None]:
        """Intercept the HTTP of this process, inside.

        `interceptor` is asked first and passes on to this backend's; None: this backend's alone.
        """
        with intercepted(interceptor or self.interceptor), warnings.catch_warnings():
            # Clients call models deprecated that are recorded; warnings that are errors must not end a replay.
            warnings.filterwarnings("ignore", category=DeprecationWarning, module=_CLIENTS)
            yield

    def begin_turn(self, number: int, *, is_resumed: bool = False) -> None:
        """What follows belongs to this input of the conversation, counted from 1.

        `is_resumed`: the next one answers what is asked in it, so that no person need be asked.
        """
        self._human.asks = not is_resumed
        self._turn = self._http.turn = self._human.turn = number
        for recorder in self._mcp.values():
            recorder.turn = number

    async def answer(self, effect: Effect, state: State) -> Answer | None:
        """Answer an effect; None when it is of a kind that nothing outside answers.

        Raises:
            CassetteError: it was not recorded.
            ProviderError: it cannot be asked for real.
        """
        if isinstance(effect, HumanCall):
            return await self._human.answer(effect)
        if not self.is_real and not self._playable and isinstance(effect, (LLMCall, HTTPCall)):
            raise CassetteMissing(self._missing(f"{effect.kind} {effect.name}"))
        if isinstance(effect, LLMCall):
            self._options.scrubber.learn("api_key", effect.api_key)
        return await self._live.answer(effect, state)

    def can_answer(self, effects: Sequence[Effect], state: State) -> Sequence[bool]:
        """For each, True if they are questions to a person that would all be answered; uses nothing up."""
        return [self._human.has_answers(effects)] * len(effects)

    def session(self, endpoint: MCPEndpoint) -> AbstractAsyncContextManager[MCPSession]:
        """A session with an MCP server, real or replayed; see `MCPRecorder` for what it raises."""
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
                comparable=options.scrubber.data,
                learn=options.scrubber.learn,
            )
            recorder.turn = self._turn
            self._mcp[endpoint.id] = recorder
        if not options.sends:
            return recorder.replaying(endpoint)
        return recorder.extending(endpoint) if options.replays else recorder.recording(endpoint)

    def recording(self) -> Recording:
        """What was asked and answered in this run, without secrets."""
        mcp = {name: recorder.exchanges() for name, recorder in self._mcp.items()}
        recording = Recording(
            self._http.interactions(), {k: v for k, v in mcp.items() if v}, self._human.replies()
        )
        return self._options.scrubber.recording(recording)

    @property
    def added(self) -> bool:
        """Whether anything was asked for real."""
        return self._http.added or self._human.added or any(recorder.added for recorder in self._mcp.values())

    def traffic(self) -> Traffic:
        """How much of it was asked for real."""
        exchanges = [exchange for recorder in self._mcp.values() for exchange in recorder.asked()]
        return traffic_of(self._http.asked(), exchanges, self._human.asked)

    def unused(self) -> Recording:
        """What was recorded and not played."""
        mcp = {name: tuple(recorder.unused()) for name, recorder in self._mcp.items()}
        others = {name: of for name, of in self._playable.mcp.items() if name not in self._mcp}
        left = {name: of for name, of in {**others, **mcp}.items() if of}
        return Recording(tuple(self._http.unused()), left, tuple(self._human.unused()))

    def unused_warnings(self, *, named: bool = True) -> list[str]:
        """A warning for what was recorded and not played, in a run that only plays.

        A cassette that is not recorded is worth a warning only if the scenario has `named` it.
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
        """Find what is secret in all that was asked and answered; `without_secrets` knows it from then on.

        In a run that only plays, what was recorded has none, and what is asked is looked through when it is asked.
        """
        recording = self.recording() if self.is_real else self._playable
        self._limited = self._options.scrubber.limited(recording)

    def without_secrets(self, value: Any) -> Any:
        """JSON of results without its secrets, known or by their names, as recordings have it.

        It is the same wherever the recording is replayed, so that digests are.
        """
        if self._limited is None:
            self.learn_secrets()
        return self._limited(value) if self._limited is not None else value

    async def close(self) -> None:
        """Close the clients; sessions close themselves."""
        await self._live.close()

    def _on_recorded(self, interaction: Interaction) -> None:
        self._options.scrubber.interaction(interaction)
        if self._spending is not None:
            self._spending.add(interaction)

    def _refusal(self, request: Request, used: set[int]) -> CassetteError:
        options = self._options
        if not self._playable:
            return CassetteMissing(self._missing(f"{request.method} {options.scrubber.url(request.url)}"))
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
