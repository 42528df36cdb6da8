"""Importing what a manifest of an app names, and what is told where that fails."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from harness.dialects.langgraph import variables
from harness.dialects.langgraph.dialect import Target, module_name
from harness.errors import ManifestError, Problem, Span, WorldError
from harness.source.display import clip, did_you_mean
from harness.source.document import shown_path
from harness.source.frames import error_line, own_frames
from harness.time.rebinding import USER, origin

_LONGEST_REASON: Final = 400
_MOST_UNSET: Final = 8
"""The most variables that are suggested where an import fails for a reason that does not name one."""
_OF_DATABASE: Final = (
    "give a database another address in `env`, such as `:memory:`; one for checkpoints is not needed: name a "
    "function that makes the graph and takes a `checkpointer`"
)
_LEVELS_UP: Final = 4
"""The folders around an app in which a package is looked for that it cannot import."""


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
        why = f"it reaches for the network: {str(refused).splitlines()[0]}"
        hint = "answer it with an `http` stub" if isinstance(refused, WorldError) else _OF_DATABASE
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
    return variables.read_in_vain(files[-1])[-_MOST_UNSET:] if files else []


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
    return trace is not None and trace.tb_frame.f_globals.get("__name__") in ("os", variables.__name__)
