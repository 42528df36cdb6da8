#!/usr/bin/env bash
printf "%s" "$GRAPH_STATE" | python3 -c "import json, sys; sys.stdout.buffer.write(bytes.fromhex(json.load(sys.stdin)[\"hex\"]))"
