"""The secrets of `tests.secrets.attack` are exposed in all known ways, but are in nothing written or shown."""

from __future__ import annotations

import gzip
import json
import signal
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from tests.recording.safety import Done, Project, said
from tests.secrets import attack, forms
from tests.world.loopback import CannedReply, ReceivedRequest, answering

LOUD = ("-p", "no:cacheprovider", "--log-level=DEBUG", "-o", "log_cli=true", "--log-file=log.txt",
        "--log-file-level=DEBUG", "--junitxml=junit.xml", "-o", "junit_logging=all", "-vv")  # fmt: skip
COMMANDS = {
    "run": ("harness", "run", "scripted.scenario.yaml", "-j", "2", "--report", "reports/run"),
    "record": ("harness", "record", "recorded.scenario.yaml", "--report", "reports/record"),
    "replay": ("harness", "run", "recorded.scenario.yaml", "--report", "reports/replay"),
    "pytest": ("pytest", "scripted.scenario.yaml", "--harness-report=reports/pytest", *LOUD),
    "pytest -s": (
        "pytest", "scripted.scenario.yaml", "test_locals.py", "-s", "--showlocals", "-vv", "-p", "no:cacheprovider",
    ),
    "collect": ("pytest", "broken.scenario.yaml", "-p", "no:cacheprovider"),
}  # fmt: skip
# They run nothing, and so need no process of their own.
READERS = {
    "validate": ("validate", "broken.scenario.yaml"),
    "export": ("export", "reports/record", "--content", "--file", "spans.jsonl"),
    "trace": ("trace", "recorded.scenario.yaml::say", "reports/record", "-v"),
    "failure": ("trace", "scripted.scenario.yaml::tell", "reports/run", "--json"),
}


def calls(tool: str) -> CannedReply:
    """Return a reply of a model that calls a tool."""
    reply = said("")
    call = {"id": "c1", "type": "function", "function": {"name": tool, "arguments": "{}"}}
    message = reply.json["choices"][0]["message"] | {"tool_calls": [call]}
    reply.json["choices"][0] |= {"message": message, "finish_reason": "tool_calls"}
    return reply


def served(project: Project) -> Done:
    """Ask a server for all that is planted, in the addresses and bodies of requests."""
    process = project.start("harness", "serve", "served.scenario.yaml")
    assert process.stdout is not None
    url = process.stdout.readline().strip().removeprefix("OPENAI_BASE_URL=")
    with httpx.Client(trust_env=False) as client:
        for one in forms.PLANTED:
            body = {"model": "m", "messages": [{"role": "user", "content": one.text}]}
            client.post(f"{url}/chat/completions", json=body, headers={"x-note": one.form})
            known = quote(one.secret) if one.variable else "none"
            client.get(f"{url}/{known}", params={"token": one.secret})
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return Done(process.returncode, out, err)


@dataclass
class AttackResult:
    """The results of the commands, the files they left, and the requests that the server received."""

    done: dict[str, Done]
    written: dict[str, bytes]
    heard: bytes

    def leaks(self) -> dict[str, set[str]]:
        """Return the secrets found in the output of each command and in each file."""
        shown = {name: done.all.encode() for name, done in self.done.items()}
        found = {name: attack.leaks(data) for name, data in {**shown, **self.written}.items()}
        return {name: leaks for name, leaks in found.items() if leaks}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> AttackResult:
    project = Project(tmp_path_factory.mktemp("attack"), attack.ENVIRONMENT)
    own = attack.files(project.folder)
    for name, text in own.items():
        project.write(name, text)
    heard: list[bytes] = []

    def echo(asked: ReceivedRequest) -> CannedReply:
        heard.append(asked.body)
        if asked.path == "/say":
            return CannedReply(text=asked.body.decode())
        if asked.path.startswith("/v1"):
            return said("done") if "tool_call_id" in asked.body.decode() else calls("open_vault")
        return CannedReply(text="thank you")

    with answering(echo) as url:
        env = {"API_URL": url, "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "sk-none-4711"}
        done = {name: project.run(*command, **env) for name, command in COMMANDS.items()}
    done["serve"] = served(project)
    done |= {name: project.harness(*args) for name, args in READERS.items()}
    files = {path.relative_to(project.folder).as_posix(): path for path in project.folder.rglob("*.*")}
    written = {
        name: path.read_bytes()
        for name, path in files.items()
        if path.is_file() and name not in own and path.suffix != ".pyc"
    }
    return AttackResult(done, written, b"\n".join(heard))


def test_all_commands_run_and_expose_the_secrets(result: AttackResult) -> None:
    done = result.done
    assert {name: each.code for name, each in done.items()} == {
        "run": 1, "record": 0, "replay": 0, "pytest": 1, "pytest -s": 1,
        "validate": 2, "collect": 2, "export": 0, "trace": 0, "failure": 0, "serve": 0,
    }, done["replay"].all  # fmt: skip
    said = {"warned of", "debug", "mapping", "stdout", "starting with", "Exception in thread"}
    assert {text for text in said if text not in done["pytest"].all} == set()
    assert {text for text in said - {"debug"} if text not in done["run"].all} == set()
    assert {"junit.xml", "log.txt", "cassettes/send/http.yaml"} <= set(result.written)
    assert {"reports/run/report.html", "reports/run/traces/1.jsonl.gz"} <= set(result.written)
    assert len(result.heard.splitlines()) >= 12


def test_no_secret_is_in_any_output_or_file(result: AttackResult) -> None:
    assert result.leaks() == {}, sorted(set().union(*result.leaks().values()))


def test_harmless_values_are_kept(result: AttackResult) -> None:
    first = json.loads(result.written["reports/run/results.jsonl"].splitlines()[0])
    assert (first["scenario"], first["path"], first["state"]["told"][0]) == (
        "leak", ["leak"], "<secret:ACME_THING>",
    )  # fmt: skip
    assert first["state"]["told"][4] == "postgres://%3Csecret%3Auserinfo%3E@db.example/app"


def test_the_search_reads_traces_in_files_and_in_the_page() -> None:
    trace = gzip.compress(attack.SECRETS["state"].encode())
    assert attack.leaks(trace) == {"state"}
    packed = b64encode(trace).decode()
    assert attack.leaks(f'<script type="text/plain" id="trace-0">{packed}</script>') == {"state"}


def test_the_search_finds_a_secret(tmp_path: Path) -> None:
    assert attack.leaks(attack.SECRETS["gzip"]) == {"gzip"}
