"""Scenarios that are found and not typed: written from runs, and changed where a review accepts a change."""
