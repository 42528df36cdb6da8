"""Saves a cassette again and again, each time killed one step later, and prints what is found afterwards.

Run with a folder to work in; prints a line of JSON for each kill: what was loaded, which files were left over, and
what was loaded after saving once more.
"""

import json
import os
import shutil
import signal
import sys
from itertools import count
from pathlib import Path
from typing import Any

from harness.interception.messages import Request, Response
from harness.recording.folder import CassetteFolder
from harness.recording.interactions import Exchange, Interaction, Recording


def recording(text: Any, mcp: Any = False) -> Any:
    http = (Interaction(Request("POST", "https://a.example/", {}, text.encode()), Response(200)),)
    return Recording(http, {"w": (Exchange({"method": text}),)} if mcp else {})


OLD = {1: recording("old", mcp=True), 2: recording("both"), 3: recording("old")}
NEW = {1: recording("new"), 2: recording("both", mcp=True), 4: recording("new")}
STEPS = ("os.rename", "os.remove", "os.mkdir", "os.rmdir")


def save_and_die(folder: Any, step: Any) -> None:
    """Save, and be killed before the file operation after this number of them."""
    seen = 0

    def hook(event: Any, args: Any) -> None:
        nonlocal seen
        if event in STEPS or (event == "open" and args[2] & (os.O_WRONLY | os.O_RDWR)):
            seen += 1
            if seen > step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    folder.save(NEW)
    os._exit(0)


def loaded(folder: Any) -> Any:
    """Return `old`, `new`, or a description of what was loaded."""
    recordings = {number: folder.load(number) for number in folder.numbers()}
    said = {
        number: (recording.http[0].request.body, sorted(recording.mcp))
        for number, recording in recordings.items()
    }
    for name, expected in (("old", OLD), ("new", NEW)):
        if said == {
            number: (recording.http[0].request.body, sorted(recording.mcp))
            for number, recording in expected.items()
        }:
            return name
    return repr(said)


def main(root: Any) -> None:
    os.fsync = lambda fd: None  # it guards against a loss of power, and a killed process is none
    old = CassetteFolder(root, "old")
    old.save(OLD)
    (old.path / "recording-2").rename(old.path / "take-2")  # as older cassettes call it
    for step in count():
        folder = CassetteFolder(root, f"step-{step}")
        shutil.copytree(old.path, folder.path)
        child = os.fork()
        if not child:
            save_and_die(folder, step)
        _, status = os.waitpid(child, 0)
        found = loaded(folder)
        folder.save(NEW)
        left = sorted(
            p.name
            for p in folder.path.rglob("*")
            if p.suffix not in (".yaml", "") or p.name in ("take-2", "recording-3")
        )
        print(json.dumps({"loaded": found, "left": left, "again": loaded(folder)}), flush=True)
        if not os.WIFSIGNALED(status):  # it came to its end
            sys.exit(os.waitstatus_to_exitcode(status))


main(Path(sys.argv[1]))
