"""Agent Spec 25.4.1: agents and flows of components, read into graphs."""
