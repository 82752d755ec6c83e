"""Rows on their way through a program, one tree after the other, in plain Python.

``walk`` is a generator: it yields what rows need next and is sent the values, so that the same code
serves a function, a coroutine and an array. All floats are Python's, in the order that ``Program``
gives, so that answers have the bits of the compiled walk.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from math import exp, inf, isfinite, isnan
from typing import Any, NamedTuple

import numpy as np

from bench_core.arrays import Float32Array
from bench_core.errors import UsageError
from bench_core.serving.gates import passing
from bench_core.serving.program import REJECT, VECTOR, Kernel, Step
from bench_core.serving.tables import Lists, Row, StepTables, Tables

Values = Sequence[float]
_FLOAT32 = np.dtype(np.float32)  # every native one is this object; comparing takes longer
Afford = Callable[[int, float, int], bool]
"""Whether sensors (a set of bits), splits and trees are within the cap."""


class Ask(NamedTuple):
    """What row ``row`` needs next: ``features``, all that its new sensors yield."""

    row: int
    features: list[int]


def checked(names: Sequence[str], count: int, found: Any) -> Sequence[Any]:
    """What a caller's function returned for the last ``count`` of these features."""
    values: Sequence[Any] = found if isinstance(found, list | tuple) else list(found)
    if len(values) != count:
        raise UsageError(
            f"acquire returned {len(values)} values for {count} features "
            f"({', '.join(names[-count:][:3])}); return one for each, None where it is missing"
        )
    return values


def narrow(values: Any) -> Float32Array:
    """As float32; a cell too large for it is infinite, as when training."""
    if isinstance(values, np.ndarray) and values.dtype is _FLOAT32:
        return values
    with np.errstate(over="ignore"):
        return np.asarray(values).astype(np.float32)


def walk(
    tables: Tables, rows: Sequence[Row], grouped: bool, afford: Afford | None
) -> Generator[list[Ask], list[Values], None]:
    """Take ``rows`` to the end of their ways. Yields what they need and is sent, for each ask, its
    values. ``grouped``: they are the rows of one query, else each is by itself.

    Without ``afford`` a row asks at once for all that the trees of a segment (``segments``) surely
    need at a level; else for one purchase after the other.
    """
    for number, step in enumerate(tables.steps):
        there = [(i, row) for i, row in enumerate(rows) if row.next == number]
        if not there:
            continue
        yield from _visit(tables, step, there, afford)
        here = [row for _, row in there if not row.stopped]
        for row in here:
            row.last = number
            row.score = combined(step.step.combine, row.score, row.own)
        passed = passing(step, here, rows, grouped)
        for row, passes in zip(here, passed, strict=True):
            _go_on(tables, step.step, row, number, passes)


def _visit(
    tables: Tables, step: StepTables, rows: Sequence[tuple[int, Row]], afford: Afford | None
) -> Generator[list[Ask], list[Values], None]:
    """Take numbered rows through one step, side by side."""
    ways = [(i, _through(tables, step, row, afford)) for i, row in rows]
    waiting = [(i, way, need) for i, way in ways if (need := next(way, None)) is not None]
    while waiting:
        answers = yield [Ask(i, need) for i, _, need in waiting]
        going = []
        for (i, way, _), values in zip(waiting, answers, strict=True):
            try:
                going.append((i, way, way.send(values)))
            except StopIteration:
                continue
        waiting = going


def _go_on(tables: Tables, step: Step, row: Row, number: int, passes: bool) -> None:
    """To the next step; a stop between here and there is passed."""
    onward = step.then if passes else step.otherwise
    row.next = onward
    if onward < 0:
        row.stopped = "rejected" if onward == REJECT else "end" if passes else "gate"
    until = len(tables.steps) if onward < 0 else onward
    if any(number <= stop < until for stop in tables.stops):
        row.stop = (number, row.score)


def combined(how: str, before: list[float], own: list[float]) -> list[float]:
    """The score after a step, a new list."""
    if how == "last":
        return list(own)
    if how == "min":
        return [float(np.minimum(a, b)) for a, b in zip(before, own, strict=True)]
    if how == "add":
        return [a + b for a, b in zip(before, own, strict=True)]
    a, b = np.array(before), np.array(own)
    odds = -np.logaddexp(np.logaddexp(-a, -b), -a - b)
    return [float(v) for v in odds]


def _through(
    tables: Tables, step: StepTables, row: Row, afford: Afford | None
) -> Generator[list[int], Values, None]:
    """One row through one step; it stops where a cap lets it not go on."""
    if afford is None and row.walked < step.number:
        yield from _segment(tables, step, row)
        row.walked = step.segment[-1].number
    own = list(row.own) if step.step.carry else [0.0] * tables.outputs
    for k, bias in enumerate(step.bias):
        own[k] += bias
    trees, cells, multiplier = tables.trees, row.cells, tables.multiplier
    root, feature, threshold = trees.root, trees.feature, trees.threshold
    left, right, missing_left = trees.left, trees.right, trees.missing_left
    for t, weight, fresh in step.uses:
        node, path = root[t], 0.0
        f = feature[node]
        inner = f >= 0
        while f >= 0:
            path += multiplier[f]
            if afford and fresh and not afford(row.bits, row.splits + path, row.trees + 1):
                row.stopped = "cap"
                return
            x = cells[f]
            if x is None:
                bill = (row.splits + path, row.trees + 1) if fresh else (row.splits, row.trees)
                asked = bought(tables, row, [f], afford, *bill)
                if asked is None:
                    return
                take(row, asked, (yield asked))
                x = cells[f]
            goes_left = missing_left[node] if x != x else x <= threshold[node]
            node = left[node] if goes_left else right[node]
            f = feature[node]
        if fresh and inner:
            row.trees += 1
            row.splits += path
        if trees.output[t] == VECTOR:
            own = [a + b for a, b in zip(own, tables.vectors[int(trees.value[node])], strict=True)]
        else:
            own[trees.output[t]] += trees.value[node] * weight
    yield from _read(tables, step, row, afford)
    if row.stopped:
        return
    for column in step.columns:
        add_column(own, cells[column[0]], column)
    row.own = own if step.step.kernel is None else kernel_sums(step.step.kernel, cells, step.bias)


def _segment(tables: Tables, step: StepTables, row: Row) -> Generator[list[int], Values, None]:
    """Buy all that a row needs on its way through the segment that begins with ``step``."""
    trees, cells = tables.trees, row.cells
    nodes = [trees.root[t] for own in step.segment for t, _, _ in own.uses]
    wanted = [f for own in step.segment for f in own.reads]
    while nodes or wanted:
        nodes = [node for node in nodes if trees.feature[node] >= 0]
        wanted += [trees.feature[node] for node in nodes]
        if wanted := [f for f in wanted if cells[f] is None]:
            asked = bought(tables, row, wanted, None, row.splits, row.trees)
            take(row, asked or [], (yield asked or []))
        nodes, wanted = [_child(trees, node, cells) for node in nodes], []


def _child(trees: Lists, node: int, cells: Sequence[Any]) -> Any:
    x = cells[trees.feature[node]]
    goes_left = trees.missing_left[node] if x != x else x <= trees.threshold[node]
    return trees.left[node] if goes_left else trees.right[node]


def _read(
    tables: Tables, step: StepTables, row: Row, afford: Afford | None
) -> Generator[list[int], Values, None]:
    """Buy at once what a step reads of every row."""
    if any(row.cells[f] is None for f in step.reads):
        asked = bought(tables, row, step.reads, afford, row.splits, row.trees)
        if asked:
            take(row, asked, (yield asked))


def bought(
    tables: Tables, row: Row, wanted: list[int], afford: Afford | None, splits: float, trees: int
) -> list[int] | None:
    """Buy what ``wanted`` features need: all features that can be read from then on and could not
    before. None, and the row stops, where that is not within the cap."""
    needs, cells, bits = tables.needs, row.cells, row.bits
    for f in wanted:
        bits |= needs[f]
    if afford is not None and not afford(bits, splits, trees):
        row.stopped = "cap"
        return None
    row.bits = bits
    mates = {m for f in wanted for m in tables.mates[f]}
    return sorted(m for m in mates if cells[m] is None and not needs[m] & ~bits)


def take(row: Row, features: list[int], values: Values) -> None:
    """Put the values of ``features`` into the row."""
    row.bought += features
    for f, value in zip(features, values, strict=True):
        row.cells[f] = value


def add_column(own: list[float], x: float, column: tuple[Any, ...]) -> None:
    """Add a weighted cell to its output; ``column`` as in ``column_list``."""
    _, output, weight, scaled, mean, factor = column
    if scaled:
        own[output] += weight * ((x - mean) * factor if isfinite(x) else 0.0)
    elif not isnan(x):
        own[output] += weight * x


def kernel_sums(
    kernel: Kernel, cells: Sequence[float | None], bias: Sequence[float]
) -> list[float]:
    """See ``Kernel``. A row's sums have the order of the benchmark's compiled loop."""
    z = [
        _scaled(cells[f], m, s)
        for f, m, s in zip(kernel.features, kernel.mean, kernel.factor, strict=True)
    ]
    total = [0.0] * len(bias)
    count = kernel.vectors.shape[1]
    for first in range(0, count, kernel.tile):
        vectors = kernel.vectors[:, first : first + kernel.tile]
        sums = np.zeros(vectors.shape[1])
        for g, gamma in enumerate(kernel.gamma.tolist()):
            distance = np.zeros(vectors.shape[1])
            for j in range(kernel.start[g], kernel.start[g + 1]):
                off = z[j] - vectors[j]
                distance += off * off
            sums += [exp(v) if v > -inf else 0.0 for v in (-gamma * distance).tolist()]
        for k, own in enumerate(kernel.coefficients[:, first : first + kernel.tile]):
            part = 0.0
            for value in (own * sums).tolist():
                part += value
            total[k] += part
    return [a + b for a, b in zip(total, bias, strict=True)]


def _scaled(x: float | None, mean: float, factor: float) -> float:
    return (x - mean) * factor if x is not None and isfinite(x) else 0.0
