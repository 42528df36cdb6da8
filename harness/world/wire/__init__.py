"""The wire formats of model providers and of plain HTTP, for the server and for intercepted clients."""
