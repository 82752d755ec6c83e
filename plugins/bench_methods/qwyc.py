"""Batches of another learner's trees in an optimised order, with early exits of decided rows.

S. Wang, M. Gupta, S. You, "Quit when you can: efficient evaluation of ensembles with ordering
optimization", arXiv 1806.11202 (2018), ACM JETC 17 (2021). Read as an abstract and in third-party
code; the rest is restated from memory.

With f = sum_t f_t the full ensemble and g_r the sum of the first r base models of an order pi, a
row leaves after position r as negative if g_r < low_r, as positive if g_r >= high_r. C_r are the
training rows still undecided after it. Position by position, the base model and its thresholds
minimise

    J_r = c_pi(r) |C_(r-1)| / |C_(r-1) without C_r|

such that at most a share alpha of all training rows has left so far with a sign different from f.
Each alpha is an operating point; the last point is the full ensemble.

Equations
    J, order        bench_methods.qwyc.arranged
    thresholds      bench_methods.qwyc.thresholds
    c               bench_methods.qwyc.QWYC._batches

Departures
- A base model is a batch of ``every`` trees. Its price is its mean evaluation cost plus the price
  of the new sensors that its trees need. Rows pay only for their own paths: it is an upper bound.
- The two thresholds of a position are optimised jointly. They are on opposite sides of 0, so the
  partial score of a row that leaves has the right sign. Ties, and positions at which no base model
  decides a row, follow the base's order.
- Score 0 is negative, as in metrics. Thresholds are halfway between scores of training rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from bench_models.boosting import OnTrees, ensemble_of, prefix_chain
from bench_models.dictionary import sensor_bits
from bench_models.path_of_models import PathOfModels
from bench_models.staged import END, MOST_POINTS, Point, Stage, StagedModel

from bench_core import (
    Acquired,
    Examples,
    FitContext,
    Prices,
    Task,
    param,
    provide_learners,
)
from bench_core.arrays import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from bench_trees import Ensemble

LEAST_POSITIVE = 1e-300


@dataclass(frozen=True)
class QWYC(OnTrees):
    """Another learner's trees in batches, ordered for early exits."""

    name: ClassVar[str] = "qwyc"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY})
    adds_up: ClassVar[bool] = False

    alphas: tuple[float, ...] = param(
        (0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0),
        "operating points: share of training rows that may leave with the wrong sign",
        least=0,
        most=1,
    )
    every: int = param(10, "trees of a base model", least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < len(set(self.alphas)) == len(self.alphas) < MOST_POINTS:
            raise ValueError(f"alphas must be 1 to {MOST_POINTS - 1} different numbers")

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> PathOfModels:
        """Order by the cells of ``train``; labels and ``valid`` are not used."""
        ensemble = ensemble_of(self.name, self.base, context)
        full = prefix_chain(ensemble, [ensemble.trees], prices, {})
        batches = self._batches(ensemble, train, prices)
        models = []
        for k, alpha in enumerate(sorted(self.alphas, reverse=True)):
            if len(batches.scores) > 1:
                order = arranged(batches, float(ensemble.base[0]), train.weights, alpha)
                stages = _stages(order, batches.trees, ensemble)
                points = [Point(len(stages) - 1, {"alpha": alpha})]
                models.append(StagedModel(stages, points, prices, ensemble))
            context.progress(k + 1, len(self.alphas))
        context.progress(1, 1)
        return PathOfModels([*models, full])

    def _batches(self, ensemble: Ensemble, train: Examples, prices: Prices) -> Batches:
        """The base models, in the base's order."""
        cuts = np.arange(self.every, ensemble.trees, self.every)
        trees = np.split(np.arange(ensemble.trees, dtype=np.int64), cuts)
        stages = [
            Stage(ids, np.ones(len(ids)), np.zeros(1), then=k + 1 if k + 1 < len(trees) else END)
            for k, ids in enumerate(trees)
        ]
        # each stage alone, without the sum of earlier ones
        apart = StagedModel(stages, [Point(len(stages) - 1, {})], prices, ensemble)
        walked = [
            (rows.score[:, 0], float(train.weights @ rows.splits))
            for rows in apart.stage_by_stage(train.features)
        ]
        scores = np.stack([score for score, _ in walked])
        # splits add up along the chain
        each = np.diff([splits for _, splits in walked], prepend=0.0) / train.weights.sum()
        real = np.diff(ensemble.start) > 1
        count = np.array([real[ids].sum() for ids in trees], dtype=np.float64)
        bits = sensor_bits(ensemble, prices)
        needs = np.stack([np.bitwise_or.reduce(bits[ids], axis=0, initial=0) for ids in trees])
        evaluation = prices.split * each + prices.tree * count
        # without any price, cost is the number of trees
        evaluation += 1e-9 * ((prices.everything + evaluation.sum()) or 1.0) * (count + 1)
        sensors = Acquired(needs, prices.sensors).unpack()
        return Batches(trees, scores, evaluation, sensors, prices.sensor)


class Batches(NamedTuple):
    """B base models: their trees, scores of n rows, and costs."""

    trees: Sequence[IntArray]
    scores: FloatArray  # (B, n)
    evaluation: FloatArray  # (B,)
    sensors: BoolArray  # (B, s)
    price: FloatArray  # (s,)


class OrderedBatch(NamedTuple):
    """A base model, and the range of partial scores of rows that go on."""

    batch: int
    low: float
    high: float


def arranged(batches: Batches, base: float, mass: FloatArray, alpha: float) -> list[OrderedBatch]:
    """All base models in order, for rows that count ``mass`` (n,) times."""
    scores, left = batches.scores, list(range(len(batches.scores)))
    partial = np.full(scores.shape[1], base)
    positive = base + scores.sum(axis=0) > 0
    on = np.arange(scores.shape[1])
    bought = np.zeros(len(batches.price), dtype=bool)
    allowed, order = alpha * float(mass.sum()) + 1e-9, list[OrderedBatch]()
    while len(left) > 1:
        best, least, flips = OrderedBatch(left[0], -np.inf, np.inf), np.inf, 0.0
        for t in left if len(on) else []:
            cut, decided, wrong = thresholds(
                partial[on] + scores[t, on], positive[on], mass[on], allowed
            )
            if decided > 0:
                cost = batches.evaluation[t] + batches.price @ (batches.sensors[t] & ~bought)
                ratio = float(cost * mass[on].sum() / decided)
                if ratio < least:
                    best, least, flips = OrderedBatch(t, *cut), ratio, wrong
        left.remove(best.batch)
        order.append(best)
        partial += scores[best.batch]
        bought |= batches.sensors[best.batch]
        allowed -= flips
        on = on[(partial[on] >= best.low) & (partial[on] < best.high)]
    return [*order, OrderedBatch(left[0], -np.inf, np.inf)]


def thresholds(
    g: FloatArray, positive: BoolArray, mass: FloatArray, allowed: float
) -> tuple[tuple[float, float], float, float]:
    """The two thresholds at which most rows with scores ``g`` (n,) leave, at most ``allowed`` with
    a sign other than ``positive`` (n,); the mass that leaves, and its wrong part."""
    values, place = np.unique(g, return_inverse=True)
    rows = np.bincount(place, mass, len(values))
    ones = np.bincount(place, mass * positive, len(values))
    below, above = int((values < 0).sum()), int((values > 0).sum())
    # mass and errors if the i lowest, or the j highest, values leave
    low, low_flips = (np.append(0.0, np.cumsum(v[:below])) for v in (rows, ones))
    down = slice(None, len(values) - above - 1 if above < len(values) else None, -1)
    high, high_flips = (np.append(0.0, np.cumsum(v[down])) for v in (rows, rows - ones))
    fits = np.searchsorted(high_flips, allowed - low_flips, side="right") - 1
    decided = np.where(fits >= 0, low + high[fits], -1.0)
    i = int(decided.argmax())
    j = int(fits[i])
    middle = (values[1:] + values[:-1]) / 2
    edges = np.concatenate([[-np.inf], middle, [np.inf]])
    cut = min(float(edges[i]), 0.0), max(float(edges[len(values) - j]), LEAST_POSITIVE)
    return cut, float(decided[i]), float(low_flips[i] + high_flips[j])


def _stages(
    order: Sequence[OrderedBatch], trees: Sequence[IntArray], ensemble: Ensemble
) -> list[Stage]:
    """A stage for each position. If rows may leave on both sides, its gate releases the positive
    rows, and a stage without trees after it the negative ones."""
    stages: list[Stage] = []
    for r, (batch, low, high) in enumerate(order):
        members, last, both = trees[batch], r == len(order) - 1, np.isfinite([low, high]).all()
        bias = ensemble.base if r == 0 else np.zeros(1)
        how: dict[str, Any] = {"carry": r > 0, "then": END if last else len(stages) + 1}
        if np.isfinite(high):
            how |= {"bar": high, "then": END, "otherwise": len(stages) + 1}
        elif np.isfinite(low):
            how |= {"bar": low}
        stages.append(Stage(members, np.ones(len(members)), bias, **how))
        if both:
            nothing = np.zeros(0, np.int64), np.zeros(0), np.zeros(1)
            stages.append(Stage(*nothing, carry=True, bar=low, then=len(stages) + 1))
    return stages


bench_learners = provide_learners(QWYC, family="early exits")
