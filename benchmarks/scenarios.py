"""Scenario files for the benchmarks, written in block YAML, as people write them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

MANIFESTS = Path(__file__).parent / "manifests"

TEXT = "I was charged twice"
REPLIES = ('{"intent": "billing"}', "Your refund is on its way.")
PATH = ("receive", "classify", "sort", "answer", "close")

QUESTION = {"email": "ada@example.com", "question": "Was I charged twice?"}
KIND = "billing"
CHARGES = 2

PARCELS = 1000


def triage(number: int) -> dict[str, Any]:
    """Return a scenario of the five-node graph: all five nodes run, and five properties are checked."""
    return {
        "name": f"a double charge is refunded, case {number}",
        "input": f"{TEXT} in order {number}",
        "llm": {"classify": [REPLIES[0]], "answer": [REPLIES[1]]},
        "expect": {
            "path": list(PATH),
            "state": {"intent": "billing", "status": "closed"},
            "output": {"$contains": "refund"},
            "call_counts": {"llm": 2},
            "usage": {"llm_calls": 2},
        },
    }


def charges() -> dict[str, Any]:
    """Return a scenario of the Agent Spec flow: five of its six nodes run, and five properties are checked."""
    return {
        "name": "charges are counted",
        "input": QUESTION,
        "llm": {"sort": [KIND]},
        "tools": {"find_charges": {"return": CHARGES}},
        "expect": {
            "path": ["start", "sort", "choose", "look_up", "end"],
            "output": {"charges": CHARGES},
            "routes": [{"from": "choose", "to": "look_up"}],
            "call_counts": {"llm": 1, "tool": 1},
            "usage": {"llm_calls": 1},
        },
    }


def parcels(handlers: str) -> dict[str, Any]:
    """Return a scenario of the Yagra fan-out, with the handlers in the module `handlers`."""
    return {
        "name": "parcels are weighed side by side",
        "input": {"count": PARCELS},
        "handlers": {name: f"{handlers}.{name}" for name in ("collect", "weigh", "add_up")},
        "expect": {
            "visits": {"collect": 1, "weigh": PARCELS, "add_up": 1},
            "checks": [{"that": "latency.total == 1.0"}],
        },
    }


PLACE, PERMIT, REMARK, CHANGED = "a bonfire", "May burn.", "until ten", "May burn until ten."


def permits() -> dict[str, Any]:
    """Return a scenario of the Loki graph agent: its five nodes run, and two of them ask a person."""
    return {
        "name": "a permit is changed",
        "input": PLACE,
        "llm": {"draft": [PERMIT], "write": [CHANGED]},
        "human": {"sign": ["change"], "ask": [REMARK]},
        "expect": {"path": ["draft", "sign", "ask", "write", "done"], "output": CHANGED},
    }


def echo() -> dict[str, Any]:
    """Return a scenario of the Loki graph agent with a script."""
    return {"name": "a script says hello", "input": "go", "expect": {"output": "hello"}}


WIDTH = 50
WORKER = {"agent_type": "llm", "prompt": "Weigh it.", "auto_store_yields": False}
"""An agent whose output is not added to the prompts of later agents, which would grow with the number of agents."""


def mesh(agents: int) -> dict[str, Any]:
    """Return a LeafMesh mesh of that many agents: a hub calls 50 workers, the next hub waits for all of them, etc."""
    found: dict[str, Any] = {}
    workers: list[str] = []
    hub = 0
    while len(found) < agents:
        name = f"hub_{hub}"
        found[name] = {"agent_type": "programmatic", "wait_for_timeout": 1000}
        if workers:
            found[name]["wait_for"] = " AND ".join(workers)
        left = agents - len(found)
        workers = [f"worker_{hub}_{at}" for at in range(min(WIDTH, left - 1))] if left > 1 else []
        found[name]["can_call"] = [{"agent": worker, "condition": "parcels > 0"} for worker in workers]
        found |= {worker: dict(WORKER) for worker in workers}
        hub += 1
    return {"name": "depot", "entry_points": [{"name": "go", "target": "hub_0"}], "agents": found}


def write_mesh(path: Path, agents: int) -> Path:
    """Write that mesh to a file, and return its path."""
    path.write_text(_yaml(mesh(agents)), encoding="utf-8")
    return path


def depot(agents: int, seed: int) -> dict[str, Any]:
    """Return a scenario of that mesh. The seed determines how long each worker takes, and so which have to wait."""
    draw = random.Random(seed)
    names = mesh(agents)["agents"]
    hubs = [name for name in names if name.startswith("hub")]
    workers = [name for name in names if name not in hubs]
    return {
        "name": f"{agents} agents",
        "seed": seed,
        "timeout": 10_000,
        "input": {"parcels": agents},
        "scripts": {hub: {"return": {"parcels": agents}} for hub in hubs},
        "llm": {
            worker: [{"json": {"weight": at}, "latency": round(draw.uniform(0.1, 9), 3)}]
            for at, worker in enumerate(workers)
        },
        "faults": [{"effect": "llm", "rate": 0.1, "latency": 20}],
        "expect": {
            "visits": dict.fromkeys(names, 1),
            "call_counts": {"llm": len(workers), "script": len(hubs)},
            "state": {hubs[-1]: {"parcels": agents}},
        },
    }


def history(length: int) -> list[dict[str, str]]:
    """Return a conversation of that many messages, as an input has it."""
    return [
        {"role": "ai" if at % 2 else "human", "content": f"message {at} of a long conversation"}
        for at in range(length)
    ]


def rounds(count: int) -> list[str]:
    """Return the replies that make the chat loop that many times."""
    return [*(f"reply {at}" for at in range(count - 1)), "done"]


def chat(length: int, count: int) -> dict[str, Any]:
    """Return a scenario of the looping graph: a conversation of `length` messages continues for `count` rounds."""
    return {
        "name": f"{length} messages, {count} rounds",
        "input": {"messages": history(length)},
        "llm": rounds(count),
        "expect": {"visits": {"talk": count}},
    }


def write(path: Path, manifest: str, scenarios: Sequence[dict[str, Any]], dialect: str = "sherma") -> Path:
    """Write these scenarios to a file, and return its path."""
    document = {
        "harness": 1,
        "manifest": str(MANIFESTS / manifest),
        "dialect": dialect,
        "scenarios": list(scenarios),
    }
    path.write_text(_yaml(document), encoding="utf-8")
    return path


def _yaml(document: dict[str, Any]) -> str:
    text: str = yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
    return text
