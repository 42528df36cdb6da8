import json
import os

print(json.dumps({"seen": os.environ["GRAPH_STATE"].count("[")}))
