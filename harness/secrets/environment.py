"""The secrets in environment variables: their whole values, and the parts of them that stand elsewhere alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

from harness.secrets.json_text import literals
from harness.secrets.known_values import KnownValues, credentials
from harness.secrets.policy import common, is_named, looks_random, secret_field, secret_variable
from harness.secrets.scrub_urls import URL, WHOLE_URL

_LOGIN: Final = re.compile(r"[\w+.-]+://[^/?#@:]*:(?!\d+/)(.*)@[^@]*", re.DOTALL)
_SETTING: Final = re.compile(r"(?<![\w.-])([\w.-]++)\s*=\s*([^;&\s]+)")


def add_variables(known: KnownValues, environment: Mapping[str, str], named: Sequence[str]) -> None:
    """Add the secrets of an environment to the known values. `named`: patterns of those always secret."""
    patterns = tuple(named)
    found = [(name, _secrets_in(name, environment[name], patterns)) for name in sorted(environment)]
    for name, (whole, _) in found:
        if whole:
            known.add(whole, name)
    for name, (_, parts) in found:
        for part in parts:
            known.add(part, name)


# Each scenario does this again, for an environment that is nearly the same.
@lru_cache(maxsize=2048)
def _secrets_in(name: str, value: str, named: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The value of a variable if it is a secret, else "", and the secrets in it."""
    value = value.strip()
    secret = (len(value) >= 3 and is_named(name, named)) or secret_variable(name, value)
    parts = (part for part in _parts(value, secret=secret) if len(part) >= 6 and not common(part))
    return value if secret else "", tuple(parts)


def _parts(value: str, *, secret: bool) -> Iterator[str]:
    """The secrets inside the value of a variable: the password of a URL; in a secret, all that looks like one."""
    if login := _LOGIN.fullmatch(value):
        yield unquote(login.group(1))
    whole_url = WHOLE_URL.fullmatch(value) is not None
    if whole_url and (split := URL.fullmatch(value)):
        user, _, _ = (split.group(2) or "").rpartition("@")
        if ":" not in user and looks_random(user):
            yield unquote(user)
        path = value[value.index("://") + 3 :].partition("/")[2]
        if secret and looks_random(path):
            yield path
    if whole_url or secret:
        yield from (unquote(setting) for name, setting in _SETTING.findall(value) if secret_field(name))
    if secret:
        yield from credentials("", value)
        yield from (
            item.value for item in literals(value) if item.kind == "string" and secret_field(str(item.name))
        )
        listed = [part.strip() for part in re.split(r"[,;]", value)]
        yield from listed if all(looks_random(part) for part in listed) else ()
        user, _, password = value.partition(":")
        if not whole_url and re.fullmatch(r"[\w.@-]+", user) and looks_random(password):
            yield password
