#!/usr/bin/python
import json

print(json.dumps({"j": 2}))
