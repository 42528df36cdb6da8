"""Traces of other tools, read as the traces of runs.

file ──▶ reading ──▶ otel, langsmith, langfuse, … ──▶ spans ──▶ calls ──▶ turns ──▶ conversations ──▶ RunTrace
         (format)    (fields; values by messages)               (one each)                            (missing)
"""
