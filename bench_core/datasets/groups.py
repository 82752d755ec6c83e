"""Columns that share one sensor: ``--group a,b,c:5``."""

import math
from collections.abc import Sequence
from fnmatch import fnmatchcase

import numpy as np

from bench_core.costs.model import ContradictionError, price_list
from bench_core.datasets.encoding import positions
from bench_core.datasets.priced import same_sensors
from bench_core.errors import UsageError, unknown
from bench_core.splits import Splits


def under_groups(splits: Splits, groups: Sequence[str], before: Splits | None = None) -> Splits:
    """The same data, where the columns of a group, ``a,b,c:5`` or ``hist_*:5``, share one sensor;
    without a cost it costs what each of them does.

    The other columns keep their prices. ``before``: the data as they were, in these groups, before
    they got costs; a model built on those prices holds them already. Raises UsageError, also where
    the prices are not one for each column.
    """
    if not groups:
        return splits
    if splits.cost_model is not None and before and same_sensors(before.prices, splits.costs):
        return splits
    own, columns = splits.prices, [*dict.fromkeys(splits.columns)]
    number = [*positions(splits.columns)]
    sensors = [tuple(own.sensors_of(number.index(j))) for j in range(len(columns))]
    if (
        splits.cost_model is not None
        or len({*sensors}) < len(columns)
        or own.sensors > len(columns)
    ):
        raise UsageError(
            f"--group {groups[0]}: the costs have a model or groups of their own; write this one "
            "there too, under the key 'shared'"
        )
    cost = np.array([own.sensor[list(needed)].sum() for needed in sensors])
    shared = []
    for group in groups:
        words, colon, price = group.rpartition(":")
        words = words if colon else group
        members = [j for word in words.split(",") for j in _matching(group, word.strip(), columns)]
        if colon:
            cost[members] = _amount(group, price)
        shared.append(members)
    try:
        prices = price_list(
            cost, shared=shared, split=own.split, tree=own.tree, unit=own.unit, names=columns
        )
    except ContradictionError as error:
        raise UsageError(f"--group: {error}") from error
    return splits.under(prices.of_columns(number))


def _amount(group: str, text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        amount = math.nan
    if not 0 <= amount < math.inf:
        raise UsageError(f"--group {group}: {text!r} is no cost; write COLUMN,COLUMN:COST")
    return amount


def _matching(group: str, word: str, columns: Sequence[str]) -> list[int]:
    found = [j for j, name in enumerate(columns) if name == word or fnmatchcase(name, word)]
    if not found:
        raise UsageError(f"--group {group}: {unknown('column', word, columns)}")
    return found
