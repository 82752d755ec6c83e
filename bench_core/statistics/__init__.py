"""Uncertainty of a board: one hierarchical paired bootstrap, and statistics of its draws.

``bootstrap`` resamples units and repeats the choice of the operating point in every draw;
``repeats`` reads them from a store and joins them; ``comparison`` computes intervals, p-values, tie
tiers and rank intervals.
"""

LEVEL = 0.95
"""Confidence level of intervals, ties and tests of differences."""

CONFIDENCE = f"{LEVEL:.0%}"

WIDE_LEVEL = 0.99
"""Confidence level of the wide interval of a saving."""

NORMAL_QUANTILE = 1.96
"""Two-sided normal quantile of ``LEVEL``, to three digits as in tables."""

SURE_ERRORS = 1.645
"""One-sided normal quantile of ``LEVEL``: by how many standard errors of the paired difference on
validation a single point exceeds a target that it is sure to reach."""

JOINT_LEVEL = 0.9
"""Level of the joint test of a learner's points: in this share of cases none of the points that
lack a target is called sure."""
