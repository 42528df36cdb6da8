"""The variables of an app, in the process that runs it.

No run reads files of variables, such as `.env` and `.env.local`, which have real keys, and other values on each
machine. An app's own `load_dotenv()` finds such a file empty.
"""

from __future__ import annotations

import base64
import builtins
import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from types import ModuleType
from typing import Any, Final

from harness.dialects.langgraph.dialect import App
from harness.dialects.langgraph.libpq import tell_connections
from harness.source.imports import repeat_environment
from harness.time.rebinding import PYTHON, USER, origin, origin_of, when_imported

DUMMY: Final = "replayed"
"""The value of variables that look like keys, in runs that reach no provider."""
_KEY: Final = re.compile(r"(?:^|_)API_?KEY$|^AWS_(?:ACCESS_KEY_ID|SECRET_ACCESS_KEY)$")
_ANY_KEY: Final = re.compile(r"_(?:KEY|TOKEN|SECRET)$")
_POINT: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""A PNG file with one point."""
_QUIET: Final = {
    "ANONYMIZED_TELEMETRY": "False",  # of Chroma and others
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_DISABLE_VERSION_CHECK": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "MEM0_TELEMETRY": "False",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
}
"""Variables that keep libraries from sending what an app does to their makers, except where a scenario sets them."""


class _WithKeys(os._Environ):  # type: ignore[type-arg]
    """The environment of an app offline: a variable that looks like a key and is missing has a dummy value.

    That holds for `…_API_KEY` and the keys of AWS, and for `…_KEY`, `…_TOKEN` and `…_SECRET` where the app itself
    reads it: a library that finds a second credential may behave differently.
    """

    def __getitem__(self, name: str) -> str:
        try:
            value: str = super().__getitem__(name)
            return value
        except KeyError:
            if name not in _removed and (_KEY.search(name) or (_ANY_KEY.search(name) and _read_by_user())):
                return DUMMY
            raise

    def get(self, name: str, default: Any = None) -> Any:
        value = super().get(name, default)
        if value is None and origin(reader := _reader()) is USER:
            _unset.pop(name, None)
            _unset[name] = reader
        return value

    def __delitem__(self, name: str) -> None:
        _removed.add(name)
        try:
            super().__delitem__(name)
        except KeyError:
            if not (_KEY.search(name) or _ANY_KEY.search(name)):
                raise


_removed: Final[set[str]] = set()
"""The variables that the app itself removed: these have no dummy value."""


_unset: Final[dict[str, str]] = {}
"""The variables that the app's code read in vain, without a default, each with the last file that did."""


def read_in_vain(file: str) -> list[str]:
    """Return the variables that are not set and that the code of a file read without a default, the last one last."""
    return [name for name, reader in _unset.items() if reader == file]


def _read_by_user() -> bool:
    return origin(_reader()) is USER


def _reader() -> str:
    """Return the file whose code reads a variable, by whatever functions of Python."""
    caller = sys._getframe(2)
    while caller.f_back is not None and (
        caller.f_code.co_filename == __file__ or origin(caller.f_code.co_filename) is PYTHON
    ):
        caller = caller.f_back
    return caller.f_code.co_filename


def _give_keys(settings: ModuleType) -> None:
    """Give the settings of pydantic a dummy value for a key that they need, as they list the variables."""
    original = settings.EnvSettingsSource.get_field_value

    @wraps(original)
    def get_field_value(self: Any, field: Any, name: str) -> Any:
        value, key, is_complex = original(self, field, name)
        variables = (key.upper(), f"{self.env_prefix}{name}".upper())
        is_key = any(_KEY.search(each) or _ANY_KEY.search(each) for each in variables)
        if value is not None or not is_key or not _is_offline():
            return value, key, is_complex
        return (DUMMY, key, False) if _needs(field, self.settings_cls) else (value, key, is_complex)

    settings.EnvSettingsSource.get_field_value = get_field_value


def _needs(field: Any, settings: type) -> bool:
    """True if settings require a field, or are the app's own and have an empty text until it is given."""
    default = field.default
    text = default.get_secret_value() if hasattr(default, "get_secret_value") else default
    module = sys.modules.get(settings.__module__)
    is_own = module is not None and origin_of(module) is USER
    return bool(field.is_required()) or (is_own and isinstance(text, str) and not text)


def _draw_offline(graphs: ModuleType) -> None:
    """Let apps that draw themselves when they are imported, with a service, have a picture of a single point."""
    original = graphs.Graph.draw_mermaid_png

    @wraps(original)
    def draw_mermaid_png(self: Any, *args: Any, **options: Any) -> bytes:
        return _POINT if _is_offline() else original(self, *args, **options)

    graphs.Graph.draw_mermaid_png = draw_mermaid_png


@cache
def _prepare_libraries() -> None:
    when_imported("pydantic_settings", _give_keys)
    when_imported("langchain_core.runnables.graph", _draw_offline)
    when_imported("langgraph.checkpoint.base", _keep_in_memory)
    tell_connections()


def _keep_in_memory(_module: ModuleType) -> None:
    from harness.engine.native_savers import keep_in_memory

    keep_in_memory(_is_offline)


def _is_offline() -> bool:
    return isinstance(os.environ, _WithKeys)


def _hide_variable_files() -> None:
    """Let this process find each file of variables empty. Writing one works."""
    for module in (builtins, io):
        really: Callable[..., Any] = module.open
        if not hasattr(really, "hides_variables"):
            module.open = _hiding(really)  # type: ignore[attr-defined]


def _hiding(really: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(really)
    def opened(file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        hidden = not isinstance(file, int) and "r" in mode and "+" not in mode and _has_variables(file)
        return really(os.devnull if hidden else file, mode, *args, **options)

    opened.hides_variables = True  # type: ignore[attr-defined]
    return opened


def _has_variables(file: Any) -> bool:
    name = os.path.basename(os.fsdecode(file))
    return (name == ".env" or name.startswith(".env.")) and os.path.isfile(file)


def enter(app: App, *, offline: bool) -> None:
    """Make this process that of an app: its variables, as its import left them, and the folders of its modules."""
    _hide_variable_files()
    os.environ.update({**_QUIET, **app.environment})
    repeat_environment((app.target.base,))
    os.environ.update(app.own)
    if offline:
        os.environ.__class__ = _WithKeys
        _prepare_libraries()
    sys.path[:0] = [folder for folder in app.folders if folder not in sys.path]


@contextmanager
def entered(app: App, *, offline: bool) -> Iterator[None]:
    """Make this process that of an app inside. What its code sets itself stays."""
    kind, path, opening = os.environ.__class__, list(sys.path), (builtins.open, io.open)
    arguments, sys.argv = sys.argv, [""]
    before = {name: os.environ.get(name) for name in (*_QUIET, *app.environment, *app.own)}
    enter(app, offline=offline)
    try:
        yield
    finally:
        builtins.open, io.open = opening
        os.environ.__class__ = kind
        if kind is not _WithKeys:
            _removed.clear()
            _unset.clear()
        sys.path[:] = path
        sys.argv = arguments
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
