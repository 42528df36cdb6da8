"""Interactions without secrets: what is written, and what requests are compared as."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from harness.interception.headers import kept_request_headers
from harness.interception.messages import Request, Response
from harness.recording.interactions import Exchange, HumanReply, Interaction, Recording
from harness.secrets import Secrets
from harness.secrets.bodies import unpacked
from harness.secrets.placeholders import placeholders_in


class Scrubber:
    """Takes what `secrets` knows, and what it finds, out of the interactions of one run."""

    def __init__(self, secrets: Secrets | None = None) -> None:
        self._secrets = secrets or Secrets({})

    def learn(self, name: str, value: str | None) -> None:
        """Take this for a secret from now on; `name` is what its placeholder says."""
        if value:
            self._secrets.learn(name, value)

    def text(self, text: str) -> str:
        """A text without secrets."""
        return self._secrets.text(text)

    def url(self, url: str) -> str:
        """A URL without secrets."""
        return self._secrets.url(url)

    def data(self, value: Any) -> Any:
        """JSON without secrets."""
        return self._secrets.data(value)

    def request(self, request: Request) -> Request:
        """A request as it is kept."""
        kept = kept_request_headers(request.headers)
        body = unpacked(request.body, kept.get("content-encoding", ""))
        if body != request.body:
            kept.pop("content-encoding", None)
        return Request(
            request.method,
            self._secrets.url(request.url),
            dict(self._secrets.headers(kept.items())),
            self._secrets.body(body, kept.get("content-type", "")),
        )

    def limited(self, recording: Recording) -> Callable[[Any], Any]:
        """Takes out of JSON what has a placeholder in a recording, and what is a secret on every machine."""
        http = (part for one in recording.http for part in _texts(one))
        mcp = (str((one.sent, one.received)) for of in recording.mcp.values() for one in of)
        names = placeholders_in("\n".join([*http, *mcp, *map(str, recording.human)]))
        return self._secrets.limited(names).data

    def recording(self, recording: Recording) -> Recording:
        """A recording as it is kept. What is found to be secret late in a run is taken out from its beginning on."""
        self._recording(recording)
        return self._recording(recording)

    def _recording(self, recording: Recording) -> Recording:
        return replace(
            recording,
            http=tuple(self.interaction(interaction) for interaction in recording.http),
            mcp={name: tuple(self._exchange(each) for each in of) for name, of in recording.mcp.items()},
            human=tuple(self._human(reply) for reply in recording.human),
        )

    def interaction(self, interaction: Interaction) -> Interaction:
        """An interaction as it is kept."""
        response = interaction.response
        return replace(
            interaction,
            request=self.request(interaction.request),
            response=None if response is None else self._response(response),
            failure=self.text(interaction.failure),
        )

    def _response(self, response: Response) -> Response:
        content_type = next((value for name, value in response.headers if name == "content-type"), "")
        return replace(
            response,
            headers=tuple(self._secrets.headers(response.headers)),
            body=self._secrets.body(response.body, content_type),
        )

    def _exchange(self, exchange: Exchange) -> Exchange:
        return replace(
            exchange,
            sent=self.data(exchange.sent),
            received=tuple(self.data(message) for message in exchange.received),
        )

    def _human(self, reply: HumanReply) -> HumanReply:
        return replace(reply, asked=self.data(reply.asked), reply=self.data(reply.reply))


def _texts(interaction: Interaction) -> list[str]:
    request, response = interaction.request, interaction.response
    texts = [request.url, request.body.decode("latin-1"), str(request.headers)]
    return [*texts, str(response.headers), response.body.decode("latin-1")] if response else texts
