"""Removes secrets from recordings before they are saved, and from requests before they are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from harness.interception.messages import Request, Response
from harness.interception.patches import kept_request_headers
from harness.recording.interactions import Exchange, HumanReply, Interaction, Recording
from harness.secrets import Secrets
from harness.secrets.bodies import decompressed
from harness.secrets.encodings import placeholders_in


class Scrubber:
    """Replaces the secrets in the interactions of one run by placeholders: known ones, and those it finds there."""

    def __init__(self, secrets: Secrets | None = None) -> None:
        self.secrets = secrets or Secrets({})

    def learn(self, name: str, value: str | None) -> None:
        """Treat this value as a secret from now on. `name` is the name in its placeholder."""
        if value:
            self.secrets.learn(name, value)

    def request(self, request: Request) -> Request:
        """Return a request as it is saved."""
        kept = kept_request_headers(request.headers)
        body = decompressed(request.body, kept.get("content-encoding", ""))
        if body != request.body:
            kept.pop("content-encoding", None)
        return Request(
            request.method,
            self.secrets.url(request.url),
            dict(self.secrets.headers(kept.items())),
            self.secrets.body(body, kept.get("content-type", "")),
        )

    def limited(self, recording: Recording) -> Callable[[Any], Any]:
        """Return a function that scrubs JSON in the same way on every machine.

        It replaces the secrets that have a placeholder in the recording and those that are secret everywhere, but no
        other secrets of this machine.
        """
        http = (part for one in recording.http for part in _texts(one))
        mcp = (str((one.sent, one.received)) for of in recording.mcp.values() for one in of)
        names = placeholders_in("\n".join([*http, *mcp, *map(str, recording.human)]))
        return self.secrets.limited(names).data

    def recording(self, recording: Recording) -> Recording:
        """Return a recording as it is saved. Secrets that are found late in it are replaced from its beginning on."""
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
        """Return an interaction as it is saved."""
        response = interaction.response
        return replace(
            interaction,
            request=self.request(interaction.request),
            response=None if response is None else self._response(response),
            failure=self.secrets.text(interaction.failure),
        )

    def _response(self, response: Response) -> Response:
        content_type = next((value for name, value in response.headers if name == "content-type"), "")
        return replace(
            response,
            headers=tuple(self.secrets.headers(response.headers)),
            body=self.secrets.body(response.body, content_type),
        )

    def _exchange(self, exchange: Exchange) -> Exchange:
        return replace(
            exchange,
            sent=self.secrets.data(exchange.sent),
            received=tuple(self.secrets.data(message) for message in exchange.received),
        )

    def _human(self, reply: HumanReply) -> HumanReply:
        return replace(reply, asked=self.secrets.data(reply.asked), reply=self.secrets.data(reply.reply))


def _texts(interaction: Interaction) -> list[str]:
    request, response = interaction.request, interaction.response
    texts = [request.url, request.body.decode("latin-1"), str(request.headers)]
    return [*texts, str(response.headers), response.body.decode("latin-1")] if response else texts
