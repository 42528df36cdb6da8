printf '{"_next": "%s"}' "$(python3 -c 'import json, os; print(json.loads(os.environ["GRAPH_STATE"])["lane"])')"
