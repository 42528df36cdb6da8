"""The structure of an Agent Spec document: its version, and the component types.

spec: "Versioning", "Symbolic references", "Disaggregated components", "Note about serialization of components".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel, Field

from harness.dialects.agentspec import (
    agents,
    auth,
    datastores,
    flows,
    models,
    oci,
    teams,
    tools,
    transforms,
    transports,
)
from harness.dialects.agentspec.component import Component
from harness.dialects.agentspec.dialect import REFERENCE, TABLE, TYPE, VERSION, missing_root_problem
from harness.dialects.agentspec.versions import OLD_VERSIONS, VERSIONS, is_after_all
from harness.dialects.kit.manifest import Problems
from harness.errors import Problem
from harness.source.display import nearest
from harness.source.document import Document
from harness.source.models import describe, validate

PLUGIN: Final = "component_plugin_name"
PLUGIN_KEYS: Final = "component_plugin_"

WAYFLOW_FIELDS: Final[Mapping[str, type[Component]]] = {
    "agents": agents.Agent,
    "flows": agents.Agent,
    "state": flows.Flow,
}
"""Fields that WayFlow writes into configurations although no version has them, and the components that get them."""

_SECTIONS: Final[Sequence[tuple[type[Component], ...]]] = (
    (agents.Agent, agents.OciAgent, agents.OpenAiAgent),
    (models.OpenAiCompatibleConfig, models.VllmConfig, models.OllamaConfig),
    (models.OpenAiConfig, models.OciGenAiConfig),
    (oci.OciClientConfigWithSecurityToken, oci.OciClientConfigWithApiKey),
    (oci.OciClientConfigWithInstancePrincipal, oci.OciClientConfigWithResourcePrincipal),
    (tools.ServerTool, tools.ClientTool, tools.RemoteTool, tools.MCPTool),
    (transports.StdioTransport, transports.SSETransport, transports.StreamableHTTPTransport),
    (transports.SSEmTLSTransport, transports.StreamableHTTPmTLSTransport),
    (flows.Flow, flows.ControlFlowEdge, flows.DataFlowEdge, flows.StartNode, flows.EndNode, flows.LlmNode),
    (flows.ApiNode, flows.AgentNode, flows.FlowNode, flows.MapNode, flows.BranchingNode, flows.ToolNode),
    (flows.InputMessageNode, flows.OutputMessageNode),
    (tools.BuiltinTool, tools.MCPToolBox, tools.MCPToolSpec),
    (agents.A2AAgent, agents.A2AConnectionConfig),
    (agents.SpecializedAgent, agents.AgentSpecializationParameters, teams.Swarm, teams.ManagerWorkers),
    (models.LlmConfig, models.DbmsVectorChainLlmConfig, models.GeminiConfig),
    (
        models.GeminiAIStudioAuthConfig,
        models.GeminiVertexAIAuthConfig,
        auth.OAuthConfig,
        auth.OAuthClientConfig,
    ),
    (transforms.MessageSummarizationTransform, transforms.ConversationSummarizationTransform),
    (datastores.InMemoryCollectionDatastore, datastores.OracleDatabaseDatastore),
    (datastores.PostgresDatabaseDatastore, datastores.TlsPostgresDatabaseConnectionConfig),
    (datastores.TlsOracleDatabaseConnectionConfig, datastores.MTlsOracleDatabaseConnectionConfig),
    (flows.ParallelFlowNode, flows.ParallelMapNode, flows.CatchExceptionNode),
)
TYPES: Final = {model.__name__: model for section in _SECTIONS for model in section}
"""The component types of Agent Spec, by name."""


class _Parts(BaseModel, extra="forbid", title="a document of disaggregated components"):
    """A document of disaggregated components.

    spec: "A serialized configuration of disaggregated components contains only … `$referenced_components`".
    """

    table: dict[Any, Any] = Field(alias=TABLE)
    version: Any = Field(None, alias=VERSION)


def check_shapes(documents: Sequence[Document]) -> None:
    """Check that the documents are mappings, and that all but the first have only a table and a version.

    Raises:
        ManifestError: with all problems.
    """
    problems = Problems()
    for index, document in enumerate(documents):
        value = document.value
        if not isinstance(value, dict):
            text = f"a configuration is a mapping, found {describe(value)}"
            problems.refuse("wrong-type", text, document.span())
        elif index and (TYPE in value or REFERENCE in value):
            model = TYPES.get(value[TYPE]) if isinstance(value.get(TYPE), str) else None
            what = "a configuration" if model is None else model.model_config["title"]
            text = f"this is {what} of its own; the documents after the first have only {TABLE}"
            problems.refuse("wrong-component", text, document.span((TYPE if TYPE in value else REFERENCE,)))
        elif index:
            with problems.collecting():
                validate(_Parts, document)
    problems.raise_errors()


def top_problem(document: Document) -> Problem | None:
    """Return the problem of a document without a root component; None if it has one."""
    value = document.value
    if TYPE in value or REFERENCE in value:
        return None
    if (problem := missing_root_problem(document)) is not None:
        return problem
    if VERSION in value or TABLE in value:
        near = nearest(TYPE, value, cutoff=_MISSPELLING_CUTOFF)
        hint = f"it is written '{near}' here" if near else "such as Agent or Flow"
        return Problem("missing-key", f"missing key '{TYPE}'", document.span(), hint)
    text = f"this is not an Agent Spec configuration: it has no {TYPE} at the top"
    return Problem("no-component", text, document.span())


_MISSPELLING_CUTOFF: Final = 0.8
"""The similarity from which a key counts as a misspelling of another."""


def version_of(main: Document) -> str:
    """Return the version that a configuration is read as: without one, the newest. Its version has no problem."""
    written = main.value.get(VERSION, VERSIONS[-1])
    return VERSIONS[0] if written in OLD_VERSIONS else str(written)


def version_problems(document: Document, *, required: bool) -> Iterator[Problem]:
    """Yield the problems of the version of a document. spec: "Versioning". `required`: it may be misspelt."""
    value = document.value
    known = ", ".join(VERSIONS)
    if VERSION not in value:
        misspelt = nearest(VERSION, value, cutoff=_MISSPELLING_CUTOFF) if required else None
        if misspelt is not None:
            text = f"unknown key '{misspelt}' at the top"
            yield Problem("unknown-key", text, document.key_span((misspelt,)), f"did you mean '{VERSION}'?")
        return
    version, span = value[VERSION], document.span((VERSION,))
    if version in OLD_VERSIONS:
        text = f"{VERSION} {version} is read as {VERSIONS[0]}"
        yield Problem("old-version", text, span, severity="warning")
    elif not isinstance(version, str):
        text = f"{VERSION}: expected text, found {describe(version)}"
        yield Problem("wrong-type", text, span, "quote it to make it text")
    elif version not in VERSIONS:
        text = f"{VERSION} {version} is unknown; known versions: {known}"
        yield Problem("unknown-version", text, span)


def as_newest_known(document: Document) -> Document | None:
    """Return a document of a later version than all known ones as one of the newest of these; None for any other."""
    version = document.value.get(VERSION) if isinstance(document.value, dict) else None
    if not isinstance(version, str) or not is_after_all(version):
        return None
    return document.with_value({**document.value, VERSION: VERSIONS[-1]})
