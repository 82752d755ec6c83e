"""Forests of classification trees: class counts in every node, served as an averaged forest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from bench_core import Bill, Features, Prediction, Prices
from bench_plugins.boosted import prefixes
from bench_plugins.staged import END, Point, Stage, StagedModel
from bench_plugins.staged.state import prices_from, prices_state

if TYPE_CHECKING:
    from bench_trees import Ensemble

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

LEAST = 1e-6
"""Mean probabilities are served as if at least this, so that their logarithms are finite."""

_ARRAYS = ("start", "feature", "threshold", "left", "right", "missing_left", "counts")


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """T trees whose nodes know how many training rows of each of K classes they hold.

    Arrays are those of ``bench_trees.Ensemble``; ``counts`` float64 (nodes, K), copies counted
    and at least one row in every node; ``features`` is d.
    """

    start: Ints
    feature: Ints
    threshold: NDArray[np.float32]
    left: Ints
    right: Ints
    missing_left: NDArray[np.bool_]
    counts: Floats
    features: int

    @property
    def trees(self) -> int:
        """Number of trees T."""
        return len(self.start) - 1

    @property
    def classes(self) -> int:
        """Number of classes K."""
        return int(self.counts.shape[1])

    @classmethod
    def of(cls, trees: Sequence[Forest]) -> Forest:
        """Several forests as one."""
        sizes = [len(t.feature) for t in trees]
        offsets = np.cumsum([0, *sizes[:-1]])
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(t, name) for t in trees])
            for name in ("feature", "threshold", "missing_left", "counts")
        }
        for name in ("left", "right"):
            parts = zip(trees, offsets, strict=True)
            sides = [np.where(t.feature >= 0, getattr(t, name) + o, -1) for t, o in parts]
            joined[name] = np.concatenate(sides).astype(np.int32)
        starts = [t.start[1:] + o for t, o in zip(trees, offsets, strict=True)]
        joined["start"] = np.concatenate([[0], *starts]).astype(np.int32)
        return cls(**joined, features=trees[0].features)

    def ensemble(self) -> Ensemble:
        """Leaf values are class probabilities: of class 1 for two classes, one output.

        For K > 2 classes tree t stands K times, at t K + k with the probability of class k.
        """
        from bench_trees import Ensemble

        leaf = self.feature < 0
        share = np.where(leaf[:, None], self.counts / self.counts.sum(axis=1, keepdims=True), 0.0)
        values = [share[:, 1]] if self.classes == 2 else list(share.T)
        copies, sizes = len(values), np.diff(self.start)
        nodes = np.split(np.arange(len(self.feature)), self.start[1:-1])
        source = np.concatenate([np.tile(tree, copies) for tree in nodes])
        start = np.concatenate([[0], np.cumsum(np.repeat(sizes, copies))]).astype(np.int32)
        shift = np.repeat(start[:-1] - np.repeat(self.start[:-1], copies), np.diff(start))
        which = np.repeat(np.tile(np.arange(copies), self.trees), np.diff(start))
        leaf = leaf[source]
        return Ensemble(
            start=start,
            feature=self.feature[source],
            threshold=self.threshold[source],
            left=np.where(leaf, -1, self.left[source] + shift).astype(np.int32),
            right=np.where(leaf, -1, self.right[source] + shift).astype(np.int32),
            missing_left=self.missing_left[source],
            value=np.array(values)[which, source],
            output=np.tile(np.arange(copies), self.trees).astype(np.int32),
            base=np.zeros(copies),
            features=self.features,
        )

    def to_state(self) -> dict[str, Any]:
        """The arrays by name, and ``features`` as int."""
        return {**{name: getattr(self, name) for name in _ARRAYS}, "features": self.features}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The inverse of ``to_state``."""
        return cls(**{n: np.asarray(state[n]) for n in _ARRAYS}, features=int(state["features"]))


@dataclass(frozen=True, eq=False)
class ForestModel:
    """The mean class probability of a forest's leaves, as log-odds or, for K > 2, logarithms.

    Operating points are growing numbers of trees. Bills are those of ``StagedModel``.
    """

    forest: Forest
    prices: Prices
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def loss(self) -> str:
        """What scores are in terms of."""
        return "logistic" if self.forest.classes == 2 else "softmax"

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """One prediction per number of trees; ``features.X`` is (n, d)."""
        for sums in self._sums.predict_path(features):
            trees = int(sums.point["trees"])
            bills = {name: self._once(bill) for name, bill in sums.bills.items()}
            yield Prediction(sums.point, log_odds(sums.scores / trees), bills)

    def state(self) -> dict[str, Any]:
        """Arrays and JSON; ``from_state`` is the inverse."""
        trees = {f"forest.{name}": value for name, value in self.forest.to_state().items()}
        return {**trees, **prices_state(self.prices), "facts": dict(self.facts)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild a model from ``state``."""
        mark = "forest."
        trees = {k[len(mark) :]: v for k, v in state.items() if k.startswith(mark)}
        return cls(Forest.from_state(trees), prices_from(state), state["facts"])

    @cached_property
    def _copies(self) -> int:
        """How often each tree stands in the ensemble that is walked."""
        return 1 if self.forest.classes == 2 else self.forest.classes

    @cached_property
    def _sums(self) -> StagedModel:
        """The forest as stages that carry: sums of leaf probabilities at each reported prefix."""
        ends = prefixes(self.forest.trees)
        starts = np.concatenate([[0], ends[:-1]])
        stages = [
            Stage(
                entries=np.arange(a * self._copies, b * self._copies, dtype=np.int64),
                weights=np.ones((b - a) * self._copies),
                bias=np.zeros(self._copies),
                carry=k > 0,
                then=END if k == len(ends) - 1 else k + 1,
            )
            for k, (a, b) in enumerate(zip(starts, ends, strict=True))
        ]
        points = [Point(k, {"trees": int(end)}) for k, end in enumerate(ends)]
        return StagedModel(stages, points, self.prices, self.forest.ensemble())

    def _once(self, bill: Bill) -> Bill:
        """Copies of one tree for several classes are evaluated, and paid, once."""
        if self._copies == 1:
            return bill
        return replace(bill, splits=bill.splits / self._copies, trees=bill.trees / self._copies)


def log_odds(mean: Floats) -> Floats:
    """Of mean probabilities: log-odds (n,), or logarithms (n, K) for K > 2 classes."""
    p = np.clip(mean, LEAST, 1 - LEAST)
    return np.log(p) if mean.ndim == 2 else np.log(p) - np.log1p(-p)
