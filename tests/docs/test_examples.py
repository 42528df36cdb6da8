"""The examples in the documents: they run, and print exactly what the documents show.

Each document is executed in an empty folder, block by block:

    ```yaml title="a/b.yaml"     the block becomes this file
    ```yaml append="a/b.yaml"    the block is appended to this file
    ```diff title="a/b.yaml"     in this file, the lines with `-` and ` ` are replaced by those with `+` and ` `
    ```yaml excerpt="a/b.yaml"   the lines occur in this file of the repository
    ```sh serve="a.yaml"         from here on the stubs of this file answer clients of OpenAI, on a free port
    ```sh unset="A B"            from here on nothing is served, and these variables are not set
    ```diff local="a/b.yaml"     another way to go on, which a test of its own takes
    ```console                   each `$ harness …`, `$ pytest …`, `$ python …` runs and prints the lines below it
    <!-- copy: folder -->        the files of this folder of the repository are copied

`…` matches any text of a line or, alone on a line, any lines. `$ echo $?` prints the last exit code.
"""

import contextlib
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.main import cli
from harness.serve import serving
from tests import forked

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^<!-- copy: (?P<copy>\S+) -->$|^```(?P<info>[^\n`]+)\n(?P<text>.*?)^```$", re.M | re.S)
TERMINAL = {"COLUMNS": "80", "NO_COLOR": "1"}
Block = tuple[str, str, str]  # action, file, text of the block


def blocks(document: str) -> Iterator[Block]:
    for found in BLOCK.finditer(document):
        if found["copy"]:
            yield "copy", found["copy"], ""
        language, _, rest = (found["info"] or "").partition(" ")
        option = re.fullmatch(r'(title|append|excerpt|serve|unset|local)="([^"]+)"', rest)
        if language == "console":
            yield "console", "", found["text"]
        elif option:
            kind = "edit" if (language, option[1]) == ("diff", "title") else option[1]
            yield kind, option[2], found["text"]


def apply_diff(text: str, diff: str) -> str:
    lines = diff.splitlines(keepends=True)
    old, new = ("".join(line[1:] or "\n" for line in lines if line[0] in f" \n{sign}") for sign in "-+")
    assert text.count(old) == 1, f"occurs {text.count(old)} times in the file:\n{old}"
    return text.replace(old, new)


def carry_out(block: Block, folder: Path) -> None:
    kind, file, text = block
    path = folder / file
    if kind == "copy":
        shutil.copytree(ROOT / file, folder, dirs_exist_ok=True)
    elif kind in ("title", "append"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w" if kind == "title" else "a", encoding="utf-8") as out:
            out.write(text)
    elif kind == "edit":
        path.write_text(apply_diff(path.read_text(encoding="utf-8"), text), encoding="utf-8")
    elif kind == "excerpt":
        assert text in (ROOT / file).read_text(encoding="utf-8")
    else:
        for command, shown in commands(text):
            said = run(command, folder)
            assert re.fullmatch(pattern(shown), said), f"$ {command}\n{said}\n--- the document shows\n{shown}"


def commands(console: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", console, flags=re.M)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def run(command: str, folder: Path) -> str:
    """Run a command and return its output without trailing spaces."""
    last = folder / ".exit-code"
    if command == "echo $?":
        return last.read_text(encoding="utf-8")
    program, *arguments = shlex.split(command)
    said, code = PROGRAMS[program](arguments, folder)
    last.write_text(f"{code}\n", encoding="utf-8")
    return "".join(f"{line.rstrip()}\n" for line in said.splitlines())


def run_harness(arguments: list[str], folder: Path) -> tuple[str, int]:
    ours = {name: None for name in os.environ if name.startswith("HARNESS_")}
    with contextlib.chdir(folder):
        done = CliRunner().invoke(cli, arguments, prog_name="harness", env={**ours, **TERMINAL})
    return done.output, done.exit_code


def run_pytest(arguments: list[str], folder: Path) -> tuple[str, int]:
    return forked_process("pytest", arguments, folder)


def run_python(arguments: list[str], folder: Path) -> tuple[str, int]:
    return forked_process(folder / arguments[0], arguments[1:], folder)


def forked_process(program: str | Path, arguments: list[str], folder: Path) -> tuple[str, int]:
    ours = {name: text for name, text in os.environ.items() if not name.startswith(("HARNESS_", "PYTEST_"))}
    done = forked.run([program, *arguments], cwd=folder, env=ours | TERMINAL)
    return done.stdout, done.returncode


PROGRAMS = {"harness": run_harness, "pytest": run_pytest, "python": run_python}


def pattern(shown: str) -> str:
    any_lines, any_text = r"(?:.*\n)*?", ".*?"
    lines = (any_lines if line == "…" else re.escape(line) + r"\n" for line in shown.splitlines())
    return "".join(lines).replace("…", any_text)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_the_examples_of_a_document_run(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)  # there, nothing would be recorded
    with contextlib.ExitStack() as servers:
        for kind, file, text in blocks(document.read_text(encoding="utf-8")):
            if kind == "serve":
                server = servers.enter_context(serving(tmp_path / file))
                monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
                monkeypatch.setenv("OPENAI_API_KEY", "none")
            elif kind == "unset":
                servers.close()
                for name in file.split():
                    monkeypatch.delenv(name)
            elif kind != "local":
                carry_out((kind, file, text), tmp_path)


VARIANTS = (ROOT / "docs/tutorial-variants.md").read_text(encoding="utf-8")
SCRIPTED, _, REAL = VARIANTS.partition("\n## 8. ")


def write_files(document: str, folder: Path) -> None:
    for block in blocks(document):
        if block[0] in ("title", "append", "edit"):
            carry_out(block, folder)


def test_seven_steps_of_the_tutorial_on_variants_end_with_the_files_of_its_folder(tmp_path: Path) -> None:
    finished = ROOT / "scenarios" / "tutorial_variants"
    write_files(SCRIPTED, tmp_path)
    files = [path.relative_to(finished) for path in finished.rglob("*.*") if path.suffix != ".pyc"]
    assert {file: (tmp_path / file).read_text(encoding="utf-8") for file in files} == {
        file: (finished / file).read_text(encoding="utf-8") for file in files
    }


def test_the_eighth_step_asks_a_local_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(SCRIPTED, tmp_path)
    for kind, file, text in blocks(REAL):
        if kind in ("title", "local"):
            carry_out(("edit" if kind == "local" else kind, file, text), tmp_path)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with serving(tmp_path / "provider.yaml") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        said = run('harness record "complaints.scenario.yaml::complaint[music]" -q', tmp_path)
        estimate = run(
            "harness score complaints.scenario.yaml --variants shorter.yaml --record-mode once", tmp_path
        )
        assert [request.effect and request.effect.name for request in server.requests] == ["llama3.2"] * 3
    assert "3 passed" in said
    assert "recorded: 3 requests" in said
    assert "no price is known of llama3.2" in estimate
