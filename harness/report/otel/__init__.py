"""Runs as OpenTelemetry spans, made from their traces by `harness export`. Nothing here is used while scenarios run.

traces/*.jsonl.gz ─▶ spans.py, effects.py: plain spans ─▶ encoding.py: those of OpenTelemetry ─▶ a file, collector.py

The names are those of the GenAI semantic conventions (docs/opentelemetry.md). The last two need packages of
OpenTelemetry.
"""
