"""Answers the HTTP requests of real tools in this process from the stubs of a scenario.

    client of a tool ─▶ interception ─▶ LLMCall, or HTTPCall ─▶ faults and stubs ─▶ the client's own response
                                                             └▶ the recording, if there is one

A request to the address of a model provider, in its wire format, is a model call, answered by `llm` stubs. `http`
stubs may answer any request. A request has the node and the state of the effect whose tool makes it.

Latency is virtual time. A client with an event loop waits for it there. A client without one (requests,
`httpx.Client`, urllib) gets its answer at once; the sum of the latencies of all such answers of one effect passes
when the tool has returned, also if threads of the tool made the requests concurrently. If the latency is longer than
the client's time-out, the client times out, after its time-out.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from harness.errors import HarnessError, ProviderDown, WorldError
from harness.graph.effects import Effect, HTTPCall, LLMCall, LLMReply
from harness.graph.trace import Trace
from harness.graph.world import Answer
from harness.interception.interceptor import Interceptor, Permit, Place
from harness.interception.messages import PreparedReply, Request, Response, SendResult
from harness.interception.patches import scripted_failure
from harness.interception.real_effects import (
    NotOnWire,
    RealEffect,
    Unanswerable,
    current_effects,
    current_model_call,
    raise_unanswerable,
)
from harness.time.clock import give_turn
from harness.units import PRECISION
from harness.world.entries import without_headers
from harness.world.failures import RemoteError
from harness.world.scripted import ScriptedWorld
from harness.world.wire import openai_chat
from harness.world.wire.format import Refusal, ReplyFactory, WireFormat
from harness.world.wire.http import (
    PlainCall,
    WireResponse,
    answer_to,
    error_response,
    failure_of,
    format_at,
    format_of_path,
    http_response,
    model_response,
    request_json,
    token_count,
    without_keys,
)

if TYPE_CHECKING:
    from harness.engine.standstill import Simulation


@dataclass(frozen=True)
class _StubReply:
    """A `PreparedReply` of a stub, with the number, start and answer of its call in the trace."""

    call: int
    began: float
    answer: Answer
    duration_s: float
    response: Response | None = None
    failure: str = ""
    error: Exception | None = None
    chunks_s: tuple[float, ...] = ()


@dataclass(frozen=True)
class _Sent:
    """A request that is really sent: its place in `Interceptor`, and its call in the trace if it has one."""

    of_upstream: Place
    url: str = ""
    effect: Effect | None = None
    call: int = 0
    began: float = 0.0


class ToolRequests(Interceptor):
    """Answers the HTTP requests of real tools from the stubs of a world.

    Args:
        world: the world whose faults and stubs answer.
        environment: variables with the addresses of model providers.
        upstream: the interceptor for requests that no stub answers; None if these are errors.
        of_app: the requests are those of an app, whose models may be at any address.
    """

    def __init__(
        self,
        world: ScriptedWorld,
        environment: Mapping[str, str],
        upstream: Interceptor | None = None,
        *,
        of_app: bool = False,
    ) -> None:
        self.buffers_streams = upstream is not None and upstream.buffers_streams
        self._world = world
        self._environment = environment
        self._upstream = upstream
        self._of_app = of_app
        self._replies = ReplyFactory()
        self._lock = threading.Lock()  # tools make requests from threads
        self._simulation: Simulation | None = None
        self._trace = Trace()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.get_ident()
        self._origin = 0.0
        self._unsent: dict[int, tuple[Effect, RealEffect]] = {}  # by thread, until they are sent

    def belong_to(self, simulation: Simulation) -> None:
        """Record calls that stubs answer in the trace of this run, and end the run if a request is refused."""
        self._simulation, self._trace = simulation, simulation.trace
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._origin = self._loop.time() - simulation.now

    def claim(self, request: Request) -> PreparedReply | None:
        """Return the reply of a stub, else the recorded one: see `Interceptor.claim`.

        A request that is refused ends the run. All later ones of the run are refused with the same error, since the
        code may go on: some clients and tools handle even what is no `Exception`.
        """
        error: HarnessError | None = self._simulation.fatal if self._simulation is not None else None
        if error is None:
            try:
                return self._reply_to(request)
            except WorldError as raised:  # a tool must not handle it
                error = raised
            except Unanswerable as raised:
                error = raised.error
            except Exception as raised:  # a client would take it for a broken connection, and try again
                error = WorldError(f"a request cannot be answered: {type(raised).__name__}: {raised}")
                error.__cause__ = raised
            if self._simulation is not None:
                self._simulation.abort(error)
        raise_unanswerable(error)

    def _reply_to(self, request: Request) -> PreparedReply | None:
        effects = current_effects()
        if effects and all(each.effect is None for each in effects):  # a request of the backend
            return self._upstream.claim(request) if self._upstream is not None else None
        owner = next((each for each in effects if each.effect is not None), RealEffect())
        with self._lock:
            reply, asked = self._stub_reply(request, owner)
        if reply is not None:
            return reply
        if self._upstream is not None:
            return self._of_upstream(request, asked, owner, self._upstream.claim(request))
        if not effects and threading.get_ident() != self._thread:
            return None  # a thread that no effect started, such as telemetry's: the closed network refuses it
        error = self._world.unscripted(without_headers(asked), owner.state)
        call, now = self._record_call(asked, owner)
        self._trace.record_answer(call, now, 0.0, None, error)
        raise error

    def _stub_reply(self, request: Request, owner: RealEffect) -> tuple[_StubReply | None, Effect]:
        """Return the reply of the first stub that matches, None if there is none, and the last effect tried."""
        node = owner.effect.node if owner.effect is not None else ""
        plain = PlainCall(request, node)
        wire = self._wire(request, plain, owner)
        model = current_model_call()
        if wire is None:
            reply, tried = self._http_reply(request, plain(), owner)
            if reply is None and model is not None and not model.requested and self._upstream is None:
                raise NotOnWire
            if model is not None and reply is not None:
                model.answered = True
            return reply, tried
        if model is not None:
            model.requested = True
        try:
            body = request_json(request.url, request.body)
            call = self._placed(wire.read(body), node)
        except Refusal as refusal:
            reply, _ = self._http_reply(request, plain(), owner)
            if reply is None and self._upstream is None:  # a real provider may accept what stubs cannot read
                refused = error_response(wire, refusal)
                reply = self._reply(request, plain(), owner, Answer(error=refusal), refused)
            return reply, plain()
        answer = self._of_stubs(call, owner)
        if answer is None:
            return self._http_reply(request, plain(), owner)[0], call
        if (
            isinstance(answer.value, LLMReply)
            and (forced := answer.value.as_forced_call(call)) is not answer.value
        ):
            answer = replace(answer, value=forced)
        response = model_response(wire, call, body, answer, self._replies) if _is_exchange(answer) else None
        return self._reply(request, call, owner, answer, response), call

    def _of_upstream(
        self, request: Request, asked: Effect, owner: RealEffect, known: PreparedReply | None
    ) -> PreparedReply | None:
        """Return a recorded reply. The call of an app stands in the trace, as one that a stub answers does."""
        if not self._of_app:
            return known
        if (model := current_model_call()) is not None:
            model.requested = True
        if known is None:  # it is sent next
            self._unsent[threading.get_ident()] = (asked, owner)
            return None
        call, began = self._record_call(asked, owner)
        if known.response is None and not known.failure:  # nobody waited for it
            return known
        answer = answer_to(asked, request.url, known.response, known.failure)
        return _StubReply(
            call, began, answer, known.duration_s, known.response, known.failure, None, known.chunks_s
        )

    def _wire(self, request: Request, plain: Callable[[], HTTPCall], owner: RealEffect) -> WireFormat | None:
        """Return the wire format of a model call; None for any other request."""
        if request.method != "POST":
            return None
        wire = format_at(request.url, self._environment)
        if not self._of_app:
            return wire
        wire = wire or format_of_path(request.url)
        return None if wire is not None and self._world.stubs_name_address(plain, owner.state) else wire

    def _placed(self, call: LLMCall, node: str) -> LLMCall:
        """Return a call of a node. An app's has its tools by name: a supervisor offers them in the order of a set."""
        tools = sorted(call.tools, key=attrgetter("name")) if self._of_app else call.tools
        return replace(call, node=node, tools=tools)

    def _of_stubs(self, call: Effect, owner: RealEffect) -> Answer | None:
        """Return the answer of a stub, None if there is none. Stubs never wait, so this works in any thread."""
        answering = self._world.stubs.answer(call, owner.state)
        try:
            answering.send(None)
        except StopIteration as done:
            answer: Answer | None = done.value
            return answer
        answering.close()
        raise WorldError("a stub cannot wait")

    def _http_reply(
        self, request: Request, call: HTTPCall, owner: RealEffect
    ) -> tuple[_StubReply | None, Effect]:
        answer = self._of_stubs(call, owner)
        if answer is None and self._upstream is None and (counted := token_count(call)) is not None:
            answer = Answer(value=counted)
        if answer is None:
            return None, call
        response = None
        if _is_exchange(answer):
            try:
                response = http_response(openai_chat, answer)
            except Refusal as refusal:
                response = error_response(openai_chat, refusal)
        return self._reply(request, call, owner, answer, response), call

    def _reply(
        self,
        request: Request,
        effect: Effect,
        owner: RealEffect,
        answer: Answer,
        response: WireResponse | None,
    ) -> _StubReply:
        """Return the reply for the client, and record the start of its call in the trace."""
        reply = partial(_StubReply, *self._record_call(effect, owner))
        failure = failure_of(answer)
        if request.timeout_s is not None and answer.latency_s > request.timeout_s:
            late = TimeoutError(f"timed out after {request.timeout_s:g} s")
            timeout = scripted_failure("timeout", "timed out")
            return reply(Answer(error=late), request.timeout_s, failure=timeout)
        reply = partial(reply, answer, answer.latency_s)
        if response is not None:
            return reply(response.whole())
        if failure is not None and failure.kind in ("connection", "timeout"):
            return reply(failure=scripted_failure(failure.kind, str(answer.error)))
        return reply(failure=str(answer.error), error=answer.error)

    def _record_call(self, effect: Effect, owner: RealEffect) -> tuple[int, float]:
        """Record that a call begins, and return its number and the time."""
        began = self._now(owner)
        return self._trace.record_call(without_keys(effect), began), began

    def _record_answer(
        self, of: _StubReply | _Sent, at: float, value: Any, error: BaseException | None
    ) -> None:
        self._trace.record_answer(of.call, at, round(at - of.began, PRECISION), value, error)

    def _now(self, owner: RealEffect) -> float:
        """Return the virtual time of an effect: the loop's time, and the time that its blocking clients have used."""
        time = self._loop.time() - self._origin if self._loop is not None else 0.0
        return round(time + owner.owed_s, PRECISION)

    # ------------------------------------------------------------ delivery of replies

    async def wait_for(self, reply: PreparedReply) -> None:
        """Wait for the latency of a reply. Raises the exception that a stub names."""
        if not isinstance(reply, _StubReply):
            if self._upstream is not None:
                await self._upstream.wait_for(reply)
            return
        try:
            await (asyncio.sleep(reply.duration_s) if reply.duration_s else give_turn())
        except asyncio.CancelledError as cancelled:
            self._record_answer(reply, self._now(RealEffect()), reply.answer.value, cancelled)
            raise
        self._record_answer(reply, self._now(RealEffect()), reply.answer.value, reply.answer.error)
        if reply.error is not None:
            raise reply.error

    def reply_blocking(self, reply: PreparedReply) -> SendResult:
        """Return a reply for a client without an event loop. Raises the exception that a stub names."""
        if not isinstance(reply, _StubReply):
            return super().reply_blocking(reply)
        if reply.error is None:
            sent = super().reply_blocking(reply)
        at = round(reply.began + reply.duration_s, PRECISION)
        self._record_answer(reply, at, reply.answer.value, reply.answer.error)
        if reply.error is not None:
            raise reply.error
        return sent

    # ------------------------------------------------------------ requests that are really sent

    def permit(self, request: Request, *, patient: bool) -> Permit:
        """See `Interceptor`."""
        if self._upstream is None:
            return super().permit(request, patient=patient)
        return self._upstream.permit(request, patient=patient)

    def begin(self, request: Request) -> Place:
        """See `Interceptor`."""
        if self._upstream is None:
            return None
        place, unsent = self._upstream.begin(request), self._unsent.pop(threading.get_ident(), None)
        if unsent is None:
            return _Sent(place)
        return _Sent(place, request.url, unsent[0], *self._record_call(*unsent))

    def received(self, place: Place, sent: SendResult, seconds: float) -> None:
        """See `Interceptor`."""
        if self._upstream is not None:
            self._upstream.received(place.of_upstream, sent, seconds)

    def end(self, place: Place, sent: SendResult, seconds: float) -> None:
        """See `Interceptor`."""
        if self._upstream is None:
            return
        self._upstream.end(place.of_upstream, sent, seconds)
        if place.effect is not None:
            answer = answer_to(place.effect, place.url, sent.response, sent.failure)
            self._record_sent(place, answer)
            if self._simulation is not None and isinstance(place.effect, LLMCall):
                self._simulation.down = _down(place.effect, sent)

    def drop(self, place: Place) -> None:
        """See `Interceptor`."""
        if self._upstream is None:
            return
        self._upstream.drop(place.of_upstream)
        if place.effect is not None:
            self._record_sent(place, Answer(error=RemoteError("it was not sent")))

    def _record_sent(self, place: _Sent, answer: Answer) -> None:
        at = max(self._now(RealEffect()), place.began)
        self._record_answer(place, at, answer.value, answer.error)


def _down(call: LLMCall, sent: SendResult) -> ProviderDown | None:
    """Return the error for a provider that could not be reached. One whose answer takes too long was reached."""
    kind = sent.failure.partition(":")[0]
    if sent.response is not None or not kind or ("Timeout" in kind and "Connect" not in kind):
        return None
    return ProviderDown(f"the provider of model {call.name!r} cannot be reached: {sent.failure}")


def _is_exchange(answer: Answer) -> bool:
    """True if the client gets a response, whatever its status."""
    failure = failure_of(answer)
    return failure is None or failure.kind not in ("connection", "timeout", "exception")
