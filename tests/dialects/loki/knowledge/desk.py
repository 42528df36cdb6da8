"""A Loki agent with a rag node, with documents in its folder and scenarios for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.scenario.load import load_file
from harness.scenario.outcome import Outcome
from harness.scenario.run import run_scenario
from harness.settings import RecordMode, load_settings

EMBEDDINGS = "https://api.openai.com/v1/embeddings"
GRAPH = """\
version: "1.0"
start: recall
nodes:
  recall:
    type: rag
    documents: {documents}
    embedding_model: {model}
    chunk_size: {size}
    chunk_overlap: {overlap}
    state_updates: {{context: "{{{{output.context}}}}", sources: "{{{{output.sources}}}}"}}
    next: done
  done: {{type: end, output: "{{{{context}}}}"}}
"""
VECTOR = "{index: 0, embedding: [1, 0]}"


class Desk:
    """The agent `desk`, with documents in its folder, and scenarios for it."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.folder = self.project / "agents/desk"
        self.base = self.folder / "recall.yaml"
        self.write("../../pyproject.toml", "")
        self.graph()

    def write(self, name: str, content: str | bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def graph(
        self,
        documents: str = "[./mill.md]",
        model: str = "openai:small",
        size: int = 400,
        overlap: int = 40,
    ) -> None:
        self.write("graph.yaml", GRAPH.format(documents=documents, model=model, size=size, overlap=overlap))
        self.write("mill.md", "The mill closed in 1931.")

    def run(self, keys: str = "retrieval: {recall: real}", mode: RecordMode | None = None) -> Outcome:
        """Run the agent with the input `mill`."""
        lines = "".join(f"  {line}\n" for line in keys.splitlines())
        file = self.project / "it.scenario.yaml"
        head = "harness: 1\nmanifest: agents/desk\nenv_passthrough: [OPENAI_BASE_URL, OPENAI_API_KEY]\n"
        file.write_text(f"{head}scenarios:\n- name: it\n  input: mill\n{lines}", encoding="utf-8")
        options = load_settings(self.project)
        options = replace(options, record_mode=mode) if mode is not None else options
        (outcome,) = run_scenario(load_file(file).scenarios[0], options)
        return outcome

    def embedded(self, data: str = VECTOR, more: str = "") -> Outcome:
        """Run the agent with the embeddings response `data`; `more` are further stubs."""
        model = f"- {{url: '{EMBEDDINGS}', json: {{data: [{data}]}}, times: any}}"
        return self.run(f"retrieval: {{recall: real}}\nhttp:\n{model}\n{more}")


def error_of(outcome: Outcome) -> dict[str, Any]:
    assert outcome.observed.status == "failed", outcome.observed
    assert outcome.observed.error is not None
    return outcome.observed.error


def http_calls(outcome: Outcome) -> list[str]:
    return [call["name"] for call in outcome.observed.calls if call["kind"] == "http"]
