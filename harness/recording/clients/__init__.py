"""The HTTP clients that are met, a module for each family: how its requests are taken and its answers given."""
