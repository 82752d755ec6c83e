"""``lear``: at a few sentinels a learned classifier says which documents go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from bench_models.boosting import OnTrees
from bench_models.ranks import QueryGroups, ranks
from bench_models.staged import MOST_POINTS, StagedModel
from bench_models.staged.early_exits import ExitModel
from bench_models.staged.learned_exits import Sentinels, describe
from bench_models.staged.prefix_chain import ensemble_of, partial_scores, prefix_chain

from bench_core import BudgetedLearner, Examples, FitContext, Prices, Task, param
from bench_core.arrays import BoolArray

if TYPE_CHECKING:
    from bench_trees import Ensemble

_USUAL = (0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01)


@dataclass(frozen=True)
class Lear(OnTrees):
    """Another learner's trees in their order, which documents leave at learned sentinels."""

    name: ClassVar[str] = "lear"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.RANKING})

    base: BudgetedLearner = param("gbrt", "learner whose boosted trees are left early")
    sentinels: tuple[int, ...] = param(
        (50, 100, 200), "documents may leave after so many trees", least=1
    )
    thresholds: tuple[float, ...] = param(
        _USUAL,
        "operating points: the least probability with which a document goes on",
        least=0,
        most=1,
    )
    k: int = param(10, "documents to keep: relevant ones that end among the best k", least=1)
    relevant_grade: int = param(1, "a document is relevant iff its grade is at least this", least=1)
    trees: int = param(10, "trees of each classifier", least=1)
    leaves: int = param(8, "most leaves of a classifier's tree", least=2)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.sentinels or list(self.sentinels) != sorted(set(self.sentinels)):
            raise ValueError("sentinels must rise")
        some = self.thresholds
        if not 0 < len(set(some)) == len(some) < MOST_POINTS:
            raise ValueError(f"thresholds must be 1 to {MOST_POINTS - 1} different numbers")

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> ExitModel:
        """Train one classifier per sentinel on the training documents; ``valid`` is not used."""
        ensemble = ensemble_of(self.name, self.base, context)
        ends = [*(s for s in self.sentinels if s < ensemble.trees), ensemble.trees]
        chain = prefix_chain(ensemble, ends, prices, {"exits": ends})
        thresholds = self.thresholds if len(ends) > 1 else ()
        return ExitModel(
            chain=chain,
            rule=Sentinels(self._classifiers(chain, train, context), np.array(thresholds)),
            points=[{"threshold": float(t)} for t in thresholds],
            full={"trees": ensemble.trees},
        )

    def _classifiers(
        self, chain: StagedModel, train: Examples, context: FitContext
    ) -> tuple[Ensemble, ...]:
        partial = np.empty((len(chain.stages), len(train)))
        for rows, scores in partial_scores(chain, train):
            partial[:, rows] = scores[:, :, 0]
        groups, all_rows = (
            QueryGroups.over(len(train), train.queries),
            np.ones((1, len(train)), bool),
        )
        final = ranks(partial[-1], all_rows, groups, train.multiplicity)[0]
        keep = (final <= self.k) & (train.y >= self.relevant_grade)
        found = []
        for own in partial[:-1]:
            inputs = describe(own[None], groups, train.multiplicity)[0]
            found.append(self._classifier(inputs, keep, train, context))
            context.progress(len(found), len(partial) - 1)
        return tuple(found)

    def _classifier(
        self, inputs: Any, keep: BoolArray, train: Examples, context: FitContext
    ) -> Ensemble:
        from bench_trees import Settings, boost, find_bins

        bins = find_bins(inputs, 255, train.multiplicity, context.threads)
        return boost(
            bins.codes(inputs, context.threads),
            bins,
            keep.astype(np.float64),
            loss="logistic",
            settings=Settings(
                trees=self.trees,
                learning_rate=0.3,
                max_depth=None,
                max_leaves=self.leaves,
                min_rows=20,
                order="best",
            ),
            multiplicity=train.multiplicity,
            threads=context.threads,
        )
