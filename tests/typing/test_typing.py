"""Type checkers accept how users write tests, and refuse wrong uses of the public API."""

import re
from pathlib import Path

from mypy import api

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
    said, failed, _ = api.run(
        ["--strict", "--config-file", str(ROOT / "pyproject.toml"), "--no-error-summary", *files]
    )
    found = [(name, int(line)) for name, line in re.findall(r"(\w+\.py):(\d+): error", said)]
    assert not failed, failed
    assert [line for name, line in found if name == "accepted.py"] == [], said
    assert len(WRONG) >= 20
    assert {line for name, line in found if name == "refused.py"} == WRONG, said
