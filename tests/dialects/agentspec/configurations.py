"""Builders of configurations as text: an agent, tools, tables of components and references to them."""

from __future__ import annotations

from typing import Any

VERSION = "agentspec_version: 25.4.1\n"
MODEL = "{component_type: OpenAiConfig, id: small, name: model, model_id: m}"
AGENT = f"""\
component_type: Agent
id: the_agent
name: guide
llm_config: {MODEL}
system_prompt: Help.
"""
TABLE = "$referenced_components:\n"


def agent(**fields: Any) -> Any:
    """Return an agent with these fields, each as YAML."""
    written = {
        "component_type": "Agent",
        "name": "guide",
        "llm_config": MODEL,
        "system_prompt": "Help.",
        **fields,
    }
    return VERSION + "".join(f"{key}: {value}\n" for key, value in written.items())


def entry(key: Any, text: Any) -> Any:
    return f"  {key}: {text}\n"


def tool(name: Any = "tool", id_: Any = "") -> Any:
    return f"{{component_type: ServerTool, name: {name}{id_ and ', id: ' + id_}}}"


def ref(key: Any) -> Any:
    return f"{{$component_ref: {key}}}"


def codes(problems: Any) -> Any:
    return [problem.code for problem in problems]


PARTS = TABLE + entry("prompt", "Help.") + entry("tool", tool())
