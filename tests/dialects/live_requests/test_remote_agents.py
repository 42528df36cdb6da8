"""In live mode models and servers are asked what sherma 1.8 asks remote agents. The bodies are theirs.

`stream: false`, which some leave out, is what they mean.
"""

from __future__ import annotations

import json

from tests.dialects.live_requests.answers import (
    Live,
    said_by_tools,
    says,
)
from tests.dialects.live_requests.manifest import sherma
from tests.world.loopback import CannedReply, loopback

REMOTE = sherma(
    "use_sub_agents_as_tools: true",
    top='sub_agents: [{id: harbour, version: 1.0.0, url: "SERVER/agent"}]',
)


def card(url: str | None = None, **capabilities: bool) -> CannedReply:
    """Return the card of a remote agent. Without `url`, its calls go to the address of the card."""
    return CannedReply(json={"description": "Knows the harbour", "url": url, "capabilities": capabilities})


def test_a_remote_agent_of_sherma_is_introduced_by_its_card(live: Live) -> None:
    answer = {"kind": "message", "role": "agent", "parts": [{"kind": "text", "text": "berth two"}]}
    answers = [
        card(),
        says(None, ("harbour", {"request": "any berth?"})),
        CannedReply(json={"jsonrpc": "2.0", "id": 1, "result": answer}),
        says(),
    ]
    first, model, agent, last = live({"agent.yaml": REMOTE}, answers)
    assert (first.method, first.path) == ("GET", "/agent/.well-known/agent-card.json")
    assert model.json["tools"][0]["function"]["description"] == "Knows the harbour"
    asked = agent.json
    assert asked["params"]["message"].pop("messageId")
    assert asked == {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "message/send",
        "params": {
            "configuration": {"acceptedOutputModes": [], "blocking": True},
            "message": {"kind": "message", "role": "user", "parts": [{"kind": "text", "text": "any berth?"}]},
        },
    }
    assert said_by_tools(last) == ["berth two"]


def test_a_remote_agent_that_streams_is_asked_for_a_stream(live: Live) -> None:
    told = [
        {"kind": "task", "id": "t", "status": {"state": "working"}},
        {
            "kind": "artifact-update",
            "artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": "berth"}]},
        },
        {
            "kind": "artifact-update",
            "artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": "six"}]},
        },
        {"kind": "status-update", "status": {"state": "completed"}},
    ]
    events = [json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}) for result in told]
    answers = [
        card(streaming=True),
        says(None, ("harbour", {"request": "any berth?"})),
        CannedReply(events=events),
        says(),
    ]
    _, _, agent, last = live({"agent.yaml": REMOTE}, answers)
    assert (agent.json["method"], agent.headers["accept"]) == ("message/stream", "text/event-stream")
    assert said_by_tools(last) == ["berth six"]


def test_a_remote_agent_is_asked_where_its_card_says(live: Live) -> None:
    answer = {"kind": "message", "role": "agent", "parts": [{"kind": "text", "text": "berth two"}]}
    with loopback(CannedReply(json={"result": answer})) as elsewhere:
        asks = says(None, ("harbour", {"request": "any berth?"}))
        live({"agent.yaml": REMOTE}, [card(f"{elsewhere.url}/rpc"), asks, says()])
    assert [asked.path for asked in elsewhere.asked] == ["/rpc"]
