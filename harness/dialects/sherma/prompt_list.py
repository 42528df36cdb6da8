"""The prompts of a manifest and of its sub-agents' manifests, as data. Ids are those of the manifest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from harness.dialects.dialect import Prompt, Tunable
from harness.dialects.kit.manifest import load_object, mappings, only_document, tool_lists
from harness.dialects.request import LoadRequest
from harness.dialects.sherma import document as doc
from harness.dialects.sherma.document import Section
from harness.errors import ManifestError, Problem, Span
from harness.source.document import Document, DocumentPath, real_path, shown_path
from harness.source.environment import substitute
from harness.source.models import validate


class _Sections(Section, title="a manifest"):
    """The sections that contain prompts."""

    prompts: list[doc.Prompt] = Field(default_factory=list)
    sub_agents: list[doc.SubAgent] = Field(default_factory=list)


def prompts(request: LoadRequest) -> list[Prompt]:
    """Return the prompts of the manifest, in order, then those of sub-agents with a local manifest.

    `${VAR}` in texts is not replaced.

    Raises:
        ManifestError: one of the two sections, or a file that they name, is invalid.
    """
    return list(_manifest_prompts(request, set()))


def _manifest_prompts(request: LoadRequest, seen: set[Path]) -> Iterator[Prompt]:
    seen.add(real_path(request.path))
    document = only_document(request, what="a sherma manifest", yaml="scalar-keys")
    sections = validate(_Sections, document)
    for at, prompt in enumerate(sections.prompts):
        part = document.at(("prompts", at))
        id_ = _substituted(part, "id", request)
        if prompt.instructions_path is None:
            yield Prompt(id_, "instructions", prompt.instructions or "", part.span(("instructions",)))
        else:
            where = part.span(("instructions_path",))
            path = request.resolve(_substituted(part, "instructions_path", request), where)
            yield Prompt(
                id_, "instructions", read_instructions(path, where, request), Span(shown_path(path), 1, 1)
            )
    for at, declared in enumerate(sections.sub_agents):
        nested = _sub_agent(declared, document.at(("sub_agents", at)), request)
        if nested is not None and real_path(nested.path) not in seen:
            yield from _manifest_prompts(nested, seen)


def _sub_agent(declared: doc.SubAgent, part: Document, request: LoadRequest) -> LoadRequest | None:
    """Return the request for a sub-agent's local manifest; None if it has none. spec: `sub_agents`."""
    if declared.yaml_path is not None:
        path = request.resolve(_substituted(part, "yaml_path", request), part.span(("yaml_path",)))
        return request.for_manifest(path, declared.id)
    if declared.import_path is None:
        return None
    from harness.dialects.sherma.stand_in import offer_stand_in
    from harness.dialects.sherma.sub_agents import local_manifest

    offer_stand_in()
    where = part.span(("import_path",))
    found = load_object(_substituted(part, "import_path", request), request.folders, where)
    return local_manifest(declared, request, None, found, where)


def _substituted(part: Document, key: str, request: LoadRequest) -> str:
    return str(substitute(part.at((key,)), request.env).value)


def read_instructions(path: Path, where: Span, request: LoadRequest) -> str:
    """Read the file of `instructions_path`, verbatim and without substitution. spec: `instructions_path`.

    Raises:
        ManifestError: it cannot be read, or is not UTF-8 text.
    """
    try:
        return request.read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        message = f"prompt file '{shown_path(path)}' cannot be read as UTF-8 text: {error}"
        raise ManifestError(Problem("unreadable-file", message, where)) from None


def tunables(request: LoadRequest) -> Sequence[Tunable]:
    """Return the tool lists, named `<agent>.<node>`, with the tools of section `tools` as choices.

    Raises:
        ManifestError: the file cannot be parsed.
    """
    document = only_document(request, what="a sherma manifest", yaml="scalar-keys")
    manifest = document.value if isinstance(document.value, dict) else {}
    declared = [
        {key: tool[key] for key in ("id", "version") if key in tool}
        for _, tool in mappings(manifest.get("tools"))
    ]
    return tool_lists(_lists(manifest), _id, declared)


def _lists(manifest: dict[str, Any]) -> Iterator[tuple[str, DocumentPath, Any]]:
    for agent, definition in mappings(manifest.get("agents")):
        graph = definition.get("graph")
        for at, node in mappings(graph.get("nodes") if isinstance(graph, dict) else None):
            args = node.get("args")
            if node.get("type") == "call_llm" and isinstance(args, dict):
                path = ("agents", agent, "graph", "nodes", at, "args", "tools")
                yield f"{agent}.{node.get('name')}", path, args.get("tools")


def _id(tool: Any) -> str | None:
    id_ = tool.get("id") if isinstance(tool, dict) else None
    return id_ if isinstance(id_, str) else None
