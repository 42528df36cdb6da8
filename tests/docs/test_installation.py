"""Each `pip install` in a document or message names this distribution and extras that exist."""

import re
import tomllib
from pathlib import Path

import pytest

import harness
from harness.errors import ExtraMissing
from harness.source.imports import import_extra

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DOCUMENTS = sorted(path for at in (".", "docs", "cassettes", "reports") for path in (ROOT / at).glob("*.md"))
SOURCES = [*sorted((ROOT / "harness").rglob("*.py")), *DOCUMENTS, ROOT / "Makefile"]
INSTALL = re.compile(
    r"pip install (?P<options>(?:--\S+(?: (?:\S+\.txt|\$<))? )*)(?P<quote>[\"']?)(?P<what>[^\s`\"']+)(?P=quote)"
)
EXTRAS = re.compile(r"(?P<name>[^\[]+)(?:\[(?P<extras>[^\]]+)\])?")


def installs() -> list[tuple[str, str]]:
    """Return the requirements of all `pip install` commands, each with the file that contains it."""
    found = []
    for path in SOURCES:
        text = path.read_text(encoding="utf-8").replace("{DISTRIBUTION}", harness.DISTRIBUTION)
        # `{packages}` stands for missing packages: those that pyproject.toml names, or an app of a user requires.
        named = [each["what"] for each in INSTALL.finditer(text) if each["what"] != "{packages}"]
        found += [(what, path.relative_to(ROOT).as_posix()) for what in named]
    return found


def test_install_commands_are_found() -> None:
    assert {place for _, place in installs()} >= {
        "README.md",
        "docs/serve.md",
        "harness/source/imports.py",
        "Makefile",
    }


@pytest.mark.parametrize(("requirement", "place"), installs())
def test_an_install_command_names_this_distribution_and_existing_extras(requirement: str, place: str) -> None:
    parts = EXTRAS.fullmatch(requirement)
    assert parts is not None
    name = parts["name"].rpartition("/")[2]
    assert name == (PROJECT["name"] if name != "." else "."), place
    extras = set((parts["extras"] or "").split(",")) - {"", "{extra}"}
    assert extras <= PROJECT["optional-dependencies"].keys(), place


def test_the_name_and_version_of_the_distribution_match_pyproject() -> None:
    assert PROJECT["name"] == harness.DISTRIBUTION
    assert PROJECT["version"] == harness.__version__


def test_the_command_and_the_plugin_are_named_harness() -> None:
    assert PROJECT["scripts"] == {"harness": "harness.cli.entry:main"}
    assert PROJECT["entry-points"]["pytest11"] == {"harness": "harness.plugin"}


def test_every_extra_that_the_code_imports_exists() -> None:
    pattern = r"import_extra\(\s*[^,()]+,\s*\"(\w+)\""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "harness").rglob("*.py")]
    extras = {extra for text in texts for extra in re.findall(pattern, text)}
    assert extras
    assert extras <= PROJECT["optional-dependencies"].keys()


def test_a_missing_extra_says_what_to_install() -> None:
    with pytest.raises(ExtraMissing, match=re.escape(f'pip install "{PROJECT["name"]}[serve]"')):
        import_extra("no_such_module_of_an_extra", "serve", "to serve")
