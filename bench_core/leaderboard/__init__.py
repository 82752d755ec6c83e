"""The content of a leaderboard, for every format and for Python: rows, curves, what a budget buys.

``assembly`` makes a ``Board`` from the export rows of a run; reports only write it down.
"""
