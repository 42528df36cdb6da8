"""Exploration: draws the answers of the world, and looks for a run that breaks what must hold."""
