"""Everything that the commands say about whole suites, written into a folder outside of the project, and compared.

It takes minutes, and some 50 MB: it is for large changes of the code that must change nothing that users see.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.goldens.normal import ROOT, content, normal
from tests.goldens.session import output, part, run

Difference = Callable[[str, str, str], str]

OF_A_RUN = {
    "summary.txt": "harness summary reports --coverage",
    "summary_by_tag.txt": "harness summary reports --by tag --by dialect --by manifest",
    "summary_markdown.txt": "harness summary reports --markdown --coverage",
    "gate.txt": "harness gate reports --json gate.json --markdown gate.md",
    "export.txt": "harness export reports --file spans.jsonl --content --start 2026-01-01T00:00:00Z",
    "compare.txt": "harness compare reports reports --json compare.json",
    "baseline.txt": "harness baseline save baseline.json reports",
    "report.txt": "harness report reports -o report.html --markdown report.md --baseline reports",
    "history.txt": "harness history reports reports --json history.json",
}
"""Commands on the results of a suite, by the file with their output."""
WRITTEN = (
    "gate.json",
    "gate.md",
    "spans.jsonl",
    "compare.json",
    "baseline.json",
    "report.html",
    "report.md",
    "history.json",
)
OF_A_MANIFEST = ("show", "show --data", "show -f mermaid --data", "show -f svg", "prompts", "prompts --json")


def compare_all(folder: Path, suites: Sequence[Path], difference: Difference) -> int:
    """Write the texts of `scenarios/` and further suites that are not in the folder, and compare the others.

    Prints the differences, and returns the exit code: 1 if there are any.
    """
    written, differing = 0, []
    for suite in (ROOT / "scenarios", *suites):
        target = folder.resolve() / suite.resolve().name
        target.mkdir(parents=True, exist_ok=True)
        found = texts_of(suite.resolve())
        gone = {path.name for path in target.iterdir()} - set(found)
        for name, text in (*found.items(), *((name, "") for name in sorted(gone))):
            file = target / name
            if not file.exists():
                file.write_text(text, encoding="utf-8")
                written += 1
            elif (expected := file.read_text(encoding="utf-8")) != text:
                print(difference(f"{target.name}/{name}", expected, text))
                differing.append(f"{target.name}/{name}")
        print(f"{target.name}: {len(found)} texts, {sum(map(len, found.values())):,} characters", flush=True)
    print(f"{written} written, {len(differing)} differ", *differing, sep="\n  ")
    return 1 if differing else 0


def texts_of(suite: Path) -> dict[str, str]:
    """Run all commands on a copy of a suite, and return their texts by file name."""
    with TemporaryDirectory() as temporary:
        project = Path(temporary)
        name = suite.name
        shutil.copytree(suite, project / name, ignore=shutil.ignore_patterns("__pycache__"))
        if suite.with_name("cassettes").is_dir():
            shutil.copytree(suite.with_name("cassettes"), project / "cassettes")
        (project / "pyproject.toml").write_text("[tool.harness]\n", encoding="utf-8")
        folders = {project: "PROJECT", project.resolve(): "PROJECT"}

        def told(lines: Iterable[str]) -> str:
            ended = [(line, run([line], project, {})[0]) for line in lines]
            return normal("".join(f"$ {line}\n{output(done)}" for line, done in ended), folders)

        texts = {"run.txt": told([f"harness run {name} -v --report reports"])}
        report = [path for path in sorted((project / "reports").iterdir()) if path.is_file()]
        texts |= {path.name: content(path, folders) for path in report}
        traces = sorted((project / "reports/traces").iterdir())
        texts["traces.txt"] = "".join(part(path.name, content(path, folders)) for path in traces)
        texts["validate.txt"] = told([f"harness validate {name} --imports"])
        texts["cassettes.txt"] = told([f"harness cassettes {name}"])
        lines = [json.loads(line) for line in texts["results.jsonl"].splitlines()]
        texts["messages.txt"] = messages(lines)
        texts |= {file: told([line]) for file, line in OF_A_RUN.items()}
        texts["conversations.txt"] = told(conversations(lines))
        texts["manifests.txt"] = told(manifests(lines))
        texts |= {
            f"written_{path}": content(project / path, folders)
            for path in WRITTEN
            if (project / path).exists()
        }
        return texts


def conversations(lines: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the commands that print each run as a conversation."""
    for line in lines:
        if line["repeat"] == 0:
            yield f"harness trace {shlex.quote(line['id'])} reports"


def manifests(lines: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the commands that print each manifest."""
    for path in sorted({line["manifest"] for line in lines if line["manifest"]}):
        for words in OF_A_MANIFEST:
            command, *options = words.split()
            yield shlex.join(["harness", command, path, *options])


def messages(lines: Sequence[dict[str, Any]]) -> str:
    """Return the errors, warnings and messages of checks of results, one a line, each once, sorted."""
    found = set()
    for line in lines:
        error = line["error"] or {}
        if error:
            found.add(
                f"error {error['type']} ({error['code']}) in {error['node']} at {error['where']}: {error['message']}"
            )
        found |= {f"warning: {warning}" for warning in line["warnings"]}
        found |= {f"{check['name']}: {check['message']}" for check in line["checks"] if check["message"]}
        found |= {f"call: {call['error']}" for call in line["calls"] if call.get("error")}
    return "".join(f"{json.dumps(text, ensure_ascii=False)}\n" for text in sorted(found))
