import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

MANY = ["{name: again and again, repeat: 100000, expect: {state: {count: 1}}}", "{name: afterwards}"]


@pytest.fixture
def begun(installed: str) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Begins a run that would go on for minutes, and waits for its third line."""
    with ExitStack() as processes:

        def process(*args: str) -> subprocess.Popen[str]:
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            popen = subprocess.Popen([installed, "run", ".", *args], **pipes, text=True, encoding="utf-8")
            processes.enter_context(popen)
            processes.callback(popen.kill)
            assert popen.stdout is not None
            for _ in range(3):
                assert popen.stdout.readline()
            return popen

        yield process


@pytest.mark.parametrize("name", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_reports_and_writes_what_is_done_and_leaves_with_3(suite, begun, name):
    suite(*MANY)
    process = begun()
    process.send_signal(name)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "of 100001 runs" in stdout
    assert stderr.startswith("interrupted")
    written = Path("reports/latest/results.jsonl").read_text().splitlines()
    assert len(written) >= 3
    assert all(json.loads(line)["passed"] for line in written)
    assert json.loads(Path("reports/latest/summary.json").read_text())["total"]["runs"] == len(written)


@pytest.mark.parametrize("args", [[], ["--json", "-"]], ids=["text", "json"])
def test_a_reader_that_goes_away_ends_the_run_without_a_word(suite, begun, args):
    suite(*MANY)
    process = begun(*args)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    told = process.stderr.read()
    assert process.wait(timeout=60) == 3
    assert "Traceback" not in told
    assert "BrokenPipe" not in told
    assert Path("reports/latest/summary.json").exists()


def test_an_interrupt_before_anything_ran_is_told_in_a_word(invoke, monkeypatch):
    def interrupted() -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("harness.cli.schema.schema_text", interrupted)
    result = invoke("schema")
    assert (result.exit_code, result.stderr) == (3, "interrupted\n")
