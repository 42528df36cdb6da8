"""Secrets are replaced by placeholders, `<secret:OPENAI_API_KEY>`, before anything is written, shown or compared.

Two kinds are found: values that are known, of environment variables and from fields found before, wherever and
however encoded they stand; and whatever stands in a field, header or parameter that is for secrets. Those get a
placeholder that depends on the name alone, so that a request with another key, or none, is still the same request.

    policy.py ──▶ environment.py: which variables ──▶ known_values.py: their values, in all encodings.py ─┐
         │                                                                                             ├─▶ secrets.py
         └──▶ json_fields.py, text_fields.py, urls.py, multipart.py: what stands under a secret name ──┘       │
                                                output.py: all that leaves this process ◀──────────────────────┘
"""

from __future__ import annotations

from harness.secrets.placeholders import placeholder
from harness.secrets.policy import secret_header
from harness.secrets.secrets import Secrets
from harness.secrets.urls import bare_url, bare_urls

__all__ = ["Secrets", "bare_url", "bare_urls", "placeholder", "secret_header"]
