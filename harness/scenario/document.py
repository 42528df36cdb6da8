"""The pydantic models of a scenario and of the head of its file, in the order of docs/scenario-format.md.

`harness.scenario.load` validates files with them, `harness.scenario.schema` derives the JSON Schema from them.
A validated model builds the object that it describes (`harness.scenario.model`), with locations in the
document.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import AfterValidator, ConfigDict, Field, Tag, WithJsonSchema, model_validator

from harness.dialects import DIALECTS
from harness.errors import Span
from harness.graph.model import Rerun
from harness.graph.native import StoredItem
from harness.recording.names import name_error
from harness.scenario import model
from harness.scenario.document_expect import Expect, Explore, expectation_mentions
from harness.scenario.idle import idle_parts
from harness.scenario.mentions import scenario_mentions
from harness.source.display import did_you_mean
from harness.source.document import Document
from harness.source.models import Mistake, mistaken
from harness.units import LONGEST_RUN_S, parse_instant
from harness.world.field_types import LEFT_OUT, EnvValue, Instant, Name, Share, Strict, Weight, by_shape
from harness.world.spec import WorldSpec

FORMAT_VERSION: Final = 1

_PYTEST_MARKS: Final = (
    "filterwarnings",
    "parametrize",
    "skip",
    "skipif",
    "tryfirst",
    "trylast",
    "usefixtures",
    "xfail",
)
_TAG: Final = re.compile(r"[\w:+.\\/\[\]-]+")

EXCLUDED: Final = {
    "agent": ("entry_point",),
    "entry_point": ("agent",),
    "turns": ("input", "human"),
    "input": ("turns",),
    "human": ("turns",),
    "test_scenario": ("agent", "entry_point", "weight", "timeout", "input", "turns", "expect"),
}
"""For each key, the keys that cannot stand beside it in a scenario, or (`agent`, `entry_point`) in a file."""
NATIVE_KEYS: Final = ("config", "context", "store")
"""Keys of scenarios of LangGraph apps."""
NO_DEFAULT: Final = ("name", "test_scenario")
"""Keys of a scenario that cannot be set in `defaults`."""
_SAME: Final = (
    *(
        "name",
        "dialect",
        "weight",
        "repeat",
        "pass_score",
        "skip",
        "xfail",
        "seed",
        "cassette",
        "allow_unused",
    ),
)
"""Keys of a scenario whose values `Scenario` has by the same names."""
_NOT_TAGS: Final = ("and", "or", "not", "True", "False", "None")


def _supported_version(value: int) -> int:
    """Return the format version of a file, or raise a mistake if it is not supported."""
    if value != FORMAT_VERSION:
        message = f"this file is of format version {value}; version {FORMAT_VERSION} can be read"
        raise mistaken(Mistake(message, code="format-version"))
    return value


Version = Annotated[int, AfterValidator(_supported_version), WithJsonSchema({"const": FORMAT_VERSION})]


def _dialect(value: str) -> str:
    if value not in DIALECTS:
        from harness.dialects.registry import names

        if value not in names():
            raise mistaken(Mistake(f"unknown dialect '{value}'", hint=did_you_mean(value, names())))
    return value


def _tag(value: str) -> str:
    if value in _PYTEST_MARKS:
        hint = "use the keys 'skip' and 'xfail'" if value in ("skip", "xfail") else "choose another word"
        raise mistaken(Mistake(f"the tag '{value}' is one of pytest's own marks", hint=hint))
    if not _TAG.fullmatch(value) or value in _NOT_TAGS or value.startswith("_"):
        message = f"'{value}' cannot be selected with -m: a tag is one word of letters, digits and - . : / +"
        raise mistaken(Mistake(message))
    return value


def _cassette(value: str) -> str:
    flaw = name_error(value)
    if flaw:
        message = f"'{value}' cannot be the name of a cassette: {flaw}"
        raise mistaken(Mistake(message, code="cassette-name"))
    return value


def _one_line(value: str) -> str:
    if not value.strip() or not value.isprintable():
        raise mistaken(Mistake("a name is one line of text"))
    return value


Manifest = Annotated[
    Annotated[Name, Tag("text")] | Annotated[list[Name], Field(min_length=1), Tag("list")],
    by_shape("a path, or a list of paths"),
]
Dialect = Annotated[
    str, AfterValidator(_dialect), WithJsonSchema({"anyOf": [{"enum": list(DIALECTS)}, {"type": "string"}]})
]
Cases = Annotated[
    Annotated[Name, Tag("text")] | Annotated[list[dict[str, Any]], Tag("list")],
    by_shape("the path of a table, or a list of mappings"),
]
TagName = Annotated[str, AfterValidator(_tag)]
CassetteName = Annotated[str, AfterValidator(_cassette)]


def input_shape(value: Any) -> str | None:
    """Return the tag of an input: `null`, or `value` for a text or a mapping."""
    return "null" if value is None else "value" if isinstance(value, str | dict) else None


AnyInput = Annotated[
    Annotated[str | dict[str, Any], Tag("value")]
    | Annotated[list[Any], Tag("list")]
    | Annotated[None, Tag("null")],
    by_shape("text or a mapping", lambda value: "list" if isinstance(value, list) else input_shape(value)),
]
"""An input of any agent. A list is one for an app only; which a scenario runs, its graph tells."""


class RerunKeys(Strict):
    """An agent that is run again, with feedback or with another input."""

    model_config = ConfigDict(title="a rerun")

    agent: str = Field(description="The agent.")
    input: dict[str, Any] | None = Field(None, description="Its input; by default the last one.")
    feedback: Any = Field(None, description="What was wrong, for the agent to read.")
    reason: str = Field("", description="The reason for the rerun.")


class StoredKeys(Strict):
    """An item of a store."""

    model_config = ConfigDict(title="an item of the store")

    namespace: Annotated[list[Name], Field(min_length=1)] = Field(description="Its namespace.")
    key: Name = Field(description="Its key.")
    value: dict[str, Any] = Field(description="Its value.")


class TurnKeys(WorldSpec):
    """One input of a conversation, the answer to its interrupt, or an agent that is run again."""

    model_config = ConfigDict(title="a turn")

    input: AnyInput = Field(LEFT_OUT, description="The input; its form depends on the dialect.")
    resume: Any = Field(
        LEFT_OUT, description="The answer to the interrupt with which the previous turn ended."
    )
    rerun: RerunKeys = Field(LEFT_OUT, description="An agent that is run again (LeafMesh).")
    agent: Name = Field(LEFT_OUT, description="The entry point or agent that the input enters (LeafMesh).")
    entry_point: Name = Field(LEFT_OUT, description="The same as `agent`.")
    expect: Expect = Field(
        LEFT_OUT,
        examples=["expect: {status: completed}"],
        description="Expectations on this turn alone, checked when it ends.",
    )

    @model_validator(mode="after")
    def _one_beginning(self) -> Self:
        written = self.written("input", "resume", "rerun")
        if len(written) > 1:
            message = "a turn has an input, or resumes, or reruns: only one of these"
            raise mistaken(Mistake(message, (written[-1],), True, code="conflicting-keys"))
        entered = self.written("agent", "entry_point")
        if entered and (len(entered) > 1 or self.written("resume", "rerun")):
            message = "a turn with an input has one entry; one that resumes or reruns has none"
            raise mistaken(Mistake(message, (entered[-1],), True, code="conflicting-keys"))
        if self.written("hooks"):
            message = "hooks are installed for the whole conversation: write them next to 'turns'"
            raise mistaken(Mistake(message, ("hooks",), True, code="conflicting-keys"))
        return self

    def spec(self, at: Document, folder: Path) -> model.Turn:
        """Return the turn written at `at` in a file of this folder. Raises the same errors as `Expect.spec`."""
        again = self.rerun
        return model.Turn(
            input=self.input if self.written("input") else model.MISSING,
            resume=self.resume if self.written("resume") else model.MISSING,
            rerun=Rerun(again.agent, again.input, again.feedback, again.reason) if again else None,
            entry=self.agent or self.entry_point,
            world=self.placed(at),
            expect=self.expect.spec(at.at(("expect",)), folder) if self.expect else None,
            span=at.span(),
        )


def _starts_with_input(turns: list[TurnKeys]) -> list[TurnKeys]:
    if turns and (written := turns[0].written("resume", "rerun")):
        message = "the first turn has nothing to resume, and nothing to run again"
        raise mistaken(Mistake(message, (0, written[0]), True, code="conflicting-keys"))
    return turns


class ScenarioKeys(WorldSpec):
    """One scenario."""

    model_config = ConfigDict(title="a scenario")
    elsewhere: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("assert", "asserts", "assertions", "expected", "then"), "did you mean 'expect'?"),
        **dict.fromkeys(("prompt", "message", "messages", "user"), "did you mean 'input'?"),
    }

    name: Annotated[str, AfterValidator(_one_line)] = Field(
        description="Unique in its file; part of the pytest id."
    )
    description: str = Field(LEFT_OUT, description="Free text.")
    tags: list[TagName] = Field(LEFT_OUT, description="Selected with `-m`.")
    manifest: Manifest = Field(LEFT_OUT, description="Replaces that of the file.")
    dialect: Dialect = Field(LEFT_OUT, description="Replaces that of the file.")
    agent: Name = Field(LEFT_OUT, description="Agent, entry point or flow inside the manifest.")
    entry_point: Name = Field(LEFT_OUT, description="The same as `agent`.")
    components: dict[str, Name] = Field(LEFT_OUT, description="Components by id, over the file's.")
    env: dict[str, EnvValue] = Field(LEFT_OUT, description="Values for ${VAR}, over the file's.")
    test_scenario: Name = Field(
        LEFT_OUT, description="Name of a scenario in the manifest itself, to run in the world given here."
    )
    weight: Weight = Field(1.0, description="Weight in the suite's fitness.")
    timeout: Annotated[float, Field(gt=0, le=LONGEST_RUN_S)] = Field(
        30.0, description="Limit for the whole run, in virtual seconds."
    )
    repeat: Annotated[int, Field(ge=1)] = Field(1, description="Number of runs.")
    pass_score: Share = Field(1.0, description="Lowest score that passes.")
    cases: Cases = Field(
        LEFT_OUT,
        description="A table or list: the scenario runs once for each row, with `${case.x}` replaced.",
    )
    skip: Name = Field(LEFT_OUT, description="The reason to skip it.")
    xfail: Name = Field(LEFT_OUT, description="The reason why it is expected to fail.")
    seed: int = Field(0, description="Seed of ids, jitter and all other randomness.")
    now: Instant = Field(
        LEFT_OUT,
        examples=["now: 2026-03-01T09:00:00Z"],
        description="The instant at which virtual time begins, ISO 8601.",
    )
    config: dict[str, Any] = Field(
        LEFT_OUT,
        examples=["config: {configurable: {user_id: ada}, recursion_limit: 50}"],
        description="The `config` of the invocation: configurable, tags, metadata, recursion_limit (LangGraph).",
    )
    context: dict[str, Any] = Field(LEFT_OUT, description="The context of the run (LangGraph).")
    store: list[StoredKeys] = Field(LEFT_OUT, description="Items in the store before the run (LangGraph).")
    input: AnyInput = Field(LEFT_OUT, description="The input; its form depends on the dialect.")
    turns: Annotated[list[TurnKeys], Field(min_length=1), AfterValidator(_starts_with_input)] = Field(
        LEFT_OUT, description="Several inputs in one conversation."
    )
    cassette: CassetteName = Field(LEFT_OUT, description="Name of a recording.")
    allow_unused: bool = Field(False, description="Unused stubs are no failure.")
    expect: Expect = Field(
        LEFT_OUT, examples=["expect: {status: completed}"], description="The expectations."
    )
    explore: Explore = Field(
        LEFT_OUT,
        examples=["explore: {never_calls: [{tool: refund}]}"],
        description="What no run may do, whatever the world answers (`harness explore`).",
    )

    def spec(
        self, at: Document, file: Path, env_passthrough: Mapping[str, Span] | None = None
    ) -> model.Scenario:
        """Return the scenario written at `at` in `file`. Raises the same errors as `Expect.spec`.

        Args:
            at: the merged document of the scenario, with the manifest and defaults of its file.
            file: the scenario file, or the manifest that contains the scenario.
            env_passthrough: names of environment variables to pass to the manifest, each with its location.
        """
        manifests = [self.manifest] if isinstance(self.manifest, str) else self.manifest
        folder = os.path.dirname(file)
        turns, manifest_span = self._turns(at, file.parent), at.span(("manifest",))
        world = self.placed(at)
        parts = [(at, world)]
        if self.turns is not None:
            parts += [(at.at(("turns", number)), turn.world) for number, turn in enumerate(turns)]
        named = next((key for key in ("agent", "entry_point") if key in at.value), None)
        same = {key: getattr(self, key) for key in _SAME}
        return model.Scenario(
            **same,
            file=file,
            span=at.span(("name",)),
            manifests=tuple(Path(os.path.normpath(os.path.join(folder, text))) for text in manifests),
            manifest_span=manifest_span,
            agent=self.agent or self.entry_point or turns[0].entry,
            agent_span=at.span((named,)) if named else turns[0].span if turns[0].entry else manifest_span,
            components=self.components or {},
            components_at={id_: at.span(("components", id_)) for id_ in self.components or ()},
            env=self.env or {},
            env_passthrough=env_passthrough or {},
            description=self.description or "",
            tags=tuple(self.tags or ()),
            timeout_s=self.timeout,
            now=parse_instant(self.now) if self.now else None,
            turns=turns,
            conversation=self.turns is not None,
            world=world,
            native=self._native(at),
            expect=self.expect.spec(at.at(("expect",)), file.parent) if self.expect else model.Expectations(),
            explore=self.explore.exploration(at.at(("explore",))) if self.explore else None,
            mentions=tuple(scenario_mentions(parts, expectation_mentions)),
            warnings=tuple(idle_parts(at, parts)),
        )

    def _native(self, at: Document) -> model.NativeKeys | None:
        """Return the keys that only an app of LangGraph takes; None if none is written."""
        written = self.written(*NATIVE_KEYS)
        if not written:
            return None
        return model.NativeKeys(
            config=self.config or {},
            context=self.context if "context" in written else None,
            store=tuple(StoredItem(tuple(each.namespace), each.key, each.value) for each in self.store or ()),
            spans={key: at.key_span((key,)) for key in written},
        )

    def _turns(self, at: Document, folder: Path) -> tuple[model.Turn, ...]:
        if self.turns is None:
            given = self.input if self.written("input") else model.MISSING
            return (model.Turn(input=given, span=at.span(("input",))),)
        return tuple(turn.spec(at.at(("turns", number)), folder) for number, turn in enumerate(self.turns))


class FileKeys(Strict):
    """The keys of a scenario file before its defaults and its scenarios."""

    model_config = ConfigDict(title="a scenario file")

    harness: Version = Field(examples=["harness: 1"], description="The format's version: 1.")
    manifest: Manifest = Field(
        LEFT_OUT,
        description="Path relative to this file; a list: the document, then those whose components it uses.",
    )
    dialect: Dialect = Field(LEFT_OUT, description="The dialect of the manifest; detected by default.")
    agent: Name = Field(LEFT_OUT, description="Agent, entry point or flow inside the manifest.")
    entry_point: Name = Field(LEFT_OUT, description="The same as `agent`.")
    components: dict[str, Name] = Field(
        LEFT_OUT,
        description="Ids that the manifest refers to, each with the key of the component in the other documents.",
    )
    env: dict[str, EnvValue] = Field(LEFT_OUT, description="Values for ${VAR}.")
    env_passthrough: list[str] = Field(
        LEFT_OUT, description="Names of variables to read from the environment of the process."
    )
