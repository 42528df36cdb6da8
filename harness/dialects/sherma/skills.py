"""Skills: cards, their files, and the tools by which a model discovers and loads them.

spec: `skills`, `load_skills`, "progressive disclosure". A skill card is JSON; `base_uri` and its files are
relative to the card, and never outside its folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field

from harness.dialects.sherma.section import Section
from harness.dialects.sherma.tools import Tool, python_tool, version_order
from harness.errors import HarnessError, ManifestError, Problem, Span
from harness.source.document import Document, read
from harness.source.imports import ImportProblem, import_object
from harness.source.models import validate
from harness.source.suggest import did_you_mean


class SkillNotFound(HarnessError):
    """A skill, or a version of one, that is not declared."""

    code = "unknown-skill"


class LocalTool(Section):
    """A Python tool that comes with a skill."""

    model_config = ConfigDict(title="a tool of a skill card")

    id: str
    version: str = "*"
    import_path: str


class CardMCPServer(Section):
    """An MCP server that comes with a skill; it is asked for its tools when the skill is loaded."""

    model_config = ConfigDict(title="an MCP server of a skill card")

    id: str
    version: str = "*"
    url: str
    transport: str = "streamable-http"


class Card(Section):
    """A skill card. `files` are relative to `base_uri`, which is relative to the card."""

    model_config = ConfigDict(title="a skill card")

    id: str
    version: str = "*"
    name: str
    description: str
    base_uri: str = "."
    files: list[str] = Field(default_factory=list)
    mcps: dict[str, CardMCPServer] = Field(default_factory=dict)
    local_tools: dict[str, LocalTool] = Field(default_factory=dict)


@dataclass(frozen=True)
class Skill:
    """A declared skill: its card, where its files are, and its tools."""

    card: Card
    folder: Path
    tools: tuple[Tool, ...] = ()

    @property
    def id(self) -> str:
        """The card's id."""
        return self.card.id

    @property
    def tool_ids(self) -> list[str]:
        """The ids of its local tools; those of its MCP servers are known when they are listed."""
        return [tool.id for tool in self.card.local_tools.values()]

    def files_under(self, prefix: str) -> list[str]:
        """The card's files in a folder such as `references/`."""
        return [name for name in self.card.files if name.startswith(prefix)]

    def text(self, name: str) -> str:
        """A file of the skill.

        Raises:
            SkillNotFound: it is not there, not text, or outside the skill's folder.
        """
        path = (self.folder / name).resolve()
        if not path.is_relative_to(self.folder.resolve()):
            raise SkillNotFound(f"skill '{self.id}': '{name}' is outside the skill's folder")
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SkillNotFound(f"skill '{self.id}': cannot read '{name}': {error}") from None


@dataclass
class Skills:
    """The declared skills, in order; several versions of one id may be declared."""

    skills: list[Skill] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.skills)

    def get(self, id_: str, version: str = "*") -> Skill:
        """A skill; `*` is the latest version.

        Raises:
            SkillNotFound: no such skill, or no such version.
        """
        found = [skill for skill in self.skills if skill.id == id_]
        if not found:
            hint = did_you_mean(id_, [skill.id for skill in self.skills])
            raise SkillNotFound(f"skill '{id_}' not found" + (f" ({hint})" if hint else ""))
        if version not in ("*", ""):
            wanted = version.removeprefix("==")
            found = [skill for skill in found if skill.card.version == wanted]
            if not found:
                raise SkillNotFound(f"skill '{id_}' has no version '{wanted}'")
        return max(found, key=lambda skill: version_order(skill.card.version))

    def listed(self) -> list[dict[str, str]]:
        """What `list_skills` answers."""
        return [
            {
                "id": skill.id,
                "version": skill.card.version,
                "name": skill.card.name,
                "description": skill.card.description,
            }
            for skill in self.skills
        ]


def read_skill(card_path: Path, folders: Sequence[Path], where: Span) -> Skill:
    """Read a skill card and import its tools.

    Raises:
        ManifestError: the card is missing or wrong, or a tool cannot be imported.
    """
    document = _read_card(card_path, where)
    card = validate(Card, document)
    folder = card_path.parent / card.base_uri
    if not folder.resolve().is_relative_to(card_path.parent.resolve()):
        text = f"base_uri '{card.base_uri}' leads out of the card's folder"
        raise ManifestError(Problem("path-outside", text, document.span(("base_uri",))))
    tools = []
    for key, tool in card.local_tools.items():
        try:
            found = import_object(tool.import_path, folders)
        except ImportProblem as error:
            span = document.span(("local_tools", key, "import_path"))
            raise ManifestError(Problem("import", error.message, span, error.hint)) from None
        tools.append(python_tool(tool.id, tool.version, found))
    return Skill(card, folder, tuple(tools))


def _read_card(path: Path, where: Span) -> Document:
    if not path.is_file():
        raise ManifestError(Problem("missing-file", f"skill card '{path}' is not there", where))
    return read(path)


def skill_tools(skills: Skills) -> list[Tool]:
    """The seven tools of progressive disclosure. They belong to the dialect and need no stub."""

    async def list_skills() -> list[dict[str, str]]:
        """List all available skills with their id, version, name and description."""
        return skills.listed()

    async def load_skill_md(skill_id: str, version: str = "*") -> str:
        """Load the SKILL.md of a skill, and with it the tools of the skill."""
        return skills.get(skill_id, version).text("SKILL.md")

    async def unload_skill(skill_id: str, version: str = "*") -> str:
        """Unload a skill that is no longer needed; its tools can then no longer be called."""
        ids = skills.get(skill_id, version).tool_ids
        gone = f"Unbound tools: {', '.join(ids)}" if ids else "It had no tools."
        return f"Skill '{skill_id}' unloaded. {gone}"

    async def list_skill_resources(skill_id: str, version: str = "*") -> list[str]:
        """List the reference files of a skill."""
        return skills.get(skill_id, version).files_under("references/")

    async def load_skill_resource(skill_id: str, resource_path: str, version: str = "*") -> str:
        """Load a reference file of a skill."""
        return _file(skills.get(skill_id, version), resource_path, "references/")

    async def list_skill_assets(skill_id: str, version: str = "*") -> list[str]:
        """List the assets of a skill."""
        return skills.get(skill_id, version).files_under("assets/")

    async def load_skill_asset(skill_id: str, asset_path: str, version: str = "*") -> str:
        """Load an asset of a skill."""
        return _file(skills.get(skill_id, version), asset_path, "assets/")

    functions = (
        list_skills,
        load_skill_md,
        unload_skill,
        list_skill_resources,
        load_skill_resource,
        list_skill_assets,
        load_skill_asset,
    )
    return [python_tool(function.__name__, "*", function, native=True) for function in functions]


def _file(skill: Skill, name: str, prefix: str) -> str:
    """A listed file, or a text for the model that says which there are."""
    available = skill.files_under(prefix)
    if name not in available:
        return f"Error: '{name}' not found. Available: {', '.join(available) or 'none'}"
    return skill.text(name)


@dataclass
class Loaded:
    """What a conversation has loaded: the part of `__sherma__` that skills own."""

    tools: list[str]
    skills: dict[str, dict[str, Any]]

    @classmethod
    def of(cls, state: Any) -> Loaded:
        """What a state says is loaded."""
        internal = state.get("__sherma__") or {}
        return cls(
            list(internal.get("loaded_tools_from_skills") or ()),
            dict(internal.get("loaded_skills") or {}),
        )

    def load(self, skill: Skill, version: str, tool_ids: Sequence[str]) -> None:
        """Note a skill and its tools, in loading order and without duplicates."""
        self.tools += [id_ for id_ in tool_ids if id_ not in self.tools]
        self.skills[skill.id] = {"version": version, "tools": list(tool_ids)}

    def unload(self, skill_id: str) -> None:
        """Take a skill's tools away; a skill that is not loaded changes nothing."""
        gone = self.skills.pop(skill_id, {"tools": ()})["tools"]
        self.tools = [id_ for id_ in self.tools if id_ not in gone]

    def as_update(self) -> dict[str, Any]:
        """The update of `__sherma__`."""
        return {"loaded_tools_from_skills": self.tools, "loaded_skills": self.skills}
