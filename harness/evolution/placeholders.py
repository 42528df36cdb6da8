"""Placeholders of prompts: `${x}`, `{x}`, `{{x}}` and `{% … %}`. A new text for a prompt has to keep them."""

from __future__ import annotations

import re
from typing import Final

_PLACEHOLDER: Final = re.compile(
    r"\$\{[^{}\n]+\}"  # ${VAR}
    r"|\{\{[^{}\n]+\}\}"  # {{name}}
    r"|\{%[^\n]*?%\}"  # {% if … %}
    r"|(?<!\{)\{[A-Za-z_][\w.\[\]]*\}(?!\})"  # {name}
)


def placeholders(text: str) -> set[str]:
    """Return the placeholders of a text, without spaces."""
    return {re.sub(r"\s+", "", found) for found in _PLACEHOLDER.findall(text)}


def placeholder_difference(before: str, after: str) -> str:
    """Return the placeholders that a new text lost or added, in words; "" if they are the same."""
    old, new = placeholders(before), placeholders(after)
    lost, added = sorted(old - new), sorted(new - old)
    parts = [f"it lost {', '.join(lost)}"] if lost else []
    parts += [f"it has {', '.join(added)}, which nothing fills"] if added else []
    return "; ".join(parts)
