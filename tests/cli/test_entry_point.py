"""The `harness` command itself: help, exit codes, misspelt words, defects and Ctrl-C."""

import subprocess
import sys
from typing import Any

import pytest

from harness import __version__
from harness.cli import entry
from tests.cli.fixtures import Invoke, RunCommand, WriteFile, WriteSuite


def test_help_names_every_command_and_every_exit_code(harness: RunCommand) -> None:
    done = harness("--help")
    assert done.returncode == 0
    for command in ("run", "validate", "show", "schema", "init"):
        assert f"\n  {command} " in done.stdout
    for code in "0123":
        assert f"\n    {code}  " in done.stdout


def test_help_imports_no_heavy_library() -> None:
    script = (
        "import sys, click.testing, harness.cli.main as it\n"
        "click.testing.CliRunner().invoke(it.cli, ['--help'])\n"
        "heavy = ('langgraph', 'langchain_core', 'pydantic', 'rich', 'yaml', 'celpy', 'mcp')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_installed_command_starts(installed: str) -> None:
    done = subprocess.run([installed, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"harness {__version__}\n"


@pytest.mark.parametrize("wrapped", [False, True])
def test_ctrl_c_during_imports_ends_the_command_as_later(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], wrapped: bool
) -> None:
    def importing() -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            if wrapped:  # as Python 3.11 does during the creation of a class
                raise RuntimeError("Error calling __set_name__") from error
            raise

    monkeypatch.setattr("harness.cli.main.main", importing)
    with pytest.raises(SystemExit) as left:
        entry.main()
    assert (left.value.code, capsys.readouterr().err) == (3, "interrupted\n")


@pytest.mark.parametrize("begins", ["click.Group.parse_args", "harness.secrets.output.redacted_streams"])
def test_ctrl_c_before_a_command_starts_is_not_a_failed_scenario(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, begins: str
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(begins, interrupt)
    result = invoke("schema")
    assert (result.exit_code, result.stdout, result.stderr) == (3, "", "interrupted\n")


@pytest.mark.parametrize("command", ["run", "validate", "show", "schema", "init"])
def test_every_command_has_help(invoke: Invoke, command: Any) -> None:
    result = invoke(command, "--help")
    assert result.exit_code == 0
    assert result.output.startswith(f"Usage: harness {command} ")


def test_without_a_command_the_help_is_shown_with_a_usage_error(invoke: Invoke) -> None:
    result = invoke()
    assert result.exit_code == 2
    assert "Commands:" in result.output


@pytest.mark.parametrize(
    ("args", "suggestion"),
    [
        (["vaildate", "x"], "'validate'"),
        (["run", "--jsn", "x", "."], "'--json'"),
        (["show", "-f", "sgv", "x"], "svg"),
    ],
)
def test_a_misspelt_word_is_a_usage_error_with_a_suggestion(
    invoke: Invoke, args: Any, suggestion: Any
) -> None:
    result = invoke(*args)
    assert result.exit_code == 2
    assert suggestion in result.stderr


def test_a_defect_is_reported_in_one_line_and_exits_with_3(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.cli.schema.schema_text", lambda _: 1 // 0)
    result = invoke("schema")
    assert result.exit_code == 3
    assert result.stderr == (
        "harness broke: ZeroDivisionError: integer division or modulo by zero\n"
        "    HARNESS_DEBUG=1 shows the traceback\n"
    )


def test_ctrl_c_during_the_creation_of_a_class_is_an_interruption(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted:
        def __set_name__(self, owner: type, name: str) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(
        "harness.cli.schema.schema_text", lambda _: type("Made", (), {"member": Interrupted()})
    )
    result = invoke("schema")
    assert (result.exit_code, result.stderr) == (3, "interrupted\n")


@pytest.mark.parametrize("asked", ["option", "environment"])
def test_the_traceback_of_a_defect_is_shown_on_request(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], asked: Any
) -> None:
    monkeypatch.setattr("harness.cli.schema.schema_text", lambda _: 1 // 0)
    if asked == "environment":
        monkeypatch.setenv("HARNESS_DEBUG", "1")
    result = invoke(*(["--debug"] if asked == "option" else []), "schema")
    assert result.exit_code == 3
    assert "Traceback" in result.stderr
    assert "in schema" in result.stderr or "in command" in result.stderr


def test_invalid_settings_are_an_error(invoke: Invoke, suite: WriteSuite, write: WriteFile) -> None:
    suite("{name: any}")
    write("pyproject.toml", "[tool.harness]\nreprot = 'x'\n")
    result = invoke("run", ".")
    assert result.exit_code == 2
    assert "did you mean 'report'?" in result.stderr
