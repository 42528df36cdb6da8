"""Answers any client from the stubs of a scenario, over real sockets: `from harness.serve import serving`.

One wire format a module (`openai`, `responses`, `anthropic`, `http`, `mcp`), all answered by one `Desk`.
"""

from harness.serve.responder import Asked
from harness.serve.server import Serving, serving

__all__ = ["Asked", "Serving", "serving"]
