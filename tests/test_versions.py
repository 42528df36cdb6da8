"""The versions that apps are tested with: the lowest of pyproject.toml, and those of the other constraints."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from harness.engine.versions import FLOORS
from tests.versions import NEEDS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def declared(*lists: list[str]) -> dict[str, Requirement]:
    """Return the requirements of pyproject.toml by name."""
    return {each.name.lower(): each for each in map(Requirement, sum(lists, PROJECT["dependencies"]))}


def floor(requirement: Requirement) -> Version:
    """Return the lowest version that a requirement allows."""
    return min(Version(each.version) for each in requirement.specifier if each.operator == ">=")


def pins(name: str) -> dict[str, Version]:
    """Return the versions of a file of constraints."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    found = [line.split("==") for line in lines if not line.startswith("#")]
    return {package.lower(): Version(version) for package, version in found}


def test_the_oldest_versions_are_the_lowest_that_pyproject_allows() -> None:
    allowed = {name: floor(each) for name, each in declared(EXTRAS["openai"], EXTRAS["anthropic"]).items()}
    tested = pins("constraints-oldest.txt")
    assert {name: tested.get(name) for name in allowed} == allowed


@pytest.mark.parametrize("path", sorted(ROOT.glob("constraints*.txt")), ids=lambda path: path.stem)
def test_every_file_of_constraints_has_versions_that_pyproject_allows(path: Path) -> None:
    # The extra `mcp` is for declarative agents. An app has the SDK in a version of its own.
    allowed = declared(EXTRAS["openai"], EXTRAS["anthropic"])
    tested = pins(path.name)
    assert {
        name for name, each in allowed.items() if name in tested and tested[name] not in each.specifier
    } == set()


def test_the_floors_that_messages_name_are_those_of_pyproject() -> None:
    assert {name: Version(text) for name, text in FLOORS.items()} == {
        name: floor(declared()[name]) for name in FLOORS
    }


def test_the_newest_versions_can_run_every_scenario() -> None:
    newest = pins("constraints.txt")
    needed = [Requirement(needs) for needs, _ in NEEDS.values()]
    assert [str(each) for each in needed if newest[each.name] not in each.specifier] == []


def test_what_may_be_left_out_exists() -> None:
    assert [name for name in NEEDS if not (ROOT / "scenarios/langgraph" / name).is_dir()] == []
