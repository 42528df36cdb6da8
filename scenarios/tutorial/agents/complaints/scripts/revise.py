"""Have the letter written again."""

import json

print(json.dumps({"_next": "write"}))
