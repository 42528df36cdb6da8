"""Settings of a project.

They are read from `[tool.harness]` in pyproject.toml, pytest's ini file, variables `HARNESS_*`, and the command line.
Later sources take precedence.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, get_origin, get_type_hints

from harness.errors import FormatError, Problem
from harness.source.display import did_you_mean, nearest
from harness.source.project import PYPROJECT, project_root
from harness.units import parse_instant


class RecordMode(StrEnum):
    """The handling of effects that no stub answers, in scenarios with a cassette.

    The names are those of vcrpy and pytest-recording. LIVE applies to all scenarios.
    """

    NONE = "none"  # replay only: a request that is not recorded is an error
    ONCE = "once"  # record if there is no cassette yet, else replay only
    NEW_EPISODES = "new_episodes"  # replay recorded requests, record others
    ALL = "all"  # record everything again; recordings that no request matches are kept
    REWRITE = "rewrite"  # record everything again, and replace the whole cassette
    LIVE = "live"  # ask the live backend; cassettes are neither read nor written


class Traces(StrEnum):
    """The runs whose traces are kept."""

    ALL = "all"
    FAILED = "failed"
    NONE = "none"

    def keeps(self, verdict: str) -> bool:
        """True if the trace of a run with this verdict is kept."""
        return self is Traces.ALL or (self is Traces.FAILED and verdict in ("failed", "error"))


class Price(NamedTuple):
    """The price of a model in US dollars per million tokens."""

    model: str
    input: float
    output: float


Reader = Callable[[Any, Path], Any]
"""Checks and converts the value of a setting. Paths are relative to the folder that is given."""


def _paths(value: Any, base: Path) -> tuple[Path, ...]:
    values = value.split(os.pathsep) if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(item, str) for item in values):
        raise ValueError("expected a list of folders")
    return tuple((base / item).resolve() for item in values if item)


def _path(kind: str) -> Reader:
    def read(value: Any, base: Path) -> Path:
        if not isinstance(value, str):
            raise ValueError(f"expected a {kind}")
        return base / value

    return read


def _flag(value: Any, _base: Path) -> bool:
    words = {"true": True, "1": True, "false": False, "0": False}
    found = words.get(value.lower()) if isinstance(value, str) else value
    if not isinstance(found, bool):
        raise ValueError("expected true or false")
    return found


def _texts(value: Any, _base: Path) -> tuple[str, ...]:
    values = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(item, str) for item in values):
        raise ValueError("expected a list of texts")
    return tuple(values)


def _text(value: Any, _base: Path) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("expected a text")
    return value


def _cluster(value: Any, _base: Path) -> str:
    return parse_cluster(_text(value, _base))


def parse_cluster(text: str) -> str:
    """Return the address of a cluster, as written.

    Raises:
        ValueError: it is neither an address of a scheduler nor `local:N`.
    """
    if not _CLUSTER.fullmatch(text):
        raise ValueError(
            f"'{text}' is neither an address such as tcp://scheduler:8786 or tls://… nor local:N"
        )
    return text


def _number(unit: str) -> Reader:
    def read(value: Any, _base: Path) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if isinstance(value, bool) or not 0 < number < math.inf:
            raise ValueError(f"expected a number of {unit} above 0")
        return number

    return read


def _instant(value: Any, _base: Path) -> datetime:
    return parse_instant(value.isoformat() if isinstance(value, date) else str(value))


def _either(*words: str) -> Reader:
    *others, last = (f'"{word}"' for word in words)

    def read(value: Any, _base: Path) -> str:
        if value not in words:
            raise ValueError(f"expected {', '.join(others)} or {last}")
        return str(value)

    return read


def _traces(value: Any, base: Path) -> Traces:
    return Traces(_either(*Traces)(value, base))


def _prices(value: Any, _base: Path) -> tuple[Price, ...]:
    if not isinstance(value, dict):
        raise ValueError("expected a table of models, each with {input, output}")
    return tuple(_price(str(model), price) for model, price in value.items())


def _variables(value: Any, _base: Path) -> Mapping[str, str]:
    if not isinstance(value, dict) or not all(isinstance(each, str | int | float) for each in value.values()):
        raise ValueError("expected a table of variables, each with a text, a number or a boolean")
    return {name: str(each).lower() if isinstance(each, bool) else str(each) for name, each in value.items()}


def _price(model: str, price: Any) -> Price:
    if not isinstance(price, dict):
        raise ValueError(f"expected {{input, output}} for model '{model}', found {price!r}")
    for key in price:
        if key not in _PRICED:
            raise ValueError(f"unknown key '{key}' in the price of model '{model}'{_hint(key)}")
    for key in _PRICED:
        if key not in price:
            raise ValueError(f"the price of model '{model}' lacks '{key}'")
        amount = price[key]
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < math.inf:
            raise ValueError(
                f"expected US dollars for a million tokens in '{key}' of model '{model}', found {amount!r}"
            )
    return Price(model, float(price["input"]), float(price["output"]))


def _hint(key: str) -> str:
    hint = did_you_mean(key, _PRICED)
    return f" ({hint})" if hint else f" (known: {', '.join(_PRICED)})"


LOCAL_CLUSTER: Final = "local:"
_CLUSTER: Final = re.compile(rf"{LOCAL_CLUSTER}[1-9]\d{{0,2}}|(tcp|tls|ws|wss)://\S+:\d+")
_PREFIX: Final = "HARNESS_"
_PRICED: Final = ("input", "output")
_TABLES: Final = ("gate",)
"""Tables of [tool.harness] that are not settings: `harness.gate.policy` reads them."""
_DEBUG: Final = "HARNESS_DEBUG"
"""The only variable with this prefix that is not a setting: `harness.cli.main` reads it."""
_NEAR: Final = 0.81
"""The similarity to a known variable, without the prefix, from which another one counts as a misspelling. Those of
the build server Harness CI (HARNESS_BUILD_ID and dozens more) stay below 0.6."""


@dataclass(frozen=True)
class Settings:
    """The settings of a project, and the options of the current run. Those without a reader cannot be set in a file.

    Attributes:
        report: the folder results are written to (default: `reports/latest` in the project).
        pythonpath: folders that Python modules are imported from, besides those of the scenario and the manifest.
        allow_paths: folders outside the project from which manifests may read files.
        cassettes: the folder of the cassettes (default: `cassettes` in the project).
        record: give each scenario without a `cassette` one that is named after its file and its name.
        cassette_ignore: the parts in which requests may differ from recorded ones: `host`, `query.NAME`, `body.PATH`.
        max_age_days: the age in days from which a replayed recording is too old.
        stale_cassettes: the consequence of a recording that is too old: `warn` (a warning) or `fail` (an error).
        max_connections: the most requests that one host gets at once while real systems are called.
        secrets: names of variables, as globs, whose values are secret if they have at least three characters.
        public_env: names of variables, as globs, whose values are not secret.
        real_timeout: the most real seconds of one run, checks included. Recorded and live runs have no such limit.
        isolation: with `process`, each scenario runs in a process of its own.
        traces: the runs whose traces are kept: `all`, `failed` or `none`.
        traces_limit: the most MB of all traces together. Further traces are not written.
        history: the file that each run is appended to (`harness history`); None for none.
        now: the instant at which virtual time begins, in scenarios that have no `now` (default: `DEFAULT_NOW`; a
            replay without one begins when it was recorded).
        judge_model: the model of judges that name none.
        judge_prompts: a folder with prompts (`NAME.txt`) that replace those of metrics; None for none.
        prices: prices of models in US dollars per million tokens, which override the price list.
        env: values of `${VAR}` in manifests. Those of scenarios override them.
        cluster: the address of the Dask scheduler whose workers run the scenarios, or `local:N`; "" for none.
        project: the root of the project (`harness.source.project`). It cannot be set.
        record_mode: the handling of cassettes in this run. Set by the command line only.
        record_in_ci: record on CI machines, too, where a missing recording is an error otherwise. Set by `harness
            record`.
        narrate: show each step of a run. Set by the command line only.
        given_env: values of `${VAR}` that override those of scenarios. Set by the command line only.
    """

    report: Annotated[Path, _path("folder")] = Path("reports/latest")
    pythonpath: Annotated[tuple[Path, ...], _paths] = ()
    allow_paths: Annotated[tuple[Path, ...], _paths] = ()
    cassettes: Annotated[Path, _path("folder")] = Path("cassettes")
    record: Annotated[bool, _flag] = False
    cassette_ignore: Annotated[tuple[str, ...], _texts] = ()
    max_age_days: Annotated[float, _number("days")] = math.inf
    stale_cassettes: Annotated[str, _either("warn", "fail")] = "warn"
    max_connections: Annotated[float, _number("connections")] = math.inf
    secrets: Annotated[tuple[str, ...], _texts] = ()
    public_env: Annotated[tuple[str, ...], _texts] = ()
    real_timeout: Annotated[float, _number("seconds")] = 60.0
    isolation: Annotated[str, _either("none", "process")] = "none"
    traces: Annotated[Traces, _traces] = Traces.ALL
    traces_limit: Annotated[float, _number("MB")] = 1000.0
    history: Annotated[Path | None, _path("file")] = None
    now: Annotated[datetime | None, _instant] = None
    judge_model: Annotated[str, _text] = ""
    judge_prompts: Annotated[Path | None, _path("folder")] = None
    prices: Annotated[tuple[Price, ...], _prices] = ()
    env: Annotated[Mapping[str, str], _variables] = field(default_factory=dict)
    cluster: Annotated[str, _cluster] = field(default="", repr=False)  # results do not depend on it
    project: Path = Path()
    record_mode: RecordMode = RecordMode.NONE
    record_in_ci: bool = False
    narrate: bool = False
    given_env: Mapping[str, str] = field(default_factory=dict)

    def variables(self, own: Mapping[str, str]) -> dict[str, str]:
        """Return the values of `${VAR}` for a scenario or manifest with the values `own`."""
        return {**self.env, **own, **self.given_env}


_READERS: Final[Mapping[str, Reader]] = {
    name: hint.__metadata__[0]
    for name, hint in get_type_hints(Settings, include_extras=True).items()
    if get_origin(hint) is Annotated
}


def load_settings(
    folder: Path | None = None,
    *,
    ini: Mapping[str, Any] | None = None,
    ini_folder: Path | None = None,
    chosen: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Return the settings of the project around a folder.

    Args:
        folder: the folder from which the root of the project is searched upwards (default: the current folder).
        ini: pytest's ini settings, relative to `ini_folder`.
        ini_folder: the folder of pytest's ini file (default: the root of the project).
        chosen: the settings on the command line, relative to the current folder.
        environment: variables (default: those of the process).

    Raises:
        FormatError: a setting is unknown or has an invalid value.
    """
    root = project_root(folder or Path.cwd())
    settings = Settings(report=root / "reports/latest", cassettes=root / "cassettes", project=root)
    if (root / PYPROJECT).is_file():
        settings = _updated(settings, _table(root / PYPROJECT), root, f"[tool.harness] in {PYPROJECT}")
    settings = _updated(settings, ini or {}, ini_folder or root, "pytest's ini file")
    environment = os.environ if environment is None else environment
    given = {key: environment[_variable(key)] for key in _READERS if environment.get(_variable(key))}
    settings = _updated(settings, given, Path.cwd(), "the environment")
    return _updated(settings, chosen or {}, Path.cwd(), "the command line")


def parse_variables(written: Iterable[str]) -> dict[str, str]:
    """Return the variables that are written as NAME=value.

    Raises:
        FormatError: one of them has no name or no value.
    """
    pairs = [text.partition("=") for text in written]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise FormatError(Problem("bad-settings", f"'{name}' is not NAME=value"))
    return {name: value for name, _, value in pairs}


def is_ci_machine() -> bool:
    """True if the variable CI is set, as CI services do."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def misspelt_variables(environment: Mapping[str, str]) -> list[str]:
    """Return a message for each variable that is probably a misspelled setting."""
    known = {_variable(key) for key in _READERS} | {_DEBUG}
    keys = [name.removeprefix(_PREFIX) for name in known]
    found = []
    for name in sorted(name for name, value in environment.items() if value and name not in known):
        if name.upper().startswith(_PREFIX):
            near = nearest(name[len(_PREFIX) :], keys, cutoff=_NEAR)
            if near is not None:
                found.append(f"the variable {name} is not read: did you mean {_PREFIX}{near}?")
    return found


@dataclass(eq=False, kw_only=True)
class Projects:
    """The settings of all projects in a run. A scenario has those of the project around its file.

    `ini`, `ini_folder` and `chosen` are those of `load_settings`; the others are fields of `Settings`.
    """

    ini: Mapping[str, Any] | None = None
    ini_folder: Path | None = None
    chosen: Mapping[str, Any] | None = None
    record_mode: RecordMode = RecordMode.NONE
    record_in_ci: bool = False
    narrate: bool = False
    given_env: Mapping[str, str] = field(default_factory=dict)
    _known: dict[Path, Settings] = field(default_factory=dict)

    def of(self, file: Path) -> Settings:
        """Return the settings of the project of a file.

        Raises:
            FormatError: a setting is unknown or has an invalid value.
        """
        return self.around(file.parent)

    def around(self, folder: Path) -> Settings:
        """Return the settings of the project around a folder. Raises as `of` does."""
        if folder not in self._known:
            loaded = load_settings(folder, ini=self.ini, ini_folder=self.ini_folder, chosen=self.chosen)
            self._known[folder] = replace(
                loaded,
                record_mode=self.record_mode,
                record_in_ci=self.record_in_ci,
                narrate=self.narrate,
                given_env=self.given_env,
            )
        return self._known[folder]

    def isolates(self, file: Path) -> bool:
        """True if each scenario of a file runs in a process of its own. Recorded and live runs never do."""
        settings = self.of(file)
        return settings.isolation == "process" and settings.record_mode is RecordMode.NONE

    def common(self, files: Iterable[Path]) -> Settings:
        """Return the settings of the project of these files; of several projects, those of their common folder.

        Raises as `of` does.
        """
        roots = {self.of(file).project for file in files}
        return self.around(Path(os.path.commonpath(roots)) if roots else Path.cwd())


def _variable(key: str) -> str:
    return f"{_PREFIX}{key.upper()}"


def _table(project: Path) -> Mapping[str, Any]:
    try:
        found = project.stat()
        return _read_table(project, (found.st_ino, found.st_mtime_ns, found.st_size))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise FormatError(Problem("bad-settings", f"{project.name} cannot be read: {error}")) from None


@lru_cache(maxsize=64)
def _read_table(project: Path, _state: tuple[int, int, int]) -> Mapping[str, Any]:
    """Read a pyproject.toml, once for each of its states: a run from Python asks for its settings every time."""
    tool = tomllib.loads(project.read_text(encoding="utf-8")).get("tool", {})
    table = tool.get("harness", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise FormatError(Problem("bad-settings", f"[tool.harness] in {project.name} must be a table"))
    return {key: value for key, value in table.items() if key not in _TABLES}


def _updated(settings: Settings, given: Mapping[str, Any], base: Path, where: str) -> Settings:
    for key, value in given.items():
        if key not in _READERS:
            hint = did_you_mean(key, [*_READERS, *_TABLES])
            raise FormatError(Problem("unknown-key", f"unknown setting '{key}' in {where}", None, hint))
        try:
            settings = replace(settings, **{key: _READERS[key](value, base)})
        except ValueError as error:
            raise FormatError(Problem("bad-settings", f"setting '{key}' in {where}: {error}")) from None
    return settings
