"""What `make package` builds: the contents of wheel and source distribution, and a project that uses the wheel."""

import os
import re
import shlex
import subprocess
import tarfile
import tomllib
from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

import harness

ROOT = Path(harness.__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = os.environ.get("HARNESS_PYTHONS", "").split()
EXAMPLE = r"## In a project of your own.*?\n```console\n\$ (?P<init>.*?)\n.*?```\n\n```sh\n(?P<run>.*?)```"


def built(suffix: str) -> Path:
    found = [*(ROOT / "dist").glob(f"*{suffix}")]
    if not found:
        pytest.skip("`make package` builds it")
    [file] = found
    return file


@pytest.fixture(scope="module")
def wheel() -> Path:
    return built(".whl")


def tracked(*folders: str) -> set[str]:
    done = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def metadata(wheel: Path) -> Message:
    with ZipFile(wheel) as opened:
        [name] = [name for name in opened.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(opened.read(name).decode())


def test_the_wheel_has_the_package_its_licence_and_nothing_else(wheel: Path) -> None:
    names = set(ZipFile(wheel).namelist())
    info = f"{wheel.name.partition('-py3')[0]}.dist-info"
    own = {f"{info}/{name}" for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "top_level.txt")}
    assert names == tracked("harness") | own | {f"{info}/licenses/LICENSE"}
    assert "harness/py.typed" in names


def test_the_source_distribution_has_what_the_wheel_is_built_from() -> None:
    with tarfile.open(built(".tar.gz")) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert names >= tracked("harness") | {"LICENSE", "README.md", "pyproject.toml"}
    assert not [name for name in names if name.startswith((".venv", "reports", "scenarios", "cassettes"))]


def test_the_metadata_are_those_of_the_project(wheel: Path) -> None:
    found = metadata(wheel)
    assert (found["Name"], found["Version"]) == (harness.DISTRIBUTION, harness.__version__)
    assert (found["License-Expression"], found.get_all("License-File")) == ("MIT", ["LICENSE"])
    assert found["Requires-Python"] == PROJECT["requires-python"]
    assert found.get_all("Classifier") == PROJECT["classifiers"]
    assert "# agent-scenarios" in str(found.get_payload())


@pytest.mark.skipif(not PYTHONS, reason="`make package` names the versions of Python")
@pytest.mark.parametrize("python", PYTHONS)
def test_a_fresh_environment_runs_the_example_of_the_readme(wheel: Path, tmp_path: Path, python: str) -> None:
    environment = tmp_path / "env"
    env = {"PATH": f"{environment / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    env |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}

    def run(command: str, folder: Path = tmp_path) -> str:
        done = subprocess.run(
            shlex.split(command), cwd=folder, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
        return done.stdout

    subprocess.run([python, "-m", "venv", str(environment)], check=True)
    run(f"pip install --quiet --constraint {ROOT / 'constraints.txt'} {wheel}")
    assert str(environment) in run("python -c 'import harness; print(harness.__file__)'")
    readme = re.search(EXAMPLE, (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    assert readme is not None
    run(readme["init"])
    project = tmp_path / "example"
    for command in (*readme["run"].split("\n")[1:-1], "pytest scenarios"):  # the first is `cd example`
        assert re.search(r"\d+ passed", run(command, project)), command
    rows = "import harness; print(len(harness.load_results('reports/latest').frame()) > 0)"
    assert run(f'python -c "{rows}"', project) == "True\n"
    assert (project / "reports/latest/report.html").is_file()
