"""The winner's patch applies to files with CRLF line ends, a byte order mark, or a name that diffs quote."""

from __future__ import annotations

import codecs
import json
import subprocess
from pathlib import Path

import pytest

from tests.evolution.test_dialects import AGENTS, project, run

WRITTEN = {
    "CRLF": lambda data: data.replace(b"\n", b"\r\n"),
    "BOM": lambda data: codecs.BOM_UTF8 + data,
    "both": lambda data: codecs.BOM_UTF8 + data.replace(b"\n", b"\r\n"),
    "no last line end": lambda data: data.rstrip(b"\n"),
}
LINE, LINES = "Use the WAND: # now", "First.\\n\\n  Then: the WAND.\\n"


def evolve_and_apply(manifest: str, types: str = "prompt_variation") -> None:
    Path("c.yaml").write_text(f"mutation_types: [{types}]\npopulation_size: 4\ngenerations: 3\n")
    result = run("evolve", manifest, "a.scenario.yaml", "--config", "c.yaml", "--out", "out")
    assert result.exit_code == 0, result.output
    assert Path("out/winner.patch").exists(), result.output
    subprocess.run(["git", "apply", "--check", "out/winner.patch"], check=True)
    subprocess.run(["patch", "-s", "-p1", "-i", "out/winner.patch"], check=True)
    assert run("run", "a.scenario.yaml").exit_code == 0


def same_form(before: bytes, after: bytes) -> bool:
    """True if a file kept its byte order mark, or the lack of one, and the kind of its line ends."""
    crlf = b"\r\n" in before
    return before.startswith(codecs.BOM_UTF8) == after.startswith(codecs.BOM_UTF8) and (
        after.count(b"\r\n") == after.count(b"\n") if crlf else b"\r" not in after
    )


@pytest.mark.parametrize(
    ("dialect", "written", "rewritten"),
    [*((dialect, "both", LINES) for dialect in AGENTS), *(("sherma", written, LINE) for written in WRITTEN)],
)
def test_a_patch_of_a_prompt_keeps_the_encoding_and_line_ends(
    dialect: str, written: str, rewritten: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = {name: Path(name) for name in project(dialect, rewritten=rewritten).files}
    before = {}
    for name, path in files.items():
        path.write_bytes(WRITTEN[written](path.read_bytes()))
        before[name] = path.read_bytes()
    evolve_and_apply(next(iter(files)))
    after = {name: path.read_bytes() for name, path in files.items()}
    assert after != before
    assert all(same_form(before[name], after[name]) for name in files)


@pytest.mark.parametrize("written", ["CRLF", "BOM"])
def test_a_patch_of_a_prompt_file_keeps_the_encoding_and_line_ends(
    written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    project("sherma", rewritten=LINES)
    manifest, prompt = Path("agent.yaml"), Path("answer.md")
    head, _, rest = manifest.read_text().partition("    instructions: |\n")
    manifest.write_text(f"{head}    instructions_path: answer.md\n{rest[rest.index('llms') :]}")
    prompt.write_bytes(WRITTEN[written](b"Rules: briefly: [no\n\nmore.\n"))
    before = prompt.read_bytes()
    (read,) = json.loads(run("prompts", "agent.yaml", "--json").output)
    assert read["text"] == "Rules: briefly: [no\n\nmore.\n"
    evolve_and_apply("agent.yaml")
    assert prompt.read_bytes() != before
    assert same_form(before, prompt.read_bytes())


@pytest.mark.parametrize("written", ["CRLF", "BOM"])
def test_a_patch_of_a_temperature_keeps_the_encoding_and_line_ends(
    written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    agent = project("loki", when="has(request.params.temperature)")
    manifest = Path(next(iter(agent.files)))
    manifest.write_bytes(before := WRITTEN[written](manifest.read_bytes()))
    evolve_and_apply(manifest.name, "temperature_adjustment")
    assert same_form(before, manifest.read_bytes())


@pytest.mark.parametrize("name", ["my agent.yaml", "größe.yaml", 'a"b.yaml'])
def test_a_file_of_any_name_is_patched(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    project("sherma")
    Path("agent.yaml").rename(name)
    scenarios = Path("a.scenario.yaml")
    scenarios.write_text(
        scenarios.read_text().replace("manifest: agent.yaml", f"manifest: {json.dumps(name)}")
    )
    evolve_and_apply(name)


def test_a_json_patch_of_a_variant_applies_to_a_file_with_crlf_and_a_byte_order_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    project("sherma")
    manifest = Path("agent.yaml")
    manifest.write_bytes(WRITTEN["both"](manifest.read_bytes()))
    Path("v.yaml").write_text(
        "harness: 1\nvariants:\n  - name: wand\n"
        "    edit: [{op: replace, path: /prompts/0/instructions, value: Use the WAND.}]\n"
        "  - {name: other, prompts: {answer: The WAND.}}\n"
    )
    before = manifest.read_bytes()
    result = run("score", "a.scenario.yaml", "--variants", "v.yaml", "--require", "wand")
    assert result.exit_code == 0, result.output
    assert manifest.read_bytes() == before
