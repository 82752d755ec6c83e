"""A data set under the costs of a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bench_core.costs.cost_file import ASSUMED_COSTS, read_costs
from bench_core.errors import InputError
from bench_core.splits import Splits


def with_costs(splits: Splits, path: str | Path) -> Splits:
    """The same data under the costs of a file."""
    prices = read_costs(path, splits.feature_names, splits.train.X.shape[1])
    if not (prices.everything or prices.split or prices.tree):
        raise InputError(f"{path}: every cost is 0; give at least one feature a cost above 0")
    notes = tuple(note for note in splits.notes if note != ASSUMED_COSTS)
    return replace(splits, prices=prices, notes=notes)
