"""A manifest that cannot be used is a located error of its own scenarios, and ends neither a run nor a command."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.dialects.sherma import compile as sherma
from tests.cli.fixtures import Invoke, WriteFile

UNUSABLE: dict[
    str, tuple[str, Callable[[Path], Any], str]
] = {  # by the manifest's name: how it is made, its error
    "keys.yaml": ("keys.yaml", lambda path: path.write_text("a: 1\na: 2\nb: 1\nb: 2\n"), "duplicate-key"),
    "numbers.yaml": ("numbers.yaml", lambda path: path.write_text("nodes: {1: x, 2: y}\n"), "key-not-text"),
    "empty.yaml": ("empty.yaml", lambda path: path.touch(), "empty-file"),
    "binary.yaml": ("binary.yaml", lambda path: path.write_bytes(bytes(range(256))), "not-text"),
    "huge.yaml": ("huge.yaml", lambda path: path.write_bytes(b"a: 1\n" * 2_200_000), "too-large"),
    "folder.yaml": ("folder.yaml", lambda path: path.mkdir(), "not-a-file"),
    "loop.yaml": ("loop.yaml", lambda path: path.symlink_to(path.name), "unreadable-file"),
    "in a loop": ("loop.yaml/agent.yaml", lambda path: None, "unreadable-file"),
    "missing.yaml": ("missing.yaml", lambda path: None, "missing-file"),
    "no name of a file": ("x" * 400, lambda path: None, "unreadable-file"),
}


@pytest.mark.parametrize("dialect", ["sherma", "agentspec", "yagra", "loki", "leafmesh", None])
def test_a_manifest_that_cannot_be_read_is_an_error_of_its_own_scenario(
    invoke: Invoke, write: WriteFile, tmp_path: Path, counter: str, dialect: str | None
) -> None:
    write("counter.yaml", counter)
    named = {"dialect": dialect} if dialect else {}
    scenarios: list[dict[str, Any]] = []
    for name, (manifest, make, _) in UNUSABLE.items():
        make(tmp_path / manifest)
        scenarios.append({"name": name, "manifest": manifest, **named})
    scenarios.append({"name": "whole", "manifest": "counter.yaml", "expect": {"path": ["add"]}})
    write("a.scenario.yaml", json.dumps({"harness": 1, "scenarios": scenarios}))
    done = invoke("run", "a.scenario.yaml", "--json", "-")
    *refused, whole = map(json.loads, done.stdout.splitlines())
    assert (done.exit_code, whole["verdict"]) == (3, "passed"), done.output
    codes = {name: code for name, (_, _, code) in UNUSABLE.items()}
    if dialect == "loki":  # its manifests are folders
        codes["folder.yaml"] = "missing-file"
    if dialect in ("sherma", "yagra"):  # which allow such keys where names are free
        codes["numbers.yaml"] = "missing-key"
    if dialect is None:
        codes["numbers.yaml"] = "unknown-dialect"
    assert {line["scenario"]: line["error"]["code"] for line in refused} == codes
    assert {(line["verdict"], line["status"]) for line in refused} == {("error", "invalid")}
    assert all(re.search(r"^(a\.scenario|\w+)\.yaml:\d+:\d+$", line["error"]["where"]) for line in refused)


@pytest.fixture
def defect(write: WriteFile, counter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect of the front end of sherma, which shows in one of two manifests."""
    load = sherma.load

    def broken(request: Any) -> Any:
        if request.path.name == "odd.yaml":
            raise TypeError("unhashable type")
        return load(request)

    monkeypatch.setattr(sherma, "load", broken)
    write("odd.yaml", counter)
    write("counter.yaml", counter)
    write(
        "a.scenario.yaml",
        "harness: 1\nmanifest: odd.yaml\nscenarios: [{name: a, expect: {status: invalid}}]\n",
    )
    write(
        "b.scenario.yaml",
        "harness: 1\nmanifest: counter.yaml\nscenarios: [{name: b, expect: {path: [add]}}]\n",
    )


def test_a_defect_of_the_harness_is_an_error_of_one_scenario_whatever_it_expects(
    invoke: Invoke, defect: None
) -> None:
    done = invoke("run", ".", "--json", "-")
    odd, whole = map(json.loads, done.stdout.splitlines())
    assert (done.exit_code, whole["verdict"]) == (3, "passed")
    assert (odd["verdict"], odd["error"]["code"]) == ("error", "harness-broke")
    assert odd["error"]["where"] == "a.scenario.yaml:2:11"
    assert (
        "odd.yaml could not be read: TypeError: unhashable type (test_unusable_manifests.py:"
        in odd["error"]["message"]
    )


@pytest.mark.parametrize(("command", "path"), [("validate", "."), ("show", "odd.yaml")])
def test_a_defect_of_the_harness_has_the_place_of_the_file(
    invoke: Invoke, defect: None, command: str, path: str
) -> None:
    told = invoke(command, path)
    assert told.exit_code == 2
    assert "odd.yaml:1:1: error: odd.yaml could not be read: TypeError: unhashable type" in told.output
    assert "this is a defect of the harness" in told.output


def test_a_defect_in_reading_a_scenario_file_is_an_error_of_that_file(
    invoke: Invoke, write: WriteFile, counter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(file: Path, _settings: Any) -> Any:
        if file.name == "odd.scenario.yaml":
            raise IndexError("no such layer")
        return None

    monkeypatch.setattr("harness.scenario.load.scenarios_of_manifest", broken)
    monkeypatch.setattr("harness.scenario.load.SUFFIXES", (".never",))
    write("counter.yaml", counter)
    for name in ("odd", "whole"):
        write(
            f"{name}.scenario.yaml",
            "harness: 1\nmanifest: counter.yaml\nscenarios: [{name: a, expect: {path: [add]}}]\n",
        )
    done = invoke("run", "odd.scenario.yaml", "whole.scenario.yaml")
    assert done.exit_code == 2
    assert "odd.scenario.yaml:1:1: error: odd.scenario.yaml could not be read: IndexError" in done.output
    assert "1 passed" in done.output
