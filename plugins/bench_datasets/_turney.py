"""Prices of P. Turney's data sets: groups of tests with a common cost.

P. Turney, "Cost-sensitive classification", JAIR 2 (1995), dollars of Ontario's health programme.
Tests of a group share a part of their price, which is paid once: drawing blood costs 2.10, so every
blood test after the first is 2.10 cheaper.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from bench_core import DiscountGroup, Prices, price_list

DRAWING_BLOOD = 2.10  # dollars


# Shared cost of a group's tests in dollars, and their names.
Group = tuple[float, Sequence[str]]


def turney_prices(
    cost: Mapping[str, float],
    groups: Sequence[Group],
    derived: Mapping[int, Sequence[int]] | None = None,
) -> Prices:
    """Full prices by test; after the first of a group the others cost less by the shared cost.

    ``derived``: columns that are free once the columns they are computed from are bought.
    """
    names = list(cost)
    discounted = [
        DiscountGroup(
            tuple(names.index(test) for test in tests),
            tuple(round(cost[test] - common, 2) for test in tests),
        )
        for common, tests in groups
    ]
    return price_list(
        np.array(list(cost.values())), discounted=discounted, derived=derived, unit="dollars"
    )
