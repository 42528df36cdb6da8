"""The HTTP of this process, intercepted while a scenario runs: a module for each family of clients."""
