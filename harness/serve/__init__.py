"""Answers any client over real sockets from the stubs of a scenario: `from harness.serve import serving`.

`app` reads requests in the wire formats of `harness.world.wire`; a `StubResponder` answers them all.
"""

from harness.serve.responder import ServedRequest
from harness.serve.server import Serving, serving

__all__ = ["ServedRequest", "Serving", "serving"]
