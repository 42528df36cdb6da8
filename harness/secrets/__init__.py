"""Replaces secrets by placeholders, `<secret:OPENAI_API_KEY>`, before anything is written, shown or compared.

Two kinds are found: known values, from environment variables and from fields found before, anywhere and in any
encoding; and the value of any field, header or parameter whose name is one for secrets. The placeholder depends on
the name alone, so that a request with another key, or none, is still the same request.

    policy.py ──▶ environment.py: which variables ──▶ known_values.py: their values, in all encodings.py ─┐
         │                                                                                             ├─▶ secrets.py
         └──▶ json_fields.py, bodies.py: values under secret names, in data, text and bodies ──────────┘       │
                                                output.py: all output of this process ◀────────────────────────┘
"""

from __future__ import annotations

from harness.secrets.encodings import placeholder
from harness.secrets.known_values import bare_url, bare_urls
from harness.secrets.policy import secret_header
from harness.secrets.secrets import Secrets

__all__ = ["Secrets", "bare_url", "bare_urls", "placeholder", "secret_header"]
