"""The content of a leaderboard, for every format and for Python: rows, curves, purchases.

``assembly`` makes a ``Board`` from the export rows of a run; reports only write it down.
"""
