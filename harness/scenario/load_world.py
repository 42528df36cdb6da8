"""What a checked scenario or turn says about its world, as `harness.world.spec`.

Source: docs/scenario-format.md, "The world". The document has been checked: shapes are taken for granted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from harness.scenario import document_world as written
from harness.source.document import Document, DocumentPath
from harness.world.spec import Entry, ErrorAnswer, Fault, MCPServer, MCPToolSpec, Stub, Times, WorldSpec

_OWN_KEYS: Final = ("node", "args", "when", "times", "latency", "error")


def world(document: Document, path: DocumentPath = ()) -> WorldSpec:
    """The world the mapping at `path` describes."""
    said = document.at(path).value if path else document.value
    entries = {
        key: {name: _entry(document, (*path, key, name), entry) for name, entry in said[key].items()}
        for key in ("tools", "scripts", "handlers", "agents", "retrieval")
        if key in said
    }
    return WorldSpec(
        llm=_by_node(document, (*path, "llm"), said.get("llm", []), _LLM),
        mcp={name: _server(document, (*path, "mcp", name), s) for name, s in said.get("mcp", {}).items()},
        http=_stubs(document, (*path, "http"), said.get("http", []), _HTTP),
        human=_by_node(document, (*path, "human"), said.get("human", []), _HUMAN),
        hooks=tuple(said.get("hooks", ())),
        faults=tuple(
            _fault(document, (*path, "faults", at), f) for at, f in enumerate(said.get("faults", ()))
        ),
        **entries,
    )


@dataclass(frozen=True, slots=True)
class _Kind:
    """How stubs of one kind are written. `answers` None: keys that are not the stub's own are the reply."""

    answers: tuple[str, ...] | None
    times: Times
    asks: tuple[str, ...] = ()  # matchers of this kind alone


_LLM: Final = _Kind(written.LLMStub.answers + written.LLMStub.trimmings, 1, ("model",))
_HTTP: Final = _Kind(written.HTTPStub.answers + written.HTTPStub.trimmings, 1, ("method", "url"))
_HUMAN: Final = _Kind(None, 1)
_RETURN: Final = _Kind(written.ReturnStub.answers, "any")
_MCP: Final = _Kind(written.MCPStub.answers, "any")


def _by_node(document: Document, path: DocumentPath, said: Any, kind: _Kind) -> tuple[Stub, ...]:
    """A stub list, or the lists of a mapping by node one after the other."""
    if isinstance(said, list):
        return _stubs(document, path, said, kind)
    return tuple(
        stub for node, stubs in said.items() for stub in _stubs(document, (*path, node), stubs, kind, (node,))
    )


def _stubs(
    document: Document, path: DocumentPath, said: list[Any], kind: _Kind, nodes: tuple[str, ...] = ()
) -> tuple[Stub, ...]:
    return tuple(_stub(document, (*path, at), stub, kind, nodes) for at, stub in enumerate(said))


def _stub(
    document: Document, path: DocumentPath, said: Any, kind: _Kind, nodes: tuple[str, ...] = ()
) -> Stub:
    span = document.span(path)
    if isinstance(said, str):
        return Stub(span=span, nodes=nodes, times=kind.times, answer={"reply": said})
    return Stub(
        span=span,
        nodes=(*nodes, said["node"]) if "node" in said else nodes,
        args=_arguments(said, kind),
        when=said.get("when"),
        times=said.get("times", kind.times),
        latency_s=float(said.get("latency", 0.0)),
        error=_error(said.get("error")),
        answer=_reply(said)
        if kind.answers is None
        else {key: said[key] for key in kind.answers if key in said},
        **{key: said[key] for key in kind.asks if key in said},
    )


def _arguments(said: Mapping[str, Any], kind: _Kind) -> Mapping[str, Any] | None:
    args: Mapping[str, Any] | None = said.get("args")
    return {**(args or {}), "query": said["query"]} if kind is _HTTP and "query" in said else args


def _reply(said: Mapping[str, Any]) -> dict[str, Any]:
    """A person's answer; a mapping without keys of its own is an empty one."""
    if "error" in said:
        return {}
    others = {key: value for key, value in said.items() if key not in _OWN_KEYS}
    return {"reply": said.get("reply", others)}


def _error(said: str | Mapping[str, Any] | None) -> ErrorAnswer | None:
    if said is None:
        return None
    if isinstance(said, str):
        return ErrorAnswer(said)  # type: ignore[arg-type]  # checked by the document
    return ErrorAnswer(said["kind"], said.get("message"), said.get("type"), said.get("retry_after"))


def _entry(document: Document, path: DocumentPath, said: Any) -> Entry:
    span = document.span(path)
    if isinstance(said, str):
        return Entry(real=True if said == "real" else said, span=span)
    if isinstance(said, list):
        return Entry(stubs=_stubs(document, path, said, _RETURN), span=span)
    if "real" in said:
        return Entry(real=said["real"], span=span)
    return Entry(stubs=(_stub(document, path, said, _RETURN),), span=span)


def _server(document: Document, path: DocumentPath, said: Any) -> MCPServer:
    span = document.span(path)
    if said == "real":
        return MCPServer(real=True, span=span)
    return MCPServer(
        tools=tuple(
            _tool(document, (*path, "tools", at), tool) for at, tool in enumerate(said.get("tools", ()))
        ),
        latency_s=float(said.get("latency", 0.0)),
        error=_error(said.get("error")),
        span=span,
    )


def _tool(document: Document, path: DocumentPath, said: Mapping[str, Any]) -> MCPToolSpec:
    return MCPToolSpec(
        name=said["name"],
        description=said.get("description", ""),
        input_schema=said.get("input_schema", {"type": "object"}),
        stubs=_stubs(document, (*path, "stubs"), said.get("stubs", []), _MCP),
    )


def _fault(document: Document, path: DocumentPath, said: Mapping[str, Any]) -> Fault:
    return Fault(
        effect=said["effect"],
        node=said.get("node"),
        name=said.get("name"),
        nth=said.get("nth"),
        every=said.get("every"),
        rate=said.get("rate"),
        error=_error(said.get("error")),
        latency_s=said.get("latency"),
        truncate=said.get("truncate"),
        span=document.span(path),
    )
