"""A project whose scenarios send and receive planted secrets."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.serve import serving
from tests.recording.planted.agents import ASKED, GATE, GUIDE, RAISES, STREAM, TOOLS, logging_in, unlocking
from tests.recording.planted.servers import VAULT, World
from tests.recording.planted.values import LOGIN, VARIABLES
from tests.recording.safety import Project
from tests.world.loopback import answering

SCENARIOS = """\
harness: 1
env_passthrough: [CRM_TOKEN, VAULT_TOKEN, DESK_TOKEN, DESK_URL]
scenarios:
  - name: guide
    manifest: guide.yaml
    cassette: guide
    tools: {whisper: real}
    input: Open the vault.
    expect: {output: {$contains: psst}, call_counts: {mcp: 3, tool: 1}}
  - {name: flow, manifest: flow.json, cassette: flow, input: {}, expect: {output: {seen: {$contains: Bearer}}}}
  - name: unlock
    manifest: unlock.json
    cassette: unlock
    input: {password: arg-2Wsx3Edc4Rfv}
    expect: {output: {seen: {$contains: Bearer}}}
  - name: stream
    manifest: stream.yaml
    cassette: stream
    input: {who: parrot}
    handlers: {join: planted_tools.join}
    expect: {state: {told: {$contains: password}}}
  - {name: gate, manifest: gate.yaml, cassette: gate, input: {who: parrot}, handlers: {join: planted_tools.join}}
  - name: refused
    manifest: says.yaml
    cassette: refused
    input: refuse me
    expect: {status: failed, error: {message: {$contains: Incorrect}}}
  - name: raised
    manifest: raises.yaml
    cassette: raised
    input: {}
    handlers: {burst: planted_tools.burst}
    expect: {status: failed, error: {message: {$contains: cannot log in}}}
  - {name: asked, manifest: asked.yaml, cassette: asked, expect: {output: {$contains: You said}}}
"""
# They are recorded, and what they show is all there is to show.
FAILING = """\
harness: 1
env_passthrough: [CRM_TOKEN, VAULT_TOKEN, DESK_TOKEN, DESK_URL]
scenarios:
  - name: guide fails
    manifest: guide.yaml
    cassette: guide-fails
    tools: {whisper: real}
    input: Open the vault.
    expect: {output: nothing, state: {messages: []}, calls: [{tool: none}], never_calls: [{mcp: "*"}]}
  - name: flow fails
    manifest: flow.json
    cassette: flow-fails
    input: {}
    expect: {output: {seen: none}, never_calls: [{http: "*"}]}
  - name: unlock fails
    manifest: unlock.json
    cassette: unlock-fails
    input: {password: arg-2Wsx3Edc4Rfv}
    expect: {output: {seen: none}, never_calls: [{http: "*"}, {mcp: "*"}]}
  - name: stream fails
    manifest: stream.yaml
    cassette: stream-fails
    input: {who: parrot}
    handlers: {join: planted_tools.join}
    expect: {state: {told: none}}
  - name: raised fails
    manifest: raises.yaml
    cassette: raised-fails
    input: {}
    handlers: {burst: planted_tools.burst}
  - {name: refused fails, manifest: says.yaml, cassette: refused-fails, input: refuse me}
  - {name: nobody is asked, manifest: asked.yaml, cassette: nobody}
"""
PROMPTS = "tell: {system: Tell., user: 'What is it, {who}?'}"
SAYS = ASKED.replace("entry_point: ask", "entry_point: say").replace(
    "edges: [{source: ask, target: say}]", "edges: []"
)
SAYS = SAYS.replace(
    """        - {name: ask, type: interrupt, args: {value: '"What is the password?"'}}\n""", ""
)
DESK = """\
harness: 1
scenarios:
  - name: desk
    manifest: raises.yaml
    mcp: {desk: {tools: [{name: ring, stubs: [{return: ding}]}]}}
"""


@contextmanager
def planted(folder: Path) -> Iterator[tuple[Project, World, dict[str, str]]]:
    """The project, its servers, and the variables with their addresses and the secrets."""
    world = World()
    with answering(world) as url:
        project = Project(folder)
        files = {
            "guide.yaml": GUIDE.replace("PYTHON", sys.executable), "asked.yaml": ASKED, "says.yaml": SAYS,
            "stream.yaml": STREAM, "gate.yaml": GATE, "raises.yaml": RAISES, "flow.json": logging_in(url),
            "unlock.json": unlocking(url), "prompts.yaml": PROMPTS, "planted_tools.py": TOOLS, "vault.py": VAULT,
            "planted.scenario.yaml": SCENARIOS, "failing.scenario.yaml": FAILING,
            "desk/desk.scenario.yaml": DESK, "desk/raises.yaml": RAISES,
        }  # fmt: skip
        for name, text in files.items():
            project.write(name, text)
        with serving(project.folder / "desk/desk.scenario.yaml") as desk:
            places = {
                "OPENAI_BASE_URL": f"{url}/v1",
                "VLLM_BASE_URL": url.replace("://", f"://user:{LOGIN}@") + "/v1",
                "ANTHROPIC_BASE_URL": url,
                "DESK_URL": desk.mcp_urls["desk"],
                "API_URL": url,
            }
            yield project, world, {**VARIABLES, **places}
