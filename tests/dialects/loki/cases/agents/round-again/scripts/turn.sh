python3 - <<'P'
import json,os
s=json.loads(os.environ["GRAPH_STATE"])
print(json.dumps({"_next":"ask"} if s["m"]=="more" else {}))
P
