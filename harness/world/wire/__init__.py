"""The wire formats of model providers, and of plain HTTP: what servers and intercepted clients have in common."""
