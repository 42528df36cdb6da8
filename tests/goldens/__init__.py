"""Golden texts: what every command writes, frozen as readable files. See `tests/test_goldens.py`."""
