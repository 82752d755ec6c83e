"""Stage-wise additive boosting under feature costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bench_trees.settings import Settings

if TYPE_CHECKING:
    from bench_trees.binning import Bins
    from bench_trees.ensemble import Ensemble
    from bench_trees.losses import Loss
    from bench_trees.penalties import Ledger, Penalty


def boost(
    codes: NDArray[np.uint8],
    bins: Bins,
    y: NDArray[np.float64],
    *,
    loss: str | Loss = "squared",
    settings: Settings | None = None,
    penalty: Penalty | None = None,
    multiplicity: NDArray[np.int64] | None = None,
    weights: NDArray[np.float64] | None = None,
    queries: NDArray[np.int64] | None = None,
    ledger: Ledger | None = None,
    threads: int = 1,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Ensemble:
    """Boost trees on binned rows.

    ``codes`` uint8 (d, n) from ``bins.codes``; may be a read-only memory map. ``y`` (n,): targets,
    0/1, class numbers or grades, as the loss wants. ``loss``: ``"squared"``, ``"logistic"``,
    ``"softmax"`` (classes from y), ``"lambdarank"``, or a ``Loss`` such as ``Softmax(26)``.
    ``multiplicity`` (n,) >= 1: copies a row stands for, in loss and cost. ``weights`` (n,) > 0:
    touch the loss, never the cost. ``queries``: row boundaries (q+1,), lambdarank only.
    ``ledger``: purchases so far (default none; updated in place, so that several calls may
    share it). ``progress(done, total)`` is called after every iteration. Trees of one iteration
    are K consecutive ones. The result has the same bits for any number of threads.
    """
    raise NotImplementedError
