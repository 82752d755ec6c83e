"""Evaluation of a program on many known rows: trees by the block walker of ``bench_trees``, the
rest by numpy. Needs numba and does not support caps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_core.costs.model import Acquired, CostModel
from bench_core.costs.model import needs_of as sensor_needs
from bench_core.data import Features
from bench_core.serving.gates import answers, leave, passing, with_columns, with_prices
from bench_core.serving.program import Program, Step, segments
from bench_core.serving.query_ranks import QueryGroups
from bench_core.serving.row_state import ENDED, REJECTED, WalkedRows, combined

if TYPE_CHECKING:
    from bench_trees import Ensemble
    from bench_trees.inference import Layout, Needs, Steps, Walked

_CELLS = 1 << 22  # of a matrix of rows x trees, for leaves that number vectors
_LONGEST = 34  # steps shown in one segment: 34 points of 8000 rows are about 20 MB


class Segment(NamedTuple):
    """Consecutive steps taken by the same rows, with the steps whose sums are needed."""

    first: int
    ends: list[int]  # steps whose sums are needed, including the last
    layout: Layout
    output: Any  # (T,) output of each tree; in ``layout`` its own if leaves number vectors
    steps: Steps
    trees: IntArray  # that are billed until each of these steps


class BlockWalk:
    """A program, the layout of its trees, and the needs of its features.

    ``shown`` are the steps after which rows are yielded.
    """

    def __init__(self, program: Program, costs: CostModel, shown: Iterable[int] = ()) -> None:
        self.program, self.shown = program, frozenset(shown)
        self.needs = needs_of(program, costs)
        self._columns = [_bits(self.needs, step.reads) for step in program.steps]
        self._segments = [self._segment(first, stop) for first, stop in pairwise(self._cuts())]
        self._alone: dict[int, Segment] = {}

    @classmethod
    def at_stops(cls, program: Program, costs: CostModel) -> Self:
        """Return the walk of a program that shows rows at all of its stops, for ``path``."""
        return cls(program, costs, [stop.step for stop in program.stops])

    def walk(
        self, rows: WalkedRows, X: Float32Array, boundaries: IntArray | None = None
    ) -> Iterator[WalkedRows]:
        """Walk ``rows`` to their ends. Yields copies of them after each shown step, before its
        gate. ``boundaries`` cut X (n, d) into queries; by default each row is its own query."""
        X = np.ascontiguousarray(X)  # once, not for every segment
        for segment in self._segments:
            here = np.flatnonzero(rows.next == segment.first)
            every, walked = len(here) == len(X), self._walked(segment, X, here, rows)
            by_step = zip(*walked, segment.trees, segment.ends, strict=True)
            before = rows.trees[here]
            for sums, bits, splits, trees, number in by_step:
                step = self.program.steps[number]
                if step.reads:
                    sums, bits = with_columns(step, sums, X, here), bits | self._columns[number]
                if len(step.prices):
                    sums = with_prices(step, sums, rows.prices, here)
                rows.arrive(here, number, step.combine, sums, bits, splits, before + trees)
                if number in self.shown:
                    # the caller must not share arrays with the walk
                    yield rows if every and number < segment.ends[-1] else rows.copied()
            if len(here):
                leave(self.program, segment.ends[-1], here, rows, boundaries)

    def run(
        self, X: Float32Array, boundaries: IntArray | None, prices: FloatArray | None = None
    ) -> tuple[WalkedRows, Acquired]:
        """Return all rows at their ends, and their purchases, from the ``prices`` (n, s) that are
        known before a purchase."""
        rows = self.begin(len(X))
        rows.prices = prices
        for _ in self.walk(rows, X, boundaries):
            pass
        return rows, Acquired(rows.bits, self.needs.sensors)

    def path(
        self, features: Features
    ) -> Iterator[tuple[dict[str, int | float], FloatArray, WalkedRows]]:
        """Yield each stop's point, the scores of all rows there (n,) or (n, K), and the rows, from
        one walk; the next iteration changes them. The stops must be the steps ``shown``."""
        queries = features.queries
        boundaries = None if queries is None else queries.boundaries
        walked = self.walk(self.begin(len(features)), features.X, boundaries)
        for stop, rows in zip(self.program.stops, walked, strict=True):
            yield dict(stop.point), answers(self.program, rows, boundaries), rows

    def begin(self, n: int) -> WalkedRows:
        """Return rows before the first step."""
        return WalkedRows(self.program, n, len(self._columns[0]))

    def sums(self, number: int, X: Float32Array) -> FloatArray:
        """Return the sums (n, K) of a single step, for all rows."""
        if number not in self._alone:
            self._alone[number] = self._segment(number, number + 1)
        X, every = np.ascontiguousarray(X), np.arange(len(X))
        walked = self._walked(self._alone[number], X, every, self.begin(len(X)))
        return np.asarray(walked.scores[0])

    def _cuts(self) -> list[int]:
        """Return the first step of each segment, and the number of steps."""
        steps, shown, last = self.program.steps, 0, segments(self.program)
        apart, cuts = self.program.trees.vectors is not None, [0]
        for k, (step, following) in enumerate(pairwise(steps)):
            shown += k in self.shown
            plain = step.combine == following.combine == "last"
            more = step.reads or following.reads or len(step.prices) or len(following.prices)
            straight = last[k] > k and plain and not more
            if apart and (k in self.shown or not _adds(following)):
                straight = False
            if not straight or shown == _LONGEST:
                cuts.append(k + 1)
                shown = 0
        return [*cuts, len(steps)]

    def _segment(self, first: int, stop: int) -> Segment:
        from bench_trees.inference import Steps

        chain = self.program.steps[first:stop]
        wanted = [k in self.shown or not _adds(later) for k, later in enumerate(chain[1:], first)]
        ends = [*(first + np.flatnonzero(wanted)).tolist(), stop - 1]
        begun = [self.program.steps[k] for k in (first, *(end + 1 for end in ends[:-1]))]
        trees = np.cumsum([len(step.trees) for step in chain])
        steps = Steps(
            ends=trees[np.array(ends) - first].astype(np.int64),
            bias=np.array([step.bias for step in begun], dtype=np.float64),
            carry=np.array([step.carry for step in begun], dtype=np.bool_),
        )
        uses: list[Any] = [
            np.concatenate([getattr(s, name) for s in chain]).astype(kind)
            for name, kind in (("trees", np.int64), ("weights", np.float64), ("fresh", np.bool_))
        ]
        needs: list[Any] = [self.needs.start, self.needs.needed, self.needs.multiplier]
        arrays = (array.tobytes() for array in (*needs, *uses))
        layout = _laid_out(self.program.trees, self.needs.sensors, *arrays)
        billed = np.append(0, np.cumsum(uses[2] & (layout.levels > 0)))[steps.ends]
        output = layout.output
        if self.program.trees.vectors is not None:
            layout = layout._replace(output=np.arange(layout.trees, dtype=np.int32))
        return Segment(first, ends, layout, output, steps, billed)

    def _walked(
        self, segment: Segment, X: Float32Array, here: IntArray, rows: WalkedRows
    ) -> Walked:
        """Return the rows ``here`` after each step of interest."""
        from bench_trees.inference import Steps, Walked, walk
        from bench_trees.kernels.leaf_vectors import add_leaves

        index: Any = here if len(here) < len(X) else slice(None)
        before = Walked(rows.sums[None, index], rows.bits[None, index], rows.splits[None, index])
        if (vectors := self.program.trees.vectors) is None:
            return walk(segment.layout, segment.steps, X, before, here)
        # the value of each tree: its leaf may number a vector
        count = max(1, len(segment.output))
        alone = Steps(np.array([len(segment.output)]), np.zeros((1, count)), np.ones(1, dtype=bool))
        walked = Walked(*map(np.empty_like, before))  # type: ignore[arg-type]
        walked.scores[:] = segment.steps.bias + (before.scores if segment.steps.carry[0] else 0.0)
        size = max(64, _CELLS // count)
        for i in range(0, len(here), size):
            chunk = slice(i, i + size)
            none = np.zeros((1, len(here[chunk]), count))
            start = Walked(none, before.bits[:, chunk], before.splits[:, chunk])
            leaves = walk(segment.layout, alone, X, start, here[chunk])
            walked.bits[:, chunk], walked.splits[:, chunk] = leaves.bits, leaves.splits
            add_leaves(leaves.scores[0], segment.output, vectors, walked.scores[0, chunk])
        return walked


class ExitWalk:
    """A chain that rows leave where a gate rejects them, at several values of its gates at once.

    A gate changes nothing before it. So all rows walk through all steps once, and each setting only
    picks the step at which a row left: twenty settings cost little more than one.
    """

    def __init__(self, program: Program, costs: CostModel) -> None:
        self.program = program
        steps = [replace(step, gate="always", combine="last") for step in program.steps]
        self.chain = BlockWalk(replace(program, steps=steps), costs, range(len(steps)))

    def path(
        self, features: Features, values: FloatArray
    ) -> Iterator[tuple[FloatArray, WalkedRows]]:
        """Yield scores and rows at their ends with the gates' ``values`` (P, S - 1) of each
        setting, then without gates."""
        n, settings, queries = len(features), len(values), features.queries
        groups, score = QueryGroups.over(n, queries), np.zeros(0)
        begun, on = self.chain.begin(n), np.ones((settings, n), dtype=bool)
        ends = WalkedRows(self.program, settings * n, begun.bits.shape[1])
        walked = self.chain.walk(begun, features.X)
        for number, (step, rows) in enumerate(zip(self.program.steps, walked, strict=True)):
            score = combined(step.combine, score, rows.sums) if number else rows.sums
            left = on.copy()
            if step.gate != "always":
                left &= ~passing(step, values[:, number], score, on, groups, ends)
            out = np.flatnonzero(left)
            row = out % n
            ends.score[out], ends.bits[out], ends.last[out] = score[row], rows.bits[row], number
            ends.splits[out] += rows.splits[row]
            ends.trees[out] += rows.trees[row]
            on &= ~left
        ends.how = np.where(ends.last < len(self.program.steps) - 1, REJECTED, ENDED)
        boundaries = None if queries is None else queries.boundaries
        for p in range(settings):
            part = ends.part(slice(p * n, (p + 1) * n))
            yield answers(self.program, part, boundaries), part
        rows.score = score
        yield answers(self.program, rows, boundaries), rows


@lru_cache(3)
def _laid_out(trees: Ensemble, sensors: int, *arrays: bytes) -> Layout:
    """Layouts of the last segments, by the bytes of ``Needs`` and of steps: the programs of one
    model's points share their trees."""
    from bench_trees.inference import Needs, lay_out

    kinds = (np.int32, np.int32, np.float64, np.int64, np.float64, np.bool_)
    found: list[Any] = [np.frombuffer(*each) for each in zip(arrays, kinds, strict=True)]
    start, needed, multiplier, *uses = found
    return lay_out(trees, Needs(start, needed, multiplier, sensors), *uses)


def _adds(step: Step) -> bool:
    """True if a step only adds trees to the sums of the step before."""
    return step.carry and not step.bias.any()


def needs_of(program: Program, costs: CostModel) -> Needs:
    """Return the needs of a program's features."""
    from bench_trees.inference import Needs

    return Needs(*sensor_needs(costs), program.multiplier, costs.sensors)


def _bits(needs: Needs, features: list[int]) -> Any:
    mask = np.zeros((1, needs.sensors), dtype=bool)
    for feature in features:
        mask[0, needs.needed[needs.start[feature] : needs.start[feature + 1]]] = True
    return Acquired.pack(mask).bits[0]
