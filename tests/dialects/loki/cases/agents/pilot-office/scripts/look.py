import json
import os

names = ("TIDE_MARK", "LLM_AGENT_VAR_PORT_NAME", "LLM_AGENT_VAR_BERTH", "GRAPH_STATE_FILE")
print(json.dumps({"told": [os.environ.get(name) for name in names]}))
