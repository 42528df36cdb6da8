"""Results on a full disk."""

from pathlib import Path

import pytest

from harness.errors import FormatError
from harness.report.results import ResultsWriter
from harness.scenario.outcome import Observation, Outcome

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="the system has no device that is full")
def test_failed_write_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    outcome = Outcome("a", "b", "m", "sherma", "x", Observation(), "passed", 1.0)
    said = r"cannot write the report .*results\.jsonl: No space left on device"
    with ResultsWriter(tmp_path) as writer:
        assert writer._file is not None
        writer._file.close()
        writer.path.unlink()
        writer.path.symlink_to(FULL)
        writer._file = FULL.open("wb")
        with pytest.raises(FormatError, match=said):
            writer.add(outcome)
    assert not (tmp_path / "summary.json").exists()
