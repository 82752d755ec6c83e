"""A program packed for ``kernels``: rows by compiled code, with the bits of the plain walk.

What the kernels do not know is walked in Python: kernels of support vectors, gates and combines
that need ``exp``, and what compares the rows of a query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from bench_core.arrays import Float32Array, FloatArray, IntArray, UInt32Array
from bench_core.costs.model import CostModel, SensorPrices
from bench_core.costs.shipped import PerQueryPrices
from bench_core.serving.program import COMBINE, GATES, Program, Step, Trees, segments
from bench_core.serving.tables import Tables


def compilable(program: Program) -> bool:
    """Whether the kernels know all that a row meets on its way."""
    return program.vectors is None and all(
        s.kernel is None and s.combine != "and" and s.gate in ("always", "score")
        for s in program.steps
    )


def prices_of(costs: CostModel) -> SensorPrices | None:
    """What a row by itself pays as additive prices; None where it pays otherwise."""
    if isinstance(costs, PerQueryPrices):
        return costs.prices
    return costs if isinstance(costs, SensorPrices) else None


def keys(values: Float32Array) -> UInt32Array:
    """Whole numbers in the order of the floats; -0.0 is 0.0."""
    bits = (values + np.float32(0)).view(np.uint32)
    return np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))


NARROW = 32
"""Bits of a link, of models that are not very large."""


class Splits(NamedTuple):
    """Trees in preorder for ``tiles``: tree t has splits ``root[t] : root[t + 1]`` and its leaves
    begin at ``root[t] + t``.

    ``bench_core.traversal.trees`` says what splits know.
    """

    root: Any
    feature: Any  # int32 (m,), as the next
    of_cut: Any  # number of the distinct threshold
    source: Any  # place of the rows that come to it
    after: Any  # the first split beyond the subtree, 0 for a small one
    mark: Any  # the first leaf of the right subtree, counted from the tree's first
    value: Any  # float64 (l,), of leaves
    path: Any  # multipliers on the way there
    short: Any  # uint8: these as bytes, if that can be; see ``traversal.trees.lengths``
    cell: Any  # int32 (c,), of cuts: twice the feature, 1 more where missing cells go right
    threshold: Any  # float32 (c,)
    first: Any  # (p + 1,): the segment that begins with step p reads cuts[first[p] : first[p + 1]]
    cuts: Any


class Model(NamedTuple):
    """A program for ``tiles``; columns of ``steps``, ``columns``, ``factors`` as in ``kernels``."""

    splits: Splits
    uses: Any  # int64 (u, 3): tree, output, whether billed
    weights: Any
    steps: Any
    gates: Any
    columns: Any
    factors: Any
    squares: Any  # of ``features``, see ``bench_core.traversal.trees``
    features: Any  # int64 (f,); feature c needs payable[sensors[start[c] : start[c + 1]]]
    start: Any
    sensors: Any
    payable: Any  # int64 (u,), the sensors of all features, rising
    each: Any  # float64 (u,), their prices
    groups: Any  # int64 (g, 3): payable[a:b] share a byte, and whether they end a word
    rules: Any  # prices of a split and of a tree


BLOCK = 64
"""Trees that are walked side by side: their nodes fit the first cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """What the kernels, and the C source, read; see ``kernels`` for the order of columns.

    ``features`` (f,) are the cells, by number in the data. Of nodes (N,) the ``thresholds``, the
    place of the ``cell``, and how far ``below`` the left child is; ``leaves`` (N, 2). ``uses``
    (u, 4) of trees: root, levels, output, whether billed, with ``weights`` (u,). ``gates``
    (p, 1 + K): values and biases; ``factors`` (c, 3).
    """

    features: IntArray
    thresholds: UInt32Array
    cell: IntArray
    below: IntArray
    leaves: FloatArray
    uses: IntArray
    weights: FloatArray
    steps: IntArray
    gates: FloatArray
    columns: IntArray
    factors: FloatArray

    @classmethod
    def of(cls, program: Program) -> Self:
        """Of a program as it is."""
        features, steps = program.features, program.steps
        used = np.concatenate([s.trees for s in steps]).astype(np.int64)
        level, path = _levels(program.trees, used, program.multiplier)
        levels = np.maximum.reduceat(level, program.trees.start[:-1])
        table = _steps(program)
        first = used[_deepest_first(table, levels[used])]
        root, thresholds, cell, below, leaves = _nodes(program, features, first, level, path)
        billed = np.concatenate([s.fresh for s in steps]) & (levels[used] > 0)
        columns = _joined(steps, "feature", "output", "scaled")
        columns[:, 0] = np.searchsorted(features, columns[:, 0])
        output = program.trees.output[used]
        return cls(
            features=features,
            thresholds=thresholds,
            cell=cell,
            below=below,
            leaves=leaves,
            uses=np.stack([root[used], levels[used], output, billed], axis=1).astype(np.int64),
            weights=np.concatenate([s.weights for s in steps]),
            steps=table,
            gates=np.array([[s.value, *s.bias] for s in steps], dtype=np.float64),
            columns=columns,
            factors=_joined(steps, "weight", "mean", "factor"),
        )

    def flat(self, tables: Tables, prices: SensorPrices) -> tuple[Any, Any, FloatArray]:
        """``ints``, ``nodes`` and ``floats`` of the kernels."""
        root, levels, output, billed = self.uses.T
        order = _deepest_first(self.steps, levels)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        alone = [len(tables.mates[f]) == 1 for f in tables.features]
        sensors = [prices.sensors_of(f) for f in tables.features]
        ints = [
            *(levels[order], rank, output, billed),
            *(self.steps, self.columns, self.features, alone),
            *(np.cumsum([0, *map(len, sensors)]), np.concatenate([*sensors, np.zeros(0)])),
        ]
        rules = np.array([prices.split, prices.tree])
        floats = [self.leaves, self.weights, self.gates, self.factors, prices.sensor, rules]
        begin = 3 + len(ints) + len(floats)
        header = [
            self.gates.shape[1] - 1,
            *(begin + np.cumsum([0, *map(np.size, ints[:-1])])),
            *np.cumsum([0, *map(np.size, floats[:-1])]),
            len(self.features),
            (2 * len(self.features)).bit_length(),
        ]
        whole = np.concatenate([np.ravel(part) for part in (header, *ints)]).astype(np.int32)
        nodes = self._linked(header[-1], root[order])
        return whole, nodes, np.concatenate([np.ravel(part) for part in floats])

    def _linked(self, bits: int, roots: IntArray) -> Any:
        """``nodes`` of the kernels."""
        child = np.arange(len(self.below)) + self.below
        links, above = child << bits | self.cell, np.zeros(len(child), dtype=np.int64)
        inner = self.below > 0
        above[child[inner]] = self.thresholds[inner]
        nodes = np.concatenate([np.stack([links, above], axis=1).ravel(), links[roots]])
        return nodes.astype(np.uint32 if len(child) << bits < 1 << NARROW else np.uint64)

    @property
    def narrow(self) -> bool:
        """Whether 16 bits hold the numbers in a node."""
        return max(2 * len(self.features), int(self.below.max(initial=0))) < 1 << 16


def _deepest_first(steps: IntArray, levels: IntArray) -> IntArray:
    """The uses (u,) of each segment's trees, those of most levels first."""
    return np.lexsort((-levels, np.repeat(steps[:, -1], steps[:, 1] - steps[:, 0])))


def _nodes(
    program: Program, features: IntArray, order: IntArray, level: IntArray, path: FloatArray
) -> tuple[Any, ...]:
    """Roots (T,) of trees; thresholds, cells and ways to left children (N,) of nodes, their values
    and paths (N, 2).

    A level of ``BLOCK`` trees, taken as they come in ``order``, lies together, siblings side by
    side: who walks these trees level by level reads nodes that are close.
    """
    trees = program.trees
    turn = np.zeros(len(trees), dtype=np.int64)
    turn[order[::-1]] = np.arange(len(order))[::-1]  # of several uses the first
    owner = np.repeat(np.arange(len(trees)), np.diff(trees.start))
    group = turn[owner] // BLOCK * (level.max(initial=0) + 2) + level
    begin = np.cumsum(np.bincount(group[level >= 0], minlength=group.max(initial=0) + 3))
    begin = np.concatenate([np.zeros(1, np.int64), begin])
    roots, inner = (
        chosen[np.lexsort((turn[owner[chosen]], group[chosen]))]
        for chosen in (
            trees.start[np.unique(order)],
            np.flatnonzero((trees.feature >= 0) & (level >= 0)),
        )
    )
    place = np.zeros(len(owner), dtype=np.int64)
    place[roots] = begin[group[roots]] + _number(group[roots])
    pair = begin[group[inner] + 1] + 2 * _number(group[inner])
    place[trees.left[inner]], place[trees.right[inner]] = pair, pair + 1
    own, cell = place[inner], np.full(len(owner), 2 * len(features))
    cell[own] = 2 * np.searchsorted(features, trees.feature[inner]) + ~trees.missing_left[inner]
    below = np.zeros(len(owner), dtype=np.int64)
    below[own] = pair - own
    thresholds = np.full(len(owner), np.uint32(0xFFFFFFFF))  # no cell is above that of a leaf
    thresholds[own] = keys(trees.threshold[inner])
    leaves, there = np.zeros((len(owner), 2)), level >= 0
    leaves[place[there], 0], leaves[place[there], 1] = trees.value[there], path[there]
    return place[trees.start[:-1]], thresholds, cell, below, leaves


def _number(groups: IntArray) -> IntArray:
    """Of each member of the groups, which rise, how many of its group stand before it."""
    return np.arange(len(groups)) - np.searchsorted(groups, groups)


def _levels(trees: Trees, used: IntArray, multiplier: FloatArray) -> tuple[IntArray, FloatArray]:
    """How many splits are above every node (N,) of ``used`` trees, -1 where none can come to it,
    and their multipliers, added from the root on."""
    level, path = np.full(len(trees.feature), -1), np.zeros(len(trees.feature))
    here = trees.start[used].astype(np.int64)
    level[here] = 0
    while len(here := here[trees.feature[here] >= 0]):
        for child in (trees.left[here], trees.right[here]):
            level[child] = level[here] + 1
            path[child] = path[here] + multiplier[trees.feature[here]]
        here = np.concatenate([trees.left[here], trees.right[here]])
    return level, path


def _steps(program: Program) -> IntArray:
    """The numbers of every step, in the order of ``layout.FIRST_USE``."""
    count, stops = len(program.steps), sorted(stop.step for stop in program.stops)
    use, column, rows = 0, 0, []
    segment = segments(program)
    for number, step in enumerate(program.steps):
        passed = []
        for onward in (step.then, step.otherwise):
            until = count if onward < 0 else onward
            passed.append(any(number <= stop < until for stop in stops))
        uses, columns = use + len(step.trees), column + len(step.columns.feature)
        how = step.carry, COMBINE.index(step.combine), GATES.index(step.gate)
        own = [use, uses, column, columns, *how, step.then, step.otherwise]
        rows.append([*own, *passed, segment[number]])
        use, column = uses, columns
    return np.array(rows, dtype=np.int64)


def _joined(steps: Sequence[Step], *names: str) -> Any:
    """Fields of all columns side by side (c, 3)."""
    parts = [np.stack([getattr(s.columns, name) for name in names], axis=1) for s in steps]
    return np.concatenate(parts)


SMALL = 16
"""Splits of a subtree that is walked though no row comes to it: a wrong guess takes longer."""


def preorder(program: Program, features: IntArray) -> Splits:
    """All trees that are used."""
    from bench_core.traversal.trees import lengths  # which needs numba

    trees, count = program.trees, len(program.trees)
    used = np.unique(np.concatenate([s.trees for s in program.steps])).astype(np.int64)
    level, path = _levels(trees, used, program.multiplier)
    size, place, leaf = _subtrees(trees, level)
    owner = np.repeat(np.arange(count), np.diff(trees.start))
    root = np.cumsum([0, *size[trees.start[:-1]]])
    inner = np.flatnonzero(size > 0)
    inner = inner[np.lexsort((place[inner], owner[inner]))]
    outer = np.flatnonzero((level >= 0) & (trees.feature < 0))
    value, path_of = np.zeros((2, root[-1] + count))
    at = (root[:-1] + np.arange(count))[owner[outer]] + leaf[outer]
    value[at], path_of[at] = trees.value[outer], path[outer]
    source = np.zeros_like(place)
    left, right = trees.left[inner], trees.right[inner]
    source[right], source[left] = 2 * place[inner] + 1, 2 * place[inner] + 2
    feature = np.searchsorted(features, trees.feature[inner])
    cell, threshold = 2 * feature + ~trees.missing_left[inner], trees.threshold[inner]
    _, one, of_cut = np.unique(
        cell << 32 | threshold.view(np.uint32), return_index=True, return_inverse=True
    )
    first, cuts = _cuts(program, root, of_cut)
    return Splits(
        root=root,
        feature=feature.astype(np.int32),
        of_cut=of_cut.astype(np.int32),
        source=source[inner].astype(np.int32),
        after=np.where(size < SMALL, 0, root[owner] + place + size)[inner].astype(np.int32),
        mark=leaf[right].astype(np.int32),
        value=value,
        path=path_of,
        short=lengths(path_of, program.multiplier),
        cell=cell[one].astype(np.int32),
        threshold=threshold[one],
        first=first,
        cuts=cuts,
    )


def bill_groups(payable: IntArray) -> IntArray:
    """See ``Model.groups``."""
    ends = np.flatnonzero(np.diff(payable // 8, append=-1)) + 1
    word = payable[ends - 1] // 64
    return np.stack([np.r_[0, ends][:-1], ends, np.diff(word, append=-1) != 0], axis=1)


def _cuts(program: Program, root: IntArray, of_cut: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct cuts of the trees of each segment, by its first step; none for other steps."""
    found, begin = [np.zeros(0, dtype=np.int64) for _ in program.steps], 0
    for number, last in enumerate(segments(program)):
        if last == number:
            used = np.unique(np.concatenate([s.trees for s in program.steps[begin : last + 1]]))
            parts = [of_cut[root[t] : root[t + 1]] for t in used.astype(np.int64)]
            found[begin] = np.unique(np.concatenate([*parts, found[begin]])).astype(np.int64)
            begin = number + 1
    return np.cumsum([0, *map(len, found)]), np.concatenate(found)


def _subtrees(trees: Trees, level: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Of every node (N,) the splits of its subtree, the splits before it in preorder, and the
    leaves to its left, both counted within its tree."""
    size = ((trees.feature >= 0) & (level >= 0)).astype(np.int64)
    levels = [np.flatnonzero((level == k) & (size > 0)) for k in range(level.max(initial=-1))]
    for here in reversed(levels):
        size[here] += size[trees.left[here]] + size[trees.right[here]]
    place, leaf = np.zeros_like(size), np.zeros_like(size)
    for here in levels:
        left, right = trees.left[here], trees.right[here]
        place[left], place[right] = place[here] + 1, place[here] + 1 + size[left]
        leaf[left], leaf[right] = leaf[here], leaf[here] + size[left] + 1
    return size, place, leaf
