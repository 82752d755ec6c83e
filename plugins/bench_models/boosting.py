"""What the boosted-tree learners share: losses by task, binned rows, prices in loss units, paths.

A learner that minimises loss + price x cost has one field ``tradeoff``. With N the number of
rows, copies included, and c_k the price of sensor k,

    tau = tradeoff x (mean training loss of the best constant) / (price of all features)

is the price of one unit of cost in units of loss, per row; each learner's docstring says which
lambda of its paper that is. Only shares of prices enter, so rescaling all costs changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bench_core import (
    BudgetedLearner,
    Examples,
    FitContext,
    Prices,
    Task,
    UsageError,
    hookimpl,
)
from bench_models.staged import END, MOST_POINTS, Point, Stage, StagedModel

if TYPE_CHECKING:
    from bench_trees import Bins, Ensemble, Loss, Penalty, Settings

Floats = NDArray[np.float64]
LossName = Literal["auto", "squared", "logistic", "softmax", "lambdarank"]

TASKS = frozenset(Task)

_LOSSES: Mapping[Task, tuple[str, ...]] = {  # the first is "auto"
    Task.RANKING: ("squared", "lambdarank"),
    Task.REGRESSION: ("squared",),
    Task.BINARY: ("logistic",),
    Task.MULTICLASS: ("softmax",),
}


@hookimpl
def bench_warm_up(say: Callable[[str], None]) -> None:
    """Compile the engine's kernels where no earlier run has; a hook of every boosted learner."""
    from bench_trees import warm_up

    warm_up(say)


def check(learner: Any) -> None:
    """Raise ValueError where a hyper-parameter is out of range."""
    least = {"trees": 0, "depth": 1, "leaves": 2, "min_rows": 1, "max_bins": 2, "tradeoff": 0}
    for name, low in least.items():
        value = getattr(learner, name, None)
        if value is not None and not low <= value < np.inf:
            raise ValueError(f"{name} must be at least {low} and finite, got {value}")
    if learner.max_bins > 255:
        raise ValueError(f"max_bins must be at most 255, got {learner.max_bins}")
    if not 0 < learner.learning_rate < np.inf:
        raise ValueError(f"learning_rate must be above 0, got {learner.learning_rate}")


def check_base(base: BudgetedLearner | None) -> None:
    """Raise ValueError where a learner says, by ``adds_up = False``, that its scores are no sum of
    trees. Of the others only a fitted model tells."""
    if base is not None and not getattr(base, "adds_up", True):
        raise ValueError(
            f"base {base.name!r} has no trees that add up to its scores; choose gbrt, miser or cegb"
        )


def loss_of(task: Task, name: LossName, classes: int) -> tuple[str, Loss]:
    """The loss for a task and its name. Raises UsageError where the two do not go together."""
    from bench_trees import LambdaRank, Logistic, Softmax, Squared

    fitting = _LOSSES[task]
    chosen = fitting[0] if name == "auto" else name
    if chosen not in fitting:
        raise UsageError(f"loss={name}: a {task} task takes {' or '.join(fitting)}")
    if chosen == "softmax":
        return chosen, Softmax(classes)
    plain: dict[str, Loss] = {
        "squared": Squared(),
        "logistic": Logistic(),
        "lambdarank": LambdaRank(),
    }
    return chosen, plain[chosen]


def binned(train: Examples, max_bins: int, context: FitContext) -> tuple[Bins, NDArray[np.uint8]]:
    """The bins of the training rows and their codes (d, n), computed once for all trials."""
    from bench_trees import Bins, find_bins

    def build() -> Mapping[str, Any]:
        bins = find_bins(train.X, max_bins, train.multiplicity, context.threads)
        return {**bins.to_state(), "codes": bins.codes(train.X, context.threads)}

    arrays = context.shared(f"codes-{max_bins}", build)
    return Bins.from_state(arrays), arrays["codes"]


def packed(train: Examples, max_bins: int, context: FitContext) -> tuple[Bins, NDArray[np.uint64]]:
    """Bins and the codes in words, which ``boost`` reads without a copy; computed once likewise."""
    from bench_trees import Bins, find_bins

    def build() -> Mapping[str, Any]:
        bins = find_bins(train.X, max_bins, train.multiplicity, context.threads)
        return {**bins.to_state(), "words": bins.words(train.X, context.threads)}

    arrays = context.shared(f"words-{max_bins}", build)
    return Bins.from_state(arrays), arrays["words"]


def constant_loss(name: str, loss: Loss, train: Examples) -> float:
    """Mean training loss of the best constant predictor per row, copies included.

    LambdaRank's is that of equal scores, where a pair of weight w costs w log 2 and adds w / 4
    to the second derivative at both of its rows.
    """
    mass = train.weights
    if name == "squared":
        mean = np.average(train.y, weights=mass)
        return float(np.average((train.y - mean) ** 2, weights=mass)) / 2
    if name == "lambdarank":
        return 2 * float(np.log(2)) * float(np.average(_curvature(loss, train), weights=mass))
    shares = np.bincount(train.y.astype(np.int64), mass) / mass.sum()
    some = shares[shares > 0]
    return abs(float((some * np.log(some)).sum()))


def _curvature(loss: Loss, train: Examples) -> Floats:
    """Second derivatives (n,) at equal scores."""
    from bench_trees.losses import Labels
    from bench_trees.threads import workers

    queries = None if train.queries is None else train.queries.boundaries
    labels = Labels(train.y, train.multiplicity, None, queries)
    base = loss.base(labels)  # refuses labels and queries that do not fit
    with workers(1) as crew:
        _, hessian = loss.gradients(np.tile(base[:, None], len(train)), labels, crew)
    assert hessian is not None
    return np.asarray(hessian[0], dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class LossPrices:
    """Prices of one row in loss units, ``sensor`` (s,) and ``split`` (d,): ``tau`` times cost."""

    tau: float
    sensor: Floats
    split: Floats

    @classmethod
    def of(cls, prices: Prices, tradeoff: float, loss: float) -> LossPrices:
        """``loss`` is that of the constant predictor.

        Where all features are free, ``tradeoff`` is the price of one split on each instead.
        """
        evaluation = prices.split * prices.multiplier
        unit = prices.everything if prices.everything > 0 else float(evaluation.sum())
        if unit == 0:
            return cls(0.0, np.zeros(prices.sensors), np.zeros(prices.features))
        budget = tradeoff * loss
        shares = (prices.sensor / unit, evaluation / unit)
        return cls(budget / unit, budget * shares[0], budget * shares[1])


def fit_boosted(
    train: Examples,
    prices: Prices,
    context: FitContext,
    *,
    loss: LossName,
    settings: Settings,
    max_bins: int,
    penalty: Penalty | None,
    facts: Mapping[str, Any],
) -> StagedModel:
    """Boost under a penalty and serve every prefix worth reporting."""
    from bench_trees import boost

    name, objective = loss_of(context.task, loss, context.classes)
    bins, words = packed(train, max_bins, context)
    ensemble = boost(
        words,
        bins,
        train.y,
        loss=objective,
        settings=settings,
        penalty=penalty,
        multiplicity=train.multiplicity,
        queries=None if train.queries is None else train.queries.boundaries,
        threads=context.threads,
        seed=context.seed,
        progress=context.progress,
    )
    return chain(ensemble, prices, {"loss": name, **facts})


def chain(ensemble: Ensemble, prices: Prices, facts: Mapping[str, Any]) -> StagedModel:
    """An ensemble as stages that carry and always pass, one for each reported prefix."""
    outputs = len(ensemble.base)
    ends = outputs * prefixes(ensemble.trees // outputs)
    starts = np.concatenate([[0], ends[:-1]])
    stages = [
        Stage(
            entries=np.arange(start, end, dtype=np.int64),
            weights=np.ones(end - start),
            bias=ensemble.base if k == 0 else np.zeros(outputs),
            carry=k > 0,
            then=END if k == len(ends) - 1 else k + 1,
        )
        for k, (start, end) in enumerate(zip(starts, ends, strict=True))
    ]
    points = [Point(k, {"trees": int(end)}) for k, end in enumerate(ends)]
    return StagedModel(stages, points, prices, ensemble, facts=facts)


def prefixes(iterations: int) -> NDArray[np.int64]:
    """The numbers of iterations reported: all up to 100, else 100 that start dense.

    The steps between them grow evenly from one, and the last is ``iterations``.
    """
    if iterations <= MOST_POINTS:
        return np.arange(min(1, iterations), iterations + 1, dtype=np.int64)
    place = np.arange(MOST_POINTS)
    surplus = (iterations - MOST_POINTS) * (place / (MOST_POINTS - 1)) ** 2
    return place + 1 + np.round(surplus).astype(np.int64)
