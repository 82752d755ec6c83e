"""Boosted trees on subsets of the features, and several models as one path.

What learners share that train one model for each of several sets of features: stage-wise
regression on subsets, and the baselines that add feature after feature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bench_core import Examples, Features, FitContext, Prediction, Prices
from bench_core.arrays import BoolArray, IntArray
from bench_models.boosting import BoostedTrees, binned, loss_of, prefix_chain
from bench_models.staged import Point, StagedModel
from bench_models.states import nest, unnest

if TYPE_CHECKING:
    from bench_trees import Bins, Ensemble, Settings


@dataclass(frozen=True, eq=False)
class PathOfModels:
    """Models one after the other: its path is the points of the first, then of the second, ...

    A row pays at each point for that point's own model only, not for those before it.
    """

    models: Sequence[StagedModel]

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """The points of all models in order."""
        for model in self.models:
            yield from model.predict_path(features)

    @property
    def marks(self) -> tuple[str, ...]:
        """Those of any of the models."""
        return tuple(sorted({mark for model in self.models for mark in model.marks}))

    def state(self) -> dict[str, Any]:
        """Arrays and JSON; ``from_state`` is the inverse."""
        parts: dict[str, Any] = {}
        for k, model in enumerate(self.models):
            parts |= nest(str(k), model.state())
        return {"models": len(self.models), **parts}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild a path from ``state``."""
        parts = (unnest(str(k), state) for k in range(int(state["models"])))
        return cls([StagedModel.from_state(part) for part in parts])


def readable(prices: Prices, features: BoolArray) -> BoolArray:
    """The features (d,) that cost nothing more once these are bought."""
    # counted, not summed: a rounded sum of prices need not be zero
    missing = ~prices.bought_for(features) & (prices.sensor > 0)
    return np.asarray(features | (prices.needs @ missing.astype(np.float64) == 0))


class Subsets:
    """Boosting on any subset of the features of one training set, binned once for all."""

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

    def boost(self, features: BoolArray, progress: Callable[[int, int], None]) -> Ensemble:
        """Boosted trees that test these features (d,) only, numbered as in the data."""
        from bench_trees import boost

        chosen = np.flatnonzero(features)
        trained = boost(
            np.ascontiguousarray(self.codes[chosen]),
            _only(self.bins, chosen),
            self.train.y,
            loss=self.loss,
            settings=self.settings if len(chosen) else replace(self.settings, trees=0),
            multiplicity=self.train.multiplicity,
            queries=None if self.train.queries is None else self.train.queries.boundaries,
            threads=self.context.threads,
            progress=progress,
        )
        # leaves have the number -1, which finds the last entry
        numbers = np.append(chosen, -1).astype(np.int32)[trained.feature]
        return replace(trained, feature=numbers, features=self.bins.features)

    def whole(self, ensemble: Ensemble, point: Mapping[str, int | float]) -> StagedModel:
        """All trees as the one point of a path."""
        chain = prefix_chain(ensemble, [ensemble.trees], self.prices, {"loss": self.loss_name})
        return replace(chain, points=[Point(0, point)])


def _only(bins: Bins, chosen: IntArray) -> Bins:
    """The bins of some features."""
    from bench_trees import Bins

    edges = [bins.edges[bins.offset[j] : bins.offset[j + 1]] for j in chosen]
    offset = np.concatenate([[0], np.cumsum([len(e) for e in edges])]).astype(np.int64)
    return Bins(np.concatenate([*edges, bins.edges[:0]]), offset)


def share_of(progress: Callable[[int, int], None], part: int, parts: int) -> Callable[..., None]:
    """Progress of one fit of several as progress of all."""
    return lambda done, total: progress(part * total + done, parts * total)
