"""The stdio server of `test_mcp_sdk.py`, as a program that first runs the code it is given."""

import runpy
import sys
from pathlib import Path

exec(sys.argv[1])
runpy.run_path(str(Path(__file__).with_name("test_mcp_sdk.py")), run_name="__main__")
