"""A secret of the environment, its placeholder, and scrubbers with and without it."""

from __future__ import annotations

from harness.secrets import Secrets

KEY = "sk-proj-Zx81/kq+Lw==~é"
OPENAI = "<secret:OPENAI_API_KEY>"
SECRETS = Secrets({"OPENAI_API_KEY": KEY})
NO_SECRETS = Secrets({})


def words(text: str) -> list[str]:
    return text.split()


def is_replaced(environment: dict[str, str], value: str, named: tuple[str, ...] = ()) -> bool:
    """True if a text with this value is scrubbed, given the environment and the settings' `named` patterns."""
    return Secrets(environment, named).text(f"a {value} b") != f"a {value} b"
