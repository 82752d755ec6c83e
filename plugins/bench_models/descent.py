"""Block descent: cycles over the parts of a model, with a few quasi-Newton steps on each part."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

from bench_core import param
from bench_core.arrays import FloatArray, IntArray
from bench_models.least_squares import NEGLIGIBLE, weighted_gram
from bench_models.problem import Problem

_JITTER = 1e-8


@dataclass(frozen=True, slots=True)
class DescentSettings:
    """Settings of the descent. Weights below ``cut_off`` become exact zeros. Limits are ``cycles``
    over the blocks, ``reweightings`` per block and ``steps`` per re-weighting. Either outer loop
    ends at a relative gain in the true loss below ``tolerance``, steps at one below ``ftol``.
    ``constant``: classifiers have an intercept. ``threads`` changes no result."""

    cut_off: float = 1e-4
    cycles: int = 10
    reweightings: int = 5
    steps: int = 20
    tolerance: float = 1e-4
    ftol: float = 1e-12
    constant: bool = True
    threads: int = 1

    @classmethod
    def of(cls, learner: Any, threads: int) -> Self:
        """Settings from a learner's parameters of the same names."""
        own = {f.name: getattr(learner, f.name) for f in fields(cls) if hasattr(learner, f.name)}
        return cls(**own, threads=threads)


@dataclass(frozen=True)
class JointlyOptimised:
    """Parameters of learners that optimise their classifiers in turn."""

    cycles: int = param(10, "passes over all classifiers, at most", least=0)
    reweightings: int = param(
        5, "rounds of auxiliary variables per classifier and pass, at most", least=1
    )
    steps: int = param(20, "descent steps per round, at most", least=1)
    tolerance: float = param(
        1e-4, "a pass or round that gains less than this share is the last", least=0
    )


class Evaluated(Protocol):
    """A model in training, with the loss that must not rise."""

    @property
    def loss(self) -> float:
        """The loss as printed, not a bound of it."""


P = TypeVar("P", bound=Evaluated)


def cyclic_descent(
    at: P,
    blocks: int,
    improve: Callable[[P, int], P],
    *,
    cycles: int,
    tolerance: float,
    progress: Callable[[int], None] = lambda done: None,
) -> P:
    """Improve the ``blocks`` of a model in turn, for at most ``cycles`` cycles.

    The last cycle is the first to lower the loss by less than the share ``tolerance``. ``progress``
    is called with the number of improvements so far.
    """
    for cycle in range(cycles):
        before = at.loss
        for k in range(blocks):
            at = improve(at, k)
            progress(cycle * blocks + k + 1)
        if before - at.loss <= tolerance * abs(before):
            break
    return at


@dataclass(frozen=True, slots=True, eq=False)
class Classifiers:
    """K linear classifiers: ``weights`` (K, T) over the columns, ``bias`` (K,) and ``threshold``
    (K,), the least score that passes the gate."""

    weights: FloatArray
    bias: FloatArray
    threshold: FloatArray

    def replaced(self, k: int, weights: FloatArray, bias: float, threshold: float) -> Self:
        """A copy with another classifier ``k``."""
        w, b, t = self.weights.copy(), self.bias.copy(), self.threshold.copy()
        w[k], b[k], t[k] = weights, bias, threshold
        return replace(self, weights=w, bias=b, threshold=t)


class Flow(Protocol):
    """Passage of rows through classifiers."""

    @property
    def scores(self) -> FloatArray:
        """The score of every row at every classifier (K, n)."""

    @property
    def reach(self) -> FloatArray:
        """The probability that a row reaches each classifier (K, n)."""


C = TypeVar("C", bound=Classifiers)
F = TypeVar("F", bound=Flow)


@dataclass(frozen=True, slots=True, eq=False)
class Position(Generic[C, F]):
    """Classifiers in training, the passage of their rows, and their true loss."""

    model: C
    rows: F
    loss: float


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GatedObjective:
    """A smooth function of one classifier's weights (c,), constant and threshold, all else fixed.

    Only rows that reach it (m) and columns with a weight (c) count: ``columns`` (c, m) float64,
    labels ``y``, row weights ``weight`` and arrival probabilities ``reach``, all (m,). Its convex
    part is a squared loss with row weights ``weight * reach`` and a ``ridge`` (c,). ``lam`` is the
    price of a unit of cost and ``slope`` the gate's. The threshold matters only if ``gated``.
    """

    columns: FloatArray
    y: FloatArray
    weight: FloatArray
    reach: FloatArray
    ridge: FloatArray
    lam: float
    slope: float
    gated: bool

    @abstractmethod
    def evaluate(
        self, weights: FloatArray, bias: float, threshold: float
    ) -> tuple[float, FloatArray, float, float]:
        """Value, and its derivatives by weights (c,), constant and threshold."""


def improve_in_turns(
    problem: Problem,
    at: Position[C, F],
    settings: DescentSettings,
    objective: Callable[
        [Position[C, F], int, IntArray, IntArray, FloatArray], GatedObjective | None
    ],
    evaluated: Callable[[C, FloatArray], Position[C, F]],
    progress: Callable[[int], None] = lambda done: None,
) -> Position[C, F]:
    """Cycle over the classifiers until the true loss stops improving.

    ``objective`` receives a position, a classifier k, the rows (m,) that reach it, the trees (c,)
    with a weight there and their columns (c, m). It sets the auxiliary variables to their optimum;
    None means that nothing can improve.
    ``evaluated`` returns the true loss of classifiers with known scores (K, n). Every accepted
    update lowers that loss, with small weights already set to zero; zeros stay zero. ``progress``
    is called with the number of updates done.
    """

    def moved(at: Position[C, F], k: int, goal: GatedObjective, gram: FloatArray) -> Position[C, F]:
        """Minimise over classifier ``k``, zero small weights."""
        model, used = at.model, np.flatnonzero(at.model.weights[k])
        start = model.weights[k][used], float(model.bias[k]), float(model.threshold[k])
        found, bias, threshold = minimise_gated(goal, gram, *start, settings)
        weights = np.zeros(problem.trees)
        weights[used] = np.where(np.abs(found) >= settings.cut_off, found, 0.0)
        bias = bias if settings.constant else 0.0
        scores = at.rows.scores.copy()
        scores[k] = problem.score(weights, bias)
        return evaluated(model.replaced(k, weights, bias, threshold), scores)

    def improved(at: Position[C, F], k: int) -> Position[C, F]:
        # the rows of a classifier depend only on those before it
        rows = np.flatnonzero(at.rows.reach[k] > NEGLIGIBLE)
        used, gram = np.flatnonzero(at.model.weights[k]), None
        columns = problem.outputs(used, rows)
        for _ in range(settings.reweightings if len(rows) else 0):
            kept = np.flatnonzero(at.model.weights[k][used])
            if len(kept) < len(used):
                used, columns = used[kept], columns[kept]
                kept = np.append(kept, -1)
                gram = None if gram is None else gram[np.ix_(kept, kept)]
            # the auxiliary variables at their optimum
            goal = objective(at, k, rows, used, columns)
            if goal is None:
                break
            gram = _gram(goal, settings.threads) if gram is None else gram
            new = moved(at, k, goal, gram)
            if new.loss >= at.loss:
                break
            gain, at = at.loss - new.loss, new
            if gain <= settings.tolerance * abs(at.loss):
                break
        return at

    return cyclic_descent(
        at,
        len(at.model.bias),
        improved,
        cycles=settings.cycles,
        tolerance=settings.tolerance,
        progress=progress,
    )


def minimise_gated(
    objective: GatedObjective,
    gram: FloatArray,
    weights: FloatArray,
    bias: float,
    threshold: float,
    settings: DescentSettings,
) -> tuple[FloatArray, float, float]:
    """A few descent steps on (weights, bias, threshold), given the objective's ``_gram``."""
    from scipy.linalg import cholesky

    def value_and_gradient(
        betas: FloatArray, thetas: FloatArray
    ) -> tuple[float, FloatArray, FloatArray]:
        beta, theta = betas[0], float(thetas[0]) if objective.gated else threshold
        value, by_weights, by_bias, by_theta = objective.evaluate(beta[:-1], float(beta[-1]), theta)
        return value, np.append(by_weights, by_bias)[None], np.array([by_theta])

    root = cholesky(_curvature(objective, gram), lower=True, check_finite=False)
    at = np.append(weights, bias)[None], np.array([threshold if objective.gated else 0.0])
    (beta,), (theta,), _ = minimise_whitened(
        value_and_gradient, root, *at, steps=settings.steps, ftol=settings.ftol, gtol=1e-10
    )
    return beta[:-1], float(beta[-1]), float(theta) if objective.gated else threshold


def minimise_whitened(
    loss: Callable[[FloatArray, FloatArray], tuple[float, FloatArray, FloatArray]],
    root: FloatArray,
    beta: FloatArray,
    rest: FloatArray,
    *,
    steps: int,
    ftol: float,
    gtol: float,
    memory: int = 10,
) -> tuple[FloatArray, FloatArray, float]:
    """Run L-BFGS on (beta, rest) from this start, in coordinates that make the quadratic part
    round; return them, and the loss. Without them similar boosted columns take hundreds of steps.

    ``beta`` (m, c) are m functions of c columns, and ``root`` (c, c) the lower Cholesky factor of
    the curvature by each. ``loss`` gives its value and its derivatives by beta and ``rest`` (r,).
    """
    from scipy.linalg.lapack import dtrtrs

    by_columns = root.flags.f_contiguous
    factor = root if by_columns else root.T

    def solved(x: FloatArray, transposed: bool) -> FloatArray:
        if x.size == 0:
            return x
        # LAPACK directly: SciPy's checks take as long as a small system
        y, _ = dtrtrs(factor, x.T, lower=by_columns, trans=transposed == by_columns)
        return np.asarray(y.T)

    def plain(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return solved(x[: beta.size].reshape(beta.shape), True), x[beta.size :]

    def value_and_gradient(x: FloatArray) -> tuple[float, FloatArray]:
        value, by_beta, by_rest = loss(*plain(x))
        return value, np.append(solved(by_beta, False), by_rest)

    start = np.append(beta @ root, rest)
    x, value = lbfgs(value_and_gradient, start, steps=steps, ftol=ftol, gtol=gtol, memory=memory)
    return *plain(x), value


def lbfgs(
    value_and_gradient: Callable[[FloatArray], tuple[float, FloatArray]],
    start: FloatArray,
    *,
    steps: int,
    ftol: float,
    gtol: float,
    memory: int = 10,
    least: FloatArray | None = None,
) -> tuple[FloatArray, float]:
    """A minimiser of a smooth function by SciPy's L-BFGS-B, and its value.

    The curvature comes from the last ``memory`` moves. It stops after ``steps``, at a relative fall
    below ``ftol``, or once no entry of the gradient exceeds ``gtol``. ``least`` are lower bounds.
    """
    from scipy.optimize import Bounds, minimize

    result = minimize(
        value_and_gradient,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=None if least is None else Bounds(least),
        options={"maxiter": steps, "ftol": ftol, "gtol": gtol, "maxcor": memory},
    )
    return result.x, float(result.fun)


def _gram(objective: GatedObjective, threads: int) -> FloatArray:
    """The Hessian (lower triangle) of squared loss without the gate; the last row is the bias."""
    columns, root = objective.columns, np.sqrt(objective.weight * objective.reach)
    return weighted_gram(lambda rows: columns[:, rows], [np.ones(len(root))], root, threads)


def _curvature(objective: GatedObjective, gram: FloatArray) -> FloatArray:
    """The Hessian with the ridge, kept positive."""
    hessian = gram.copy()
    diagonal = hessian.diagonal() + np.append(objective.ridge, 0.0)
    tiny = 1e-12 * float(diagonal.max()) + 1e-300
    np.fill_diagonal(hessian, diagonal * (1.0 + _JITTER) + tiny)
    return hessian
