"""Stage-wise additive boosting under feature costs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bench_trees.arrays import Float64Array, Int64Array, UInt8Array, UInt64Array
from bench_trees.binning import Bins
from bench_trees.ensemble import Ensemble
from bench_trees.fixed_point_residuals import Residuals
from bench_trees.grower import Grower
from bench_trees.growing_tree import GrownTree
from bench_trees.kernels.packed_codes import count_words, pack
from bench_trees.losses import Labels, Loss, Squared, named
from bench_trees.penalties import Ledger, Penalty
from bench_trees.settings import Settings
from bench_trees.threads import Workers, workers


def boost(
    codes: UInt8Array | UInt64Array,
    bins: Bins,
    y: Float64Array,
    *,
    loss: str | Loss = "squared",
    settings: Settings | None = None,
    penalty: Penalty | None = None,
    multiplicity: Int64Array | None = None,
    weights: Float64Array | None = None,
    queries: Int64Array | None = None,
    ledger: Ledger | None = None,
    threads: int = 1,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Ensemble:
    """Boost trees on binned rows.

    ``codes``: uint64 (ceil(d / 8), n) from ``bins.words``, or uint8 (d, n) from ``bins.codes``,
    of which words are made first; may be a read-only memory map. ``y`` (n,): targets, 0/1, class
    numbers or grades, as the loss wants. ``loss``: ``"squared"``, ``"logistic"``,
    ``"softmax"`` (classes from y), ``"lambdarank"``, or a ``Loss`` such as ``Softmax(26)``.
    ``multiplicity`` (n,) >= 1: copies a row stands for, in loss and cost. ``weights`` (n,) > 0:
    touch the loss, never the cost. ``queries``: row boundaries (q+1,), lambdarank only.
    ``ledger``: purchases so far (default none; updated in place, so that several calls may
    share it). ``progress(done, total)`` is called after every iteration. Trees of one iteration
    are K consecutive ones. The result has the same bits for any number of threads.
    """
    settings = settings or Settings()
    data = _checked(codes, bins, y, multiplicity, weights, queries)
    if isinstance(loss, str):
        loss = named(loss, data.y)
    base = loss.base(data)
    if penalty is None:
        penalty = ledger.penalty if ledger else Penalty.plain(bins.features)
    if penalty.features != bins.features:
        raise ValueError(f"penalty has {penalty.features} features, bins {bins.features}")
    ledger = ledger or Ledger(penalty, len(data.y), data.multiplicity)
    ledger.check(penalty, len(data.y))
    forest = Forest(bins.features, base)
    with workers(threads) as crew:
        words = _words(codes, crew)
        grower = Grower(words, bins, settings, ledger, data.multiplicity, crew)
        iterate = _iterations(grower, loss, data, base, forest)
        for done in range(settings.trees):
            if not iterate():
                break
            if progress is not None:
                progress(done + 1, settings.trees)
    return forest.ensemble()


def _iterations(
    grower: Grower, loss: Loss, data: Labels, base: Float64Array, forest: Forest
) -> Callable[[], bool]:
    """What grows one tree per output; it is False (and nothing kept) if no root could be split."""
    exact = isinstance(loss, Squared) and loss.outputs == 1 and data.weights is None
    if exact and grower.settings.learning_rate <= 1:
        residuals = Residuals(data.y, float(base[0]), grower.copies, grower.total)
        return lambda: _residual_iteration(grower, residuals, forest)
    scores = np.repeat(base[:, None], len(data.y), axis=1)
    return lambda: _iteration(grower, loss, scores, data, forest)


def _residual_iteration(grower: Grower, residuals: Residuals, forest: Forest) -> bool:
    tree = grower.grow_on(residuals)
    if tree is not None:
        forest.add(tree, 0)
    return tree is not None


def _iteration(
    grower: Grower, loss: Loss, scores: Float64Array, data: Labels, forest: Forest
) -> bool:
    gradient, hessian = loss.gradients(scores, data, grower.crew)
    if not grower.settings.second_order:
        hessian = None if data.weights is None else np.broadcast_to(data.weights, gradient.shape)
    grew = False
    for k in range(loss.outputs):
        tree = grower.grow(gradient[k], None if hessian is None else hessian[k])
        if tree is None:
            forest.add_constant(k)
            continue
        grew = True
        for node, rows in tree.leaves:
            scores[k, rows] += tree.value[node]
        forest.add(tree, k)
    if not grew:
        forest.drop(loss.outputs)
    return grew


class Forest:
    """Collects grown trees into the flat arrays of an ensemble."""

    def __init__(self, features: int, base: Float64Array) -> None:
        self.features = features
        self.base = base
        self.trees: list[GrownTree] = []
        self.output: list[int] = []

    def add(self, tree: GrownTree, output: int) -> None:
        """Append a tree that adds to one output."""
        tree.leaves = []
        self.trees.append(tree)
        self.output.append(output)

    def add_constant(self, output: int) -> None:
        """Append a lone leaf of value 0, which keeps an iteration's trees together."""
        tree = GrownTree()
        tree.add_node()
        self.add(tree, output)

    def drop(self, count: int) -> None:
        """Forget the last trees."""
        del self.trees[-count:]
        del self.output[-count:]

    def ensemble(self) -> Ensemble:
        """All trees so far."""
        sizes = [len(tree.feature) for tree in self.trees]
        start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)

        def joined(name: str) -> Float64Array:
            return np.array([x for tree in self.trees for x in getattr(tree, name)], np.float64)

        feature = joined("feature").astype(np.int32)
        shift = np.repeat(start[:-1], sizes)
        return Ensemble(
            start=start,
            feature=feature,
            threshold=joined("threshold").astype(np.float32),
            left=np.where(feature < 0, -1, joined("left") + shift).astype(np.int32),
            right=np.where(feature < 0, -1, joined("right") + shift).astype(np.int32),
            missing_left=joined("missing_left").astype(np.bool_),
            value=joined("value"),
            output=np.array(self.output, np.int32),
            base=np.asarray(self.base, np.float64),
            features=self.features,
        )


def _words(codes: UInt8Array | UInt64Array, crew: Workers) -> UInt64Array:
    """The one array type the kernels are compiled for, without a copy where they are words."""
    words = codes if codes.dtype == np.uint64 else pack(codes.astype(np.uint8, copy=False), crew)
    plain = np.ascontiguousarray(words, np.uint64).view(np.ndarray).view()
    plain.flags.writeable = False
    return plain


def _checked(
    codes: UInt8Array | UInt64Array,
    bins: Bins,
    y: Float64Array,
    multiplicity: Int64Array | None,
    weights: Float64Array | None,
    queries: Int64Array | None,
) -> Labels:
    y = np.ascontiguousarray(y, np.float64)
    n = len(y)
    rows = {np.uint8: bins.features, np.uint64: count_words(bins.features)}
    if codes.shape != (rows.get(codes.dtype.type), n) or n == 0:
        raise ValueError(
            f"codes must be uint8 ({bins.features}, {n}) with n > 0, "
            f"got {codes.dtype} {codes.shape}"
        )
    if not bool(np.all(np.isfinite(y))):
        raise ValueError("labels hold NaN or infinity")
    if multiplicity is not None:
        multiplicity = np.array(multiplicity, np.int64)
        if multiplicity.shape != (n,) or bool(np.any(multiplicity < 1)):
            raise ValueError(f"multiplicity must be ({n},) and at least 1")
    if weights is not None:
        weights = np.ascontiguousarray(weights, np.float64)
        if weights.shape != (n,) or not bool(np.all(np.isfinite(weights) & (weights > 0))):
            raise ValueError(f"weights must be ({n},), finite and positive")
    return Labels(y, multiplicity, weights, queries)
