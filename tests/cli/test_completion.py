"""Completion in the shell: what is offered at the end of a command line."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest
from click.shell_completion import ShellComplete

from harness.cli.main import COMMANDS, cli
from tests.cli.fixtures import WriteFile, WriteSuite


def offered(*words: str) -> list[str]:
    """Return what completes the last word; `<file>` if the shell itself completes paths."""
    *args, incomplete = words
    found = ShellComplete(cli, {}, "harness", "_HARNESS_COMPLETE").get_completions(args, incomplete)
    return ["<file>" if each.type == "file" else each.value for each in found]


@pytest.fixture
def _scenarios(suite: WriteSuite) -> None:
    suite(
        "{name: a parcel is late, tags: [slow, mail]}",
        '{name: "a price: 5 $", tags: [mail]}',
        "{name: nothing}",
    )


def test_commands_and_options_are_offered() -> None:
    assert offered("") == sorted(COMMANDS)
    assert offered("ju") == ["judge-check", "judges"]
    assert offered("run", "--last") == ["--last-failed"]


@pytest.mark.parametrize("command", ["run", "trace", "record", "score", "serve", "compare", "cassettes"])
@pytest.mark.usefixtures("_scenarios")
def test_a_file_is_completed_by_the_shell_and_after_it_the_names_of_its_scenarios(command: str) -> None:
    assert offered(command, "a.sc") == ["<file>"]
    assert offered(command, "a.scenario.yaml::a p") == [
        "a.scenario.yaml::a parcel is late",
        "a.scenario.yaml::a price: 5 $",
    ]


@pytest.mark.parametrize("command", ["show", "prompts", "validate", "evolve", "gate", "report"])
def test_manifests_and_runs_are_completed_by_the_shell(command: str) -> None:
    assert offered(command, "a") == ["<file>"]


@pytest.mark.usefixtures("_scenarios")
def test_tags_are_those_of_the_files_named_before() -> None:
    assert offered("run", "a.scenario.yaml", "--tag", "") == ["mail", "slow"]
    assert offered("run", ".", "--tag", "s") == ["slow"]


def test_finite_values_are_offered(write: WriteFile, two_agents: str) -> None:
    write("agents.yaml", two_agents)
    assert offered("show", "agents.yaml", "--agent", "") == ["counter", "other"]
    assert offered("show", "agents.yaml", "--dialect", "l") == ["loki", "leafmesh", "langgraph"]
    assert offered("summary", "--by", "tag,m") == ["tag,model", "tag,manifest"]
    assert offered("show", "agents.yaml", "--format", "") == ["text", "mermaid", "svg"]
    assert offered("run", "--traces", "f") == ["failed"]
    assert "faithfulness" in offered("judges", "fa")
    assert offered("schema", "--kind", "") == ["scenario", "variants", "gate"]


def test_a_file_that_cannot_be_read_offers_nothing(
    write: WriteFile, capfd: pytest.CaptureFixture[str]
) -> None:
    write("broken.scenario.yaml", "harness: [")
    for words in (
        ("run", "broken.scenario.yaml::"),
        ("run", "missing.scenario.yaml::"),
        ("run", "broken.scenario.yaml", "--tag", ""),
        ("show", "missing.yaml", "--agent", ""),
    ):
        assert offered(*words) == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(which("bash") is None, reason="needs bash")
@pytest.mark.usefixtures("_scenarios")
@pytest.mark.parametrize(
    ("words", "inserted"),
    [
        (("a.scenario.yaml", "::"), [r"a\ parcel\ is\ late", r"a\ price\:\ 5\ \$", "nothing"]),
        (("a.scenario.yaml", "::", r"a\ pr"), [r"a\ price\:\ 5\ \$"]),
        (('"a.scenario.yaml::a pa',), ["a.scenario.yaml::a parcel is late"]),
        (("a.scenario.yaml", "::", "nothing", "--tag", ""), ["mail", "slow"]),
    ],
)
def test_bash_takes_a_scenario_for_three_words(
    installed: str, words: tuple[str, ...], inserted: list[str]
) -> None:
    line = ("harness", "run", *words)
    script = (
        f'PATH={shlex.quote(str(Path(installed).parent))}:$PATH; eval "$(_HARNESS_COMPLETE=bash_source harness)"\n'
        f"COMP_WORDS=({' '.join(map(shlex.quote, line))}); COMP_CWORD={len(line) - 1}\n"
        '_harness_completion harness; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == inserted


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_command_prints_the_script_of_a_shell(shell: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "harness.cli.main"],
        env={**os.environ, "_HARNESS_COMPLETE": f"{shell}_source"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"_HARNESS_COMPLETE={shell}_complete" in done.stdout
