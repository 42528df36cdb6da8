"""Type checkers accept how users write tests, and refuse wrong uses of the public API."""

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WRONG = {
    number
    for number, line in enumerate((HERE / "refused.py").read_text(encoding="utf-8").splitlines(), start=1)
    if line.endswith("# error")
}


def test_mypy_accepts_right_uses_and_refuses_each_wrong_one(tmp_path: Path) -> None:
    # One run for both files: most of its time is for the imports, which the cache of `make types` has.
    files = [str(HERE / name) for name in ("accepted.py", "refused.py")]
    # In a process of its own: mypy raises the recursion limit of the one that it runs in.
    options = ["--strict", "--config-file", str(ROOT / "pyproject.toml"), "--no-error-summary"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    said, failed = done.stdout, done.stderr
    found = [(name, int(line)) for name, line in re.findall(r"(\w+\.py):(\d+): error", said)]
    assert not failed, failed
    assert [line for name, line in found if name == "accepted.py"] == [], said
    assert len(WRONG) >= 20
    assert {line for name, line in found if name == "refused.py"} == WRONG, said
