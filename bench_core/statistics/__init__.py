"""Certainty of a board: one hierarchical paired bootstrap, and statistics of its draws.

``bootstrap`` draws units and repeats the choice of the operating point on every draw;
``repeats`` reads them from a store and joins them; ``comparison`` gives intervals, p-values, tie
tiers and rank intervals.
"""
