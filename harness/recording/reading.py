"""Reads the files of a recording (`file_models`) into a `Recording`. Errors have the location in the file.

http.yaml may also be a cassette of plain vcrpy, without meta.yaml: its interactions then take no time and answer in
any turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NoReturn, TypeVar

from pydantic import BaseModel

from harness.errors import CassetteBroken, SourceError
from harness.recording.file_models import ExchangeEntry, HTTPFile, InteractionEntry, MCPFile, MetaFile
from harness.recording.files import HTTP, MCP, META
from harness.recording.interactions import (
    Exchange,
    HumanReply,
    Interaction,
    Recording,
    RecordingMetadata,
)
from harness.source.display import clip, printable
from harness.source.document import Document, DocumentPath
from harness.source.models import validate

_M = TypeVar("_M", bound=BaseModel)


def read(files: Mapping[str, Document]) -> Recording:
    """Return the recording in these files, given by file name.

    Raises:
        CassetteBroken: a file is not valid, or the files do not belong together.
    """
    http = _validate(HTTPFile, files[HTTP]) if HTTP in files else None
    answered = [
        _interaction(one, files[HTTP], number) for number, one in enumerate(http.interactions if http else ())
    ]
    mcp = _validate(MCPFile, files[MCP]) if MCP in files else None
    servers = {
        name: tuple(_exchange(one, files[MCP], name, number) for number, one in enumerate(exchanges))
        for name, exchanges in (mcp.servers if mcp else {}).items()
    }
    if META not in files:
        return Recording(tuple(answered), servers)
    meta = _validate(MetaFile, files[META])
    timed = _timed_http(meta, files[META], answered)
    for name, file in ((HTTP, http), (MCP, mcp)):
        if file is not None and file.version is None:
            # A truncated file may be valid YAML. `version` is written last, so it shows that the file is complete.
            _refuse(files[name], (), "'version', the last key, is missing: is the file cut off?")
    return Recording(
        timed,
        _timed_mcp(meta, files[META], servers),
        tuple(HumanReply(one.node, one.asked, one.reply, one.turn) for one in meta.human),
        RecordingMetadata(
            meta.scenario, meta.recorded, meta.manifests, meta.versions, meta.environment, meta.now
        ),
    )


def broken(error: SourceError) -> CassetteBroken:
    """Return the error for a file of a cassette: its first three problems, at the location of the first."""
    texts = [f"{one.message} ({one.hint})" if one.hint else one.message for one in error.problems[:3]]
    return CassetteBroken(printable(clip("; ".join(texts), 400)), error.problems[0].span)


def _validate(model: type[_M], document: Document) -> _M:
    try:
        return validate(model, document, error=SourceError)
    except SourceError as error:
        raise broken(error) from None


def _refuse(document: Document, path: DocumentPath, message: str) -> NoReturn:
    raise CassetteBroken(printable(clip(message, 400)), document.span(path))


def _interaction(one: InteractionEntry, document: Document, number: int) -> Interaction:
    path = ("interactions", number)
    try:
        return Interaction(
            one.request.to_request(), one.response.to_response(), line=document.span(path).line
        )
    except ValueError as error:
        _refuse(document, (*path, "response"), str(error))


def _exchange(one: ExchangeEntry, document: Document, server: str, number: int) -> Exchange:
    line = document.span(("servers", server, number)).line
    return Exchange(one.sent, tuple(one.received), line=line)


def _timed_http(
    meta: MetaFile, document: Document, answered: Sequence[Interaction]
) -> tuple[Interaction, ...]:
    """Return the interactions with their timing from meta.yaml, and the requests without a response from there."""
    expected = sum(entry.request is None for entry in meta.http)
    _check_count(document, ("http",), HTTP, len(answered), expected)
    left = iter(answered)
    return tuple(
        replace(
            next(left) if entry.request is None else Interaction(entry.request.to_request(), None),
            turn=entry.turn,
            duration_s=entry.duration_s,
            chunks_s=tuple(entry.chunks_s),
            failure=entry.failure,
        )
        for entry in meta.http
    )


def _timed_mcp(
    meta: MetaFile, document: Document, servers: Mapping[str, Sequence[Exchange]]
) -> dict[str, tuple[Exchange, ...]]:
    for name in meta.mcp:
        if name not in servers:
            _refuse(document, ("mcp", name), f"{MCP} has no server '{name}'")
    found = {}
    for name, exchanges in servers.items():
        times = meta.mcp.get(name, [])
        _check_count(document, ("mcp", name), MCP, len(exchanges), len(times))
        found[name] = tuple(
            replace(one, turn=time.turn, duration_s=time.duration_s)
            for one, time in zip(exchanges, times, strict=True)
        )
    return found


def _check_count(document: Document, path: tuple[str, ...], file: str, there: int, expected: int) -> None:
    """Raise CassetteBroken unless meta.yaml and the other file have the same number of entries."""
    if there != expected:
        key = ".".join(path)
        text = f"'{key}' has {expected} entries, but {file} has {there} (record it again)"
        _refuse(document, path, text)
