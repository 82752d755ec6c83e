"""The serving format of fitted models: stages over trees and columns.

A row starts at step 0. A step sums weighted trees, then weighted columns (or kernels), in float64
in the given order. Its gate then sends the row to ``then`` or ``otherwise``, always a later step,
or ends its walk. Further operations of a model family on scores (a running minimum, an average, a
link) are a step's ``combine`` or ``Finish``::

    sums   = (sums of the step before, with ``carry``, else 0) + bias + trees + columns + prices
    score  = combine(score, sums)           input of the gate
    answer = slope * link(base + score / rounds) + intercept    where the step has a Finish

The order of all float operations is fixed, so that an answer has the same bits as the benchmark's
prediction. A row pays once for the sensors of each split that it passes and of each column. For
each tree that is new in its walk, it pays the multipliers of the splits that it passes, and for the
tree if it has a split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from bench_trees.ensemble import VECTOR as VECTOR
from bench_trees.ensemble import Ensemble

from bench_core.arrays import BoolArray, FloatArray, IntArray

END, REJECT = -1, -2
"""Values of ``then`` and ``otherwise``: the row's walk ends here; with ``REJECT`` the gate rejected
it, see ``Program.rejected``."""

COMBINE = ("last", "min", "and", "add")
"""New score from the score so far and the step's sums: the sums; the smaller; the log-odds of
the product of both probabilities; the sum."""

IN_QUERY = ("rank", "proximity", "capacity", "sentinel")
GATES = ("always", "score", "class", "largest", *IN_QUERY)
"""Rows that pass, by ``value`` v: all; score >= v; the most likely class has at most probability v;
output v is the largest, of equal ones the first;
ranked within v of the query; at most v below the ``k``-th best; among the best v of the rows before
it in the query; a classifier gives at least probability v. The last four use the whole query."""

LINKS = ("identity", "exp", "probability", "sigmoid")


@runtime_checkable
class Exportable(Protocol):
    """Optional protocol of a model that can be served outside the benchmark."""

    def program(self, point: Mapping[str, int | float]) -> Any:
        """Return the model at a point of its path as a ``Program``, a policy as ``PolicyProgram``.
        Raises UsageError with the reason if there is none."""


@dataclass(frozen=True, slots=True, eq=False)
class WeightedColumns:
    """Weighted cells of c features: weight * (cell - mean) * factor, added to an output. A missing
    or infinite cell adds nothing."""

    feature: IntArray  # (c,)
    output: IntArray  # (c,)
    weight: FloatArray  # (c,)
    mean: FloatArray  # (c,)
    factor: FloatArray  # (c,)

    @classmethod
    def none(cls) -> Self:
        """Return an empty set of columns."""
        number, real = np.zeros(0, np.int64), np.zeros(0)
        return cls(number, number, real, real, real)


@dataclass(frozen=True, slots=True, eq=False)
class WeightedPrices:
    """Weighted prices of c sensors: weight * price, added to an output. The price is the row's own
    where it is known before the purchase, else the mean."""

    sensor: IntArray  # (c,)
    output: IntArray  # (c,)
    weight: FloatArray  # (c,)
    mean: FloatArray  # (c,)

    @classmethod
    def none(cls) -> Self:
        """Return an empty set of prices."""
        number, real = np.zeros(0, np.int64), np.zeros(0)
        return cls(number, number, real, real)

    def __len__(self) -> int:
        return len(self.sensor)


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """Sums over S vectors of coefficients times the sum of G Gaussian kernels; the step's bias is
    added last. Kernel g uses the entries ``start[g]:start[g + 1]`` of the vectors."""

    features: IntArray  # (c,), scaled as ``Columns``
    mean: FloatArray  # (c,)
    factor: FloatArray  # (c,)
    start: IntArray  # (G + 1,)
    gamma: FloatArray  # (G,)
    vectors: FloatArray  # (c, S)
    coefficients: FloatArray  # (K, S)
    tile: int  # vectors summed at a time


@dataclass(frozen=True, slots=True)
class Finish:
    """Map from a step's score to the answer: slope * link(base + score / rounds) + intercept.

    ``onward``: a further finish, applied to the answer as a score.
    """

    base: tuple[float, ...]
    rounds: float = 1.0
    link: str = "identity"
    slope: float = 1.0
    intercept: float = 0.0
    onward: Finish | None = None

    def lined(self, slope: float, intercept: float) -> Finish:
        """Return the finish with this slope and intercept instead."""
        if self.onward is not None:
            return replace(self, onward=self.onward.lined(slope, intercept))
        if (self.slope, self.intercept) == (1.0, 0.0):
            return replace(self, slope=slope, intercept=intercept)
        return self.followed(Finish((0.0,) * len(self.base), slope=slope, intercept=intercept))

    def followed(self, last: Finish) -> Finish:
        """Return the finish with one more at its end."""
        return replace(self, onward=self.onward.followed(last) if self.onward else last)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One stage: weighted trees, columns and prices, a gate, and the next steps.

    ``sentinel``: the classifier of a ``sentinel`` gate. Its inputs are the partial score, the score
    scaled to [0, 1] within the query, rank, and query size.
    """

    trees: IntArray  # (m,) of the program
    weights: FloatArray  # (m,)
    fresh: BoolArray  # (m,), trees not evaluated by an earlier step: they are billed
    bias: FloatArray  # (K,)
    columns: WeightedColumns = field(default_factory=WeightedColumns.none)
    prices: WeightedPrices = field(default_factory=WeightedPrices.none)
    carry: bool = False
    combine: str = "last"
    gate: str = "always"
    value: float = 0.0
    k: int = 1
    then: int = END
    otherwise: int = END
    finish: Finish | None = None
    kernel: Kernel | None = None
    sentinel: Ensemble | None = None

    @property
    def reads(self) -> list[int]:
        """Return the features that every row needs, each once."""
        features = self.columns.feature.tolist()
        if self.kernel is not None:
            features += self.kernel.features.tolist()
        return list(dict.fromkeys(features))


@dataclass(frozen=True, slots=True)
class Stop:
    """A point of the model's path: a row answers there by its state after steps ``0..step``.

    If a cap ends a row's walk, it answers at the last stop that it passed.
    """

    step: int
    point: Mapping[str, int | float]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A model at one operating point. Raises ValueError for invalid parts.

    ``rejected`` is the answer of a rejected row: ``"score"``: its score; ``"below"``: below all
    rows of the query that were not rejected, by step and score; or a number.
    """

    outputs: int  # K
    steps: Sequence[Step]
    trees: Ensemble  # its constant is ignored
    multiplier: FloatArray  # (d,), evaluations counted for a split on each feature
    stops: Sequence[Stop] = ()
    rejected: str | float = "score"
    nothing: FloatArray | None = None  # (K,), the answer if a cap allows no purchase; set at export

    def __post_init__(self) -> None:
        count = len(self.steps)
        if count == 0 or any(not 0 <= stop.step < count for stop in self.stops):
            raise ValueError("a program needs at least one step, and stops at its own")
        for number, step in enumerate(self.steps):
            for onward in {step.then, step.otherwise} - {END, REJECT}:
                if not number < onward < count:
                    raise ValueError(f"step {number} cannot lead to step {onward}")
            if not _below(step.trees, self.trees.trees) or not self._fits(step):
                raise ValueError(f"step {number}: unknown tree, gate or link, or misfit arrays")
        if not np.all(self.multiplier >= 0):
            raise ValueError("a multiplier of splits is below 0 or NaN")
        if self.trees.features != len(self.multiplier) or (self.trees.output >= self.outputs).any():
            raise ValueError("trees have other features or outputs than the program")
        if self.trees.vectors is not None and self.trees.vectors.shape[1] != self.outputs:
            raise ValueError("vectors have other outputs than the program")

    def _fits(self, step: Step) -> bool:
        """True if the parts of a step have valid names, shapes and numbers."""
        d, k, of, paid = len(self.multiplier), self.outputs, step.columns, step.prices
        finish, kernel, sentinel = step.finish, step.kernel, step.sentinel
        fits = [
            step.gate in GATES and step.combine in COMBINE and step.k >= 1,
            step.gate != "sentinel" or (sentinel is not None and sentinel.features == 4),
            step.bias.shape == (k,),
            step.weights.shape == step.fresh.shape == step.trees.shape,
            {a.shape for a in (of.output, of.weight, of.mean, of.factor)} == {of.feature.shape},
            _below(of.feature, d) and _below(of.output, k) and _below(paid.output, k),
            {a.shape for a in (paid.output, paid.weight, paid.mean)} == {paid.sensor.shape},
        ]
        while finish is not None:
            fits.append(len(finish.base) == k and finish.link in LINKS)
            finish = finish.onward
        if kernel is not None:
            c, s = kernel.vectors.shape
            cuts = kernel.start.shape == (len(kernel.gamma) + 1,) and _below(kernel.start, c + 1)
            fits += [
                kernel.features.shape == kernel.mean.shape == kernel.factor.shape,
                _below(kernel.features, d) and cuts and kernel.tile >= 1,
                kernel.coefficients.shape == (k, s),
            ]
        return all(fits)

    @property
    def reads_prices(self) -> bool:
        """True if it compares the quoted prices of a row."""
        return any(len(step.prices) for step in self.steps)

    @property
    def in_queries(self) -> bool:
        """True if an answer depends on the other rows of its query."""
        return self.rejected == "below" or any(s.gate in IN_QUERY for s in self.steps)

    @property
    def features(self) -> IntArray:
        """Features that it may read, in increasing order."""
        return self.features_of(self.steps)

    def features_of(self, steps: Sequence[Step]) -> IntArray:
        """Return the features that these steps may read, in increasing order."""
        used: list[Any] = [
            self.trees.feature[self.trees.start[t] : self.trees.start[t + 1]]
            for s in steps
            for t in s.trees.tolist()
        ]
        used += [s.columns.feature for s in steps]
        used += [s.kernel.features for s in steps if s.kernel is not None]
        features = np.unique(np.concatenate([np.zeros(0, np.int64), *used]))
        return np.asarray(features[features >= 0], dtype=np.int64)


def _below(numbers: IntArray, limit: int) -> bool:
    return numbers.dtype.kind in "iu" and bool(((numbers >= 0) & (numbers < limit)).all())


def constant_program(answer: FloatArray, features: int) -> Program:
    """Return a program with the same answer (K,) for every row and no purchases."""
    nothing = np.zeros(0, dtype=np.int64)
    step = Step(nothing, np.zeros(0), np.zeros(0, dtype=bool), np.asarray(answer, dtype=np.float64))
    return Program(len(answer), [step], no_trees(len(answer), features), np.zeros(features))


def no_trees(outputs: int, features: int) -> Ensemble:
    """Return an empty ensemble for a program without trees."""
    return Ensemble.of_trees([], [], np.zeros(outputs), features)


def segments(program: Program) -> list[int]:
    """Return the last step of each step's segment. In a segment each step leads to the next for
    every row, and only the first step can be entered from outside."""
    steps = program.steps
    entered = {
        onward
        for number, step in enumerate(steps)
        for onward in (step.then, step.otherwise)
        if step.gate != "always" or onward != number + 1
    }
    last = list(range(len(steps)))
    for number in reversed(last[:-1]):
        step = steps[number]
        if step.gate == "always" and step.then == number + 1 not in entered:
            last[number] = last[number + 1]
    return last


def first_reads(program: Program) -> list[int]:
    """Return the features that every row reads before the first point where it can answer."""
    trees, reads = program.trees, set[int]()
    last = min([segments(program)[0], *(stop.step for stop in program.stops)])
    for step in program.steps[: last + 1]:
        reads.update(step.reads)
        for t in step.trees.tolist():
            sure = dict[int, set[int]]()
            for node in reversed(range(trees.start[t], trees.start[t + 1])):  # children come later
                f, below = int(trees.feature[node]), (int(trees.left[node]), int(trees.right[node]))
                sure[node] = {f, *(sure[below[0]] & sure[below[1]])} if f >= 0 else set()
            reads |= sure[int(trees.start[t])]
    return sorted(reads)


def compact(program: Program) -> Program:
    """Return the program without unreachable trees and vectors."""
    used = np.unique(np.concatenate([step.trees for step in program.steps])).astype(np.int64)
    trees = program.trees.select(used)
    if trees.vectors is not None:
        leaves, value = trees.vector_leaves, np.where(trees.feature < 0, trees.value, 0.0)
        rows, number = np.unique(value[leaves].astype(np.int64), return_inverse=True)
        value[leaves] = number.reshape(-1)
        trees = replace(trees, value=value, vectors=trees.vectors[rows])
    steps = [replace(step, trees=np.searchsorted(used, step.trees)) for step in program.steps]
    return replace(program, steps=steps, trees=trees)


def joined(programs: Sequence[Program]) -> Program:
    """Concatenate the steps of programs; no step leads from one program to another.

    ``rejected`` comes from the last program. The result has no stops.
    """
    tree, first, steps = 0, 0, list[Step]()
    for program in programs:
        for step in program.steps:
            then, otherwise = (to if to < 0 else to + first for to in (step.then, step.otherwise))
            moved = replace(step, trees=step.trees + tree, then=then, otherwise=otherwise)
            steps.append(moved)
        tree, first = tree + program.trees.trees, first + len(program.steps)
    parts, base = [program.trees for program in programs], np.zeros(programs[0].outputs)
    some = [trees for trees in parts if trees.trees] or parts[:1]
    return Program(
        programs[0].outputs,
        steps,
        # trees of one program stay the same object: ``block_walk`` keeps their layout
        some[0] if len(some) == 1 else Ensemble.concat([replace(some[0], base=base), *some[1:]]),
        programs[0].multiplier,
        rejected=programs[-1].rejected,
    )


def in_sequence(programs: Sequence[Program]) -> Program:
    """Concatenate programs that a row goes through one after the other, with their stops: where its
    walk through one ends, it begins the next."""
    whole, first = joined(programs), 0
    steps, stops = list(whole.steps), list[Stop]()
    for program in programs:
        stops += [replace(stop, step=stop.step + first) for stop in program.stops]
        onward = first + len(program.steps)
        for k in range(first, onward if onward < len(steps) else first):
            step = steps[k]
            then, otherwise = (to if to >= 0 else onward for to in (step.then, step.otherwise))
            steps[k] = replace(step, then=then, otherwise=otherwise)
        first = onward
    return replace(whole, steps=steps, stops=stops)
