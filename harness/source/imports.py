"""Import of Python objects by dotted path, from folders that are not on `sys.path`.

Two suites may both have a `tools.py`. So modules found in given folders are kept by folder, and are in `sys.modules`
only while something is imported from that folder: each is imported once, so its classes stay the same, and no suite
sees another's. `sys.path` is restored after each import. `import_extra` imports the packages of an extra.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType, coroutine
from typing import Any, Final, TypeVar, cast

from harness import DISTRIBUTION
from harness.errors import ExtraMissing, HarnessError, Span
from harness.source.display import did_you_mean, nearest
from harness.source.document import shown_path
from harness.source.frames import error_line
from harness.source.module_state import watch
from harness.time.frozen import preserve_clocks

_OWN: Final = str(Path(__file__).parent.parent)


class ImportProblem(HarnessError):
    """A dotted path to a missing module or object, or a module that failed during import.

    `message` names the dotted path. `span` is the line of the module that failed, or None.
    """

    code = "import"

    def __init__(self, dotted: str, message: str, hint: str = "", span: Span | None = None) -> None:
        self.dotted, self.message, self.hint, self.span = dotted, message, hint, span
        super().__init__(f"{message}\n    {hint}" if hint else message)


def import_object(dotted: str, folders: Sequence[Path] = ()) -> Any:
    """Import and return the object at `pkg.mod.attr` (`attr` may be nested), searching `folders` first.

    A module is executed once per folder; later calls return the same objects. If `folders` have the module, one of
    the same name that was loaded from elsewhere is never used.

    Raises:
        ImportProblem: the module or attribute does not exist (with the nearest name), or the module raised something.
    """
    parts = check_dotted(dotted)
    roots = [Path(folder).resolve() for folder in folders]
    recording = recording_environment(roots[0]) if roots else nullcontext()
    with importing({parts[0]}, roots), recording, preserve_clocks():
        found: Any = module_named(parts[0], dotted, roots)
        for at, part in enumerate(parts[1:], start=1):
            found = _member(found, ".".join(parts[:at]), part, dotted, roots)
    return found


def check_dotted(dotted: str) -> list[str]:
    """Split a dotted path to an object into its parts.

    Raises:
        ImportProblem: the text is not such a path.
    """
    parts = dotted.split(".")
    if len(parts) < 2 or not all(part.isidentifier() for part in parts):
        message = f"'{dotted}' is not a dotted path to an object, such as package.module.name"
        raise ImportProblem(dotted, message)
    return parts


def _member(owner: Any, owner_name: str, name: str, dotted: str, folders: Sequence[Path]) -> Any:
    """Return the attribute `name`, or the submodule of that name."""
    try:
        return getattr(owner, name)
    except AttributeError:
        pass
    except Exception as error:
        raise ImportProblem(dotted, f"{owner_name}.{name} raised {error_line(error)}") from error
    if isinstance(owner, ModuleType) and hasattr(owner, "__path__"):
        submodule = f"{owner_name}.{name}"
        if importlib.util.find_spec(submodule) is not None:
            return module_named(submodule, dotted, folders)
    kind = "module" if isinstance(owner, ModuleType) else "object"
    raise no_member(owner_name, name, dotted, dir(owner), kind)


def module_named(name: str, dotted: str, folders: Sequence[Path]) -> ModuleType:
    """Import a module, as a step of importing `dotted`.

    Raises:
        ImportProblem: the module does not exist, or raised something.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise no_module(error.name, dotted, folders) from None
        raise failed_import(name, dotted, error) from error
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # a module may raise anything, SystemExit included
        raise failed_import(name, dotted, error) from error


def no_member(
    owner: str, name: str, dotted: str, members: Sequence[str], kind: str = "module"
) -> ImportProblem:
    """Return the problem of a name that its owner does not have."""
    public = [option for option in members if not option.startswith("_")]
    message = f"cannot import '{dotted}': the {kind} '{owner}' has no '{name}'"
    return ImportProblem(dotted, message, did_you_mean(name, public))


def no_module(name: str, dotted: str, folders: Sequence[Path]) -> ImportProblem:
    """Return the problem of a module that is neither in these folders nor installed."""
    options = sorted({option for folder in folders for option in _top_level_names(folder)})
    similar = nearest(name, options)
    looked_in = ", ".join(shown_path(folder) for folder in folders)
    elsewhere = f"looked in {looked_in}; pythonpath in [tool.harness] adds folders" if looked_in else ""
    hint = f"did you mean '{similar}'?" if similar else elsewhere
    return ImportProblem(dotted, f"cannot import '{dotted}': there is no module '{name}'", hint)


def failed_import(name: str, dotted: str, error: BaseException) -> ImportProblem:
    """Return the problem of a module that raised `error` during import, or cannot be read."""
    span = _raised_at(error)
    where = f" ({span.file}:{span.line})" if span else ""
    message = f"cannot import '{dotted}': module {name} raised {error_line(error)}{where}"
    return ImportProblem(dotted, message, span=span)


def _raised_at(error: BaseException) -> Span | None:
    """Return the location in a user's module that raised the exception, or None."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return Span(shown_path(error.filename), error.lineno, error.offset or 1)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((_OWN, "<")) and Path(frame.filename) != Path(importlib.__file__)
    ]
    if not frames or frames[-1].lineno is None:
        return None
    return Span(shown_path(frames[-1].filename), frames[-1].lineno, (frames[-1].colno or 0) + 1)


# ---------------------------------------------------------------- modules by folder

_Modules = dict[str, ModuleType]

_of_folder: Final[dict[Path, _Modules]] = {}
"""The modules imported by this module, by the folder of their top-level module."""

_set_by_modules: Final[dict[Path, dict[str, str | None]]] = {}
"""Environment variables that modules changed during import, by folder. None stands for one that was removed."""


def repeat_environment(folders: Sequence[Path]) -> None:
    """Repeat the changes that the modules of these folders made to the environment during import.

    A module is imported once, but every run that uses it needs the variables that it sets (`load_dotenv()`).
    """
    if not _set_by_modules:
        return
    roots = [Path(folder).resolve() for folder in folders]
    for folder in reversed(roots):
        for name, value in _set_by_modules.get(folder, {}).items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def recording_environment(folder: Path) -> Iterator[None]:
    """Record the changes that are made to the environment inside, for `repeat_environment` with this folder."""
    root, before = folder.resolve(), dict(os.environ)
    try:
        yield
    finally:
        after = dict(os.environ)
        names = before.keys() | after.keys()
        changed = {name: after.get(name) for name in names if before.get(name) != after.get(name)}
        if changed:
            _set_by_modules.setdefault(root, {}).update(changed)


_BUNDLED_DATA: Final = ("LITELLM_LOCAL_MODEL_COST_MAP", "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS")
"""Variables that make a library use the data that it comes with, instead of fetching newer data at its import."""


@contextmanager
def bundled_data() -> Iterator[None]:
    """Set the variables of `_BUNDLED_DATA` to True inside, except those that are set already."""
    added = [name for name in _BUNDLED_DATA if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "True"))
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextmanager
def importing(
    names: Set[str], folders: Sequence[Path], packages: Mapping[str, ModuleType] | None = None
) -> Iterator[None]:
    """Make imports inside search `folders` first, and hide modules that were imported from other folders before.

    Args:
        names: the top-level modules to be imported.
        folders: the folders, in the order in which they are searched.
        packages: modules that take precedence over any others, by name.
    """
    packages = packages or {}
    importlib.invalidate_caches()
    hide_imported()
    set_aside = _set_aside_hiding(names, folders, packages.keys())
    # A module of an earlier folder hides those of later ones, even if it is not yet imported.
    taken: set[str] = set()
    for folder in folders:
        modules = _of_folder.get(folder, {})
        sys.modules.update({name: module for name, module in modules.items() if _top(name) not in taken})
        taken |= {*_top_level_names(folder), *packages}
    before = dict(sys.modules)
    for name, package in packages.items():
        sys.modules.setdefault(name, package)
    path = list(sys.path)
    sys.path[:0] = [str(folder) for folder in folders]
    try:
        with bundled_data():
            yield
    finally:
        sys.path[:] = path
        _remember(folders, before)
        sys.modules.update(set_aside)


def hide_imported() -> None:
    """Remove from `sys.modules` what was imported from given folders: others may have modules of the same names."""
    ours = {id(module) for modules in _of_folder.values() for module in modules.values()}
    for name in [name for name, module in sys.modules.copy().items() if id(module) in ours]:
        del sys.modules[name]


def _set_aside_hiding(wanted: Set[str], folders: Sequence[Path], replaced: Set[str]) -> _Modules:
    """Remove loaded modules that hide one in `folders` or are replaced, with their submodules, and return them.

    Installed packages stay unless they hide a wanted module, as the imported code may need them.
    """
    names = {name for folder in folders for name in _top_level_names(folder) if not _is_installed(name)}
    hiding = {name for name in names | wanted if _hides(name, folders)} | replaced
    taken = [name for name in sys.modules.copy() if _top(name) in hiding] if hiding else []
    return {name: sys.modules.pop(name) for name in taken}


def _hides(name: str, folders: Sequence[Path]) -> bool:
    """True if a module of this name is loaded, and `folders` have a different one."""
    loaded = sys.modules.get(name)
    spec = PathFinder.find_spec(name, [str(folder) for folder in folders]) if loaded and folders else None
    if loaded is None or spec is None:
        return False
    plain_folder = not spec.has_location and getattr(loaded, "__file__", None) is not None
    return not plain_folder and _location(loaded) != _location(spec)


def _is_installed(name: str) -> bool:
    if name in sys.stdlib_module_names or name == __name__.partition(".")[0]:
        return True
    loaded = sys.modules.get(name)
    paths = _location(loaded) if loaded else ()
    prefixes = (sys.prefix, sys.base_prefix)
    return any(Path(path).is_relative_to(prefix) for path in paths for prefix in prefixes)


def _location(found: ModuleType | ModuleSpec) -> tuple[str, ...]:
    """Return the file of a module, or the folders of a package without one."""
    if isinstance(found, ModuleSpec):
        file, folders = found.origin if found.has_location else None, found.submodule_search_locations
    else:
        file, folders = getattr(found, "__file__", None), getattr(found, "__path__", None)
    return (str(Path(file).resolve()),) if file else tuple(str(Path(f).resolve()) for f in folders or ())


def _remember(folders: Sequence[Path], before: _Modules) -> None:
    """Record the modules that were imported from `folders`."""
    if sys.modules == before:  # the usual case, which saves a search through thousands of modules
        return
    found = []
    for name, module in sys.modules.copy().items():
        if before.get(name) is module:
            continue
        location = _location(sys.modules.get(_top(name), module))
        folder = next((f for f in folders if any(_is_found_in(Path(path), f) for path in location)), None)
        if folder is not None:
            _of_folder.setdefault(folder, {})[name] = module
            found.append(module)
    if found:
        watch.add(found)


def _is_found_in(path: Path, folder: Path) -> bool:
    """True if a top-level module at `path` is found through `folder`."""
    return path.parent == folder or (path.name == "__init__.py" and path.parent.parent == folder)


def _top(name: str) -> str:
    return name.partition(".")[0]


def _top_level_names(folder: Path) -> list[str]:
    if not folder.is_dir():
        return []
    return [
        entry.stem for entry in folder.iterdir() if entry.suffix == ".py" or (entry / "__init__.py").is_file()
    ]


T = TypeVar("T")


@dataclass(frozen=True)
class ImportScope:
    """The sources of imports: `folders`, which are searched first, and `stand_ins`, which replace installed modules.

    The paths of the folders contain no links. Stand-ins are top-level modules without submodules.
    """

    folders: tuple[Path, ...] = ()
    stand_ins: Mapping[str, ModuleType] = field(default_factory=dict)

    def import_modules(self, names: Sequence[str]) -> Sequence[ImportProblem]:
        """Import modules by their dotted names, and return the problems of those that are missing or fail.

        A folder inside the first of `folders` counts as a package, and takes precedence over any other module.
        """
        problems = []
        with self._active(names):
            for name in names:
                try:
                    module_named(name, name, self.folders)
                except ImportProblem as problem:
                    problems.append(problem)
        return problems

    def modules(self) -> Mapping[str, ModuleType]:
        """Return the modules that were imported from the folders so far, by their dotted names."""
        folders = reversed(self.folders)
        return {name: module for at in folders for name, module in _of_folder.get(at, {}).items()}

    @coroutine
    def run(self, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        """Run a coroutine in this scope. The scope is active during each of its steps, but not while it waits."""
        step: Callable[[], Any] = partial(work.send, None)
        while True:
            try:
                with self._active():
                    waited = step()
            except StopIteration as end:
                return cast(T, end.value)
            try:
                step = partial(work.send, (yield waited))
            except BaseException as error:  # such as CancelledError, which the coroutine may handle
                step = partial(work.throw, error)

    @contextmanager
    def _active(self, names: Sequence[str] = ()) -> Iterator[None]:
        tops = {_top(name) for name in names}
        packages = {name: package for name in tops if (package := self._package(name))}
        with importing(tops, self.folders, packages), self._with_stand_ins():
            yield

    def _package(self, name: str) -> ModuleType | None:
        """Return a package for a folder without `__init__.py`, which an installed module of its name would hide."""
        path = self.folders[0] / name
        if not path.is_dir() or (path / "__init__.py").exists() or path.with_name(f"{name}.py").exists():
            return None
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(path)]
        return importlib.util.module_from_spec(spec)

    @contextmanager
    def _with_stand_ins(self) -> Iterator[None]:
        hidden = [name for name in sys.modules.copy() if _top(name) in self.stand_ins]
        others = {name: sys.modules.pop(name) for name in hidden}
        sys.modules.update(self.stand_ins)
        try:
            yield
        finally:
            for name in self.stand_ins:
                sys.modules.pop(name, None)
            sys.modules.update(others)


def import_extra(name: str, extra: str, purpose: str) -> Any:
    """Import and return a module of an optional package. The error message says what it is needed for: `purpose`.

    Raises:
        ExtraMissing: the package, or one that it needs itself, is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        how = f'pip install "{DISTRIBUTION}[{extra}]"'
        raise ExtraMissing(f"package {error.name or name!r} is needed {purpose}: {how}") from error
