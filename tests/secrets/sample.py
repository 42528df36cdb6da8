"""A secret of the environment, and what replaces it."""

from __future__ import annotations

from harness.secrets import Secrets

KEY = "sk-proj-Zx81/kq+Lw==~é"
OPENAI = "<secret:OPENAI_API_KEY>"
SECRETS = Secrets({"OPENAI_API_KEY": KEY})
NOTHING = Secrets({})


def words(text: str) -> list[str]:
    return text.split()


def known(environment: dict[str, str], value: str, named: tuple[str, ...] = ()) -> bool:
    return Secrets(environment, named).text(f"a {value} b") != f"a {value} b"
