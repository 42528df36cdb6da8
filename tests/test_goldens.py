"""The golden texts: what every command writes to the terminal and into files, byte for byte.

`goldens/cases.py` lists the cases: the commands of each, and which of the files they write count. The text of a case
is `goldens/expected/NAME.txt`. It may change only with an intended change of what users read.
`python -m tests.test_goldens` rewrites all of them, `python -m tests.test_goldens NAME…` some. What may differ from
run to run, such as real times, is listed in `goldens/normal.py`.

`make test` leaves the slow cases out. `python -m tests.test_goldens --check [NAME…]` compares all of them.

`python -m tests.test_goldens --all FOLDER [SUITE…]` freezes much more, outside of the project: everything that the
commands say about `scenarios/`, and about further suites. It writes the files that are not yet in FOLDER, and
compares the others.

The texts are the same under any hash seed: the variable FORKED_HASH_SEED sets that of the commands.
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


def difference_of(case: Case, folder: Path) -> str:
    """Run a case in an empty folder, and return the difference from its golden text; empty if there is none."""
    file = EXPECTED / f"{case.name}.txt"
    expected = file.read_text(encoding="utf-8") if file.exists() else ""
    return difference(case.name, expected, transcript(case, folder))


@pytest.mark.parametrize("case", [case for case in CASES if not case.slow], ids=lambda case: case.name)
def test_the_output_is_unchanged(case: Case, tmp_path: Path) -> None:
    if text := difference_of(case, tmp_path):
        pytest.fail(f"{text}\n\nIf this is intended: python -m tests.test_goldens {case.name}", pytrace=False)


def test_each_golden_text_belongs_to_a_case() -> None:
    assert {path.stem for path in EXPECTED.iterdir()} == {case.name for case in CASES}


def named(names: list[str]) -> list[Case]:
    """Return the cases of these names, or all."""
    if unknown := set(names) - {case.name for case in CASES}:
        sys.exit(f"no case {', '.join(sorted(unknown))}")
    return [case for case in CASES if case.name in names or not names]


def check(cases: list[Case]) -> int:
    """Print the differences of these cases from their golden texts, and return the exit code: 1 if there are any."""
    differing = []
    for case in cases:
        with TemporaryDirectory() as folder:
            if text := difference_of(case, Path(folder)):
                print(text)
                differing.append(case.name)
    print(f"{len(cases)} cases, {len(differing)} differ", *differing, sep="\n  ")
    return 1 if differing else 0


def rewrite(cases: list[Case]) -> None:
    """Rewrite the golden texts of these cases, and remove those without a case."""
    for case in cases:
        with TemporaryDirectory() as folder:
            text = transcript(case, Path(folder))
        EXPECTED.joinpath(f"{case.name}.txt").write_text(text, encoding="utf-8")
    for path in EXPECTED.iterdir():
        if path.stem not in {case.name for case in CASES}:
            path.unlink()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--all"]:
        sys.exit(compare_all(Path(sys.argv[2]), [Path(suite) for suite in sys.argv[3:]], difference))
    elif sys.argv[1:2] == ["--check"]:
        sys.exit(check(named(sys.argv[2:])))
    rewrite(named(sys.argv[1:]))
