"""`harness.load_results`: results as pandas data frames (docs/python.md), read line by line."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.report.reading import read_lines
from harness.report.repeats import Line
from harness.report.runs import FIGURE_COLUMNS, GroupedRuns, parse_keys, without_duplicates
from harness.source.document import shown_path

if TYPE_CHECKING:
    import pandas as pd

_KEY: Final = {"run": "category", "id": "category", "variant": "category", "repeat": "int"}
_RUN: Final = {
    **_KEY,
    **dict.fromkeys(("suite", "scenario", "manifest", "dialect", "agent"), "category"),
    "tags": "object",
    "seed": "whole",
    **dict.fromkeys(("status", "verdict"), "category"),
    "passed": "bool",
    "score": "Float",
    "weight": "float",
    "latency_penalty": "float",
    **dict.fromkeys(("latency", "wall"), "timedelta"),
    "llm_calls": "int",
    **dict.fromkeys(("input_tokens", "output_tokens"), "Int"),
    "cost": "Float",
    "models": "object",
    **dict.fromkeys(("checks", "calls", "visits", "interrupts", "warnings"), "int"),
    "failed_checks": "object",
    **dict.fromkeys(("error", "error_node"), "category"),
    "cause": "string",
    "reason": "string",
    "recording": "Int",
    "varies": "boolean",
    "digest": "string",
    **dict.fromkeys(("trace", "where"), "string"),
}
_CHECK: Final = {
    **_KEY,
    "name": "category",
    "passed": "bool",
    "score": "float",
    "weight": "float",
    **dict.fromkeys(("expected", "actual"), "object"),
    "message": "string",
    "where": "string",
}
_CALL: Final = {
    **_KEY,
    "number": "int",
    **dict.fromkeys(("kind", "name", "node"), "category"),
    **dict.fromkeys(("ok", "refused"), "bool"),
    "latency": "timedelta",
    "args": "object",
    **dict.fromkeys(("prompt", "reply", "reason"), "string"),
    **dict.fromkeys(("input_tokens", "output_tokens"), "Int"),
}
_VISIT: Final = {**_KEY, "step": "int", "node": "category", "visit": "int", "latency": "timedelta"}


def load_results(*folders: str | Path) -> Results:
    """Return the results of one run of scenarios, or of several together, as data frames.

    Args:
        *folders: folders of results, or files `results.jsonl`; none is the last run of this project. A folder that
            is given twice, or is a copy of another, counts once, with a UserWarning.

    Raises:
        FormatError: there are no results (`results-missing`), or a line is damaged (`results-line`), which a frame
            raises when it reads that line.

    >>> import harness
    >>> results = harness.load_results("reports/latest")    # doctest: +SKIP
    >>> results.frame().groupby("suite")["passed"].mean()   # doctest: +SKIP
    """
    from harness.settings import load_settings

    chosen = tuple(without_duplicates([Path(each) for each in folders] or [load_settings().report]))
    for each in chosen:
        next(read_lines(each), None)  # raises if there are no results
    return Results(chosen)


@dataclass(frozen=True)
class Results:
    """Results of runs of scenarios. Each method reads them again, line by line, and returns a new data frame.

    docs/python.md has the columns and their types. In each frame `run`, `id`, `variant` and `repeat` identify a run.

    Attributes:
        folders: what was given, without duplicates.
    """

    folders: tuple[Path, ...]

    def frame(self) -> pd.DataFrame:
        """Return a row for each run of a scenario."""
        return _frame(_RUN, self._rows(_run))

    def checks(self) -> pd.DataFrame:
        """Return a row for each check."""
        return _frame(_CHECK, self._rows(_checks))

    def calls(self) -> pd.DataFrame:
        """Return a row for each call of a model, a tool, a service or a person."""
        return _frame(_CALL, self._rows(_calls))

    def visits(self) -> pd.DataFrame:
        """Return a row for each start of a node."""
        return _frame(_VISIT, self._rows(_visits))

    def groups(self, *by: str) -> pd.DataFrame:
        """Return a row for each group of runs, with the figures of `harness summary --by`.

        Args:
            *by: keys such as `tag` and `model`, see docs/results.md.

        Raises:
            FormatError: there is no such key (`unknown-key`).
        """
        grouped = GroupedRuns(parse_keys(by))
        for run, line in self._lines():
            grouped.add(line, run, len(self.folders) > 1)
        columns = {**dict.fromkeys(grouped.keys, "category"), **FIGURE_COLUMNS}
        return _frame(columns, grouped.rows())

    def _lines(self) -> Iterator[tuple[str, Line]]:
        for folder in self.folders:
            run = shown_path(folder)
            for line in read_lines(folder):
                yield run, line

    def _rows(self, rows_of: Callable[[Line], Iterable[Line]]) -> Iterator[Line]:
        for run, line in self._lines():
            key = {"run": run, "id": line["id"], "variant": line["variant"], "repeat": line["repeat"]}
            for row in rows_of(line):
                yield {**row, **key}


def _run(line: Line) -> Iterator[Line]:
    usage, error, models = line["usage"], line["error"] or {}, line["usage"]["by_model"]
    unpriced = any(model.get("cost", 0.0) is None for model in models.values())
    yield {
        **line,
        **usage,
        **{name: len(line[name]) for name in ("checks", "calls", "interrupts", "warnings")},
        "tags": tuple(line["tags"]),
        "latency": line["latency"]["total"],
        "cost": None if unpriced else usage["cost"],
        "models": tuple(models),
        "visits": sum(len(step) if isinstance(step, list) else 1 for step in line["path"]),
        "failed_checks": tuple([check["name"] for check in line["checks"] if not check["passed"]]),
        "error": error.get("type"),
        "error_node": error.get("node"),
    }


def _checks(line: Line) -> Iterable[Line]:
    return line["checks"]  # type: ignore[no-any-return]


def _calls(line: Line) -> Iterator[Line]:
    for number, call in enumerate(line["calls"], start=1):
        flags = {name: bool(call.get(name)) for name in ("ok", "refused")}
        yield {**(call.get("usage") or {}), **call, **flags, "number": number}


def _visits(line: Line) -> Iterator[Line]:
    steps = [step if isinstance(step, list) else [step] for step in line["path"]]
    visits = Counter(str(node) for step in steps for node in step)
    once, again = line["latency"]["nodes"], line["latency"].get("visits", {})
    seen: Counter[str] = Counter()
    for number, step in enumerate(steps, start=1):
        for node in map(str, step):
            seen[node] += 1
            if visits[node] == 1:
                latency = once.get(node)
            else:  # results of an older version only have the sum
                listed = again.get(node, ())
                latency = listed[seen[node] - 1] if len(listed) == visits[node] else None
            yield {"step": number, "node": node, "visit": seen[node], "latency": latency}


class _Names:
    """A categorical column: each name is kept once."""

    def __init__(self) -> None:
        self._codes = array("i")
        self._known: dict[str | None, int] = {None: -1}

    def extend(self, names: Sequence[str | None]) -> None:
        for name in {*names} - self._known.keys():
            self._known[name] = len(self._known) - 1
        self._codes.extend(map(self._known.__getitem__, names))

    def made(self) -> Any:
        import numpy as np
        import pandas as pd

        names = [name for name in self._known if name is not None]
        categories = pd.Index(names, dtype=None if names else "object")
        codes = np.asarray(self._codes, dtype=np.int32)
        return pd.Categorical.from_codes(codes, categories).reorder_categories(sorted(names))


class _Numbers:
    """A column of numbers, of which some may be missing; its type is that of `make`."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._values = array("d")
        self._make = make

    def extend(self, numbers: Sequence[float | None]) -> None:
        self._values.extend([math.nan if number is None else number for number in numbers])

    def made(self) -> Any:
        import numpy as np

        return self._make(np.asarray(self._values, dtype=np.float64))


def _nullable(dtype: str) -> Callable[[Any], Any]:
    def make(values: Any) -> Any:
        import pandas as pd

        return pd.Series(values).astype("Float64").astype(dtype)  # type: ignore[call-overload]  # any dtype

    return make


def _timedelta(values: Any) -> Any:
    import numpy as np

    most = np.nan_to_num(np.clip(values, 0, 9e9), nan=0.0) * 1e9
    made = np.round(most).astype("int64").astype("timedelta64[ns]")
    made[np.isnan(values)] = np.timedelta64("NaT")
    return made


class _Objects:
    """A column of any values, of texts, or of whole numbers without a limit."""

    def __init__(self, dtype: str) -> None:
        self._values: list[Any] = []
        self._dtype = dtype
        self.extend = self._values.extend

    def made(self) -> Any:
        import pandas as pd

        try:
            return pd.Series(self._values, dtype=self._dtype)
        except OverflowError:  # a seed of more than 64 bits
            return pd.Series(self._values, dtype="object")


_KINDS: Final[Mapping[str, Callable[[], _Names | _Numbers | _Objects]]] = {
    "category": _Names,
    "int": lambda: _Numbers(lambda values: values.astype("int64")),
    "float": lambda: _Numbers(lambda values: values),
    "bool": lambda: _Numbers(lambda values: values.astype(bool)),
    "Int": lambda: _Numbers(_nullable("Int64")),
    "Float": lambda: _Numbers(_nullable("Float64")),
    "boolean": lambda: _Numbers(_nullable("boolean")),
    "timedelta": lambda: _Numbers(_timedelta),
    "string": lambda: _Objects("string"),
    "whole": lambda: _Objects("int64"),
    "object": lambda: _Objects("object"),
}
"""The columns of each kind. All figures of results are exact as a double, but seeds."""


_BATCH: Final = 1_000


def _frame(columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return a data frame with these columns, each of a kind, of the values that rows have by these names."""
    import pandas as pd

    made = {name: _KINDS[kind]() for name, kind in columns.items()}
    values = (tuple(map(row.get, columns)) for row in rows)  # not the rows, which hold whole lines
    while batch := [*islice(values, _BATCH)]:
        for column, some in zip(made.values(), zip(*batch, strict=True), strict=True):
            column.extend(some)
    return pd.DataFrame({name: column.made() for name, column in made.items()})
