import json
import os

state = json.loads(os.environ["GRAPH_STATE"])
want = state["want"]
base = {**state, "pad": ""}
size = len(json.dumps(base, ensure_ascii=False, separators=(",", ":")).encode())
print(json.dumps({"pad": "x" * (want - size)}))
