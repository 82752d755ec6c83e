"""Exits decided by classifiers on inputs that cost nothing: sentinels of a chain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_models.ranks import QueryGroups, ranks
from bench_models.staged.exit_rules import ExitState
from bench_models.states import nest, unnest

if TYPE_CHECKING:
    from bench_trees import Ensemble
    from bench_trees.kernels.records import Layout


INPUTS = 4
"""Partial score, the same scaled to [0, 1] in the query, rank, size of the query."""


def describe(scores: FloatArray, groups: QueryGroups, weights: IntArray | None = None) -> Any:
    """The classifier's inputs float32 (P, n, 4) from each setting's scores (P, n).

    Ranks are among all documents of the query, by these scores. ``weights`` (n,): how many
    documents a row stands for.
    """
    inputs = np.empty((*scores.shape, INPUTS), dtype=np.float32)
    sizes = groups.sizes
    if weights is not None:
        sizes = np.add.reduceat(weights, groups.starts) if len(weights) else weights
    for p, own in enumerate(scores):
        low = np.minimum.reduceat(own, groups.starts) if len(own) else own
        high = np.maximum.reduceat(own, groups.starts) if len(own) else own
        reach = np.where(high > low, high - low, 1.0)
        inputs[p, :, 0] = own
        inputs[p, :, 1] = (own - low[groups.of]) / reach[groups.of]
        inputs[p, :, 2] = ranks(own, np.ones((1, len(own)), bool), groups, weights)[0]
        inputs[p, :, 3] = sizes[groups.of]
    return inputs


@dataclass(frozen=True, eq=False)
class Sentinels:
    """One classifier per sentinel, and the probabilities ``least`` (P,) that it must reach."""

    classifiers: tuple[Ensemble, ...]
    least: FloatArray

    def decide(
        self, exit: int, scores: FloatArray, rows: ExitState, groups: QueryGroups
    ) -> tuple[BoolArray, FloatArray]:
        """Which rows go on, and the splits evaluated to find out, both (P, n).

        Documents that left count with the score they left with.
        """
        from bench_trees.inference import walk
        from bench_trees.kernels.records import Steps, Walked

        classifier, layout = self.classifiers[exit], self._layouts[exit]
        on = rows.on
        inputs = describe(np.where(on, scores[:, 0], rows.scores[:, :, 0]), groups)
        steps = Steps.prefixes([classifier.trees], classifier.base)
        setting, row = np.nonzero(on)
        start = Walked.begin(len(row), 1, layout.words)
        done = walk(layout, steps, inputs[setting, row], start)
        stays, splits = on.copy(), np.zeros(on.shape)
        probability = 1.0 / (1.0 + np.exp(-done.scores[-1, :, 0]))
        stays[setting, row] = probability >= self.least[setting]
        splits[setting, row] = done.splits[-1]
        return stays, splits

    @cached_property
    def _layouts(self) -> list[Layout]:
        from bench_trees.inference import Needs, lay_out

        nothing = np.zeros(INPUTS + 1, dtype=np.int32)  # the inputs need no sensor
        free = Needs(nothing, nothing[:0], np.ones(INPUTS), 0)
        return [lay_out(classifier, free) for classifier in self.classifiers]

    @cached_property
    def trees(self) -> FloatArray:
        """Trees with a split among the classifiers of the first 0, 1, ... sentinels."""
        own = [int((np.diff(c.start) > 1).sum()) for c in self.classifiers]
        return np.concatenate([[0.0], np.cumsum(own)])

    def state(self) -> dict[str, Any]:
        """Arrays and JSON."""
        parts: dict[str, Any] = {}
        for i, classifier in enumerate(self.classifiers):
            parts |= nest(f"rule.{i}", classifier.to_state())
        return {**parts, "rule.least": self.least, "rule": {"sentinels": len(self.classifiers)}}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The inverse of ``state``."""
        from bench_trees import Ensemble

        parts = [unnest(f"rule.{i}", state) for i in range(state["rule"]["sentinels"])]
        return cls(tuple(Ensemble.from_state(part) for part in parts), state["rule.least"])
