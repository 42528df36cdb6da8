"""Convert traces to OpenTelemetry spans, for `harness export`. Not used while scenarios run.

traces/*.jsonl.gz ─▶ spans.py, effects.py: plain spans ─▶ collector.py: OpenTelemetry spans ─▶ a file, or a collector

Names follow the GenAI semantic conventions (docs/opentelemetry.md). collector.py needs packages of OpenTelemetry (the
extra `otel`).
"""
