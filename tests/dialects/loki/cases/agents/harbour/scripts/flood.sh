yes '{"a": 1}' | head -c 20000000
