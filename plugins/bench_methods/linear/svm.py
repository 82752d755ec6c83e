"""Support vector machines with RBF kernels: accurate, but they read every feature.

C. Cortes and V. Vapnik, "Support-vector networks", Machine Learning 20 (1995), solved by
scikit-learn's ``SVC`` over standardised columns with

    k(x, v) = exp(-gamma |x - v|^2).

``rbf-svm`` is the expensive classifier f0 of F. Nan and V. Saligrama, "Adaptive classification for
prediction under a budget", NIPS 2017. ``svm-average-kernel`` is a baseline of Z. Xu et al., "The
greedy miser", ICML 2012: one kernel per descriptor and one machine on their average. There is no
trade-off: a row pays for all features.

Equations
    k(x, v)       bench_methods.linear.svm.Kernels.averages
    one machine   bench_methods.linear.svm.RBFSVM._solved
    A, B          bench_models.calibration.platt

Departures
- The papers do not state bandwidths, C and probabilities [M]. The default ``gamma`` is one over the
  number of columns of a kernel (columns have variance 1); the default C is 10.
- K classes are K one-vs-rest machines.
- Scores are margins. ``probability = "platt"`` converts them to log-odds A margin + B. A and B are
  fitted to a fifth of the rows by a machine trained on the rest (J. Platt, 1999).
- At most ``max_rows`` training rows are used, drawn by the run's seed: time and memory grow with
  their square.
- A descriptor is a set of features that share sensors, or a single feature. If features are outputs
  of a descriptor's SVMs, its kernel is computed on these outputs. The paper's kernels are computed
  on the descriptors (``scene15(features=raw)``).
- Missing cells count as the training mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from bench_models.calibration import platt
from bench_models.least_squares import one_blas_thread
from bench_models.scaling import Scaling
from bench_models.states import Stored
from numpy.random import Generator

from bench_core import (
    Examples,
    Features,
    FitContext,
    InputError,
    Prediction,
    Prices,
    Task,
    log,
    param,
)
from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_methods.linear.model import ScaledModel

if TYPE_CHECKING:
    from bench_core.serving import Program

HELD_OUT = 5  # one row in this many calibrates the margins
_PAIRS = 1 << 22  # pairs of a row and a vector in memory at a time: 32 MB


@dataclass(frozen=True, slots=True, eq=False)
class Kernels(Stored):
    """The average of G kernels exp(-gamma_g |z_g - v_g|^2).

    Kernel g reads ``columns[start[g]:start[g + 1]]``.
    """

    columns: IntArray
    start: IntArray
    gamma: FloatArray

    @classmethod
    def of(cls, groups: Sequence[IntArray], gamma: float | None) -> Kernels:
        """A kernel for each group of columns; ``gamma`` None: one over the group's size."""
        sizes = np.array([len(g) for g in groups], dtype=np.int64)
        widths = 1.0 / np.maximum(1, sizes) if gamma is None else np.full(len(groups), gamma)
        columns = np.concatenate([*groups, np.zeros(0, dtype=np.int64)]).astype(np.int64)
        return cls(columns, np.concatenate([[0], np.cumsum(sizes)]), widths.astype(np.float64))

    def averages(self, z: FloatArray, vectors: FloatArray) -> FloatArray:
        """Average kernel (n, S) of all pairs of a row (n, d) and a vector (S, d)."""
        from scipy.spatial.distance import cdist

        total = np.zeros((len(z), len(vectors)))
        for g, gamma in enumerate(self.gamma.tolist()):
            own = self.columns[self.start[g] : self.start[g + 1]]
            total += np.exp(-gamma * cdist(z[:, own], vectors[:, own], "sqeuclidean"))
        return total / max(1, len(self.gamma))

    def scores(self, z: FloatArray, vectors: FloatArray, weights: FloatArray) -> FloatArray:
        """The averages (n, S) times the weights (K, S): (n, K), computed in blocks of rows."""
        scores, size = np.zeros((len(z), len(weights))), max(1, _PAIRS // max(1, len(vectors)))
        with one_blas_thread():
            for i in range(0, len(z), size):
                scores[i : i + size] = self.averages(z[i : i + size], vectors) @ weights.T
        return scores


@dataclass(frozen=True, eq=False)
class KernelMachine(ScaledModel):
    """Scores are ``bias`` (K,) plus kernels with ``vectors`` (S, d) times weights; one point.

    Every row reads, and pays for, every feature that varied in training.
    """

    vectors: FloatArray
    coefficients: FloatArray  # (K, S)
    bias: FloatArray
    kernels: Kernels

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """Yield the only prediction."""
        z = self.columns(features)
        scores = self.kernels.scores(z, self.vectors, self.coefficients) + self.bias
        read = np.zeros(self.prices.features, dtype=bool)
        read[self.kernels.columns] = len(self.vectors) > 0
        yield self.prediction({"features": int(read.sum())}, scores, read)

    def program(self, point: Mapping[str, int | float]) -> Program:
        """The kernel sums, for serving."""
        from bench_core.serving import Kernel

        kernels, columns, kernel = self.kernels, self.kernels.columns, None
        if len(self.vectors):
            kernel = Kernel(
                features=columns,
                mean=self.scaling.mean[columns],
                factor=self.scaling.factor[columns],
                start=kernels.start,
                gamma=kernels.gamma,
                vectors=np.ascontiguousarray(self.vectors[:, columns].T),
                coefficients=self.coefficients / max(1, len(kernels.gamma)),
                tile=256,  # vectors whose distances fit in the L1 cache
            )
        return self.served(self.bias, kernel=kernel)


@dataclass(frozen=True)
class RBFSVM:
    """A support vector machine with an RBF kernel on all features."""

    name: ClassVar[str] = "rbf-svm"
    numerics: ClassVar[tuple[str, ...]] = ("scikit-learn", "numpy", "cpu")
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY, Task.MULTICLASS})
    adds_up: ClassVar[bool] = False

    C: float = param(
        10.0,
        "price of a training row on the wrong side of its margin",
        above=0,
        search=log(0.1, 100),
    )
    gamma: float | None = param(
        None, "inverse squared width of a kernel; none: one over its number of columns", above=0
    )
    probability: Literal["margin", "platt"] = param(
        "margin", "scores: margins, or log-odds fitted to held-out margins"
    )
    max_rows: int = param(20000, "most training rows; more are sampled by the seed", least=2)

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> KernelMachine:
        """Train one machine, or one per class; ``valid`` is not used.

        Raises InputError if only one class is present or no feature varies.
        """
        if len(np.unique(train.y)) < 2:
            raise InputError(
                f"{self.name}: all training labels are {train.y[0]:g}; it needs two classes"
            )
        rng = np.random.default_rng(context.seed)
        some = sampled(train, self.max_rows, rng)
        scaling = Scaling.of(some.X, some.weights)
        if not scaling.scale.any():
            raise InputError(f"{self.name}: no feature varies in the training rows")
        kernels = Kernels.of(self._groups(scaling, prices), self.gamma)
        z = scaling.columns(some.X)
        # one machine against the rest for each class
        labels = [1.0] if context.task == Task.BINARY else np.arange(context.classes).tolist()
        machines = []
        for k, label in enumerate(labels):
            machines.append(self._machine(kernels, z, some.y == label, some.weights, rng))
            context.progress(k + 1, len(labels))
        coefficients = np.array([own for own, _ in machines])
        # support vectors of any machine
        kept = coefficients.any(axis=0)
        return KernelMachine(
            scaling=scaling,
            prices=prices,
            vectors=z[kept],
            coefficients=coefficients[:, kept],
            bias=np.array([intercept for _, intercept in machines]),
            kernels=kernels,
        )

    def _groups(self, scaling: Scaling, prices: Prices) -> list[IntArray]:
        """Columns of each kernel."""
        return [np.flatnonzero(scaling.scale > 0)]

    def _machine(
        self, kernels: Kernels, z: FloatArray, positive: BoolArray, mass: FloatArray, rng: Generator
    ) -> tuple[FloatArray, float]:
        """Coefficients of the training rows (n,) and the intercept of one machine."""
        if positive.all() or not positive.any():  # only one class is present
            return np.zeros(len(z)), 1.0 if positive.all() else -1.0
        rows = np.arange(len(z))
        coefficients, intercept = self._solved(kernels, z, positive, mass, rows)
        if self.probability == "margin":
            return coefficients, intercept
        held = np.zeros(len(z), dtype=bool)
        held[rng.permutation(len(z))[: max(1, len(z) // HELD_OUT)]] = True
        kept = np.flatnonzero(~held)
        if positive[kept].all() or not positive[kept].any():
            return coefficients, intercept
        trial, offset = self._solved(kernels, z, positive, mass, kept)
        margin = kernels.scores(z[held], z, trial[None, :])[:, 0] + offset
        a, b = platt(margin, positive[held], mass[held])
        return a * coefficients, a * intercept + b

    def _solved(
        self, kernels: Kernels, z: FloatArray, positive: BoolArray, mass: FloatArray, rows: IntArray
    ) -> tuple[FloatArray, float]:
        from sklearn.svm import SVC

        chosen = z[rows]
        plain = len(kernels.gamma) == 1
        machine: Any = SVC(
            C=self.C,
            kernel="rbf" if plain else "precomputed",
            gamma=float(kernels.gamma[0]) if plain else "scale",
            cache_size=500,
        )
        inputs = chosen[:, kernels.columns] if plain else kernels.averages(chosen, chosen)
        with one_blas_thread():  # BLAS would split products of over 10000 columns among threads
            machine.fit(inputs, positive[rows], sample_weight=mass[rows])
        coefficients = np.zeros(len(z))
        coefficients[rows[machine.support_]] = machine.dual_coef_[0]
        return coefficients, float(machine.intercept_[0])


@dataclass(frozen=True)
class AverageKernelSVM(RBFSVM):
    """A support vector machine on the average of one RBF kernel per descriptor."""

    name: ClassVar[str] = "svm-average-kernel"

    max_rows: int = param(2000, "most training rows; more are sampled by the seed", least=2)

    def _groups(self, scaling: Scaling, prices: Prices) -> list[IntArray]:
        usable = scaling.scale > 0
        inside = (group[usable[group]] for group in descriptors(prices))
        return [group for group in inside if len(group)]


def descriptors(prices: Prices) -> list[IntArray]:
    """Sets of features connected by shared sensors, in order of their first feature."""
    from scipy.sparse.csgraph import connected_components

    _, label = connected_components(prices.needs @ prices.needs.T, directed=False)
    order = np.argsort(label, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(label[order])) + 1)
    return sorted(groups, key=lambda group: int(group[0]))


def sampled(train: Examples, rows: int, rng: Generator) -> Examples:
    """Distinct training rows, or a sample of ``rows`` of them, every copy equally likely.

    Equal rows with equal labels are merged into the first one, with a multiplicity. Physical copies
    then give a bit-identical machine at any solver tolerance.
    """
    # compare rows as bytes
    table = np.ascontiguousarray(np.column_stack([train.X.astype(np.float64), train.y]))
    as_bytes = table.view(np.dtype((np.void, table.itemsize * table.shape[1])))[:, 0]
    _, first, place = np.unique(as_bytes, return_index=True, return_inverse=True)
    copies = np.bincount(place, train.weights).astype(np.int64)
    order = np.argsort(first)
    first, copies = first[order], copies[order]
    if len(first) > rows:
        taken = np.sort(rng.choice(len(first), rows, replace=False, p=copies / copies.sum()))
        first, copies = first[taken], np.ones(rows, dtype=np.int64)
    return Examples(train.X[first], train.y[first], multiplicity=copies)
