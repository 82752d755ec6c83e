"""Boosted trees on any subset of the features of one training set, binned once for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core import Examples, FitContext, Prices, Queries
from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_models.boosting import BoostedTrees, binned, loss_of, prefix_chain
from bench_models.staged import Point, StagedModel
from bench_models.tradeoff import labels_of

if TYPE_CHECKING:
    from bench_trees import Bins, Ensemble, Settings

COARSE = 16
"""Bins of a feature when its gain is only estimated."""

_CELLS = 1 << 20


def rows_of(examples: Examples, copies: IntArray) -> Examples:
    """The rows with as many copies (n,) each, without rows of 0 copies and empty queries."""
    rows, queries = np.flatnonzero(copies), examples.queries
    multiplicity = copies[rows] if examples.multiplicity is not None else None
    if queries is not None:
        sizes = np.bincount(queries.index()[rows])
        queries = Queries.from_sizes(sizes[sizes > 0])
    return Examples(examples.X[rows], examples.y[rows], queries, multiplicity)


class Subsets:
    """Boosting on any subset of the features of one training set, binned once for all subsets."""

    def __init__(
        self,
        learner: BoostedTrees,
        settings: Settings,
        train: Examples,
        prices: Prices,
        context: FitContext,
    ) -> None:
        self.settings, self.train, self.prices, self.context = settings, train, prices, context
        self.loss_name, self.loss = loss_of(context.task, learner.loss, context.classes)
        self.bins, self.codes = binned(train, learner.max_bins, context)  # codes (d, n)
        self._last: tuple[BoolArray, IntArray, Any, Bins] | None = None

    def of_rows(self, copies: IntArray) -> Subsets:
        """The same with as many copies (n,) of each row, in the same bins."""
        subsets = copy(self)
        subsets.__dict__.pop("_rows_per_bin", None)
        subsets._last = None
        subsets.train = rows_of(self.train, copies)
        subsets.codes = np.ascontiguousarray(self.codes[:, np.flatnonzero(copies)])
        return subsets

    def boost(
        self,
        features: BoolArray,
        progress: Callable[[int, int], None],
        *,
        start: FloatArray | None = None,
        settings: Settings | None = None,
    ) -> Ensemble:
        """Boosted trees that test only these features (d,), numbered as in the data.

        ``settings`` replace the learner's own; ``start`` is passed to ``boost``.
        """
        from bench_trees import boost

        chosen, words, bins = self._of_features(features)
        settings = settings or self.settings
        trained = boost(
            words,
            bins,
            self.train.y,
            loss=self.loss,
            start=start,
            settings=settings if len(chosen) else replace(settings, trees=0),
            multiplicity=self.train.multiplicity,
            queries=None if self.train.queries is None else self.train.queries.boundaries,
            threads=self.context.threads,
            progress=progress,
        )
        # leaves have the number -1, which finds the last entry
        numbers = np.append(chosen, -1).astype(np.int32)[trained.feature]
        return replace(trained, feature=numbers, features=self.bins.features)

    def _of_features(self, features: BoolArray) -> tuple[IntArray, Any, Bins]:
        """Numbers, packed codes and bins of the features, kept until others are requested."""
        from bench_trees.kernels.packed_codes import pack

        if self._last is None or not np.array_equal(self._last[0], features):
            chosen = np.flatnonzero(features)
            words = pack(self.codes[chosen])
            self._last = features.copy(), chosen, words, restricted(self.bins, chosen)
        return self._last[1:]

    def whole(self, ensemble: Ensemble, point: Mapping[str, int | float]) -> StagedModel:
        """All trees as the only point of a path."""
        chain = prefix_chain(ensemble, [ensemble.trees], self.prices, {"loss": self.loss_name})
        return replace(chain, points=[Point(0, point)])

    def explained(self, scores: FloatArray) -> FloatArray:
        """Loss of the residuals at ``scores`` (K, n) explained by each single feature, (d,).

        It is half the fall in squared residuals (-dl/df, of all outputs) from a constant in each
        bin. A feature has at most 16 bins and one for missing values: sum_b G_b^2 / (2 n_b), with G
        the sum of the residuals and n the rows in bin b.
        """
        weighted, rows = self._residuals(scores), self._rows_per_bin
        falls = []
        for block in self._blocks():
            codes = self._coarse(block)
            squares = sum(_sums(codes, g) ** 2 for g in weighted)
            falls.append((squares / np.where(rows[block] > 0, rows[block], 1.0)).sum(axis=1) / 2)
        return np.concatenate(falls)

    def _residuals(self, scores: FloatArray) -> FloatArray:
        """The gradient (K, n) with copies counted."""
        from bench_trees.threads import workers

        with workers(1) as pool:
            gradient, _ = self.loss.gradients(scores, labels_of(self.train), pool)
        return np.asarray(gradient * self.train.weights)

    def _blocks(self) -> list[slice]:
        """Features whose cells are processed together."""
        d, size = self.bins.features, max(1, _CELLS // len(self.train))
        return [slice(start, start + size) for start in range(0, d, size)]

    def _coarse(self, own: slice | IntArray) -> Any:
        """Codes (k, n) of at most 16 bins, with the highest code for missing values."""
        most = np.maximum(self.bins.counts[own], COARSE).astype(np.uint16)
        fine = self.codes[own].astype(np.uint16) * np.uint16(COARSE)  # 255 * COARSE is below 2^16
        return fine // most[:, None]

    @cached_property
    def _rows_per_bin(self) -> FloatArray:
        """Rows of each coarse bin (d, 17), copies counted."""
        return np.concatenate([_sums(self._coarse(s), self.train.weights) for s in self._blocks()])


def _sums(codes: Any, values: FloatArray) -> FloatArray:
    """Sums of the rows' values (n,) by coarse code, (k, 17), for features with codes (k, n)."""
    k, each = len(codes), COARSE + 1
    place = (codes + each * np.arange(k)[:, None]).ravel()
    return np.asarray(np.bincount(place, np.tile(values, k), each * k).reshape(k, each), np.float64)


def restricted(bins: Bins, chosen: IntArray) -> Bins:
    """The bins of only these features."""
    from bench_trees import Bins

    edges = [bins.edges[bins.offset[j] : bins.offset[j + 1]] for j in chosen]
    offset = np.concatenate([[0], np.cumsum([len(e) for e in edges])]).astype(np.int64)
    return Bins(np.concatenate([*edges, bins.edges[:0]]), offset)
