"""The dialect Yagra: the members of `harness.dialects.dialect.Dialect`. The rest is imported when it is used."""

from __future__ import annotations

from collections.abc import Sequence

from harness.dialects.dialect import YamlVersion, single_file
from harness.dialects.prompt import Prompt
from harness.dialects.request import LoadRequest
from harness.dialects.tunable import Tunable
from harness.graph.model import Graph
from harness.source.document import Document

name = "yagra"
title = "Yagra workflows (YAML, LangGraph)"
yaml: YamlVersion = "1.1"
locate = single_file


def detect(document: Document) -> bool:
    """True if a document is a Yagra workflow: it has `nodes`, and says where they start or end."""
    value = document.value
    return isinstance(value, dict) and "nodes" in value and ("start_at" in value or "end_at" in value)


def agents(document: Document) -> list[str]:
    """A workflow defines one agent, which has no name."""
    return []


def prompts(request: LoadRequest) -> Sequence[Prompt]:
    """The prompts, as `prompt_list` finds them."""
    from harness.dialects.yagra.prompt_list import prompts

    return prompts(request)


def tunables(request: LoadRequest) -> Sequence[Tunable]:
    """The temperatures and lists of tools, as `tunables` finds them."""
    from harness.dialects.yagra.tunables import tunables

    return tunables(request)


def load(request: LoadRequest) -> Graph:
    """The graph, as `compile` makes it."""
    from harness.dialects.yagra.compile import load

    return load(request)
