"""The data of an agent as its manifest declares it, as JSON Schemas."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.graph.effects import ToolSpec

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Declared:
    """The data of an agent. A schema is None where nothing is declared.

    Attributes:
        input: the mapping that a caller may give. Of an undeclared state, its properties are only those keys that
            something reads before any node writes them.
        takes_text: a caller may give a text.
        context: the context that a caller gives with it (LangGraph).
        output: what a completed run returns.
        state: the state of a run that completed. Keys that a run may leave out are not required.
        results: what calls return, by kind of effect and name. The replies of models (`llm`, as JSON) and of people
            (`human`), and the bodies of responses (`http`), are by the name of the node; responses to the calls of
            tools of agents are by their URL, in which `*` stands for any text.
        servers: the tools of MCP servers, as far as they are declared, by the id of the server.
        handles_faults: something in the manifest handles failures: a retry, a fallback, an error branch, a default.
        fallible: the nodes whose handlers may fail, as the manifest has a retry or a fallback for them.
    """

    input: Schema | None = None
    takes_text: bool = False
    context: Schema | None = None
    output: Schema | None = None
    state: Schema | None = None
    results: Mapping[tuple[str, str], Schema] = field(default_factory=dict)
    servers: Mapping[str, Sequence[ToolSpec]] = field(default_factory=dict)
    handles_faults: bool = False
    fallible: Collection[str] = ()
