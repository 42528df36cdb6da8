"""Vectors from an embedding model, by the `POST /embeddings` of OpenAI and compatible servers."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field, ValidationError

from harness.dialects.loki.knowledge.base import Vector
from harness.dialects.loki.knowledge.http_client import HTTPClient
from harness.errors import HarnessError
from harness.graph.effects import HTTPReply, http_call
from harness.source.display import clip

CLIENT: Final = "openai"
DEFAULT_URL: Final = "https://api.openai.com/v1"
DEFAULT_BATCH: Final = 100

_URL_VARIABLES: Final = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
_KEY: Final = "OPENAI_API_KEY"


class EmbeddingError(HarnessError):
    """An embedding model that cannot be called, or whose response holds no vectors."""

    code = "embedding"


class _Embedding(BaseModel):
    """The vector of the text at `index` of the request."""

    index: int
    embedding: Annotated[
        list[Annotated[float, Field(allow_inf_nan=False, ge=-3e38, le=3e38)]], Field(min_length=1)
    ]


class _Response(BaseModel):
    """The body of a response with embeddings."""

    data: list[_Embedding]


@dataclass(frozen=True)
class EmbeddingModel:
    """An embedding model.

    model_id     the model as written, `openai:name`
    environment  the variables with the base URL and the key
    """

    model_id: str
    environment: Mapping[str, str]

    async def vectors(
        self, texts: Sequence[str], batch_size: int | None, http: HTTPClient
    ) -> list[Vector[float]]:
        """Request the vector of each text, in batches.

        Raises:
            EmbeddingError: the model is of another client, returns an error, or does not return a vector per text.
            Exception: a request failed without a response.
        """
        client, _, name = self.model_id.partition(":")
        if client != CLIENT or not name:
            raise EmbeddingError(
                f"the embedding model '{self.model_id}' cannot be called: expected '{CLIENT}:NAME', for OpenAI "
                f"and servers that imitate it ({_URL_VARIABLES[0]})"
            )
        found: list[Vector[float]] = []
        size = batch_size or DEFAULT_BATCH
        for start in range(0, len(texts), size):
            found += await self._batch(name, list(texts[start : start + size]), http)
        if len({len(vector) for vector in found}) > 1:
            raise EmbeddingError(f"the vectors of the embedding model '{self.model_id}' differ in length")
        return found

    async def _batch(self, name: str, texts: list[str], http: HTTPClient) -> list[Vector[float]]:
        base = next((url for name in _URL_VARIABLES if (url := self.environment.get(name))), DEFAULT_URL)
        key = self.environment.get(_KEY)
        call = http_call(
            "POST",
            f"{base.rstrip('/')}/embeddings",
            json={"model": name, "input": texts},
            headers={"authorization": f"Bearer {key}"} if key else {},
        )
        reply = await http.send(call)
        if reply.status != 200:
            raise EmbeddingError(self._refusal(reply, bool(key)))
        try:
            rows = sorted(_Response.model_validate(reply.json).data, key=lambda row: row.index)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "the answer"
            raise EmbeddingError(
                f"the embedding model '{self.model_id}' answered without embeddings: {where}: {first['msg']}"
            ) from None
        if [row.index for row in rows] != list(range(len(texts))):
            raise EmbeddingError(
                f"the embedding model '{self.model_id}' was given {len(texts)} texts, and answered with "
                f"{len(rows)} embeddings"
            )
        return [array("f", row.embedding) for row in rows]

    def _refusal(self, reply: HTTPReply, has_key: bool) -> str:
        text = f"the embedding model '{self.model_id}' answered with status {reply.status}"
        message = _message(reply.json) or clip(reply.text, 200)
        if reply.status in (401, 403) and not has_key:
            message += f" (no key was sent: the scenario's env_passthrough does not hand on {_KEY})"
        return f"{text}: {message}" if message else text


def _message(answer: Any) -> str:
    """Return the message of an OpenAI error response; "" if this is none."""
    error = answer.get("error") if isinstance(answer, Mapping) else None
    message = error.get("message") if isinstance(error, Mapping) else error
    return message if isinstance(message, str) else ""
