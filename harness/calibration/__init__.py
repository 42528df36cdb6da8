"""How far a judge agrees with people: rows that people have labelled, asked of the judge, measured.

labels.csv ─▶ document.py: rows, and which judge ─▶ asking.py: its grades (recorded, stubbed) ─▶ measure.py ─▶ text.py
"""
