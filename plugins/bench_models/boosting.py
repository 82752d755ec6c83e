"""Learners of boosted trees: parameters, losses by task, binned rows and chains of trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from bench_core import (
    BudgetedLearner,
    Examples,
    FitContext,
    Prices,
    Task,
    UsageError,
    among,
    inside,
    log,
    param,
)
from bench_core.arrays import IntArray
from bench_models.staged import END, MOST_POINTS, Point, Stage, StagedModel
from bench_models.tradeoff import LossPrices, constant_loss

if TYPE_CHECKING:
    from bench_trees import Bins, Ensemble, Loss, Penalty, Settings

LossName = Literal["auto", "squared", "logistic", "softmax", "lambdarank"]

TASKS = frozenset(Task)

TRADEOFF = "weight of costs: at 1, all features cost as much as a constant's training loss"
WIDE = "; with more features than rows at most an eighth of the rows, or 32"
BINS = f"most bins per feature{WIDE}"
RELEVANT = "ranking: a document is relevant iff its grade is at least this"

_LOSSES: Mapping[Task, tuple[str, ...]] = {  # the first is "auto"
    Task.RANKING: ("squared", "lambdarank"),
    Task.REGRESSION: ("squared",),
    Task.BINARY: ("logistic",),
    Task.MULTICLASS: ("softmax",),
}

_CLASSES = (Task.BINARY, Task.MULTICLASS)

LEAST_HESSIAN = 0.1
"""Least sum of second derivatives on each side of a split, for classes. With the engine's 1e-3 a
few rows of a rare class can form a leaf alone. It then takes long steps."""

_WIDE_BINS, _ROWS_PER_BIN = 32, 8
"""Limits on bins with more features than rows: at least this many bins, or this many rows in each.
Otherwise a leaf's histogram has more entries than the leaf has cells. XGBoost's approximate
algorithm cuts at sketches of 1/33 of the rows (T. Chen, C. Guestrin, 2016; its ``sketch_eps``)."""

_NO_SUM = "has no trees that add up to its scores; choose gbrt, miser or cegb"


class OnEngine:
    """Base class of learners that use the tree engine."""

    tasks: ClassVar[frozenset[Task]] = TASKS
    numerics: ClassVar[tuple[str, ...]] = ("numpy", "cpu")  # exp and log of losses and links

    @staticmethod
    def warm_up(say: Callable[[str], None]) -> None:
        """Compile the engine's kernels unless an earlier run has."""
        from bench_trees import warm_up

        warm_up(say)


@dataclass(frozen=True, kw_only=True)
class BoostedTrees(OnEngine):
    """Parameters of all learners of boosted trees."""

    trees: int = param(300, "boosting iterations (for K classes K trees each)", least=0)
    learning_rate: float = param(
        0.1, "shrinkage of every tree's output (eta)", above=0, search=log(0.08, 0.8)
    )
    depth: int | None = param(
        4, "most split levels of a tree, none = no limit", least=1, search=among(None)
    )
    loss: LossName = param("auto", "loss; auto: squared, for classes logistic or softmax")
    min_rows: int = param(
        20,
        "least rows (copies counted) on each side of a split",
        least=1,
        search=log(3, 60),
    )
    max_bins: int = param(255, BINS, least=2, most=255)
    l2: float | None = param(
        None, "l2 penalty on leaf values (added to H); none: 1 for classes, else 0", least=0
    )

    def l2_for(self, task: Task) -> float:
        """``l2``, or its default for a task."""
        return float(task in _CLASSES) if self.l2 is None else self.l2

    def settings(self, task: Task, max_leaves: int, **more: Any) -> Settings:
        """The engine's settings; ``more`` adds or replaces fields."""
        from bench_trees import Settings

        own = {"trees": self.trees, "learning_rate": self.learning_rate, "max_depth": self.depth}
        own |= {"min_rows": self.min_rows, "max_leaves": max_leaves, "l2": self.l2_for(task)}
        least = {"min_hessian": LEAST_HESSIAN} if task in _CLASSES else {}
        return Settings(**(own | least | more))

    def loss_prices(
        self, tradeoff: float, train: Examples, prices: Prices, context: FitContext
    ) -> LossPrices:
        """Prices of one row in units of the loss, at a ``tradeoff``."""
        name, loss = loss_of(context.task, self.loss, context.classes)
        return LossPrices.of(prices, tradeoff, constant_loss(name, loss, train))

    def boosted(
        self,
        train: Examples,
        prices: Prices,
        context: FitContext,
        settings: Settings,
        penalty: Penalty | None = None,
        facts: Mapping[str, float] | None = None,
    ) -> StagedModel:
        """Boost under a penalty and serve the reported prefixes."""
        from bench_trees import Ensemble, boost

        name, objective = loss_of(context.task, self.loss, context.classes)
        bins, words = binned(train, self.max_bins, context, "words")

        def train_trees(settings: Settings, penalty: Penalty | None) -> Ensemble:
            return boost(
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

        if not (penalty is None or penalty.free):
            ensemble = train_trees(settings, penalty)
        else:
            how = unpriced(settings, squared=name == "squared")
            inputs = name, self.max_bins, replace(how, trees=0), train
            kept = context.trained(inputs, lambda: train_trees(how, None).state(), how.trees)
            ensemble = first_iterations(Ensemble.from_state(kept), how.trees)
        return chain(ensemble, prices, {"loss": name, **(facts or {})})


@dataclass(frozen=True)
class OnTrees(OnEngine):
    """Base class of learners over the boosted trees of another learner.

    Raises ValueError where the base has ``adds_up = False``: its scores are not a sum of trees.
    Other bases are checked on the fitted model.
    """

    base: BudgetedLearner = param(
        "gbrt", "learner that supplies the boosted trees", search=inside()
    )

    def __post_init__(self) -> None:
        if self.base and not getattr(self.base, "adds_up", True):
            raise ValueError(f"base {self.base.name!r} {_NO_SUM}")

    def needs(self) -> tuple[BudgetedLearner, ...]:
        """The base learner."""
        return (self.base,) if self.base else ()


def ensemble_of(
    name: str, base: BudgetedLearner, context: FitContext, *, single: bool = True
) -> Ensemble:
    """The trees of ``base``, with one output if ``single``. ``name`` is the caller's.

    Raises UsageError where the base has no such trees.
    """
    model = context.fitted(base)
    ensemble: Ensemble | None = getattr(model, "ensemble", None)
    if ensemble is None or (isinstance(model, StagedModel) and not model.adds_up):
        raise UsageError(f"{name}: base {base.name!r} {_NO_SUM}")
    outputs = ensemble.outputs_count
    if single and outputs != 1:
        raise UsageError(f"{name}: base {base.name!r} has {outputs} outputs, not one")
    return ensemble


def unpriced(settings: Settings, *, squared: bool) -> Settings:
    """The same settings for all learners that grow the same trees without prices."""
    depth, leaves = settings.max_depth, settings.max_leaves
    if depth is not None and (leaves is None or leaves >= 2**depth) and settings.charge == "tree":
        # all leaves with a gain are split, in any order
        settings = replace(settings, order="best", max_leaves=2**depth)
    if squared and settings.learning_rate <= 1 and settings.min_hessian <= settings.min_rows:
        # second derivatives are 1
        settings = replace(settings, second_order=True, min_hessian=0.0)
    return settings


def first_iterations(ensemble: Ensemble, iterations: int) -> Ensemble:
    """The trees of so many iterations, or all if there are fewer."""
    trees = iterations * ensemble.outputs_count
    if ensemble.trees < trees:
        return ensemble
    return replace(ensemble.select(np.arange(trees)), diverged=False)


def loss_of(task: Task, name: LossName, classes: int) -> tuple[str, Loss]:
    """The loss for a task and its name. Raises UsageError where they do not match."""
    from bench_trees.losses import Softmax, named

    fitting = _LOSSES[task]
    chosen = fitting[0] if name == "auto" else name
    if chosen not in fitting:
        raise UsageError(f"loss={name}: a {task} task takes {' or '.join(fitting)}")
    return chosen, Softmax(classes) if chosen == "softmax" else named(chosen, np.zeros(0))


def bins_for(train: Examples, max_bins: int) -> int:
    """``max_bins``, or fewer with more features than rows (copies counted)."""
    rows = int(train.weights.sum())
    wide = train.X.shape[1] > rows
    return min(max_bins, max(_WIDE_BINS, rows // _ROWS_PER_BIN)) if wide else max_bins


def binned(
    train: Examples, max_bins: int, context: FitContext, form: Literal["codes", "words"] = "codes"
) -> tuple[Bins, Any]:
    """The bins of the training rows and their codes, computed once for all trials.

    ``codes`` are uint8 (d, n); ``words`` hold them packed, as ``boost`` reads without a copy.
    """
    from bench_trees import Bins, find_bins

    max_bins = bins_for(train, max_bins)

    def build() -> Mapping[str, Any]:
        bins = find_bins(train.X, max_bins, train.multiplicity, context.threads)
        return {**bins.state(), form: getattr(bins, form)(train.X, context.threads)}

    arrays = context.shared((form, max_bins, train.X, train.multiplicity), build)
    return Bins.from_state(arrays), arrays[form]


def chain(ensemble: Ensemble, prices: Prices, facts: Mapping[str, Any]) -> StagedModel:
    """An ensemble as stages that carry scores and pass every row, one per reported prefix."""
    outputs = len(ensemble.base)
    ends = outputs * prefixes(ensemble.trees // outputs)
    return prefix_chain(ensemble, ends.tolist(), prices, facts, all_points=True)


def prefix_chain(
    ensemble: Ensemble,
    ends: Sequence[int],
    prices: Prices,
    facts: Mapping[str, Any],
    *,
    all_points: bool = False,
) -> StagedModel:
    """The ensemble as stages that carry scores, one per prefix of ``ends`` trees; the last has all.

    Operating points are the last stage or, with ``all_points``, every stage.
    """
    stages = [
        Stage(
            entries=np.arange(start, end, dtype=np.int64),
            weights=np.ones(end - start),
            bias=ensemble.base if k == 0 else np.zeros(ensemble.outputs_count),
            carry=k > 0,
            then=END if k == len(ends) - 1 else k + 1,
        )
        for k, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True))
    ]
    points = [Point(k, {"trees": int(end)}) for k, end in enumerate(ends)]
    reported = points if all_points else points[-1:]
    return StagedModel(stages, reported, prices, ensemble, facts=facts)


def prefixes(iterations: int) -> IntArray:
    """Numbers of iterations reported: all up to ``MOST_POINTS``, otherwise so many, dense at first.

    Their steps grow evenly from one; the last number is ``iterations``.
    """
    most = MOST_POINTS
    if iterations <= most:
        return np.arange(min(1, iterations), iterations + 1, dtype=np.int64)
    place = np.arange(most)
    surplus = (iterations - most) * (place / (most - 1)) ** 2
    return place + 1 + np.round(surplus).astype(np.int64)
