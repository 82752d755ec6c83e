"""What a data set prepares: three splits and their prices."""

from __future__ import annotations

from dataclasses import dataclass, field

from bench_core.costs.model import Prices
from bench_core.data import Examples, Task


@dataclass(frozen=True, slots=True, eq=False)
class Splits:
    """What a data set prepares: three splits, their prices, and what they are.

    ``fingerprint`` is a sha256 over all arrays, prices left out (filled in by the prepared-data
    cache); ``notes`` are one-line remarks shown to the user (a sample, assumed costs).
    """

    train: Examples
    valid: Examples
    test: Examples
    prices: Prices
    task: Task
    classes: int = 0  # 2 for binary, K for multiclass, 0 otherwise
    feature_names: tuple[str, ...] = ()
    stand_in: bool = False
    notes: tuple[str, ...] = field(default=())
    fingerprint: str = ""
