"""Measurement of a judge's agreement with people, from rows that people have labelled.

labels.csv ─▶ document.py: rows and judge ─▶ asking.py: its grades (recorded or stubbed) ─▶ measure.py ─▶ text.py
"""
