"""What the sets of P. Turney's prices share: one drawing of blood, and labels of known kinds.

P. Turney, "Cost-sensitive classification", JAIR 2 (1995), dollars of Ontario's health programme.
Blood is drawn once: every blood test after the first costs 2.10 less.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from bench_core import DiscountGroup, InputError, Prices, price_list
from bench_core.arrays import FloatArray
from bench_core.datasets.readers.tables import Table

DRAWING_BLOOD = 2.10


def turney_prices(
    cost: Mapping[str, float],
    blood: Sequence[str],
    derived: Mapping[int, Sequence[int]] | None = None,
) -> Prices:
    """Full prices, and the discount where ``blood`` names tests of one sample.

    ``derived``: columns that are free once the columns they are computed from are bought.
    """
    names = list(cost)
    members = tuple(names.index(test) for test in blood)
    later = tuple(cost[test] - DRAWING_BLOOD for test in blood)
    return price_list(
        np.array(list(cost.values())),
        discounted=[DiscountGroup(members, later)] if blood else [],
        derived=derived,
        unit="dollars",
    )


def read_labels(table: Table, column: str, known: Sequence[int]) -> FloatArray:
    """A column (n,) of labels. Raises InputError at the first that is not one of the known."""
    labels: FloatArray = table.numbers(column, missing=False)
    for row in np.flatnonzero(~np.isin(labels, known)).tolist():
        raise InputError(
            f"{table.place(row)}: label {labels[row]:g} is not one of {list(known)}; "
            "get the file again"
        )
    return labels
