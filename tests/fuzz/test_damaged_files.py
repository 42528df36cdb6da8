"""One `harness run` of damaged files: each has a result or a located error, whatever the others are."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.main import cli
from tests.fuzz.damage import write_cases
from tests.fuzz.test_mutations import CASES, LOCATED, SCENARIOS, at_most


@pytest.mark.parametrize("dialect", ["sherma", "agentspec", "yagra", "loki", "leafmesh"])
def test_each_damaged_file_of_a_run_has_a_result_or_a_located_error(
    dialect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(SCENARIOS / dialect, tmp_path / dialect)
    write_cases(tmp_path / dialect, range(CASES))
    monkeypatch.chdir(tmp_path)
    files = sorted(path.as_posix() for path in Path(dialect).rglob("damaged_*.scenario.yaml"))
    with at_most(60 + 10 * CASES):
        done = CliRunner().invoke(cli, ["run", *files, "--quiet", "--report", "report"])
    assert "harness broke" not in done.output, done.output
    # Not `splitlines`: texts in the results may have other line breaks.
    lines = [json.loads(line) for line in Path("report/results.jsonl").read_text("utf-8").strip().split("\n")]
    assert {line["id"].partition("::")[0] for line in lines} == set(files)
    for line in lines:
        error = line["error"] or {}
        assert error.get("code") != "harness-broke", f"{line['id']}: {error}"
        assert line["status"] != "invalid" or LOCATED.search(error["where"]), f"{line['id']}: {error}"
