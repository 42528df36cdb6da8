"""Accepted values in generated files of every style of YAML: every other byte stays, and the scenarios then pass."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cli.main import cli
from tests.authoring.suites import generated


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, prog_name="harness")


@settings(max_examples=60, derandomize=True, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_accepted_values_leave_every_other_byte(seed: int) -> None:
    suite: Any = generated(seed)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        file = suite.write(Path(folder))
        assert invoke("run", ".", "-q").exit_code in (0, 1)

        done = invoke("accept", "--yes")

        assert done.exit_code == 0, done.output
        suite.new_parts(file.read_bytes())
        assert invoke("run", ".", "-q").exit_code == 0
