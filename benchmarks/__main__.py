"""`python -m benchmarks`: measure ratios and compare them with their targets; exit 1 if one is missed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from importlib import import_module

from benchmarks.measure import Figure

BENCHMARKS = {
    "a": "five_nodes",
    "b": "conversation",
    "c": "suite",
    "d": "start_up",
    "e": "flow",
    "f": "fan_out",
    "g": "replay",
    "h": "parallel",
    "i": "long_list",
    "l": "graph_agent",
    "m": "mesh",
    "n": "native",
    "o": "recording",
    "p": "frames",
    "r": "report_page",
    "s": "aggregation",
    "t": "gate",
    "v": "claims",
}


def main() -> int:
    """Run the requested benchmarks and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    what = (
        "a: five nodes, b: long conversations, c: 2,000 scenarios, d: start-up, e: Agent Spec, "
        "f: a fan-out, g: replayed calls, h: two processes, i: long lists, l: Loki, "
        "m: LeafMesh, n: a LangGraph app, o: recording at once, p: data frames, r: report.html, "
        "s: a million lines, t: the gate, v: claims of verdicts (default: all)"
    )
    parser.add_argument("benchmarks", nargs="*", metavar="a|b|c|d|e|f|g|h|i|l|m|n|o|p|r|s|t|v", help=what)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    given = parser.parse_args()
    unknown = [name for name in given.benchmarks if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    figures: list[Figure] = []
    for name in given.benchmarks or BENCHMARKS:
        found = import_module(f"benchmarks.{BENCHMARKS[name]}").run()
        figures += found
        if not given.json:
            _print(found)
    if given.json:
        json.dump([figure.as_mapping() for figure in figures], sys.stdout, indent=2, ensure_ascii=False)
        print()
    return int(any(figure.missed for figure in figures))


def _print(figures: Iterable[Figure]) -> None:
    for figure in figures:
        measured = f"{figure.measured:.2f} {figure.unit}"
        target = "" if figure.target is None else f"≤ {figure.target:g} {figure.unit}"
        verdict = "" if figure.target is None else "missed" if figure.missed else "ok"
        print(f"{figure.benchmark}  {figure.title:<68} {measured:>10}  {target:>9}  {verdict}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
