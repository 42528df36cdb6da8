"""Convert traces to OpenTelemetry spans, for `harness export`. Not used while scenarios run.

traces/*.jsonl.gz ─▶ spans.py, effects.py: plain spans ─▶ encoding.py: OpenTelemetry spans ─▶ a file, or collector.py

Names follow the GenAI semantic conventions (docs/opentelemetry.md). encoding.py and collector.py need packages of
OpenTelemetry (the extra `otel`).
"""
