"""Names in the documents exist: commands, options, settings, variables, make targets."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from importlib import import_module
from pathlib import Path

import click
import pytest

from harness.cli.main import COMMANDS, cli
from harness.plugin.options import OPTIONS
from harness.settings import Settings, load_settings

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "cassettes/README.md"]
SETTINGS = {field.name for field in fields(Settings)} - {"project", "record_mode", "record_in_ci"}
VARIABLES = {f"HARNESS_{key}" for key in ("DEBUG", "FUZZ", "REPROT")}
"""Variables that are not settings."""
PYTEST_OPTIONS = {"--lf", "--sw", "--deselect", "--junitxml", "--collect-only", "--maxfail", "--tb"}
PLUGIN_ONLY_OPTIONS = {
    "--record-mode",
    "--disable-recording",
    "--traces",
    "--harness-changed",
    "--harness-env",
    "--harness-gate",
    "--harness-explore",
    "--harness-shard",
    "--harness-variants",
}
"""Options of the plugin that are not settings; pytest-recording, if installed, defines the first two."""
COMMAND_LINE = re.compile(r"^(?:\$ )?(harness(?: --?\w\S*)* [a-z]+\b(?!:).*|pytest\b.*)$")


def text_of(document: Path) -> str:
    """Return the text of a document without its section `Not there yet`."""
    text = document.read_text(encoding="utf-8")
    return re.sub(r"^## Not there yet\n.*?(?=^## |\Z)", "", text, flags=re.M | re.S)


@cache
def options_of(command: str) -> frozenset[str]:
    """Return the options of a command of `harness`, general ones included."""
    module = import_module(f"harness.cli.{command.replace('-', '_')}")
    found = {
        option for each in module.command.params if isinstance(each, click.Option) for option in each.opts
    }
    general = {option for each in cli.params for option in each.opts}
    return frozenset({*found, *general, "--help", "--version"})


def spans(text: str) -> Iterator[str]:
    """Yield the lines of shell code blocks, and the inline code of the text around them."""
    for block in re.findall(r"^```(?:sh|console)\n(.*?)^```", text, flags=re.M | re.S):
        yield from block.splitlines()
    around = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    yield from (" ".join(span.split()) for span in re.findall(r"`([^`]+)`", around))


def command_lines(text: str) -> list[str]:
    """Return the command lines of `harness` and `pytest` in a text, without comments."""
    found = (COMMAND_LINE.match(span) for span in spans(text))
    return [re.split(r"\s+#|\s+[&|]", each[1])[0] for each in found if each]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_and_their_options_exist(document: Path) -> None:
    for line in command_lines(text_of(document)):
        program, *words = shlex.split(line.replace("…", ""))
        flags = {word.split("=")[0] for word in words if re.fullmatch(r"--?[a-z][\w-]*(=.*)?", word)}
        if program == "pytest":
            known = {
                *PYTEST_OPTIONS,
                *PLUGIN_ONLY_OPTIONS,
                *(f"--harness-{key.replace('_', '-')}" for key in OPTIONS),
            }
            assert {flag for flag in flags if flag.startswith("--")} <= known, line
            continue
        command = next((word for word in words if not word.startswith("-")), None)
        assert command in COMMANDS, line
        assert flags <= options_of(command), line


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_options_named_in_the_text_exist(document: Path) -> None:
    known = {option for command in COMMANDS for option in options_of(command)}
    known |= {
        *PYTEST_OPTIONS,
        *PLUGIN_ONLY_OPTIONS,
        *(f"--harness-{key.replace('_', '-')}" for key in OPTIONS),
    }
    named = {flag for span in spans(text_of(document)) for flag in re.findall(r"^(--[a-z][\w-]*)", span)}
    assert named <= known


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_settings_and_variables_exist(document: Path, tmp_path: Path) -> None:
    text = text_of(document)
    for block in re.findall(r"^```toml\n(.*?)^```", text, flags=re.M | re.S):
        tomllib.loads(block)
        (tmp_path / "pyproject.toml").write_text(block, encoding="utf-8")
        load_settings(tmp_path)  # refuses unknown settings
    for name in re.findall(r"\bHARNESS_[A-Z_]+\b", text):
        if name not in VARIABLES:
            key = name.removeprefix("HARNESS_").lower()
            value = {"record": "true", "stale_cassettes": "fail", "cluster": "local:1"}.get(key, "1")
            load_settings(tmp_path, environment={name: value})
            assert key in SETTINGS, name
    for keys in re.findall(r"`(\w+)` (?:in|under) `\[tool\.harness\]`", text):
        assert keys in SETTINGS, keys


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_make_targets_exist(document: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, flags=re.M))
    named = (re.match(r"make ([a-z]+)\b", span) for span in spans(text_of(document)))
    assert {found[1] for found in named if found} <= targets


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_is_documented(command: str) -> None:
    assert any(re.search(rf"\bharness {command}\b", text_of(document)) for document in DOCUMENTS)


def test_every_option_of_the_plugin_is_documented() -> None:
    documented = "".join(map(text_of, DOCUMENTS))
    assert [key for key in OPTIONS if f"--harness-{key.replace('_', '-')}" not in documented] == []
