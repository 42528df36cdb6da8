"""A project for tests: a model on loopback, scenarios that call it, and the installed commands."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from select import select
from typing import Any

from click.testing import CliRunner

from harness.cli.main import cli
from tests.forked import Process
from tests.world.loopback import CannedReply, ReceivedRequest, answering

BIN = Path(sys.executable).parent

# What a command needs of the environment, and nothing that belongs to whoever runs the tests.
PLAIN = {
    "PATH": f"{BIN}{os.pathsep}{os.defpath}",
    "LANG": "C.UTF-8",
    "COLUMNS": "200",
    "NO_PROXY": "127.0.0.1",
}

PARROT = """\
manifest_version: 1
default_llm: {id: m}
llms: [{id: m, version: "1.0.0", provider: openai, model_name: parrot-1}]
prompts: [{id: manner, version: "1.0.0", instructions_path: manner.txt}]
agents:
  parrot:
    state: {fields: [{name: messages, type: list, default: []}]}
    graph:
      entry_point: say
      nodes:
        - name: say
          type: call_llm
          args:
            prompt:
              - {role: system, content: '"MANNER" + prompts["manner"]["instructions"]'}
              - {role: messages, content: state.messages}
            state_updates: {messages: '[llm_response]'}
      edges: []
"""

ASKING = """\
manifest_version: 1
agents:
  asking:
    state: {fields: [{name: messages, type: list, default: []}]}
    graph:
      entry_point: ask
      nodes: [{name: ask, type: interrupt, args: {value: '"Which colour?"'}}]
      edges: []
"""


@dataclass(frozen=True)
class Done:
    """The result of a command."""

    code: int
    out: str
    err: str

    @property
    def all(self) -> str:
        return self.out + self.err


@dataclass
class Project:
    """A folder with scenarios, in which commands are run with the environment `env`."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def parrot(
        self,
        *names: str,
        file: str = "p.scenario.yaml",
        more: str = "",
        expect: str = "{}",
        manner: str = "Be nice.",
    ) -> None:
        """Write scenarios that call the model once, each with a cassette of its name."""
        self.write("parrot.yaml", PARROT.replace("MANNER", manner))
        self.write("manner.txt", "Repeat what you hear.")
        listed = [
            f"  - {{name: {name}, cassette: {name}, input: {name}, expect: {expect}{more}}}\n"
            for name in names
        ]
        self.write(file, "harness: 1\nmanifest: parrot.yaml\nscenarios:\n" + "".join(listed))

    def harness(self, *args: str, **env: str | None) -> Done:
        """Run `harness` with these arguments in this process. A variable of `env` that is None is unset."""
        kept = self.environment(**env)
        given = {**{name: None for name in os.environ if name not in kept}, **kept}
        with chdir(self.folder):
            done = CliRunner().invoke(cli, args, prog_name="harness", env=given)
        return Done(done.exit_code, done.stdout, done.stderr)

    def run(self, command: str | Path, *args: str, **env: str | None) -> Done:
        """Run an installed command or a script in a child process to its end."""
        process = self.start(command, *args, **env)
        out, err = process.communicate(timeout=300)
        return Done(process.returncode, out, err)

    def start(self, command: str | Path, *args: str, **env: str | None) -> Process:
        """Start an installed command or a script in a child process."""
        return Process(
            [command, *args],
            cwd=self.folder,
            env=self.environment(**env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )

    def environment(self, **env: str | None) -> dict[str, str]:
        merged = {**PLAIN, "HOME": str(self.folder), **self.env, **env}
        return {name: value for name, value in merged.items() if value is not None}

    def record(self, *args: str, **env: str | None) -> Done:
        return self.harness("record", *(args or (".",)), **env)

    def replay(self, *args: str, **env: str | None) -> Done:
        """Run `harness run` without keys and without a terminal."""
        nowhere = {"OPENAI_API_KEY": None, "ANTHROPIC_API_KEY": None, "OPENAI_BASE_URL": None}
        return self.harness("run", *(args or (".",)), **{**nowhere, **env})

    def results(self, folder: str = "reports/latest") -> dict[str, dict[str, Any]]:
        """Return the lines of results by scenario."""
        lines = (self.folder / folder / "results.jsonl").read_text(encoding="utf-8").splitlines()
        return {line["scenario"]: line for line in map(json.loads, lines)}

    def digests(self) -> dict[str, str]:
        return {name: line["digest"] for name, line in self.results().items()}

    def verdicts(self) -> dict[str, str]:
        return {name: line["verdict"] for name, line in self.results().items()}

    def cassettes(self) -> dict[str, bytes]:
        """Return the files of all cassettes by path, without the calls of unfinished recordings."""
        root = self.folder / "cassettes"
        found = sorted(path for path in root.rglob("*") if path.is_file() and ".unfinished" not in path.parts)
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


@dataclass
class Model:
    """An OpenAI model that echoes its input. `before` is called with each request before the answer."""

    before: Callable[[str], object] = str
    heard: list[str] = field(default_factory=list)

    def __call__(self, asked: ReceivedRequest) -> CannedReply:
        text: str = asked.json["messages"][-1]["content"]
        self.heard.append(text)
        self.before(text)
        return said(text)


def said(text: str) -> CannedReply:
    """Return a reply of OpenAI's chat completions."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    whole = {"id": "c1", "object": "chat.completion", "created": 1, "model": "parrot-1"}
    return CannedReply(json={**whole, "choices": [choice], "usage": usage})


@contextmanager
def parrots(folder: Path, model: Callable[[ReceivedRequest], CannedReply] | None = None) -> Iterator[Project]:
    """Yield a project whose model is running."""
    with answering(model or Model()) as url:
        yield Project(folder, {"OPENAI_API_KEY": "sk-parrot-4711", "OPENAI_BASE_URL": f"{url}/v1"})


class Terminal:
    """A command at its own terminal, at which a user types."""

    def __init__(self, project: Project, command: str, *args: str, **env: str | None) -> None:
        self._ours, theirs = pty.openpty()
        self._process = Process(
            [BIN / command, *args],
            cwd=project.folder,
            env={**project.environment(**env), "TERM": "dumb"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            at_terminal=True,
        )
        os.close(theirs)
        self._shown = b""
        self._ctrl_c = False

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._ours)

    def type_after(self, shown: str, line: str, end: str = "\n") -> None:
        """Wait until this text is shown, and type a line."""
        self._wait_for(shown)
        os.write(self._ours, (line + end).encode())
        self._ctrl_c = "\x03" in line + end

    def signal_after(self, shown: str, *numbers: int) -> None:
        """Wait until this text is shown, and send signals to the command."""
        self._wait_for(shown)
        for number in numbers:
            self._process.send_signal(number)

    def _wait_for(self, shown: str) -> None:
        seen = len(self._shown)
        while shown.encode() not in self._shown[seen:]:
            if not self._read():
                raise AssertionError(f"it ended without asking:\n{self._shown.decode()}")

    def end(self) -> tuple[str, int]:
        """Return all that was shown, after the end of the command, and the exit code."""
        while self._read():
            pass
        return self._shown.decode("utf-8", "replace"), self._process.wait(60)

    def _read(self) -> bytes:
        ready: list[int] = []
        while self._ctrl_c and not ready:
            # Python misses Ctrl-C in the instant between its last check and the system call that waits for input.
            ready, _, _ = select([self._ours], [], [], 5)
            if not ready:
                os.write(self._ours, b"\x03")
        ready = ready or select([self._ours], [], [], 60)[0]
        try:
            got = os.read(self._ours, 65536) if ready else b""
        except OSError:  # Linux says so when the other side has closed it
            got = b""
        self._shown += got
        return got
