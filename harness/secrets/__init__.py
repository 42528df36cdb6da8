"""Replaces secrets by placeholders, `<secret:OPENAI_API_KEY>`, before anything is written, shown or compared.

Three kinds are found: known values, from environment variables and from fields found before, anywhere and in any
encoding; the value of any field, header or parameter whose name is one for secrets; and what has the shape of a
credential. The placeholder depends on the name alone, so that a request with another key, or none, is still the same
request.

    policy.py ──▶ environment.py: which variables ──▶ known_values.py: in all encodings.py ─┐
         ├──▶ json_fields.py, bodies.py: values under secret names, in data ────────────────┼─▶ secrets.py
         └──▶ named.py, shapes.py: values after secret names and of known shapes, in text ──┘       │
                                    output.py: all output of this process ◀─────────────────────────┘
"""

from __future__ import annotations

from harness.secrets.encodings import placeholder
from harness.secrets.known_values import bare_url, bare_urls
from harness.secrets.policy import secret_header
from harness.secrets.secrets import Secrets, hidden

__all__ = ["Secrets", "bare_url", "bare_urls", "hidden", "placeholder", "secret_header"]
