"""Environment variables that hold secrets, by their names and what they hold; and the secrets inside of those."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

from harness.secrets.heuristics import common, looks_random, word_set
from harness.secrets.json_text import literals
from harness.secrets.known import Known, credentials
from harness.secrets.names import (
    ABOUT,
    HARMLESS_KEYS,
    HARMLESS_TOKENS,
    SECRET_KEYS,
    secret_field,
    words,
)
from harness.secrets.urls import URL, WHOLE_URL

_LOGIN = re.compile(r"[\w+.-]+://[^/?#@:]*:(?!\d+/)(.*)@[^@]*", re.DOTALL)
_SETTING = re.compile(r"(?<![\w.-])([\w.-]++)\s*=\s*([^;&\s]+)")
_PATH = re.compile(r"(?:~|\.{0,2})/\S*|[A-Za-z]:\\.*")
_FILE = re.compile(r".*\.(?:json|pem|key|crt|cer|sock|txt|toml|ya?ml|ini|env|cfg|conf)", re.IGNORECASE)


_SURE = word_set(
    "token secret secrets password passwords passwd passphrase credential credentials apikey apikeys "
    "authorization webhook bearer jwt pat"
)
_MAYBE = word_set("key keys auth pass pwd dsn cookie cookies signature sas tokens")
_COUNTS = word_set("max min num number total budget window per rate average")
_FLAGS = word_set("true false yes no on off 0 1 none null")


def add_variables(known: Known, environment: Mapping[str, str], named: Sequence[str]) -> None:
    """Make the secrets of an environment known. `named` are the patterns of variables that always are."""
    patterns = tuple(named)
    found = [(name, _secrets_in(name, environment[name], patterns)) for name in sorted(environment)]
    for name, (whole, _) in found:
        if whole:
            known.add(whole, name)
    for name, (_, parts) in found:
        for part in parts:
            known.add(part, name)


# A scenario makes this anew, from an environment that is nearly the same each time.
@lru_cache(maxsize=2048)
def _secrets_in(name: str, value: str, named: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The value of a variable if it is a secret, else "", and the secrets in it."""
    value = value.strip()
    secret = (len(value) >= 3 and is_named(name, named)) or secret_variable(name, value)
    parts = (part for part in _parts(value, secret=secret) if len(part) >= 6 and not common(part))
    return value if secret else "", tuple(parts)


def is_named(name: str, named: Sequence[str]) -> bool:
    """Is the variable one of those that settings name?"""
    return any(fnmatchcase(name, pattern) for pattern in named)


def secret_variable(name: str, value: str) -> bool:
    """Is the value of an environment variable a secret, by its name and its looks?"""
    if len(value) < 6 or common(value) or _is_path(value) or (value.isdecimal() and len(value) < 8):
        return False
    of = words(name)
    return _surely(of) or (
        _maybe(of) and (looks_random(value) or (of[-1] in {"pass", "pwd"} and len(of) > 1))
    )


def secret_by_name(name: str, value: str) -> bool:
    """Is a variable for a secret, by its name alone? Of the value counts only whether it is a number or a switch.

    That is for writing the variable itself, where a short or common value shows as much as a long one.
    """
    of = words(name)
    if of[-1:] in (["pin"], ["passcode"]):
        return True
    if value.strip().isdecimal() and (_COUNTS & set(of) or of[-1:] == ["tokens"]):
        return False
    if _surely(of):
        return _SURE & set(of) != {"token"} or not any(
            pair[1] == "token" and pair[0] in HARMLESS_TOKENS for pair in pairwise(of)
        )
    if not _maybe(of) or of == ["pwd"] or value.strip().lower() in _FLAGS:
        return False
    return not any(pair[1] in {"key", "keys"} and pair[0] in HARMLESS_KEYS for pair in pairwise(of))


def _surely(of: list[str]) -> bool:
    pair = set(pairwise(of))
    if pair & {("access", "key"), ("secret", "id")} and of[-1] in {"key", "id"}:
        return True
    if "webhook" in of and of[-1] in {"url", "uri"}:
        return True
    if not of or of[-1] in ABOUT:
        return False
    if pair & {(kind, "key") for kind in SECRET_KEYS} or pair & {("api", "keys"), ("connection", "string")}:
        return True
    return bool(_SURE & set(of))


def _maybe(of: list[str]) -> bool:
    return bool(of) and of[-1] not in ABOUT and bool(_MAYBE & set(of))


def _is_path(value: str) -> bool:
    if not _PATH.fullmatch(value):
        return False
    try:
        return _FILE.fullmatch(value) is not None or Path(value).expanduser().exists()
    except (OSError, ValueError, RuntimeError):
        return False


def _parts(value: str, *, secret: bool) -> Iterator[str]:
    """The secrets inside the value of a variable: of any URL its password, of a secret all that looks like one."""
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
