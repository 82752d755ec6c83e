"""Metrics of classification and regression, as weighted means over rows.

Regression scores are in the unit of the labels. Binary scores are log-odds of class 1, shape
(n,): the predicted class is 1 iff the score is > 0, so a score of exactly 0 means class 0.
Multi-class scores are (n, K) logits (softmax gives the probabilities): the predicted class has the
largest score, the lowest class number in ties. Class labels are 0..K-1.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_core.costs.error_costs import ErrorCosts
from bench_core.data import Task
from bench_core.errors import InputError, UsageError, option
from bench_core.metrics.built_in import BuiltIn, Labels, checked_scores
from bench_core.protocols import MetricValues


@dataclass(frozen=True, slots=True)
class MeanSquaredError(BuiltIn):
    """Mean of (score - label)^2, in squared label units."""

    family: ClassVar[str] = "mse"
    higher_is_better: ClassVar[bool] = False
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.REGRESSION})
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)

    def judge(self, scores: FloatArray, labels: Labels) -> MetricValues:
        """Squared error per row, weighted by multiplicity."""
        scores = checked_scores(scores, len(labels), self.name)
        return MetricValues((scores - labels.y) ** 2, labels.weights)


@dataclass(frozen=True, slots=True)
class MeanAbsoluteError(MeanSquaredError):
    """Mean of abs(score - label), in label units."""

    family: ClassVar[str] = "mae"

    def judge(self, scores: FloatArray, labels: Labels) -> MetricValues:
        """Absolute error per row, weighted by multiplicity."""
        scores = checked_scores(scores, len(labels), self.name)
        return MetricValues(np.abs(scores - labels.y), labels.weights)


@dataclass(frozen=True, slots=True)
class R2(BuiltIn):
    """Share of the labels' variance that is explained: 1 - mse / variance.

    Intervals take the variance of the labels as known.
    """

    family: ClassVar[str] = "r2"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.REGRESSION})
    bounds: ClassVar[tuple[float, float]] = (-np.inf, 1.0)

    def undefined(self, y: FloatArray) -> str:
        """Reason if all labels are equal."""
        return "all labels are equal" if y.min() == y.max() else ""

    def judge(self, scores: FloatArray, labels: Labels) -> MetricValues:
        """1 - squared error / variance per row, weighted by multiplicity."""
        scores = checked_scores(scores, len(labels), self.name)
        if self.undefined(labels.y):
            return MetricValues(np.zeros(len(scores)), np.zeros(len(scores)))
        variance = np.cov(labels.y, fweights=labels.copies, ddof=0)
        return MetricValues(1 - (scores - labels.y) ** 2 / variance, labels.weights)


class _OfClasses(BuiltIn):
    __slots__ = ()
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY, Task.MULTICLASS})

    def judge(self, scores: FloatArray, labels: Labels) -> MetricValues:
        scores = checked_scores(scores, len(labels), self.name)
        classes = scores.shape[1] if scores.ndim == 2 else 2
        number = labels.once(("classes", classes), lambda: _class_numbers(labels.y, classes))
        return self._rows(scores, number, labels)

    def _rows(self, scores: FloatArray, number: IntArray, labels: Labels) -> MetricValues:
        """Values from checked scores and class numbers (n,)."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Accuracy(_OfClasses):
    """Fraction of correctly classified rows."""

    family: ClassVar[str] = "accuracy"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def _rows(self, scores: FloatArray, number: IntArray, labels: Labels) -> MetricValues:
        return MetricValues(_right(scores, number), labels.weights)


@dataclass(frozen=True, slots=True)
class BalancedAccuracy(_OfClasses):
    """Mean over the classes present of their recall."""

    family: ClassVar[str] = "balanced_accuracy"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def _rows(self, scores: FloatArray, number: IntArray, labels: Labels) -> MetricValues:
        return MetricValues(_right(scores, number), _equal_classes(number, labels))


@dataclass(frozen=True, slots=True)
class LogLoss(_OfClasses):
    """Mean negative log-probability of the true class, in nats.

    Probabilities are not clipped: zero probability for the true class gives an infinite loss.
    """

    family: ClassVar[str] = "log_loss"
    higher_is_better: ClassVar[bool] = False
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)

    def _rows(self, scores: FloatArray, number: IntArray, labels: Labels) -> MetricValues:
        return MetricValues(log_losses(scores, number), labels.weights)


@dataclass(frozen=True, slots=True)
class Auc(_OfClasses):
    """Area under the ROC curve: fraction of pairs with a higher positive score, ties half.

    Multi-class: one-vs-rest by probability, then the unweighted mean over classes with rows inside
    and outside (scikit-learn's ``multi_class="ovr"``, macro average). NaN if only one class occurs.
    """

    family: ClassVar[str] = "auc"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    order_only: ClassVar[bool] = True

    def undefined(self, y: FloatArray) -> str:
        """Reason if only one class occurs."""
        return "it holds one class" if y.min() == y.max() else ""

    def _rows(self, scores: FloatArray, number: IntArray, labels: Labels) -> MetricValues:
        """Return values whose weighted mean is the area (binary: DeLong et al., Biometrics 1988).

        Each value is the area plus the row's influence. Over resampled rows, the mean varies as the
        area does, for rows of every class; single values may lie outside [0, 1].
        """
        copies, present = labels.weights, np.unique(number)
        if len(present) < 2:
            return MetricValues(np.zeros(len(scores)), np.zeros(len(scores)))
        size, judged = np.bincount(number, copies), present[2 - scores.ndim :]
        area, shift = 0.0, np.zeros(len(scores))
        for c in judged:
            odds = scores
            if scores.ndim == 2:  # log-odds: same order as probabilities, unsaturated
                odds = scores[:, c] - _log_sum(np.delete(scores, c, axis=1))
            inside = number == c
            share = _rightly_ordered(odds, inside, copies)
            own = np.average(share[inside], weights=copies[inside])
            area += own / len(judged)
            shift += (share - own) * np.where(inside, 1.0, size[number] / (copies.sum() - size[c]))
        weights = _equal_classes(number, labels) * (copies.sum() / len(present))
        return MetricValues(area + shift * (len(present) / len(judged)), weights)


@dataclass(frozen=True, slots=True)
class Score(BuiltIn):
    """Mean quality of the returned answers."""

    family: ClassVar[str] = "score"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.CHOICE})
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def judge(self, scores: FloatArray, labels: Labels) -> MetricValues:
        """Quality of each row's returned answer, weighted by multiplicity."""
        source = returned(checked_scores(scores, len(labels), self.name))
        return MetricValues(labels.y[np.arange(len(labels)), source], labels.weights)


@dataclass(frozen=True, slots=True)
class Regret(Score):
    """Mean quality lost to the best answer of each row."""

    family: ClassVar[str] = "regret"
    higher_is_better: ClassVar[bool] = False

    def judge(self, scores: FloatArray, labels: Labels) -> MetricValues:
        """Best quality of each row minus its returned answer's, weighted by multiplicity."""
        right = Score.judge(self, scores, labels)
        return MetricValues(labels.y.max(axis=1) - right.values, right.weights)


TOTAL_COST = "total_cost"


@dataclass(frozen=True, slots=True)
class TotalCost(BuiltIn):
    """Mean cost of a row's purchases and of its answer, in the unit of prices: each row gets the
    answer of least expected cost. Only runs with costs of errors have it, as first metric."""

    family: ClassVar[str] = TOTAL_COST
    higher_is_better: ClassVar[bool] = False
    in_money: ClassVar[bool] = True
    tasks: ClassVar[frozenset[Task]] = _OfClasses.tasks
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)

    def judge(self, scores: FloatArray, labels: Labels) -> MetricValues:
        """Cost of each row's answer alone."""
        if labels.errors is None:
            raise UsageError(f"{TOTAL_COST} needs costs of errors: {option('error_costs', '500')}")
        answers = labels.errors.answers(checked_scores(scores, len(labels), self.name))
        return MetricValues(labels.errors.billed(labels.y, answers, labels.paid), labels.weights)


METRICS = (
    TotalCost,
    Score,
    Regret,
    Accuracy,
    BalancedAccuracy,
    LogLoss,
    Auc,
    MeanSquaredError,
    MeanAbsoluteError,
    R2,
)


def _class_numbers(y: FloatArray, classes: int) -> IntArray:
    number = y.astype(np.int64)
    wrong = (number != y) | (number < 0) | (number >= classes)
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(
            f"the label {y[row]:g} of row {row} (counted from 0) is not one of the class "
            f"numbers 0..{classes - 1}: renumber the classes"
        )
    return number


def returned(scores: FloatArray) -> IntArray:
    """Return the class or source (n,) of scores (n,) or (n, K)."""
    best = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
    return np.asarray(best, dtype=np.int64)


def right_by_class(
    scores: FloatArray, y: FloatArray, classes: int, errors: ErrorCosts | None = None
) -> FloatArray:
    """Return the number of rows of each class (classes,) that are answered right: by the most
    likely class, or where ``errors`` have costs by the one of least expected cost."""
    answers, true = returned(scores) if errors is None else errors.answers(scores), y.astype(int)
    return np.bincount(true[answers == true], minlength=classes).astype(np.float64)


def _right(scores: FloatArray, number: IntArray) -> FloatArray:
    return np.asarray(returned(scores) == number, dtype=np.float64)


def log_losses(scores: FloatArray, number: IntArray) -> FloatArray:
    """Return the negative log-probability (n,) of the classes ``number``."""
    if scores.ndim == 1:
        return np.asarray(np.logaddexp(0.0, np.where(number == 1, -scores, scores)))
    return np.asarray(_log_sum(scores) - scores[np.arange(len(scores)), number])


def _equal_classes(number: IntArray, labels: Labels) -> FloatArray:
    """Weights (n,) that give all classes equal weight."""
    return labels.once(
        "equal classes",
        lambda: labels.weights / np.bincount(number, weights=labels.weights)[number],
    )


def _log_sum(scores: FloatArray) -> FloatArray:
    top = scores.max(axis=1)
    # shifted by the largest, so that exp does not overflow
    return np.asarray(np.log(np.exp(scores - top[:, None]).sum(axis=1)) + top)


def _rightly_ordered(scores: FloatArray, inside: BoolArray, copies: FloatArray) -> FloatArray:
    """Return, for each row (n,), the weighted fraction of rows of the other side in the right
    order: below a row inside, above a row outside; ties count half."""
    order = np.argsort(scores)
    rising, within, weight = scores[order], inside[order], copies[order]
    edges = np.flatnonzero(np.concatenate([[True], rising[1:] != rising[:-1], [True]]))
    lower, upper = edges[:-1], edges[1:]  # ranges of tied rows
    inner = np.cumsum(np.append(0.0, np.where(within, weight, 0.0)))
    outer = np.cumsum(np.append(0.0, np.where(within, 0.0, weight)))
    below = (outer[lower] + outer[upper]) / (2 * outer[-1])
    above = (2 * inner[-1] - inner[lower] - inner[upper]) / (2 * inner[-1])
    share, ties = np.empty(len(scores)), upper - lower
    share[order] = np.where(within, np.repeat(below, ties), np.repeat(above, ties))
    return share
