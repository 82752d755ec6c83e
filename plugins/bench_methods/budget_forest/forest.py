"""Forests of classification trees with class counts in every node, served as their average."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from bench_models.staged.state import prices_from, prices_state
from bench_models.tree_average import LinkedTrees
from numpy.typing import NDArray

from bench_core import Features, Prediction, Prices

if TYPE_CHECKING:
    from bench_trees import Ensemble

    Trees: TypeAlias = "Forest | Ensemble"

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

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

    @property
    def shares(self) -> Floats:
        """Class shares of every node (nodes, K); for two classes that of class 1, (nodes, 1)."""
        shares: Floats = self.counts / self.counts.sum(axis=1, keepdims=True)
        return shares[:, 1:] if self.classes == 2 else shares

    def ensemble(self) -> Ensemble:
        """The trees; a leaf's value is its own number, the row of ``shares`` it stands for."""
        from bench_trees import Ensemble

        leaf = self.feature < 0
        return Ensemble(
            start=self.start,
            feature=self.feature,
            threshold=self.threshold,
            left=self.left,
            right=self.right,
            missing_left=self.missing_left,
            value=np.where(leaf, np.arange(len(leaf)), 0).astype(np.float64),
            output=np.zeros(self.trees, dtype=np.int32),
            base=np.zeros(1 if self.classes == 2 else self.classes),
            features=self.features,
        )

    def to_state(self) -> dict[str, Any]:
        """The arrays by name, and ``features`` as int."""
        return {**{name: getattr(self, name) for name in _ARRAYS}, "features": self.features}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The inverse of ``to_state``."""
        return cls(**{n: np.asarray(state[n]) for n in _ARRAYS}, features=int(state["features"]))


def upwards(trees: Trees) -> list[Longs]:
    """The inner nodes in levels, the deepest first: children before their parents."""
    levels, level = [], trees.start[:-1].astype(np.int64)
    while len(level):
        inner = level[trees.feature[level] >= 0]
        levels.append(inner)
        level = np.concatenate([trees.left[inner], trees.right[inner]]).astype(np.int64)
    return levels[::-1]


def summed(trees: Trees, leaves: Floats) -> Floats:
    """For every node the sum of what the leaves (L, ...) below it have (nodes, ...)."""
    total = np.zeros((len(trees.feature), *leaves.shape[1:]))
    total[trees.feature < 0] = leaves
    for u in upwards(trees):
        total[u] = total[trees.left[u]] + total[trees.right[u]]
    return total


@dataclass(frozen=True, eq=False)
class ForestModel:
    """The mean class shares of a forest's leaves, as log-odds or, for K > 2, logarithms.

    Operating points are growing numbers of trees. ``facts`` are JSON values the learner wants kept.
    """

    forest: Forest
    prices: Prices
    facts: Mapping[str, Any] = field(default_factory=dict)

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """One prediction per reported number of trees; ``features.X`` is (n, d)."""
        return self._served.predict_path(features)

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
    def _served(self) -> LinkedTrees:
        return LinkedTrees.of(
            self.forest.ensemble(),
            self.prices,
            vectors=self.forest.shares,
            average=True,
            link="probability",
            facts={},
        )
