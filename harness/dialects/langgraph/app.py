"""The process of an app: its variables, and importing what a manifest names.

No run reads files of variables, such as `.env` and `.env.local`, which have real keys, and other values on each
machine. An app's own `load_dotenv()` finds such a file empty.
"""

from __future__ import annotations

import base64
import builtins
import importlib
import importlib.util
import io
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from harness.dialects.langgraph.dialect import App, Target, module_name
from harness.errors import ManifestError, Problem, Span, WorldError
from harness.source.display import clip, did_you_mean
from harness.source.document import shown_path
from harness.source.frames import error_line, own_frames
from harness.source.imports import repeat_environment
from harness.time.rebinding import PYTHON, USER, origin, origin_of, when_imported

DUMMY: Final = "replayed"
"""The value of variables that look like keys, in runs that reach no provider."""
_KEY: Final = re.compile(r"(?:^|_)API_?KEY$|^AWS_(?:ACCESS_KEY_ID|SECRET_ACCESS_KEY)$")
_LONGEST_REASON: Final = 400
_POINT: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""A PNG file with one point."""
_MOST_UNSET: Final = 8
"""The most variables that are suggested where an import fails for a reason that does not name one."""
_LEVELS_UP: Final = 4
"""The folders around an app in which a package is looked for that it cannot import."""
_ANY_KEY: Final = re.compile(r"_(?:KEY|TOKEN|SECRET)$")
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
        if value is not None or not is_key or not isinstance(os.environ, _WithKeys):
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
        return _POINT if isinstance(os.environ, _WithKeys) else original(self, *args, **options)

    graphs.Graph.draw_mermaid_png = draw_mermaid_png


@cache
def _prepare_libraries() -> None:
    when_imported("pydantic_settings", _give_keys)
    when_imported("langchain_core.runnables.graph", _draw_offline)


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


def import_target(target: Target, folders: tuple[str, ...], named_at: Span | None) -> Any:
    """Import the object that a manifest names.

    Raises:
        ManifestError: it does not exist, or its module cannot be imported (code `import`).
    """
    if target.file is not None and not target.file.is_file():
        text = f"file '{shown_path(target.file)}' does not exist"
        raise ManifestError(Problem("missing-file", text, named_at))
    try:
        module = _module(target, folders)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # a module may raise anything, SystemExit included
        raise import_error(target, error, named_at) from error
    found: Any = module
    for name in target.name.split("."):
        if not hasattr(found, name):
            names = [each for each in dir(found) if not each.startswith("_")]
            text = f"{target.shown} does not exist: {getattr(found, '__name__', found)} has no '{name}'"
            raise ManifestError(Problem("import", text, named_at, did_you_mean(name, names)))
        found = getattr(found, name)
    return found


_by_name: Final[dict[tuple[Path, tuple[str, ...]], ModuleType]] = {}
"""The modules that were imported, by their files and the folders that they are imported from."""


def _module(target: Target, folders: tuple[str, ...]) -> ModuleType:
    if target.file is None:
        return importlib.import_module(target.module)
    known = _by_name.get((target.file, folders))
    if known is not None and sys.modules.get(known.__name__) is known:
        return known
    file = Path(os.path.realpath(target.file))
    if name := module_name(file, folders):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin and Path(os.path.realpath(spec.origin)) == file:
            module = _by_name[target.file, folders] = importlib.import_module(name)
            return module
    name = "_".join(file.with_suffix("").parts[-2:])
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    _by_name[target.file, folders] = module
    return module


def import_error(target: Target, error: BaseException, named_at: Span | None) -> ManifestError:
    """Return the error of an app that cannot be imported: what is missing, and the imports that lead to it."""
    frames = [each for each in own_frames(error) if each["function"] == "<module>"] or own_frames(error)
    chain = " > ".join(dict.fromkeys(f"{each['file']}:{each['line']}" for each in frames))
    why, hint = clip(error_line(error), _LONGEST_REASON), ""
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.partition(".")[0]
        packages = _distribution_of(error.name)
        installed = _in_installed(packages)
        why = f"there is no module '{error.name}'" + installed
        if beside := _folder_of(package, target):
            hint = _of_missing(beside, error.name)
        elif installed:
            hint = f"the app requires another version of {packages}, newer or older: see what it asks for"
        else:
            hint = f"install what the app requires, such as: pip install {packages}"
    elif (refused := _refused(error)) is not None:
        why, hint = (
            f"it reaches for the network: {str(refused).splitlines()[0]}",
            "answer it with an `http` stub",
        )
    elif names := _missing_settings(error):
        why = (
            f"the variables {', '.join(names)} are not set"
            if names[1:]
            else f"the variable {names[0]} is not set"
        )
        hint = f"set them in the scenario: {_env_of(names)}"
    elif isinstance(error, KeyError) and _reads_environment(error):
        why = f"the variable {error.args[0]} is not set"
        hint = f"set it in the scenario: {_env_of([error.args[0]])}"
    elif isinstance(error, ImportError) and "relative import" in str(error):
        hint = "name the module instead of the file: package.module:object"
    elif not isinstance(error, ImportError | SyntaxError) and (names := _read_in_vain(error)):
        hint = f"it reads variables that are not set; where it needs them: {_env_of(names)}"
    text = f"{target.shown} cannot be imported: {why}" + (f" ({chain})" if chain else "")
    at = Span(frames[-1]["file"], frames[-1]["line"], 1) if frames else named_at
    return ManifestError(Problem("import", text, at, hint))


def _env_of(names: Sequence[str]) -> str:
    """Return what sets variables."""
    option = names[0] if len(names) == 1 else "NAME"
    return f"env: {{{', '.join(f'{name}: …' for name in names)}}}, or --env {option}=…"


def _read_in_vain(error: BaseException) -> list[str]:
    """Return the last variables that are not set of those which the file that failed has read."""
    files = [
        file
        for frame, _ in traceback.walk_tb(error.__traceback__)
        if origin(file := frame.f_code.co_filename) is USER
    ]
    return [name for name, reader in _unset.items() if files and reader == files[-1]][-_MOST_UNSET:]


def _of_missing(root: Path, module: str) -> str:
    """Return the hint for a module whose package has its source below a folder."""
    source, shown = root.joinpath(*module.split(".")), shown_path(root)
    if source.is_dir() or source.with_suffix(".py").is_file():
        package = module.partition(".")[0]
        return f"'{package}' is in {shown}: PYTHONPATH={shown}, or add it to `dependencies` in langgraph.json"
    return f"there is no {shown_path(source)}.py: perhaps it was left out of the repository"


def _folder_of(package: str, target: Target) -> Path | None:
    """Return the folder around an app that has the source of a package; None if none has."""
    own = (target.file.parent if target.file is not None else target.base).resolve()
    for folder in (own, *own.parents)[:_LEVELS_UP]:
        for root in (folder, folder / "src"):
            if (root / f"{package}.py").is_file() or any((root / package).glob("*.py")):
                return root
    return None


def _distribution_of(module: str) -> str:
    """Return the probable name of the distribution of a module: `langchain-openai`, `google-genai`."""
    parts = module.split(".")
    found = sys.modules.get(parts[0])
    is_namespace = found is not None and getattr(found, "__file__", None) is None
    return "-".join(parts[:2] if is_namespace else parts[:1]).replace("_", "-")


def _in_installed(package: str) -> str:
    """Return the version that a missing module is not in, if its package is installed."""
    try:
        return f" in {package} {version(package)}"
    except PackageNotFoundError:
        return ""


def _refused(error: BaseException | None) -> BaseException | None:
    """Return the refused request that an exception comes from, if it does."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, WorldError) or getattr(error, "code", "") == "network-closed":
            return error
        error = error.__cause__ or error.__context__
    return None


def _missing_settings(error: BaseException) -> list[str]:
    """Return the variables that settings of pydantic require, and that are not set."""
    if type(error).__name__ != "ValidationError" or not hasattr(error, "errors"):
        return []
    frames = traceback.walk_tb(error.__traceback__)
    if not any(frame.f_globals.get("__name__", "").startswith("pydantic_settings") for frame, _ in frames):
        return []
    missing = [each for each in error.errors() if each["type"] == "missing"]
    return [str(each["loc"][0]).upper() for each in missing]


def _reads_environment(error: BaseException) -> bool:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals.get("__name__") in ("os", __name__)
