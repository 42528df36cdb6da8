"""Scripts are real child processes with limits of time, output and access."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harness.graph.effects import ScriptCall
from harness.graph.world import Answer
from harness.time.clock import VirtualTimeLoop
from harness.time.real import real
from harness.world import scripts
from harness.world.scripted import ScriptedWorld
from harness.world.scripts import NOT_CONFINED, ScriptFailed, Scripts, can_confine
from tests.world.stubs import world_spec

confined = pytest.mark.skipif(
    not can_confine(), reason="this system gives processes no namespaces of their own"
)


def bash(text: str, **more: Any) -> ScriptCall:
    return ScriptCall(name="script", argv=["bash", "-c", text], **{"read": str, **more})


def python(text: str, **more: Any) -> ScriptCall:
    return ScriptCall(name="script", argv=[sys.executable, "-c", text], **{"read": str, **more})


def run(call: ScriptCall, scripts: Scripts | None = None) -> Any:
    """Return the answer to the call, and its virtual duration in seconds."""

    async def timed() -> tuple[Any, float]:
        loop = asyncio.get_running_loop()
        answer = await (scripts or Scripts()).run(call)
        return answer, loop.time()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(timed())


def test_the_answer_is_what_is_read_of_standard_output() -> None:
    call = ScriptCall(name="script", argv=["bash", "-c", """echo '{"a": [1]}'; echo noise >&2"""])
    assert run(call)[0] == {"a": [1]}


def test_a_script_has_its_arguments_folder_input_and_variables(tmp_path: Path) -> None:
    call = bash('echo "$0 $1 $(pwd) $(cat) $NAME"', cwd=tmp_path, stdin="in", env={"NAME": "Ada"})
    call = ScriptCall(**{**vars(call), "argv": [*call.argv, "zero", "one"]})
    assert run(call)[0].split() == ["zero", "one", str(tmp_path), "in", "Ada"]


def test_a_script_has_no_other_variables_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "sk-secret")
    names = set(json.loads(run(python("import json, os; print(json.dumps(list(os.environ)))"))[0]))
    assert names - {"LC_CTYPE", "PWD", "SHLVL", "_", "OLDPWD"} <= {"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL"}


def test_a_text_can_come_in_a_file_that_is_removed_at_the_end() -> None:
    scripts = Scripts()
    path, text = run(bash('echo "$STATE"; cat "$STATE"', files={"STATE": "x" * 40_000}), scripts)[0].split()
    assert (len(text), Path(path).exists()) == (40_000, True)
    scripts.close()
    assert not Path(path).exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("echo out; echo broken >&2; exit 3", "the script exited with code 3: broken"),
        ("exit 4", "the script exited with code 4"),
        ("no-such-program", "the script exited with code 127: "),
    ],
)
def test_another_exit_code_than_0_fails(text: str, message: str) -> None:
    with pytest.raises(ScriptFailed) as failure:
        run(bash(text))
    assert str(failure.value).startswith(message)


def test_output_that_cannot_be_read_fails_the_call() -> None:
    with pytest.raises(json.JSONDecodeError):
        run(bash("echo no json", read=json.loads))


def test_a_missing_folder_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(ScriptFailed, match=r"cannot be started.*nowhere"):
        run(bash("true", cwd=tmp_path / "nowhere"))


def test_a_script_that_takes_too_long_is_killed_with_its_children(tmp_path: Path) -> None:
    with pytest.raises(ScriptFailed, match=r"timed out after 0\.3 s"):
        run(bash(f"bash -c 'exec -a {tmp_path}/child sleep 1000' & wait", timeout_s=0.3))
    assert not survivors(tmp_path)


def test_children_that_a_script_leaves_behind_end_with_it(tmp_path: Path) -> None:
    assert run(bash(f"exec -a {tmp_path}/left sleep 1000 & echo done", timeout_s=100))[0] == "done\n"
    assert not survivors(tmp_path)


@confined
def test_even_children_that_left_the_process_group_end_with_the_script(tmp_path: Path) -> None:
    assert (
        run(bash(f"setsid bash -c 'exec -a {tmp_path}/left sleep 1000' & echo done", timeout_s=100))[0]
        == "done\n"
    )
    assert not survivors(tmp_path)


def survivors(marker: Path) -> list[str]:
    """Return the processes with this path in their command line, after waiting for killed ones to exit."""
    deadline = real.monotonic() + 60
    while (found := running(marker)) and real.monotonic() < deadline:
        time.sleep(0.01)  # noqa: TID251
    return found


def running(marker: Path) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if str(marker).encode() in command and process.name != str(os.getpid()):
            found.append(command.decode())
    return found


def test_a_script_that_prints_too_much_is_ended() -> None:
    with pytest.raises(ScriptFailed, match="printed more than 1,000 bytes"):
        run(bash("yes", output_limit=1000, timeout_s=100))


def test_a_flood_of_standard_error_is_ended() -> None:
    with pytest.raises(ScriptFailed, match="printed more than 10,000,000 bytes"):
        run(bash("yes a line of a log that has no end >&2", timeout_s=100))


def test_standard_input_is_empty() -> None:
    assert run(bash("cat; echo done", timeout_s=100))[0] == "done\n"


def test_text_printed_before_standard_output_was_closed_is_read() -> None:
    assert run(bash("echo done; exec 1>&-; sleep 0.1", timeout_s=100))[0] == "done\n"


def test_a_script_that_closes_its_output_and_goes_on_is_killed() -> None:
    with pytest.raises(ScriptFailed, match="timed out"):
        run(bash("echo done; exec 1>&- 2>&-; sleep 1000", timeout_s=0.3))


def test_a_script_that_ignores_signals_is_killed() -> None:
    with pytest.raises(ScriptFailed, match="timed out"):
        run(bash("trap '' TERM INT HUP; sleep 1000", timeout_s=0.3))


def test_the_error_for_a_missing_program_names_it(tmp_path: Path) -> None:
    with pytest.raises(ScriptFailed) as failure:
        run(ScriptCall(name="script", argv=["no-such-program", "x"], cwd=tmp_path))
    assert str(failure.value) == "the script needs the program 'no-such-program', which is not on the PATH"


def test_a_program_may_be_in_a_node_modules_above(tmp_path: Path) -> None:
    program = tmp_path / "node_modules/.bin/only-here"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho $1\n")
    program.chmod(0o755)
    folder = tmp_path / "a/b"
    folder.mkdir(parents=True)
    assert run(ScriptCall(name="script", argv=["only-here", "x"], cwd=folder, read=str))[0] == "x\n"


@confined
def test_a_script_cannot_reach_the_network() -> None:
    text = "import socket; socket.create_connection(('127.0.0.1', 9), timeout=5)"
    with pytest.raises(ScriptFailed, match=r"Network is unreachable|Cannot assign requested address"):
        run(python(text))


def test_a_system_without_namespaces_is_warned_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.world.scripts._NAMESPACES", ("false",))
    can_confine.cache_clear()
    scripts = Scripts()
    try:
        assert run(bash("echo done"), scripts)[0] == "done\n"
        run(bash("true"), scripts)
    finally:
        can_confine.cache_clear()
    assert list(scripts.warnings) == [NOT_CONFINED]


def test_the_duration_of_a_script_passes_in_coarse_steps_of_virtual_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(bash("sleep 0.3"))[1] == 0
    monkeypatch.setattr(scripts, "STEP_S", 0.25)
    took = run(bash("sleep 0.3"))[1]
    assert took >= 0.25
    assert took % 0.25 == 0


def test_a_script_that_times_out_takes_just_its_time_out() -> None:
    async def timed() -> float:
        with pytest.raises(ScriptFailed, match="timed out"):
            await Scripts().run(bash("sleep 1000", timeout_s=0.5))
        return asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(timed()) == 0.5


def test_a_script_does_not_wait_for_the_threads_of_the_loop() -> None:
    busy = threading.Event()

    async def beside() -> Any:
        with ThreadPoolExecutor(1) as only:
            asyncio.get_running_loop().set_default_executor(only)
            only.submit(busy.wait, 60)
            try:
                return await Scripts(confined=False).run(bash("echo done", timeout_s=40))
            finally:
                busy.set()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(beside()) == "done\n"


def test_a_cancelled_call_ends_its_script(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def cancelled() -> None:
        scripts = Scripts()
        task = asyncio.ensure_future(scripts.run(bash(f"exec -a {tmp_path}/left sleep 1000")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for thread in threading.enumerate():
            if thread.name.startswith("script"):
                thread.join()
        await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(cancelled())
    assert not survivors(tmp_path)
    gc.collect()  # asyncio logs a failure that nobody asked for when it drops it
    assert not caplog.records


@pytest.mark.parametrize(("scripts", "expected"), [({}, 1), ({"script": [{"times": 1, "return": 2}]}, 2)])
def test_a_world_runs_a_script_unless_it_is_stubbed(scripts: dict[str, Any], expected: int) -> None:
    async def answer() -> Answer:
        world = ScriptedWorld(world_spec(scripts=scripts))
        try:
            return await world.answer(bash("echo 1", read=json.loads), {})
        finally:
            await world.close()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(answer()).value == expected
