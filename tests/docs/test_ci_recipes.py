"""The CI files of docs/ci, which users copy: their steps run in a git repository with a remote."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from click.testing import CliRunner

from harness.cli.main import cli
from tests import forked
from tests.manifests import COUNTER
from tests.recording.safety import Model, parrots

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "docs/ci"
GITHUB = ["github-scenarios.yml", "github-record.yml"]
SKIPPED_STEPS: Final = (
    "actions/checkout@v4",
    "actions/setup-python@v5",
    "actions/upload-artifact@v4",
    "Install",
)
"""Steps that the tests skip: third-party actions, and the installation."""

SUITE = """\
harness: 1
manifest: ../counter.yaml
scenarios:
  - {name: counts, expect: {state: {count: 1}}}
  - {name: stays, expect: {path: [add]}}
"""
WORSE = COUNTER.replace("count + 1", "count + 2")
WRONG = SUITE.replace("expect:", "expct:", 1)


HARNESS = """\
#!{python} -IS
import json, os, socket, sys

server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
status, written = os.pipe()
args = ["1" if each == "auto" else each for each in sys.argv[1:]]  # the processors belong to the tests
start = [[{harness!r}, *args], os.getcwd(), dict(os.environ), False, False]
socket.send_fds(server, [json.dumps(start).encode() + b"\\n"], [0, 1, 2, written])
os.close(written)
server.recv(32)
sys.exit(os.waitstatus_to_exitcode(int(os.read(status, 32))))
"""
"""Source of a `harness` command for shell scripts, which starts through the server of `tests.forked`."""


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a `harness` command, to be put on PATH."""
    assert forked.run(["harness", "--version"]).returncode == 0  # starts the server
    harness = tmp_path_factory.mktemp("bin") / "harness"
    address, script = str(forked.FOLDER / "socket"), str(forked.BIN / "harness")
    harness.write_text(HARNESS.format(python=sys.executable, address=address, harness=script))
    harness.chmod(0o755)
    return harness.parent


def recipe(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.load((RECIPES / name).read_text(encoding="utf-8"), yaml.BaseLoader)
    return found


@dataclass
class Checkout:
    """A working tree with a remote, as a CI job finds it; `env` is the environment of its steps."""

    folder: Path
    temp: Path
    env: dict[str, str]

    def git(self, *args: str) -> str:
        done = subprocess.run(
            ["git", *args], cwd=self.folder, env=self.env, capture_output=True, text=True, check=True
        )
        return done.stdout

    def commit(self, message: str, files: Mapping[str, str] | None = None) -> None:
        for name, text in (files or {}).items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)

    def bash(self, script: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a step's script as GitHub and GitLab do."""
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=self.folder,
            env={**self.env, **env},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )


@dataclass
class Job:
    """The result of a job: exit codes by step, their output and summary, and the skipped steps."""

    codes: dict[str, int] = field(default_factory=dict)
    output: str = ""
    summary: str = ""
    skipped: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return any(self.codes.values())


def repository(folder: Path, temp: Path, commands: Path, files: Mapping[str, str], **env: str) -> Checkout:
    """Create a repository whose branch `main` has these files, locally and at the remote `origin`."""
    git_env = {
        f"GIT_{who}_{what}": f"{who}@example.com".lower()
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    plain = {
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(temp),
        "LANG": "C.UTF-8",
        "RUNNER_TEMP": str(temp),
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    checkout = Checkout(folder, temp, {**plain, **git_env, **env})
    folder.mkdir(exist_ok=True)
    checkout.git("init", "--quiet", "--initial-branch", "main")
    checkout.git("init", "--quiet", "--bare", str(temp / "origin.git"))
    checkout.git("remote", "add", "origin", str(temp / "origin.git"))
    checkout.commit("one", files)
    checkout.git("push", "--quiet", "origin", "main")
    return checkout


@pytest.fixture(scope="module")
def main(tmp_path_factory: pytest.TempPathFactory, commands: Path) -> Checkout:
    """Return a project whose scenarios pass, with a baseline on `main` and none on the branch `bare`."""
    temp = tmp_path_factory.mktemp("ci")
    project = repository(
        temp / "project",
        temp,
        commands,
        {
            ".gitignore": "reports\n",
            "pyproject.toml": "[tool.harness]\n",
            "counter.yaml": COUNTER,
            "scenarios/all.scenario.yaml": SUITE,
        },
    )
    project.git("push", "--quiet", "origin", "main:bare")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.folder)
        for command in (["run", "scenarios", "-q"], ["baseline", "save", "baseline.json"]):
            assert CliRunner().invoke(cli, command, prog_name="harness").exit_code == 0
    project.commit("the baseline")
    project.git("push", "--quiet", "origin", "main")
    return project


@pytest.fixture
def project(main: Checkout) -> Iterator[Checkout]:
    """Return the shared project on the new branch `work`; changes are reset afterwards."""
    main.git("switch", "--quiet", "--force-create", "work", "origin/main")
    yield main
    main.git("reset", "--quiet", "--hard")


def on_github(checkout: Checkout, name: str, secrets: Mapping[str, str] | None = None) -> Job:
    """Run the steps of a GitHub workflow's only job."""
    workflow = recipe(name)
    (steps,) = (job["steps"] for job in workflow["jobs"].values())
    job = Job()
    for number, step in enumerate(steps):
        known = step.get("uses") or step["name"]
        if known in SKIPPED_STEPS:
            job.skipped.append(known)
            continue
        if job.failed and "!cancelled()" not in step.get("if", ""):
            continue
        summary = checkout.temp / f"summary-{number}.md"
        summary.write_text("")
        env = {**workflow.get("env", {}), **step.get("env", {})}
        for key, value in env.items():
            found = re.fullmatch(r"\$\{\{ (.*) \}\}", value)
            env[key] = (secrets or {})[found[1]] if found else value
        actions = {"GITHUB_ACTIONS": "true", "CI": "true", "GITHUB_STEP_SUMMARY": str(summary)}
        done = checkout.bash(step["run"], {**actions, **env})
        job.codes[step["name"]] = done.returncode
        job.output += done.stdout + done.stderr
        job.summary += summary.read_text()
    return job


def on_gitlab(checkout: Checkout, name: str) -> Job:
    """Run the only job of a GitLab pipeline; its script runs in one shell."""
    (found,) = recipe(name).values()
    job = Job(skipped=["Install"])
    assert all(line.startswith("pip install ") for line in found["before_script"])
    env = {**found["variables"], "CI": "true", "CI_DEFAULT_BRANCH": "main"}
    done = checkout.bash("\n".join(found["script"]), env)
    job.codes["script"] = done.returncode
    job.output = done.stdout + done.stderr
    return job


def run_job(checkout: Checkout, where: str) -> Job:
    if where == "github":
        return on_github(checkout, "github-scenarios.yml")
    return on_gitlab(checkout, "gitlab-ci.yml")


@pytest.mark.parametrize("where", ["github", "gitlab"])
def test_a_branch_without_changes_passes(project: Checkout, where: str) -> None:
    job = run_job(project, where)
    assert not job.failed, job.output
    assert "gate passed" in job.output
    assert (project.folder / "reports/latest/junit.xml").is_file()


@pytest.mark.parametrize("where", ["github", "gitlab"])
def test_a_branch_that_breaks_a_scenario_fails_and_writes_its_report(project: Checkout, where: str) -> None:
    project.commit("worse", {"counter.yaml": WORSE})
    job = run_job(project, where)
    assert job.failed
    assert re.search(r"failed +no_new_failures", job.output), job.output
    assert "scenarios/all.scenario.yaml::counts" in job.output
    assert (project.folder / "reports/latest/report.html").is_file()
    if where == "github":
        assert job.codes == {"Run": 0, "Gate": 1}
        assert "::error file=scenarios/all.scenario.yaml,line=4" in job.output
        assert "counts" in job.summary
        assert "no_new_failures" in job.summary


def test_the_baseline_is_read_from_main_not_from_the_branch(project: Checkout) -> None:
    project.commit("worse", {"counter.yaml": WORSE, "baseline.json": "{}"})
    assert on_github(project, "github-scenarios.yml").codes == {"Run": 0, "Gate": 1}


def test_an_invalid_file_ends_the_job_before_the_gate(project: Checkout) -> None:
    project.commit("wrong", {"scenarios/all.scenario.yaml": WRONG})
    job = on_github(project, "github-scenarios.yml")
    assert job.codes == {"Run": 1}
    assert "unknown key 'expct'" in job.output


def test_without_a_baseline_on_main_all_scenarios_must_pass_and_a_notice_says_so(project: Checkout) -> None:
    step = next(
        step
        for step in recipe("github-scenarios.yml")["jobs"]["scenarios"]["steps"]
        if step.get("name") == "Gate"
    )
    env = {"MAIN": "bare", "BASELINE": "baseline.json", "GITHUB_STEP_SUMMARY": str(project.temp / "s.md")}
    assert CliRunner().invoke(cli, ["run", str(project.folder / "scenarios"), "-q"]).exit_code == 0
    done = project.bash(step["run"], env)
    assert done.returncode == 0, done.stderr
    assert "::notice::bare has no baseline.json yet" in done.stdout


GH = """\
#!/bin/sh
echo "$@" >> "$GH_LOG"
case "$1 $2" in "pr list") cat "$GH_OPEN" ;; esac
"""


@pytest.fixture
def nightly(tmp_path: Path, commands: Path) -> Iterator[tuple[Checkout, Model]]:
    """Return a project with a cassette and a fake `gh` that logs its arguments, and the model it records from."""
    model = Model()
    with parrots(tmp_path / "project", model) as parrot:
        parrot.folder.mkdir()
        parrot.parrot("one", file="scenarios/p.scenario.yaml")
        suite = parrot.folder / "scenarios/p.scenario.yaml"
        suite.write_text(suite.read_text().replace("manifest: ", "manifest: ../"))
        parrot.write("pyproject.toml", "[tool.harness]\n")
        assert parrot.record("scenarios").code == 0
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin/gh").write_text(GH)
        (tmp_path / "bin/gh").chmod(0o755)
        (tmp_path / "open").write_text("0\n")
        checkout = repository(
            parrot.folder,
            tmp_path,
            commands,
            {".gitignore": "reports\n"},
            OPENAI_BASE_URL=parrot.env["OPENAI_BASE_URL"],
            GH_LOG=str(tmp_path / "gh.log"),
            GH_OPEN=str(tmp_path / "open"),
        )
        checkout.env["PATH"] = f"{tmp_path / 'bin'}{os.pathsep}{checkout.env['PATH']}"
        yield checkout, model


def test_the_nightly_job_records_again_and_opens_a_pull_request(
    nightly: tuple[Checkout, Model],
) -> None:
    checkout, model = nightly
    heard = len(model.heard)
    job = on_github(
        checkout,
        "github-record.yml",
        {"secrets.OPENAI_API_KEY": "sk-nightly-4711-abcd", "github.token": "t-o-k-e-n"},
    )
    assert not job.failed, job.output
    assert len(model.heard) == heard + 1
    assert (
        checkout.git("log", "-1", "--format=%s", "origin/nightly/cassettes").strip()
        == "Record the scenarios again"
    )
    body = (checkout.temp / "body.md").read_text()
    assert "1 passed" in body
    asked = (checkout.temp / "gh.log").read_text().splitlines()
    assert [line.split()[:2] for line in asked] == [["pr", "list"], ["pr", "create"]]
    assert "sk-nightly-4711-abcd" not in job.output + checkout.git("show", "origin/nightly/cassettes")


@pytest.mark.parametrize("name", GITHUB)
def test_a_workflow_has_minimal_permissions(name: str) -> None:
    workflow = recipe(name)
    granted = workflow["permissions"]
    assert granted == (
        {"contents": "read"}
        if name == "github-scenarios.yml"
        else {"contents": "write", "pull-requests": "write"}
    )
    assert "pull_request_target" not in workflow["on"]
    if "pull_request" in workflow["on"]:
        assert "secrets." not in (RECIPES / name).read_text()
    (job,) = workflow["jobs"].values()
    assert {step["uses"] for step in job["steps"] if "uses" in step} < set(SKIPPED_STEPS)
    assert all("${{" not in step.get("run", "") for step in job["steps"])  # no script injection


def test_a_failed_job_uploads_its_report_too() -> None:
    for name in GITHUB:
        (job,) = recipe(name)["jobs"].values()
        (upload,) = (step for step in job["steps"] if "upload-artifact" in step.get("uses", ""))
        assert upload["if"] == "${{ !cancelled() }}"
    (job,) = recipe("gitlab-ci.yml").values()
    assert job["artifacts"]["when"] == "always"
    assert job["artifacts"]["reports"] == {"junit": "reports/latest/junit.xml"}


def hooks() -> list[Mapping[str, Any]]:
    own = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    (local,) = yaml.safe_load((RECIPES / "pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    return [*own, *local["hooks"]]


@pytest.mark.parametrize("hook", hooks(), ids=lambda hook: str(hook["language"]))
def test_the_pre_commit_hook_refuses_an_invalid_file(
    project: Checkout, monkeypatch: pytest.MonkeyPatch, hook: Mapping[str, Any]
) -> None:
    monkeypatch.chdir(project.folder)
    program, *args = shlex.split(hook["entry"]) + list(hook["args"])
    assert (program, hook["pass_filenames"]) == ("harness", False)
    assert CliRunner().invoke(cli, args, prog_name="harness").exit_code == 0
    (project.folder / "scenarios/all.scenario.yaml").write_text(WRONG)
    refused = CliRunner().invoke(cli, args, prog_name="harness")
    assert refused.exit_code == 2
    assert "unknown key 'expct'" in refused.output
