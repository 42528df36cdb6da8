"""What may differ between two runs of one command, and what is written in its place. Nothing else may differ.

Each entry of `RULES` is a pattern, its replacement, and the reason. Folders are replaced by `replaced_folders`.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from harness import __version__

ROOT = Path(__file__).parents[2]


def _number(written: re.Match[str]) -> str:
    return repr(float(written[0]))


def _rounded(written: re.Match[str]) -> str:
    return repr(float(f"{float(written[0]):.12g}"))


RULES: tuple[tuple[str, str | Callable[[re.Match[str]], str], str], ...] = (
    (r'("(?:wall|wall_s|real_seconds)": ?)[0-9.e+-]+', r"\g<1>0", "real seconds, in JSON"),
    (r'(<test(?:suite|case)\b[^>]*? time=")[0-9.]+(?=")', r"\g<1>0", "real seconds, in junit.xml"),
    (r"(^real time +)[0-9.]+ (?:m?s|min)\b.*", r"\g<1>0 s", "real seconds, on the terminal"),
    (r"(?<=<dt>real time</dt><dd><b>)[^<]*", "0 s", "real seconds, in report.html"),
    (r"[0-9.]+ (?:m?s|min)(?= of real time)", "0 s", "real seconds, in Markdown"),
    (r"^progress  \d+ of \d+ .*\n", "", "how far a run is after some real seconds"),
    (r"at most [0-9.]+ (?:m?s|min|h)(?= left$)", "at most 0 s", "real seconds, of a search"),
    (r"(?<= in )[0-9.]+s(?: \([0-9:]+\))?(?= ?=*$)", "0s", "real seconds of pytest"),
    (r'("time": ?")20\d\d-[^"]*', r"\g<1>2000-01-01T00:00:00Z", "the date of today, in a history"),
    (r"\b20\d\d-\d\d-\d\d \d\d:\d\d\b", "2000-01-01 00:00", "the date of today, on the terminal"),
    (
        r'(^  "(?:began|ended)": ")20\d\d-[^"]*',
        r"\g<1>2000-01-01T00:00:00Z",
        "when a run was made, in session.json",
    ),
    (
        r'(^  "environment": ")[0-9a-f]{8}(?=")',
        r"\g<1>00000000",
        "a digest of the variables, in session.json",
    ),
    (r'(::[^"]*": ?")[0-9a-f]{64}(?=")', r"\g<1>0", "a digest of inputs and their folders, in scoring.json"),
    (r'("age_days": )\d+', r"\g<1>0", "days since a recording"),
    (
        r"^ *(?:ROOT/harness|VENV)/\S+:\d+ in .+\n",
        "",
        "frames of the harness and of libraries, which move with their code",
    ),
    (r"(?<= at )0x[0-9a-f]+", "0x0", "addresses in memory, in messages of libraries"),
    (
        r'(?<=": )(?:0\.0000\d+|[0-9.]+e-\d+)|(?<=":)(?:0\.0000\d+|[0-9.]+e-\d+)',
        _number,
        "small numbers, which the two writers of JSON write differently: 1.95e-06, 1.95e-6",
    ),
    (
        r"(?<![\w.])-?\d+\.\d{13,}(?![\w.])",
        _rounded,
        "the last digits of a float, which differ between processors",
    ),
    (re.escape(f'"{__version__}"'), '"VERSION"', "the version of the harness, in JSON"),
    (rf"(?<=harness ){re.escape(__version__)}$", "VERSION", "the version of the harness"),
)

_COMPILED = [(re.compile(pattern, re.M), replacement) for pattern, replacement, _ in RULES]


def normal(text: str, folders: Mapping[Path, str]) -> str:
    """Return a text without what may differ. `folders`: the name to write for each folder of this machine."""
    named = {**folders, Path(sys.prefix): "VENV", ROOT: "ROOT"}
    for folder, name in sorted(named.items(), key=lambda entry: -len(str(entry[0]))):
        text = text.replace(str(folder), name)
    for pattern, replacement in _COMPILED:
        text = pattern.sub(replacement, text)
    return text


def content(path: Path, folders: Mapping[Path, str]) -> str:
    """Return the normal text of a file; that of a `.gz` file unpacked."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return normal(data.decode(), folders)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
