"""The environment variables that scripts and tools get: the scenario's `env`, and the agent's `variables`.

In Loki they inherit the environment of its process, to which it adds each variable as `LLM_AGENT_VAR_<NAME>`. A value
that the user chooses (`--agent-variable`) overrides the default. Here that value comes from the scenario's `env`.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.dialects.loki.document import GraphFile
from harness.dialects.request import LoadRequest
from harness.errors import Problem
from harness.source.document import Document


def environment_of(graph: GraphFile, request: LoadRequest) -> dict[str, str]:
    """Return the environment of the scripts and tools of an agent."""
    defaults = {_env_name(each.name): each.default for each in graph.variables if each.default is not None}
    return {**defaults, **request.env}


def variable_warnings(graph: GraphFile, document: Document, request: LoadRequest) -> Iterator[Problem]:
    """Yield a warning of each variable without a value. Loki asks the user for it, or does not start."""
    given = environment_of(graph, request)
    for index, each in enumerate(graph.variables):
        if (name := _env_name(each.name)) not in given:
            text = f"the variable '{each.name}' has neither a default nor a value"
            hint = f"add {name} to the env of the scenario"
            yield Problem("missing-variable", text, document.span(("variables", index)), hint, "warning")


def _env_name(variable: str) -> str:
    return f"LLM_AGENT_VAR_{variable.replace('-', '_').upper()}"
