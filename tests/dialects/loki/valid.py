"""A valid graph agent, which the tests change in one place."""

from __future__ import annotations

GRAPH = """\
name: desk
version: "1.0"
model: openai:gpt-4o
global_tools: [gauge.sh]
mcp_servers: [tides]
settings: {max_loop_iterations: 5, timeout: 60}
initial_state: {place: Holm}
start: read
nodes:
  read: {type: llm, prompt: "{{initial_prompt}}", tools: [gauge, flood], fallback: sorry, next: weigh}
  weigh: {type: script, script: scripts/weigh.py, fallback: sorry, next: ask}
  ask:
    id: ask
    type: approval
    question: "{{place}}?"
    options: ["yes", later]
    routes: {"yes": send, later: note}
    on_other: note
  note: {type: input, question: Why?, validation: len(input) > 0, next: send}
  send: {type: agent, agent: courier, prompt: go, tools: [ignored], next: recall}
  recall:
    type: rag
    documents: [./papers/]
    state_updates: {found: "{{output.context}}"}
    next: done
  done: {type: end, output: ok}
  sorry: {type: end}
"""
FILES = {
    "agents/desk/scripts/weigh.py": "print('{}')\n",
    "agents/desk/scripts/weigh.js": "console.log('{}')\n",
    "agents/desk/recall.yaml": "files: {}\n",
    "agents/desk/tools.py": "def flood(gauge: str): ...\n",
    "agents/courier/config.yaml": "instructions: Carry.\n",
    "agents/hollow/README.md": "",
    "agents/yml/config.yml": "instructions: Carry.\n",
    "functions/tools/gauge.sh": "# @option --gauge!\nmain() { :; }\n",
}


def changed(*changes: tuple[str, str]) -> str:
    """Return the valid graph with texts in it replaced."""
    text = GRAPH
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text
