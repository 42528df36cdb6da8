"""The golden texts: what every command writes to the terminal and into files, byte for byte.

`goldens/cases.py` lists the cases: the commands of each, and which of the files they write count. The text of a case
is `goldens/expected/NAME.txt`. It may change only with an intended change of what users read.
`python -m tests.test_goldens` rewrites all of them, `python -m tests.test_goldens NAME…` some. What may differ from
run to run, such as real times, is listed in `goldens/normal.py`.

`python -m tests.test_goldens --all FOLDER [SUITE…]` freezes much more, outside of the project: everything that the
commands say about `scenarios/`, and about further suites. It writes the files that are not yet in FOLDER, and
compares the others.
"""

from __future__ import annotations

import sys
from difflib import unified_diff
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.goldens.cases import CASES
from tests.goldens.session import Case, transcript
from tests.goldens.whole import compare_all

EXPECTED = Path(__file__).parent / "goldens/expected"
MAX_DIFF_LINES = 200


def difference(name: str, expected: str, found: str) -> str:
    """Return a unified diff, shortened if it is very long; empty if the texts are equal."""
    lines = list(
        unified_diff(
            expected.splitlines(), found.splitlines(), f"{name} (frozen)", f"{name} (now)", lineterm="", n=2
        )
    )
    rest = len(lines) - MAX_DIFF_LINES
    return "\n".join(lines[:MAX_DIFF_LINES] + ([f"… and {rest} more lines"] if rest > 0 else []))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_output_is_unchanged(case: Case, tmp_path: Path) -> None:
    file = EXPECTED / f"{case.name}.txt"
    expected = file.read_text(encoding="utf-8") if file.exists() else ""
    found = transcript(case, tmp_path)
    if found != expected:
        text = difference(case.name, expected, found)
        pytest.fail(f"{text}\n\nIf this is intended: python -m tests.test_goldens {case.name}", pytrace=False)


def test_each_golden_text_belongs_to_a_case() -> None:
    assert {path.stem for path in EXPECTED.iterdir()} == {case.name for case in CASES}


def rewrite(names: list[str]) -> None:
    """Rewrite the golden texts of these cases, or of all, and remove those without a case."""
    if unknown := set(names) - {case.name for case in CASES}:
        sys.exit(f"no case {', '.join(sorted(unknown))}")
    for case in CASES:
        if case.name in names or not names:
            with TemporaryDirectory() as folder:
                EXPECTED.joinpath(f"{case.name}.txt").write_text(
                    transcript(case, Path(folder)), encoding="utf-8"
                )
    for path in EXPECTED.iterdir():
        if path.stem not in {case.name for case in CASES}:
            path.unlink()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--all"]:
        sys.exit(compare_all(Path(sys.argv[2]), [Path(suite) for suite in sys.argv[3:]], difference))
    rewrite(sys.argv[1:])
