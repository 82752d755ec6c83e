"""Budgets: what a row may cost, on average, for 95% of rows, or for every row."""

from typing import NamedTuple

KINDS = ("mean", "p95", "cap")


class Budget(NamedTuple):
    """What a row may cost, in the unit of the data set's prices.

    ``kind``: ``mean`` bounds the mean cost, ``p95`` the cost of 95% of rows, both when a point is
    chosen on validation; ``cap`` bounds every row's own cost, and is enforced at prediction.
    """

    amount: float
    kind: str = "mean"
