"""Finds the secrets in environment variables: whole values, and parts of them that may occur alone elsewhere.

All variables of this process are read, and all that are set while it runs (`load_dotenv`, a hook), however short.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote

from harness.secrets.json_fields import Location, parse_json, rewrite
from harness.secrets.known_values import URL, WHOLE_URL, KnownValues, credentials, lines_of
from harness.secrets.named import shaped_in
from harness.secrets.policy import Kind, is_common, kind_of_variable, looks_random, secret_field, words

_LOGIN: Final = re.compile(r"[\w+.-]+://[^/?#@:]*:(?!\d+/)(.*)@[^@]*", re.DOTALL)
_VERSION: Final = re.compile(r"(?<![^/])v\d+(?![^/])")
"""The version in the path of an API, which makes no path look generated: `v1/chat/completions`."""
_SETTING: Final = re.compile(r"(?<![\w.-])([\w.-]++)\s*=\s*([^;&\s]+)")


class Variables:
    """The secrets in environment variables.

    known   values that are secret by the name of their variable or by the settings, and secret parts of values
    likely  `known`, and the values of all other variables that are not known to be harmless
    weak    names of variables for secrets whose values are too short or too common to be searched for
    """

    def __init__(self, named: Sequence[str] = (), public: Sequence[str] = ()) -> None:
        self.known, self.weak = KnownValues(), dict[str, None]()
        self.likely = KnownValues(self.known)
        self._named, self._public = tuple(named), tuple(public)

    def add(self, environment: Mapping[str, str]) -> None:
        """Add the variables of an environment."""
        found = {
            name: _read(name, value, self._named, self._public) for name, value in sorted(environment.items())
        }
        for name, (kind, value, _) in found.items():
            if kind == "secret":
                self.known.add(value, name)
            elif kind == "weak":
                self.weak[name] = None
        for name, (kind, value, parts) in found.items():
            if kind == "likely" and value:
                self.likely.add(value, name)
            for part in parts:
                self.known.add(part, name)


@lru_cache(maxsize=4096)
def _read(
    name: str, value: str, named: tuple[str, ...], public: tuple[str, ...]
) -> tuple[Kind, str, tuple[str, ...]]:
    """Return the kind of a variable, its value ("" if it is not to be replaced as a whole), and the secrets in it."""
    value = value.strip()
    kind = kind_of_variable(name, value, named, public)
    if kind == "harmless" and not WHOLE_URL.fullmatch(value):
        return kind, value, ()
    secret = kind == "secret"
    parts = tuple(part for part in _parts(value, secret=secret) if len(part) >= 6 and not is_common(part))
    if (
        kind == "likely"
        and WHOLE_URL.fullmatch(value)
        and (parts or not looks_random(_VERSION.sub("", _path_of(value))))
    ):
        value = ""  # the address of a server is shown
    return kind, value, parts


def _parts(value: str, *, secret: bool) -> Iterator[str]:
    """Yield the secrets inside the value of a variable, such as the password of a URL.

    If the variable itself is `secret`, all parts that look like secrets are yielded.
    """
    if login := _LOGIN.fullmatch(value):
        yield unquote(login.group(1))
    whole_url = WHOLE_URL.fullmatch(value) is not None
    if whole_url and (split := URL.fullmatch(value)):
        user, _, _ = (split.group(2) or "").rpartition("@")
        if ":" not in user and looks_random(user):
            yield unquote(user)
        if secret and looks_random(_path_of(value)):
            yield _path_of(value)
    if whole_url or secret:
        yield from (unquote(setting) for name, setting in _SETTING.findall(value) if secret_field(name))
    if secret:
        yield from credentials("", value)
        yield from lines_of(value)
    for part in (*_members(value), *(found for _, found, _ in shaped_in(value))):
        yield from (part, *lines_of(part))
    listed = [part.strip() for part in re.split(r"[,;]", value)]
    if len(listed) > 1 and all(looks_random(part) for part in listed):
        yield from listed
    user, _, password = value.partition(":")
    if not whole_url and re.fullmatch(r"[\w.@-]+", user) and looks_random(password):
        yield password


def _members(value: str) -> list[str]:
    """Return the strings under secret names in a value that is JSON, such as the file of a service account."""
    found: list[str] = []

    def note(item: Any, location: Location) -> Any:
        if isinstance(item, str) and (location.secret_string(item) or _identifies_key(location.key, item)):
            found.append(item)
        return item

    rewrite(parse_json(value), str, note)
    return found


def _identifies_key(name: str | int, value: str) -> bool:
    """True for the id of a key in a credential: elsewhere, other things have such ids."""
    return words(str(name))[-2:] == ("key", "id") and looks_random(value)


def _path_of(url: str) -> str:
    return url[url.index("://") + 3 :].partition("/")[2]


# ---------------------------------------------------------------- this process

_watched: Final[list[Variables]] = []
_OF_PYTEST: Final = "PYTEST_CURRENT_TEST"
"""The name of the running test, which pytest sets several times a test."""


def variables_of_process(named: tuple[str, ...] = (), public: tuple[str, ...] = ()) -> Variables:
    """Return the secrets in the variables of this process, including those that are set from now on."""
    return _variables_of_process(named, public)


@lru_cache(maxsize=8)
def _variables_of_process(named: tuple[str, ...], public: tuple[str, ...]) -> Variables:
    variables = Variables(named, public)
    variables.add(dict(os.environ))
    if not _watched:
        sys.addaudithook(_on_putenv)
    _watched.append(variables)
    return variables


_unwatched: ContextVar[bool] = ContextVar("_unwatched", default=False)


@contextmanager
def not_watched() -> Iterator[None]:
    """Set variables within the context that are not secrets of this process: their source is known."""
    token = _unwatched.set(True)
    try:
        yield
    finally:
        _unwatched.reset(token)


def _on_putenv(event: str, args: tuple[Any, ...]) -> None:
    if event == "os.putenv" and not _unwatched.get():
        name, value = map(os.fsdecode, args)
        if name != _OF_PYTEST:
            for variables in _watched:
                variables.add({name: value})
