"""`--cluster`: results, faults and refusals of the workers of a Dask cluster, which are threads of this process."""

import io
import json
import os
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import LocalCluster

from harness.cluster import connection, worker
from harness.cluster.job import versions
from harness.cluster.project import Project, UnsafeArchive, archive_of, project_of, unpack
from harness.scenario.load import load_file
from harness.settings import Projects, Settings
from tests.cli.fixtures import Invoke, RunCommand, WriteFile, WriteSuite
from tests.cli.test_parallel import CANNOT_BE_JUDGED, FAILS, PASSES, SKIPPED, results, summary
from tests.isolation.project import FLOW

TOOLS = """\
import os, pathlib, signal

def fine():
    pass

def ends_its_worker():
    with open("ended", "a") as file:
        file.write("x")
    os.killpg(0, signal.SIGKILL)

def ends_its_worker_once():
    if not pathlib.Path("ended").exists():
        ends_its_worker()

def waits():
    pathlib.Path("has-begun").touch()
    while not pathlib.Path("may-end").exists():
        pass
"""


def opened(workers: int) -> Any:
    return LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=workers,
        threads_per_worker=1,
        processes=False,
        protocol="tcp://",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        worker_dashboard_address="127.0.0.1:0",
    )


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a scheduler with two workers."""
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}), opened(2) as made:
        client = connection.connected(made.scheduler_address)
        yield made.scheduler_address
        # Also where another scheduler was lost; one that nobody closes connects again and again.
        assert connection.connected(made.scheduler_address) is client
        connection.disconnect(client)
        worker.end_hosts()


@pytest.fixture
def calls(write: WriteFile) -> Any:
    """A function that writes a suite with one scenario per tool."""

    def write_suite(*tools: str) -> None:
        write("calls.yaml", FLOW)
        write("tools.py", TOOLS)
        listed = "".join(
            f"\n  - {{name: {n} {tool}, tools: {{call: tools.{tool}}}}}" for n, tool in enumerate(tools)
        )
        write("calls.scenario.yaml", f"harness: 1\nmanifest: calls.yaml\nscenarios:{listed}\n")

    return write_suite


@pytest.fixture
def _elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the workers have nothing at the place that the project has here, as on another machine."""
    is_at = Project.is_at
    monkeypatch.setattr(Project, "is_at", lambda self, top: top != self.top and is_at(self, top))


def traces() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path("reports/latest/traces").iterdir()}


@pytest.mark.usefixtures("_elsewhere")
def test_results_order_and_traces_are_those_of_one_process(
    invoke: Invoke, harness: RunCommand, suite: WriteSuite, cluster: str
) -> None:
    suite(PASSES, SKIPPED, *(f"{{name: number {n}}}" for n in range(9)), CANNOT_BE_JUDGED, FAILS)
    suite(FAILS, PASSES, file="b.scenario.yaml")
    serial = harness("run", ".")
    expected, total, kept = results(), summary(), traces()
    made = invoke("run", ".", "--cluster", cluster)
    assert results() == expected
    assert (summary(), traces()) == (total, kept)
    assert made.exit_code == serial.returncode


def test_a_lost_worker_costs_no_result(invoke: Invoke, calls: Any, cluster: str) -> None:
    calls("fine", "ends_its_worker_once", "fine", "fine")
    assert invoke("run", ".", "--cluster", cluster).exit_code == 0
    assert [line["verdict"] for line in results()] == ["passed"] * 4


def test_a_scenario_whose_workers_are_lost_again_and_again_cannot_be_judged(
    invoke: Invoke, calls: Any, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.cluster.pool.RERUNS", 1)
    calls("fine", "ends_its_worker", "fine")
    assert invoke("run", ".", "--cluster", cluster).exit_code == 3
    assert [line["verdict"] for line in results()] == ["passed", "error", "passed"]
    assert results()[1]["error"]["code"] == "worker-lost"
    assert Path("ended").read_text() == "xx"


def test_the_same_command_goes_on_when_the_scheduler_was_lost(
    invoke: Invoke, calls: Any, cluster: str
) -> None:
    calls("fine", "waits")
    lost = opened(1)

    def end() -> None:
        path = Path("reports/latest/results.jsonl").absolute()
        while not (Path("has-begun").exists() and path.exists() and path.read_bytes()):
            threading.Event().wait(0.01)
        lost.sync(lost.scheduler.close)
        Path("may-end").touch()
        lost.close()

    closing = threading.Thread(target=end)
    closing.start()
    cut = invoke("run", ".", "--cluster", lost.scheduler_address)
    closing.join()
    assert (cut.exit_code, [line["verdict"] for line in results()]) == (3, ["passed"])
    assert "is gone [cluster-gone]" in cut.output
    assert "the same command goes on from there" in cut.output
    again = invoke("run", ".", "--cluster", cluster)
    assert "1 run taken over" in again.output
    assert [line["verdict"] for line in results()] == ["passed", "passed"]


def test_a_worker_with_other_versions_is_refused_and_earlier_results_stay(
    invoke: Invoke, suite: WriteSuite, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite(PASSES)
    invoke("run", ".")
    there = versions() | {"langgraph": "0.9"}
    monkeypatch.setattr(worker, "versions", lambda: there)
    refused = invoke("run", ".", "--cluster", cluster)
    assert refused.exit_code == 3
    assert "langgraph is 0.9 there, and " in refused.output
    assert "cannot run this" in refused.output
    assert len(results()) == 3


@pytest.mark.usefixtures("_elsewhere")
def test_a_worker_that_cannot_store_the_project_says_why(
    invoke: Invoke, suite: WriteSuite, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite(PASSES)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(worker, "unpack", full)
    refused = invoke("run", ".", "--cluster", cluster)
    assert (refused.exit_code, refused.output.count("error")) == (3, 1)
    assert "No space left on device [cluster-worker]" in refused.output


def test_an_exploration_finds_the_same(invoke: Invoke, suite: WriteSuite, cluster: str) -> None:
    suite()
    explored = ("explore", "counter.yaml", "--runs", "16", "--json", "-")
    here, there = (json.loads(invoke(*explored, *more).stdout) for more in ((), ("--cluster", cluster)))
    assert there == here


def test_mutants_have_the_same_results(invoke: Invoke, suite: WriteSuite, cluster: str) -> None:
    suite(FAILS.replace("2", "1"))
    here, there = (
        json.loads(invoke("mutate", ".", "--fresh", "--json", "-", *more).stdout)
        for more in ((), ("--cluster", cluster))
    )
    assert there == here
    assert here["mutants"]


def test_a_scheduler_that_does_not_answer_is_an_error(
    invoke: Invoke, suite: WriteSuite, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite(PASSES)
    monkeypatch.setattr(connection, "PATIENCE_S", 0.2)
    monkeypatch.setenv("HARNESS_CLUSTER", "tcp://127.0.0.1:9")
    told = invoke("run", ".")
    assert told.exit_code == 3
    assert "the scheduler tcp://127.0.0.1:9 does not answer" in told.output


@pytest.mark.parametrize("address", ["scheduler:8786", "local:0", "local:many", "http://scheduler:1"])
def test_what_is_no_address_of_a_cluster_is_refused(invoke: Invoke, suite: WriteSuite, address: str) -> None:
    suite(PASSES)
    told = invoke("run", ".", "--cluster", address)
    assert (told.exit_code, "neither an address such as" in told.output) == (2, True)


def test_what_is_secret_hidden_or_made_by_runs_does_not_travel(suite: WriteSuite, tmp_path: Path) -> None:
    suite(PASSES)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "link.yaml").symlink_to("/etc/hostname")
    for name in (
        ".env",
        ".env.local",
        ".git/config",
        "keys/server.pem",
        "reports/latest/results.jsonl",
        "data.csv",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = project_of(load_file(tmp_path / "a.scenario.yaml", Settings()).scenarios, Projects())
    names = ["a.scenario.yaml", "asking.yaml", "counter.yaml", "data.csv", "pyproject.toml"]
    assert [*found.names] == names
    with zipfile.ZipFile(io.BytesIO(archive_of(found))) as archive:
        assert archive.namelist() == names


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "a/../../outside", "unknown.py"])
def test_an_archive_with_a_file_outside_of_the_project_is_refused(tmp_path: Path, name: str) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(name, "x")
    sent = Project(tmp_path, ".", (name,) if ".." in name else ("known.py",), "0" * 64)
    with pytest.raises(UnsafeArchive):
        unpack(content.getvalue(), sent, tmp_path / "own")
    assert not list(tmp_path.rglob("outside"))
    assert os.listdir(tmp_path / "own") == []
