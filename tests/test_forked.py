"""Processes of the fork server behave like those of `subprocess`, for their parent and for the script."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forked

TELLS = """\
import atexit, os, sys
atexit.register(print, "at the end", flush=True)
print(sys.argv[1:], os.environ["TOLD"], os.getcwd(), __name__, sys.stdin.read())
print("an error", file=sys.stderr)
sys.exit(7)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "tells.py"
    path.write_text(TELLS, encoding="utf-8")
    return path


def test_a_process_has_arguments_streams_an_environment_a_folder_and_an_exit_code(
    script: Path, tmp_path: Path
) -> None:
    pipe = subprocess.PIPE
    process = forked.Process(
        [script, "one", "two"], stdin=pipe, stdout=pipe, stderr=pipe, cwd=tmp_path, env={"TOLD": "Grüße"}
    )
    out, err = process.communicate("asked", timeout=60)
    assert out == f"['one', 'two'] Grüße {tmp_path} __main__ asked\nat the end\n"
    assert (err, process.returncode) == ("an error\n", 7)


def test_a_process_can_be_killed_and_its_exit_code_is_the_signal(script: Path) -> None:
    with forked.Process([script], stdin=subprocess.PIPE, env={"TOLD": ""}) as process:
        assert process.poll() is None
        process.kill()
        assert process.wait(60) == -signal.SIGKILL


def test_variables_that_python_reads_only_at_startup_are_refused(script: Path) -> None:
    with pytest.raises(ValueError, match="PYTHONHASHSEED: only the start of Python reads it"):
        forked.run([script], env={"PYTHONHASHSEED": "4711"})


def test_other_programs_start_a_process_with_the_command_line(script: Path) -> None:
    done = subprocess.run(
        forked.command(script, "one"),
        input="asked",
        capture_output=True,
        text=True,
        env={"TOLD": "x"},
        check=False,
    )
    assert done.stdout.startswith("['one'] x ")
    assert (done.stderr, done.returncode) == ("an error\n", 7)


def test_processes_share_no_state(tmp_path: Path) -> None:
    path = tmp_path / "changes.py"
    path.write_text("import harness\nprint(hasattr(harness, 'mark'))\nharness.mark = 1\n")
    assert [forked.run([path]).stdout for _ in range(2)] == ["False\n", "False\n"]


@pytest.mark.parametrize(
    "end",
    [
        "sys.exit()",
        "sys.exit(300)",
        "sys.exit('no')",
        "raise KeyboardInterrupt",
        "threading.Timer(0.01, print, ['later']).start()",
        "atexit.register(print, 'at the end')",
        "print('not said'); os.close(1)",
    ],
)
def test_a_script_ends_as_with_python_itself(tmp_path: Path, end: str) -> None:
    path = tmp_path / "ends.py"
    path.write_text(f"import atexit, os, sys, threading\n{end}\n", encoding="utf-8")
    env = {**os.environ, "PYTHONUNBUFFERED": ""}
    of_python = subprocess.run([sys.executable, path], env=env, capture_output=True, text=True, check=False)
    done = forked.run([path], env=env)
    assert (done.returncode, done.stdout) == (of_python.returncode, of_python.stdout)
    assert done.stderr.splitlines()[-1:] == of_python.stderr.splitlines()[-1:]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_failing_multiprocessing_process_prints_its_traceback(tmp_path: Path, method: str) -> None:
    path = tmp_path / "fails.py"
    path.write_text(
        "import multiprocessing\n"
        "def fail(): raise ValueError('it broke')\n"
        "if __name__ == '__main__':\n"
        f"    process = multiprocessing.get_context('{method}').Process(target=fail)\n"
        "    process.start(); process.join(); print(process.exitcode)\n"
    )
    done = forked.run([path])
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert "in fail" in done.stderr
    assert done.stderr.endswith("ValueError: it broke\n")


def test_multiprocessing_code_that_does_not_compile_prints_its_error(tmp_path: Path) -> None:
    path = tmp_path / "begins.py"
    path.write_text(
        "import os, sys\n"
        "from multiprocessing import util\n"
        "pid = util.spawnv_passfds(sys.executable, [sys.executable, '-c', 'no code'], [])\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    done = forked.run([path])
    assert done.stdout == "1\n"
    assert done.stderr.endswith("SyntaxError: invalid syntax\n")


def test_objects_of_the_parent_close_no_descriptors_of_a_multiprocessing_process(tmp_path: Path) -> None:
    path = tmp_path / "collects.py"
    path.write_text(
        "import os, sys\n"
        "from multiprocessing import util\n"
        "files = [open(os.devnull) for _ in range(20)]\n"
        "code = 'import os, __main__; ends = os.pipe(); del __main__.files[:]; os.write(ends[1], b\"x\")'\n"
        "pid = util.spawnv_passfds(sys.executable, [sys.executable, '-c', code], [])\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    done = forked.run([path])
    assert (done.stdout, done.stderr) == ("0\n", "")
