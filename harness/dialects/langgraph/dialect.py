"""The members of `harness.dialects.dialect.Dialect` for LangGraph apps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.dialects.dialect import lazy_function
from harness.dialects.langgraph.target import FILE, is_object
from harness.source.document import Document
from harness.source.yaml import Version

name = "langgraph"
title = "LangGraph apps (langgraph.json, or an object of a module)"
yaml: Version = "1.2"
load = lazy_function("harness.dialects.langgraph.compile:load")
claims = is_object
preload = lazy_function("harness.dialects.langgraph.compile:preload")
prompts = lazy_function("harness.dialects.langgraph.prompts:prompts")


def locate(path: Path) -> Sequence[Path]:
    """Return the `langgraph.json` of a folder. Anything else stands for itself."""
    if not path.is_dir():
        return (path,)
    return (path / FILE,) if (path / FILE).is_file() else ()


def detect(document: Document) -> bool:
    """True if a document has `graphs`, a mapping from names to `./file.py:object` or `module:object`."""
    value = document.value
    graphs = value.get("graphs") if isinstance(value, dict) else None
    if not isinstance(graphs, dict):
        return False
    targets = [each.get("path") if isinstance(each, dict) else each for each in graphs.values()]
    return bool(targets) and all(isinstance(each, str) and ":" in each for each in targets)


def agents(document: Document) -> list[str]:
    """Return the names of the graphs."""
    graphs = document.value.get("graphs") if isinstance(document.value, dict) else None
    return list(graphs) if isinstance(graphs, dict) else []
