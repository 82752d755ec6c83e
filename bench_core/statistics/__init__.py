"""Certainty of a board: one hierarchical paired bootstrap, and statistics of its draws.

``bootstrap`` draws units and repeats the choice of the operating point on every draw;
``repeats`` reads them from a store and joins them; ``comparison`` gives intervals, p-values, tie
tiers and rank intervals.
"""

LEVEL = 0.95
"""The confidence level of intervals, ties and tests of differences."""

CONFIDENCE = f"{LEVEL:.0%}"

WIDE_LEVEL = 0.99
"""That of the wide interval of a saving."""

NORMAL_QUANTILE = 1.96
"""The two-sided normal quantile of ``LEVEL``, of three digits as in tables."""
