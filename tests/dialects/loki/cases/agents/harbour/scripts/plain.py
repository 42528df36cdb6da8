import json
import os

# such as API_KEY
names = sorted(name for name in os.environ if "KEY" in name or "GRAPH" in name)
here = sorted(os.listdir())
print(json.dumps({"size": len(os.environ["GRAPH_STATE"]), "names": names, "here": here}))
