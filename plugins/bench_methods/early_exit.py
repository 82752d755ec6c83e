"""Early exits from an additive ensemble with unchanged trees and order.

``early-exit``: B. B. Cambazoglu, H. Zaragoza, O. Chapelle, J. Chen, C. Liao, Z. Zheng,
J. Degenhardt, "Early exit optimizations for additive machine learned ranking systems", WSDM 2010,
as used by the Cronus paper (AISTATS 2012) and the Greedy Miser paper (ICML 2012). After every 10
trees a row with partial score s may leave. With E exits, the E-th at the end, a row goes on at exit
i = 1..E if

    proximity   s >= s_(k) - p_i, s_(k) the k-th best partial score of the query, k = 5,
                p_i = (E - i) / (E - 1) * threshold
    rank        at most r_i - 1 documents of the query score higher
    capacity    the same among the documents before it in the query
    score       s >= tau_i
    class       the largest class probability is at most the threshold (Greedy Miser, section 5)

Both papers state ``proximity``, the second states ``class``. The existence of rules by score,
capacity and rank is verified; their form here is recalled. r_i and tau_i are our own:
r_i = k + (E - i) / (E - 1) * (threshold - k) falls linearly from the threshold to k, and tau_i is
the quantile ``threshold`` of the training rows' partial scores at exit i.

``lear``: F. Busolin, C. Lucchese, F. M. Nardini, S. Orlando, R. Perego, S. Trani, "Learning early
exit strategies for additive ranking ensembles", SIGIR 2021 (read as an abstract only; details
recalled). At a sentinel a small boosted classifier gives the probability that a document is
relevant and ends among the best ``k``. The document goes on if this reaches a threshold. The inputs
are free: partial score, the same scaled to [0, 1] within the query, rank, and query size.

Equations
    rules         bench_core.serving.gates.passing
    p_i, r_i      EarlyExit._values
    lear          Lear._classifiers, inputs bench_core.serving.query_ranks.describe

One fit serves all thresholds: each is an operating point, and the last point is the full model.
There is no lambda. Training needs only the base's trees.

Departures
- Proximity thresholds are in units of the standard deviation of the base's training scores
  (``facts["spread"]``), so one grid suits any base. The papers use score units.
- A document exactly at the limit goes on (the papers remove at equality; then, at p = 0, the
  fifth best itself would leave). k-th best means among those still scored; with fewer than k, no
  document leaves.
- Documents that left rank below all others, by exit and then by partial score. In classification
  rows that left keep their partial scores.
- For K classes there is an exit every 10 iterations of K trees. Log-odds count as two classes.
- lear: sentinels after the last tree are dropped. All classifiers are trained on all documents; at
  a later sentinel documents that left keep their score at the exit. Negative and positive examples
  have equal weights. Documents pay for the classifiers' trees and splits.
- Rules and lear's inputs count a row once, whatever its multiplicity. The papers' physical copies
  would count in ranks and as the k-th best, so more rows would leave. lear's label counts copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from bench_models.boosting import OnTrees, ensemble_of, prefix_chain
from bench_models.staged import StagedModel
from bench_models.staged.exits import ExitModel, ExitRule, check_thresholds

from bench_core import (
    Examples,
    Features,
    FitContext,
    Prices,
    Task,
    UsageError,
    param,
    provide_learners,
)
from bench_core.arrays import FloatArray
from bench_core.serving.query_ranks import QueryGroups, describe, ranks

if TYPE_CHECKING:
    from bench_trees import Ensemble

_BLOCK = 8000  # rows per block

_RULES: Mapping[Task, tuple[str, ...]] = {  # the first is "auto"
    Task.RANKING: ("proximity", "score", "rank", "capacity"),
    Task.BINARY: ("class",),
    Task.MULTICLASS: ("class",),
}

_MOST = (5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 75, 100)
_USUAL: Mapping[str, Sequence[float]] = {  # from the most to the fewest early exits
    "proximity": (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4),
    "score": (0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05),
    "rank": _MOST,
    "capacity": _MOST,
    "class": (
        *(0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95),
        *(0.98, 0.99, 0.995, 0.999),
    ),
}


@dataclass(frozen=True)
class EarlyExit(OnTrees):
    """Another learner's trees in their order, with early exits by a fixed rule."""

    name: ClassVar[str] = "early-exit"
    tasks: ClassVar[frozenset[Task]] = frozenset(_RULES)

    rule: Literal["auto", "proximity", "score", "rank", "capacity", "class"] = param(
        "auto", "exit rule; auto: proximity for ranking, class for classification"
    )
    thresholds: tuple[float, ...] | None = param(
        None, "operating points of the rule; none: a default grid", least=0
    )
    every: int = param(10, "trees between two exits (for K classes K times as many)", least=1)
    k: int = param(5, "proximity: rank of the reference document; rank: the final cut-off", least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.thresholds is not None:
            check_thresholds(self.thresholds)

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> ExitModel:
        """Place the exits; training scores give the thresholds' unit. ``valid`` is not used."""
        kind = self._rule(context.task)
        ensemble = ensemble_of(self.name, self.base, context, single=False)
        outputs = ensemble.outputs_count
        ends = [*range(self.every * outputs, ensemble.trees, self.every * outputs), ensemble.trees]
        chain = prefix_chain(ensemble, ends, prices, {})
        thresholds = self._thresholds(kind, max(2, outputs)) if len(ends) > 1 else ()
        values, spread = self._values(kind, np.array(thresholds), chain, train)
        facts = {"rule": kind, "spread": spread, "exits": ends}
        context.progress(1, 1)
        return ExitModel(
            chain=replace(chain, facts=facts),
            rule=ExitRule(kind, values, self.k),
            points=[{"threshold": float(t)} for t in thresholds],
            full={"trees": ensemble.trees},
        )

    def _rule(self, task: Task) -> str:
        fitting = _RULES[task]
        chosen = fitting[0] if self.rule == "auto" else self.rule
        if chosen not in fitting:
            raise UsageError(f"early-exit: rule={chosen}: {task} takes {' or '.join(fitting)}")
        return chosen

    def _thresholds(self, kind: str, classes: int) -> tuple[float, ...]:
        if self.thresholds is not None:
            return self.thresholds
        return tuple(t for t in _USUAL[kind] if kind != "class" or t > 1 / classes)

    def _values(
        self, kind: str, thresholds: FloatArray, chain: StagedModel, train: Examples
    ) -> tuple[FloatArray, float]:
        """The rule's limits, per threshold and exit, and the unit of proximity."""
        count = len(chain.stages)
        left = np.arange(count - 1, 0, -1) / max(1, count - 1)  # (E - i) / (E - 1)
        same = np.repeat(thresholds[:, None], count - 1, axis=1)
        if kind == "proximity":
            spread = _spread(chain, train)
            return thresholds[:, None] * spread * left, spread
        if kind in ("rank", "capacity"):
            return self.k + np.maximum(same - self.k, 0) * left, 1.0
        if kind == "score":
            partial = partial_scores(chain, train)[:-1]
            columns = [_quantile(own, train.weights, thresholds) for own in partial]
            return np.array(columns).reshape(count - 1, len(thresholds)).T, 1.0
        return same, 1.0


@dataclass(frozen=True)
class Lear(OnTrees):
    """Another learner's trees in their order, with early exits at learned sentinels."""

    name: ClassVar[str] = "lear"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.RANKING})

    sentinels: tuple[int, ...] = param(
        (50, 100, 200), "numbers of trees after which documents may leave", least=1
    )
    thresholds: tuple[float, ...] = param(
        (0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01),
        "operating points: least probability at which a document goes on",
        least=0,
        most=1,
    )
    k: int = param(10, "relevant documents with a final rank up to k should go on", least=1)
    relevant_grade: int = param(1, "a document is relevant iff its grade is at least this", least=1)
    trees: int = param(10, "trees of each classifier", least=1)
    leaves: int = param(8, "most leaves of a classifier's tree", least=2)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.sentinels or list(self.sentinels) != sorted(set(self.sentinels)):
            raise ValueError("sentinels must rise")
        check_thresholds(self.thresholds)

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> ExitModel:
        """Train one classifier per sentinel on the training documents; ``valid`` is not used."""
        ensemble = ensemble_of(self.name, self.base, context)
        ends = [*(s for s in self.sentinels if s < ensemble.trees), ensemble.trees]
        chain = prefix_chain(ensemble, ends, prices, {"exits": ends})
        thresholds = self.thresholds if len(ends) > 1 else ()
        classifiers = list(self._classifiers(chain, train, context))
        values = np.tile(np.array(thresholds)[:, None], len(classifiers))
        return ExitModel(
            chain=chain,
            rule=ExitRule("sentinel", values, classifiers=classifiers),
            points=[{"threshold": float(t)} for t in thresholds],
            full={"trees": ensemble.trees},
        )

    def _classifiers(
        self, chain: StagedModel, train: Examples, context: FitContext
    ) -> Iterator[Ensemble]:
        from bench_trees import Settings, boost, find_bins

        partial = partial_scores(chain, train)
        groups = QueryGroups.over(len(train), train.queries)
        everyone = np.ones((1, len(train)), bool)
        # ranks of the full model
        final = ranks(partial[-1], everyone, groups, train.multiplicity)[0]
        keep = (final <= self.k) & (train.y >= self.relevant_grade)
        for i, own in enumerate(partial[:-1]):
            # free inputs: score, rank, query size
            inputs = describe(own[None], groups)[0]
            bins = find_bins(inputs, 255, train.multiplicity, context.threads)
            yield boost(
                bins.codes(inputs, context.threads),
                bins,
                keep.astype(np.float64),
                loss="logistic",
                settings=Settings(self.trees, 0.3, max_depth=None, max_leaves=self.leaves),
                multiplicity=train.multiplicity,
                threads=context.threads,
            )
            context.progress(i + 1, len(partial) - 1)


def _spread(chain: StagedModel, train: Examples) -> float:
    """Standard deviation of the final scores on the training rows, copies counted; 1 for 0."""
    (final,) = partial_scores(chain, train, slice(-1, None))
    mean = np.average(final, weights=train.weights)
    return float(np.sqrt(np.average((final - mean) ** 2, weights=train.weights))) or 1.0


def _quantile(values: FloatArray, mass: FloatArray, shares: FloatArray) -> FloatArray:
    """Smallest values with more than the ``shares`` of the mass at or below; the largest at 1."""
    order = np.argsort(values, kind="stable")
    # mass up to each value
    below = np.cumsum(mass[order])
    place = np.searchsorted(below, shares * below[-1], side="right")
    found: FloatArray = values[order][np.minimum(place, len(values) - 1)]
    return found


def partial_scores(chain: StagedModel, rows: Examples, stages: slice = slice(None)) -> FloatArray:
    """First score of all rows after each of these stages, (E, n), computed in blocks."""
    blocks = []
    for start in range(0, len(rows), _BLOCK):
        features = Features(np.asarray(rows.X[start : start + _BLOCK]))
        after = [rows.score[:, 0] for rows in chain.stage_by_stage(features)]
        blocks.append(np.stack(after[stages]))
    return np.concatenate(blocks, axis=1)


bench_learners = provide_learners(EarlyExit, Lear, family="early exits")
