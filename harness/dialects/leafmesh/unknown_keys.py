"""Unknown keys of a mesh file: they are kept and ignored, with a warning. NOTES 1.4.

The raw file is checked, so a misspelt key can be reported together with the error that it causes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from harness.dialects.leafmesh.document import AGENT_TYPES
from harness.dialects.leafmesh.fields import Section
from harness.dialects.leafmesh.strict_fields import agent_type, types_with_field
from harness.errors import Problem
from harness.source.document import Document, DocumentPath
from harness.source.keys import models_at
from harness.source.models import keys_of
from harness.source.suggest import did_you_mean

Steps = tuple[tuple[bool, str | int], ...]


def unknown_keys(model: type[Section], document: Document, path: DocumentPath = ()) -> Iterator[Problem]:
    """Yield a problem for each unknown key in the section at `path` and in the sections inside it."""
    value = document.value
    for step in path:
        value = value[step]
    yield from _walk(value, [model], (), document, path)


def _walk(
    value: Any, sections: Sequence[type[Section]], steps: Steps, document: Document, path: DocumentPath
) -> Iterator[Problem]:
    """Yield the problems of a value; `steps` lead to it from one of these sections."""
    if not isinstance(value, dict | list):
        return
    if isinstance(value, dict) and (found := _sections_at(value, sections, steps, path)):
        yield from _check_section(value, found, document, path)
        sections, steps = found, ()
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        step = (True, key if isinstance(key, str) else 0)  # all items of a list have the same model
        yield from _walk(item, sections, (*steps, step), document, (*path, key))


def _sections_at(
    value: dict[str, Any], sections: Sequence[type[Section]], steps: Steps, path: DocumentPath
) -> list[type[Section]]:
    """Return the models of a mapping; empty if it is not a section."""
    if len(path) == 2 and path[0] == "agents":
        kind = agent_type(value)
        return [AGENT_TYPES[kind]] if kind else []
    return list(dict.fromkeys(at for section in sections for at in _sections_of(section, steps)))


@lru_cache(maxsize=1024)
def _sections_of(section: type[Section], steps: Steps) -> list[type[Section]]:
    return [model for model in models_at(section, steps) if issubclass(model, Section)]


def _check_section(
    value: dict[str, Any], models: Sequence[type[Section]], document: Document, path: DocumentPath
) -> Iterator[Problem]:
    if any(model.allows_any_key or model.model_config.get("extra") == "forbid" for model in models):
        return
    known = [key for model in models for key in keys_of(model)]
    elsewhere: Mapping[str, str] = getattr(models[0], "elsewhere", {})
    of_agent = models[0] in AGENT_TYPES.values()
    for key in value:
        if key in known or (of_agent and types_with_field(key)):
            continue
        text = f"unknown key '{key}' in {models[0].model_config.get('title')}"
        where = document.key_span((*path, key))
        hint = elsewhere.get(key) or did_you_mean(key, known, listing=False)
        if hint and any(model.refuses_misspellings for model in models):
            yield Problem("unknown-key", text, where, hint)
        else:
            yield Problem("unknown-key", f"{text}: it is ignored", where, hint, "warning")
