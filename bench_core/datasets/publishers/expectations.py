"""Expected row counts, labels and value range, used to verify a publisher's files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from bench_core.splits import Splits

_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class Facts:
    """Of the whole set (profile ``paper``, fold 0, seed 0), each where it is known.

    ``rows`` of train, valid and test (0: not known), or of all three together; ``features``;
    ``labels``: how many rows of the three splits together have each label; ``low`` and ``high``
    bound all cells that are not missing.
    """

    rows: tuple[int, ...] = ()
    features: int = 0
    labels: Mapping[float, int] = field(default_factory=dict)
    low: float = -np.inf
    high: float = np.inf

    def faults(self, splits: Splits) -> list[str]:
        """What does not fit, in words; empty where all does."""
        parts = (splits.train, splits.valid, splits.test)
        found = tuple(len(p) for p in parts)
        if len(self.rows) == 1:
            found = (sum(found),)
        faults = []
        if any(w not in (0, f) for w, f in zip(self.rows, found, strict=False)):
            faults.append(f"{_slashed(found)} rows instead of {_slashed(self.rows)}")
        features = splits.train.X.shape[1]
        if self.features not in (0, features):
            faults.append(f"{features} features instead of {self.features}")
        if self.labels:
            y = np.concatenate([p.y for p in parts])
            values, counts = np.unique(y, return_counts=True)
            labels = dict(zip(values.tolist(), counts.tolist(), strict=True))
            if labels != dict(self.labels):
                faults.append(f"labels {labels} instead of {dict(self.labels)}")
        low, high = _range(splits)
        if low < self.low or high > self.high:
            faults.append(f"values {low:g} to {high:g} outside {self.low:g} to {self.high:g}")
        return faults


def _slashed(numbers: tuple[int, ...]) -> str:
    return "/".join(str(n) if n else "?" for n in numbers)


def _range(splits: Splits) -> tuple[float, float]:
    low, high = np.inf, -np.inf
    for part in (splits.train, splits.valid, splits.test):
        for start in range(0, len(part), _BLOCK):
            known = part.X[start : start + _BLOCK]
            known = known[~np.isnan(known)]
            if known.size:
                low, high = min(low, float(known.min())), max(high, float(known.max()))
    return low, high
