"""The servers that receive and send planted secrets."""

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.recording.planted.values import ECHO, LITERAL, VARIABLES
from tests.recording.safety import said
from tests.world.loopback import CannedReply, ReceivedRequest


@dataclass
class World:
    """All servers of the scenarios. `asked` has all data that reached them."""

    asked: list[ReceivedRequest] = field(default_factory=list)

    def __call__(self, asked: ReceivedRequest) -> CannedReply:
        self.asked.append(asked)
        path = urlsplit(asked.path).path
        if path == "/oauth":
            cookie = f"session={LITERAL['cookie of a response']}; Path=/; HttpOnly"
            token = {"access_token": LITERAL["access token of a response"], "expires_in": 3600}
            return CannedReply(json=token, headers={"set-cookie": cookie})
        if path == "/parcels":
            return CannedReply(json={"parcels": 2, "seen": asked.headers["authorization"]})
        if path == "/v1/messages":
            return anthropic(asked)
        return openai(asked)

    def heard(self) -> bytes:
        return b"\n".join(
            b" ".join([asked.path.encode(), json.dumps(dict(asked.headers)).encode(), asked.body])
            for asked in self.asked
        )


def openai(asked: ReceivedRequest) -> CannedReply:
    request = asked.json
    last = request["messages"][-1]["content"]
    if "refuse me" in last:
        return CannedReply(json={"error": {"message": ECHO, "code": "invalid_api_key"}}, status=401)
    if not request.get("stream"):
        return said(f"You said {last!r}.")
    secret = VARIABLES["STREAMED_PASSWORD"]
    parts = ["The password is ", secret[:3], secret[3:9], secret[9:], "."]
    return CannedReply(events=[chunk(part) for part in parts] + [chunk(None), "[DONE]"])


def chunk(part: str | None) -> dict[str, object]:
    choice = {
        "index": 0,
        "delta": {"content": part} if part else {},
        "finish_reason": None if part else "stop",
    }
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def anthropic(asked: ReceivedRequest) -> CannedReply:
    """Calls every tool once, then repeats the results."""
    request = asked.json
    last = request["messages"][-1]["content"]
    results = [block for block in last if block["type"] == "tool_result"] if isinstance(last, list) else []
    if results:
        content: list[dict[str, Any]] = [{"type": "text", "text": f"The tools say {json.dumps(results)}"}]
    else:
        content = [
            {"type": "tool_use", "id": f"toolu_{number}", "name": tool["name"], "input": {}}
            for number, tool in enumerate(request["tools"])
        ]
    whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5"}
    usage = {"input_tokens": 3, "output_tokens": 2}
    reason = "end_turn" if results else "tool_use"
    return CannedReply(json={**whole, "content": content, "stop_reason": reason, "usage": usage})


VAULT = '''\
"""An MCP server on stdin and stdout whose tool tells the secret of its environment."""
import json, os, sys

print("starting with", os.environ["VAULT_TOKEN"], file=sys.stderr, flush=True)
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("open_vault", "unlock")]

def answer(method, params):
    if method == "initialize":
        info = {"name": "vault", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": TOOLS}
    if params["name"] == "unlock":
        return told(json.dumps({"access_token": "mcp-access-6Yhn7Ujm", "door": 3}))
    return told("opened with " + os.environ["VAULT_TOKEN"])

def told(text):
    return {"content": [{"type": "text", "text": text}]}

for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        result = answer(asked["method"], asked.get("params"))
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
'''
