"""Skills: cards, their files, and the skills that a conversation has loaded.

spec: `skills`, `load_skills`, "progressive disclosure". A skill card is JSON; `base_uri` and the files are
relative to the card, and may not be outside its folder.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from pydantic import Field

from harness.dialects.kit.manifest import load_object
from harness.dialects.request import LoadRequest
from harness.dialects.sherma import document as doc
from harness.dialects.sherma.document import INTERNAL_STATE_KEY, Section
from harness.dialects.sherma.tools import Origin, Tool, imported_tool
from harness.dialects.sherma.versions import resolve_version
from harness.errors import HarnessError, ManifestError, Problem
from harness.source.document import Document, parse, read
from harness.source.models import validate
from harness.source.suggest import did_you_mean


class SkillNotFound(HarnessError):
    """A skill is not declared, or cannot be loaded."""

    code = "unknown-skill"


class LocalTool(Section, title="a tool of a skill card"):
    """A Python tool of a skill."""

    id: str
    version: str = "*"
    import_path: str


class CardMCPServer(Section, title="an MCP server of a skill card"):
    """An MCP server of a skill, whose tools are listed when the skill is loaded."""

    id: str
    version: str = "*"
    url: str
    transport: str = "streamable-http"


class Card(Section, title="a skill card"):
    """A skill card. `files` are relative to `base_uri`, which is relative to the card.

    The skill's id and version come from the manifest.
    """

    name: str
    description: str
    base_uri: str = "."
    files: list[str] = Field(default_factory=list)
    mcps: dict[str, CardMCPServer] = Field(default_factory=dict)
    local_tools: dict[str, LocalTool] = Field(default_factory=dict)


Fetch = Callable[[str], Awaitable[str]]
"""Fetches the text at a URL, as an effect; raises SkillNotFound."""


@dataclass(frozen=True)
class LocalFiles:
    """The files of a skill with a local card."""

    path: Path

    async def read(self, name: str, _fetch: Fetch) -> str:
        """Return the text of a file in the folder. Paths outside are refused."""
        path = (self.path / name).resolve()
        if not path.is_relative_to(self.path):
            raise SkillNotFound(f"'{name}' is outside the skill's folder")
        try:
            return path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise SkillNotFound(f"cannot read '{name}': {error}") from None


@dataclass(frozen=True)
class RemoteFiles:
    """The files of a skill whose card or `base_uri` is a URL; fetched when they are read."""

    url: str

    async def read(self, name: str, fetch: Fetch) -> str:
        """Return the text at a URL relative to the skill's."""
        return await fetch(urljoin(self.url, name))


@dataclass(frozen=True)
class Skill:
    """A declared skill: id and version from the manifest, card, files and tools."""

    id: str
    version: str
    card: Card
    files: LocalFiles | RemoteFiles
    tools: tuple[Tool, ...] = ()

    @property
    def tool_ids(self) -> list[str]:
        """The ids of its local tools; those of its MCP servers are not known yet."""
        return [tool.id for tool in self.card.local_tools.values()]

    def files_under(self, prefix: str) -> list[str]:
        """Return the files of the card below a folder such as `references/`."""
        return [name for name in self.card.files if name.startswith(prefix)]

    async def text(self, name: str, fetch: Fetch) -> str:
        """Return the text of a file.

        Raises:
            SkillNotFound: it does not exist, is not text, or is outside the skill's folder.
        """
        try:
            return await self.files.read(name, fetch)
        except SkillNotFound as error:
            raise SkillNotFound(f"skill '{self.id}': {error}") from None


@dataclass
class Skills:
    """The declared skills, in order. An id may have several versions."""

    skills: list[Skill] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.skills)

    def get(self, id_: str, version: str = "*") -> Skill:
        """Return a skill; `*` is the latest version.

        Raises:
            SkillNotFound: no such skill or version.
        """
        versions = {skill.version: skill for skill in reversed(self.skills) if skill.id == id_}
        if not versions:
            hint = did_you_mean(id_, [skill.id for skill in self.skills])
            raise SkillNotFound(f"skill '{id_}' not found" + (f" ({hint})" if hint else ""))
        wanted = version.removeprefix("==")
        found = resolve_version(versions, wanted)
        if found is None:
            raise SkillNotFound(f"skill '{id_}' has no version '{wanted}'")
        return versions[found]

    def listed(self) -> list[dict[str, str]]:
        """Return the result of `list_skills`."""
        return [
            {
                "id": skill.id,
                "version": skill.version,
                "name": skill.card.name,
                "description": skill.card.description,
            }
            for skill in self.skills
        ]


def read_skill(declared: doc.Skill, card_path: Path, request: LoadRequest) -> Skill:
    """Read a skill from a local card. Its files are beside the card, or at `base_uri` if that is a URL.

    Raises:
        ManifestError: the card is invalid, or a tool cannot be imported.
    """
    document = read(card_path)
    card = validate(Card, document)
    tools = _card_tools(card, document, request.folders, imports=request.imports)
    if card.base_uri.startswith(("http://", "https://")):
        return Skill(declared.id, declared.version, card, _remote_files(card.base_uri), tools)
    folder = (card_path.parent / card.base_uri).resolve()
    if not request.may_read(folder):
        text = f"base_uri '{card.base_uri}' leads out of the folders a manifest may read"
        raise ManifestError(Problem("path-outside", text, document.span(("base_uri",))))
    request.record(folder)  # its files are read during runs
    return Skill(declared.id, declared.version, card, LocalFiles(folder), tools)


def remote_skill(declared: doc.Skill, text: str, folders: Sequence[Path]) -> Skill:
    """Return a skill from the text of the card at its `url`; `base_uri` is relative to it.

    Raises:
        ManifestError: the card is invalid, or a tool cannot be imported.
    """
    url = declared.url or ""
    document = parse(text, file=url, json=True)
    card = validate(Card, document)
    site = _remote_files(urljoin(url, card.base_uri))
    return Skill(declared.id, declared.version, card, site, _card_tools(card, document, folders))


def _remote_files(base: str) -> RemoteFiles:
    return RemoteFiles(base if base.endswith("/") else f"{base}/")


def _card_tools(
    card: Card, document: Document, folders: Sequence[Path], *, imports: bool = True
) -> tuple[Tool, ...]:
    tools = []
    for key, tool in card.local_tools.items():
        span = document.span(("local_tools", key, "import_path"))
        found = load_object(tool.import_path, folders, span, imports=imports)
        tools.append(imported_tool(tool, found, span, origin=Origin.SKILL))
    return tuple(tools)


@dataclass
class LoadedSkills:
    """The skills and tools that a conversation has loaded, stored in `__sherma__` beside `others`."""

    tools: list[str]
    skills: dict[str, dict[str, Any]]
    others: Mapping[str, Any]

    @classmethod
    def of(cls, state: Any) -> LoadedSkills:
        """Read them from a state."""
        internal = state.get(INTERNAL_STATE_KEY) or {}
        return cls(
            list(internal.get("loaded_tools_from_skills") or ()),
            dict(internal.get("loaded_skills") or {}),
            internal,
        )

    def load(self, skill: Skill, version: str, tool_ids: Sequence[str]) -> None:
        """Add a skill and its tools, in loading order and without duplicates."""
        self.tools += [id_ for id_ in tool_ids if id_ not in self.tools]
        self.skills[skill.id] = {"version": version, "tools": list(tool_ids)}

    def unload(self, skill_id: str) -> None:
        """Remove a skill and its tools, if it is loaded."""
        gone = self.skills.pop(skill_id, {"tools": ()})["tools"]
        self.tools = [id_ for id_ in self.tools if id_ not in gone]

    def as_update(self) -> dict[str, Any]:
        """Return the update of `__sherma__`."""
        return {**self.others, "loaded_tools_from_skills": self.tools, "loaded_skills": self.skills}
