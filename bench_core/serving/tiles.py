"""Many rows through a segment of a program, 64 at a time, as bits of one machine word.

A set of rows of a tile is a ``uint64``. Each distinct threshold of a feature is compared once, by
one vector operation; a split divides the set that reaches it with the outcome, and the same set is
what needs the split's feature. Trees stand in preorder, left child first, so that a walk goes
through their splits from front to back and jumps over large subtrees that no row has reached.
Turning right names the first leaf of the right subtree: a row's last turn holds. Sums are those of
``kernels``, tree by tree for each row, whatever rows stand beside it.

What is written as vector operations, and the loops over a tile's rows that the tree engine shares,
are in ``bench_core.traversal``.
"""

from typing import Any, NamedTuple

import numpy as np

from bench_core.serving.compiled import Model
from bench_core.serving.layout import (
    ADD,
    CARRY,
    COMBINE,
    ELSE,
    END,
    FIRST_COLUMN,
    FIRST_USE,
    GATE,
    GATED,
    LAST,
    LAST_COLUMN,
    LAST_STEP,
    LAST_USE,
    PRICE,
    REJECTED,
    SPLITS,
    STEP,
    STOPPED,
    SUMS,
    THEN,
    TREES,
)
from bench_core.traversal import leaves, llvm, trees, vectors
from bench_core.traversal.calling import calling, inner
from bench_core.traversal.leaves import add_leaves
from bench_core.traversal.trees import (
    FEW,
    add_lengths,
    aligned,
    descend,
    descend_few,
    find_leaves,
    gather,
    settle,
)
from bench_core.traversal.vectors import (
    above,
    above_or_missing,
    add_prices,
    number_few,
    transpose,
)

TILE = vectors.ROWS
_I = np.uint64


class Tile(NamedTuple):
    """Rows side by side."""

    cells: Any  # float32 (64 (f + 1),)
    need: Any  # uint64 (f,): rows that need a feature
    paid: Any  # uint64 (64 w,): rows that have paid a sensor
    above: Any  # uint64 (c,): rows above a cut
    sets: Any  # uint64: the rows at each place of a tree
    leaf: Any  # uint8 (64,)
    found: Any  # int64 (64,): leaves
    rows: Any  # int64 (64,): their numbers, rising, the last one repeated
    number: Any  # int64 (64,): whole numbers of them, to be written
    own: Any  # float64 (64 K,), as the next
    score: Any
    splits: Any  # float64 (64,), as the next
    price: Any  # of what the rows have paid
    counts: Any  # uint16 (64,), see ``add_lengths``


@calling(leaves, llvm, trees, vectors)
def take_over(model: Model, X: Any, taken: Any) -> None:
    """The cells of ``X`` (n, d) that the model may read, tile by tile, to float32 ``taken``
    (n / 64, 64 (f + 1))."""
    rows = np.zeros(TILE, dtype=np.int64)
    for tile in range(len(taken)):
        for r in range(TILE):
            rows[r] = min(TILE * tile + r, len(X) - 1)
        gather(taken[tile], X, rows, model.features, model.squares)


@calling(leaves, llvm, trees, vectors)
def walk_segment(
    model: Model,
    begin: int,
    last: int,
    X: Any,
    taken: Any,
    rows: Any,
    bits: Any,
    places: Any,
    sums: Any,
) -> None:
    """Take the picked ``rows`` of ``X`` (n, d) through the steps ``begin`` to ``last``; ``bits``
    (n, w) are their payable sensors as in ``Acquired``, the other arrays those of
    ``kernels.walk_rows``; all three column by column. PRICE is the bill up to there. What no later
    step reads is not written. If all rows are picked, ``taken`` may hold their cells."""
    tile = _tile(model)
    for at in range(0, len(rows), TILE):
        count = min(TILE, len(rows) - at)
        for r in range(TILE):
            tile.rows[r] = rows[at + min(r, count - 1)]
        cells = tile.cells
        if len(taken) > 0:
            cells = taken[at // TILE]
        else:
            gather(cells, X, tile.rows, model.features, model.squares)
        _begin(tile, count)
        if begin > 0:
            _resume(model, tile, count, sums, bits)
        _compare(model.splits, tile.above, cells, begin)
        billed = 0
        for p in range(begin, last + 1):
            billed += _add_trees(model, tile, p)
            _add_columns(model, tile, cells, p)
            _combine(tile, model.steps[p, COMBINE])
        _pay(model, tile)
        # by bytes and words of sensors, as ``Acquired.cost`` adds; the others would add 0
        add_prices(tile.price, tile.paid, model.each, model.groups)
        _report(model, tile, last, count, billed, begin > 0, places, sums)
        _write(tile, count, bits)


@inner
def _tile(model: Any) -> Any:
    outputs, count = model.gates.shape[1] - 1, len(model.features)
    return Tile(
        aligned(4 * TILE * (count + 1)).view(np.float32),
        np.zeros(count, dtype=np.uint64),
        np.zeros(TILE * max(1, -(-len(model.payable) // TILE)), dtype=np.uint64),
        np.zeros(len(model.splits.cell), dtype=np.uint64),
        np.zeros(_places(model.splits.root), dtype=np.uint64),
        aligned(TILE),
        np.zeros(TILE, dtype=np.int64),
        np.zeros(TILE, dtype=np.int64),
        np.zeros(TILE, dtype=np.int64),
        aligned(8 * TILE * outputs).view(np.float64),
        aligned(8 * TILE * outputs).view(np.float64),
        aligned(8 * TILE).view(np.float64),
        aligned(8 * TILE).view(np.float64),
        aligned(2 * TILE).view(np.uint16),
    )


@inner
def _begin(tile: Any, count: int) -> None:
    """Rows before their first step, of which no more than ``count`` are there."""
    tile.need[:] = 0
    tile.paid[:] = 0
    tile.splits[:] = 0.0
    tile.own[:] = 0.0
    tile.score[:] = 0.0
    tile.sets[0] = ~_I(0) >> _I(TILE - count)


@inner
def _resume(model: Any, tile: Any, count: int, sums: Any, bits: Any) -> None:
    """What is known of rows on their way from steps before."""
    outputs = model.gates.shape[1] - 1
    for r in range(count):
        row = tile.rows[r]
        tile.splits[r] = sums[row, SPLITS]
        for k in range(outputs):
            tile.own[TILE * k + r] = sums[row, SUMS + k]
            tile.score[TILE * k + r] = sums[row, SUMS + outputs + k]
        for w in range(bits.shape[1]):
            tile.paid[TILE * w + r] = bits[row, w]
    for w in range(bits.shape[1]):
        transpose(tile.paid, TILE * w)  # to words of rows that have paid a sensor


@inner
def _places(root: Any) -> int:
    """Of the tree with the most."""
    most = 0
    for t in range(len(root) - 1):
        most = max(most, root[t + 1] - root[t])
    return 2 * most + 1


@inner
def _compare(splits: Any, over: Any, cells: Any, begin: int) -> None:
    """Compare with all thresholds of the segment that begins with a step."""
    for k in range(splits.first[begin], splits.first[begin + 1]):
        cut = splits.cuts[k]
        cell, threshold = splits.cell[_I(cut)], splits.threshold[_I(cut)]
        at = np.int64(cell >> 1) * TILE
        if cell & 1:
            above_or_missing(over, cut, cells, at, threshold)
        else:
            above(over, cut, cells, at, threshold)


@inner
def _add_trees(model: Any, tile: Any, p: int) -> int:
    """Begin step p and add its trees; how many are billed."""
    s, uses, weights, marks = model.splits, model.uses, model.weights, model.splits.mark
    root, source, of_cut, feature, after = s.root, s.source, s.of_cut, s.feature, s.after
    value, path, bytes_ = s.value, s.path, marks.view(np.uint8)
    over, need, sets, leaf, found = tile.above, tile.need, tile.sets, tile.leaf, tile.found
    own, spent, counts, short = tile.own, tile.splits, tile.counts, s.short
    billed, pending = 0, 0
    for k in range(model.gates.shape[1] - 1):
        for r in range(TILE * k, TILE * (k + 1)):
            own[r] = (own[r] if model.steps[p, CARRY] else 0.0) + model.gates[p, 1 + k]
    for u in range(model.steps[p, FIRST_USE], model.steps[p, LAST_USE]):
        t, line, weight = uses[u, 0], TILE * uses[u, 1], weights[u]
        first, end, often = root[t], root[t + 1], np.float64(uses[u, 2])
        billed += uses[u, 2]
        if end - first <= FEW:
            descend_few(first, end, source, of_cut, feature, over, sets, need)
            number_few(leaf, sets, bytes_, 4 * first, end - first)
            add_leaves(own, line, leaf, end - first + 1, value, first + t, weight)
            if len(short) == 0:
                add_leaves(spent, 0, leaf, end - first + 1, path, first + t, often)
            elif uses[u, 2]:
                pending = add_lengths(
                    pending, spent, counts, leaf, end - first + 1, short, first + t
                )
        else:
            descend(first, end, source, of_cut, feature, after, over, sets, need)
            find_leaves(first, end - first, bytes_, sets, leaf, found, first + t)
            for r in range(TILE):
                own[line + r] += value[_I(found[r])] * weight
                spent[r] += path[_I(found[r])] * often
    settle(spent, counts)
    return billed


@inner
def _add_columns(model: Any, tile: Any, cells: Any, p: int) -> None:
    """Add the columns of step p, which every row here needs."""
    for c in range(model.steps[p, FIRST_COLUMN], model.steps[p, LAST_COLUMN]):
        place, output, scaled = model.columns[c]
        weight, mean, factor = model.factors[c]
        tile.need[place] = ~_I(0)
        for r in range(TILE):
            x = np.float64(cells[TILE * place + r])
            if scaled:
                tile.own[TILE * output + r] += weight * (
                    (x - mean) * factor if np.isfinite(x) else 0.0
                )
            elif not np.isnan(x):
                tile.own[TILE * output + r] += weight * x


@inner
def _combine(tile: Any, how: int) -> None:
    for r in range(len(tile.own)):
        own, score = tile.own[r], tile.score[r]
        if how == ADD:
            tile.score[r] = score + own
        elif how == LAST or not (score < own or np.isnan(score)):
            tile.score[r] = own


@inner
def _pay(model: Any, tile: Any) -> None:
    """Who needs a feature has paid its sensors."""
    for c in range(len(tile.need)):
        for k in range(model.start[c], model.start[c + 1]):
            tile.paid[model.sensors[k]] |= tile.need[c]


@inner
def _write(tile: Any, count: int, bits: Any) -> None:
    """Which sensors each row has paid; afterwards ``paid`` is no longer by sensor."""
    for w in range(bits.shape[1]):
        transpose(tile.paid, TILE * w)
        _put(bits[:, w], tile, count, tile.paid[TILE * w : TILE * (w + 1)])


@inner
def _put(column: Any, tile: Any, count: int, values: Any) -> None:
    """Write a value for each row; they are seldom apart."""
    first = tile.rows[0]
    if tile.rows[count - 1] - first == count - 1:
        for r in range(count):
            column[_I(first + r)] = values[r]
    else:
        for r in range(count):
            column[tile.rows[r]] = values[r]


@inner
def _report(
    model: Any, tile: Any, last: int, count: int, billed: int, later: bool, places: Any, sums: Any
) -> None:
    """The bills of the rows, and where step ``last`` leads them."""
    rules, outputs = model.rules, model.gates.shape[1] - 1
    step, value, number = model.steps[last], model.gates[last, 0], tile.number
    for r in range(TILE):
        number[r] = billed
    if later:
        for r in range(count):
            number[r] += places[tile.rows[r], TREES]
    for r in range(TILE):
        evaluated = rules[0] * tile.splits[r] + rules[1] * np.float64(number[r])
        tile.price[r] += evaluated
    _put(sums[:, PRICE], tile, count, tile.price)
    for k in range(outputs):
        score = tile.score[TILE * k : TILE * (k + 1)]
        _put(sums[:, SUMS + outputs + k], tile, count, score)
    if step[THEN] >= 0 or step[ELSE] >= 0:
        _put(places[:, TREES], tile, count, number)
        _put(sums[:, SPLITS], tile, count, tile.splits)
        for k in range(outputs):
            _put(sums[:, SUMS + k], tile, count, tile.own[TILE * k : TILE * (k + 1)])
    for column in (LAST_STEP, STEP, STOPPED):
        for r in range(TILE):
            passes = not step[GATED] or tile.score[r] >= value
            onward = step[THEN] if passes else step[ELSE]
            how = REJECTED if onward == -2 else END if passes else GATE
            number[r] = last if column == LAST_STEP else onward if column == STEP else how
        _put(places[:, column], tile, count, number)
