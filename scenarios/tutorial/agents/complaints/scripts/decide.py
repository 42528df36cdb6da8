"""Decide what to offer."""

import json
import os

state = json.loads(os.environ["GRAPH_STATE"])
print(json.dumps({"offer": f"a new {state['item']}" if state["broken"] else "an apology"}))
