"""What the boosted-tree learners share: losses by task, binned rows, and their paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bench_core import BudgetedLearner, Examples, FitContext, Prices, Task, UsageError
from bench_core.arrays import IntArray
from bench_models.staged import MOST_POINTS, StagedModel
from bench_models.staged.prefix_chain import prefix_chain

if TYPE_CHECKING:
    from bench_trees import Bins, Ensemble, Loss, Penalty, Settings

LossName = Literal["auto", "squared", "logistic", "softmax", "lambdarank"]

TASKS = frozenset(Task)

_LOSSES: Mapping[Task, tuple[str, ...]] = {  # the first is "auto"
    Task.RANKING: ("squared", "lambdarank"),
    Task.REGRESSION: ("squared",),
    Task.BINARY: ("logistic",),
    Task.MULTICLASS: ("softmax",),
}


def bench_warm_up(say: Callable[[str], None]) -> None:
    """Compile the engine's kernels where no earlier run has."""
    from bench_trees import warm_up

    warm_up(say)


class OnTrees:
    """What learners over the boosted trees of another one, their field ``base``, share.

    Raises ValueError where the base says, by ``adds_up = False``, that its scores are no sum of
    trees. For the others only the fitted model can show it.
    """

    base: BudgetedLearner | None

    def __post_init__(self) -> None:
        if self.base is not None and not getattr(self.base, "adds_up", True):
            raise ValueError(
                f"base {self.base.name!r} has no trees that add up to its scores; "
                "choose gbrt, miser or cegb"
            )

    def needs(self) -> tuple[BudgetedLearner, ...]:
        """The trees."""
        return () if self.base is None else (self.base,)


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
    return _binned(train, max_bins, context, "codes")


def packed(train: Examples, max_bins: int, context: FitContext) -> tuple[Bins, NDArray[np.uint64]]:
    """Bins and the codes in words, which ``boost`` reads without a copy; computed once likewise."""
    return _binned(train, max_bins, context, "words")


def _binned(
    train: Examples, max_bins: int, context: FitContext, form: Literal["codes", "words"]
) -> tuple[Bins, Any]:
    from bench_trees import Bins, find_bins

    def build() -> Mapping[str, Any]:
        bins = find_bins(train.X, max_bins, train.multiplicity, context.threads)
        return {**bins.to_state(), form: getattr(bins, form)(train.X, context.threads)}

    arrays = context.shared(f"{form}-{max_bins}", build)
    return Bins.from_state(arrays), arrays[form]


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
        progress=context.progress,
    )
    return chain(ensemble, prices, {"loss": name, **facts})


def chain(ensemble: Ensemble, prices: Prices, facts: Mapping[str, Any]) -> StagedModel:
    """An ensemble as stages that carry and always pass, one for each reported prefix."""
    outputs = len(ensemble.base)
    ends = outputs * prefixes(ensemble.trees // outputs)
    return prefix_chain(ensemble, ends.tolist(), prices, facts, all_points=True)


def prefixes(iterations: int) -> IntArray:
    """The numbers of iterations reported: all up to 100, else 100 that start dense.

    The steps between them grow evenly from one, and the last is ``iterations``.
    """
    if iterations <= MOST_POINTS:
        return np.arange(min(1, iterations), iterations + 1, dtype=np.int64)
    place = np.arange(MOST_POINTS)
    surplus = (iterations - MOST_POINTS) * (place / (MOST_POINTS - 1)) ** 2
    return place + 1 + np.round(surplus).astype(np.int64)
