"""Stage-wise additive boosting under feature costs."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from bench_trees.arrays import (
    BoolArray,
    Float64Array,
    Int64Array,
    UInt8Array,
    UInt64Array,
    frozen,
)
from bench_trees.binning import Bins
from bench_trees.ensemble import Ensemble
from bench_trees.fixed_point import Residuals
from bench_trees.grower import Grower
from bench_trees.kernels.growth import GrownTree
from bench_trees.kernels.packed_codes import count_words, pack
from bench_trees.losses import Gradients, Labels, Logistic, Loss, Measured, Softmax, Squared, named
from bench_trees.penalties import Ledger, Penalty
from bench_trees.settings import Settings
from bench_trees.threads import PIECE, workers

ROUNDING = 1e-9
"""Relative rounding error of a mean loss."""


def boost(
    codes: UInt8Array | UInt64Array,
    bins: Bins,
    y: Float64Array,
    *,
    loss: str | Loss = "squared",
    settings: Settings | None = None,
    penalty: Penalty | None = None,
    multiplicity: Int64Array | None = None,
    queries: Int64Array | None = None,
    ledger: Ledger | None = None,
    start: Float64Array | None = None,
    features: BoolArray | None = None,
    threads: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Ensemble:
    """Boost trees on binned rows.

    ``codes``: uint64 (ceil(d / 8), n) from ``bins.words``, or uint8 (d, n) from ``bins.codes``,
    which are first packed into words; may be a read-only memory map. ``y`` (n,): targets, 0/1,
    class numbers or grades, by the loss. ``loss``: ``"squared"``, ``"logistic"``, ``"softmax"``
    (classes from y), ``"lambdarank"``, or a ``Loss`` such as ``Softmax(26)``. ``multiplicity`` (n,)
    >= 1: copies of each row, in loss and cost. ``queries``: row boundaries (q+1,), lambdarank only.
    ``ledger``: purchases so far (default none; updated in place, so that several calls may share
    it). ``start`` (K, n): scores to which trees are added, instead of the best constant, which is
    then 0. ``features`` (d,): those that trees may test, by default all. ``progress(done, total)``
    is called after every iteration. One iteration has K consecutive trees. The result has the same
    bits for any number of threads.

    If the mean training loss rises above its start, that iteration is dropped and boosting ends.
    The ensemble is then marked ``diverged``. Only ``Measured`` losses are checked.
    """
    settings = settings or Settings()
    copies = None if multiplicity is None else np.array(multiplicity, np.int64)
    data = Labels(np.ascontiguousarray(y, np.float64), copies, queries)
    _check(codes, bins, data)
    if isinstance(loss, str):
        loss = named(loss, data.y)
    base = loss.base(data) if start is None else 0 * loss.base(data)
    if penalty is None:
        penalty = ledger.penalty if ledger else Penalty.plain(bins.features)
    if penalty.features != bins.features:
        raise ValueError(f"penalty has {penalty.features} features, bins {bins.features}")
    ledger = ledger or Ledger(penalty, len(data.y), data.multiplicity)
    if ledger.penalty is not penalty or ledger.rows != len(data.y):
        raise ValueError("the ledger was made for another penalty or other rows")
    trees: list[GrownTree] = []
    diverged = False
    with workers(threads) as pool:
        words = pack(frozen(codes, np.uint8)) if codes.dtype == np.uint8 else codes
        grower = Grower(frozen(words, np.uint64), bins, settings, ledger, data.multiplicity, pool)
        iterate, diverges = _iterations(grower, loss, data, base, start)
        done = 0
        grower.offer(np.ones(bins.features, np.bool_) if features is None else features)
        while done < settings.trees and not diverged:
            grown = iterate(settings.trees - done)
            if not grown:
                break
            diverged = diverges()
            trees += grown[: -loss.outputs] if diverged else grown
            before, done = done, len(trees) // loss.outputs
            if progress is not None:
                for each in range(before, done):
                    progress(each + 1, settings.trees)
    output = np.arange(len(trees), dtype=np.int32) % loss.outputs
    ensemble = Ensemble.of_trees(trees, output, base, bins.features)
    return replace(ensemble, diverged=True) if diverged else ensemble


def _iterations(
    grower: Grower, loss: Loss, data: Labels, base: Float64Array, start: Float64Array | None
) -> tuple[Callable[[int], list[GrownTree]], Callable[[], bool]]:
    """Two functions. The first grows one tree per output for up to so many iterations, and none if
    no root is split. The second returns True if the training loss is then above its start; squared
    loss at a learning rate up to 1 never is."""
    exact = isinstance(loss, Squared) and loss.outputs == 1 and start is None
    if exact and grower.settings.learning_rate <= 1:
        residuals = Residuals(data.y, float(base[0]), grower.copies, grower.total)
        return lambda most: grower.grow_on(residuals, most), lambda: False
    shape = loss.outputs, len(data.y)
    begin = np.broadcast_to(base[:, None] if start is None else start, shape)
    descent = _Descent(grower, loss, data, begin)
    return descent.iterate, descent.diverges


class _Descent:
    """Boosting by the gradients of any loss at scores (K, n), at first ``start``."""

    def __init__(self, grower: Grower, loss: Loss, data: Labels, start: Float64Array) -> None:
        self.grower, self.loss, self.data, self.start = grower, loss, data, start
        # tested once, as isinstance is slow for protocols
        self.mean = loss.mean if isinstance(loss, Measured) else None
        self.scores = np.array(start, np.float64, order="C")
        self.slopes: Gradients | None = None
        # True if the kernel that grows trees can also update gradients
        plain = type(loss).gradients in (Logistic.gradients, Softmax.gradients)
        self.classes = plain and len(data.y) <= PIECE and getattr(loss, "convex", False)

    def iterate(self, most: int) -> list[GrownTree]:
        """One tree per output for up to ``most`` iterations; none if no root is split."""
        slopes = gradient, hessian = self.slopes or self._slopes()
        if not self.grower.settings.second_order:
            hessian = None
        outputs = self.loss.outputs
        together = self.classes and self.grower.at_once() >= outputs
        if together and not self.grower.side_by_side(outputs):
            self.slopes = slopes
            classes = frozen(self.data.y, np.float64), frozen(self.start, np.float64).reshape(-1)
            return self.grower.grow(gradient, hessian, self.scores, classes, most)
        self.slopes = None
        return self.grower.grow(gradient, hessian, self.scores)

    def diverges(self) -> bool:
        """True if the mean loss is known to be above its start.

        A convex loss l has l(start) >= l(f) + <its gradient at f, start - f>. If the last term is
        not negative, l(f) is not above l(start). The next iteration needs that gradient anyway.
        """
        if self.mean is None:
            return False
        if getattr(self.loss, "convex", False):
            self.slopes = self.slopes or self._slopes()
            if self._slope_from_start(self.slopes[0]) <= 0:
                return False
        return not self.mean(self.scores, self.data) <= self.limit

    @cached_property
    def limit(self) -> float:
        """The mean loss at the start, plus possible rounding."""
        assert self.mean is not None
        return self.mean(self.start, self.data) * (1 + ROUNDING)

    def _slopes(self) -> Gradients:
        return self.loss.gradients(self.scores, self.data, self.grower.pool)

    def _slope_from_start(self, gradient: Float64Array) -> float:
        """Directional derivative of the summed loss at the scores, from the start towards them."""
        copies = self.data.multiplicity
        if copies is not None:
            gradient = gradient * copies
        # not @, whose threads would spin while waiting
        along = np.einsum("kn,kn->", gradient, self.scores)
        return float(along - np.einsum("kn,kn->", gradient, self.start))


def _check(codes: UInt8Array | UInt64Array, bins: Bins, data: Labels) -> None:
    n = len(data.y)
    rows = {np.uint8: bins.features, np.uint64: count_words(bins.features)}
    if codes.shape != (rows.get(codes.dtype.type), n) or n == 0:
        raise ValueError(
            f"codes must be uint8 ({bins.features}, {n}) with n > 0, "
            f"got {codes.dtype} {codes.shape}"
        )
    if not bool(np.all(np.isfinite(data.y))):
        raise ValueError("labels hold NaN or infinity")
    m = data.multiplicity
    if m is not None and (m.shape != (n,) or bool(np.any(m < 1))):
        raise ValueError(f"multiplicity must be ({n},) and at least 1")
