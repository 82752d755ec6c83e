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
from bench_core.serving.kernels import (
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
from bench_core.traversal import trees, vectors
from bench_core.traversal.calling import calling, inner
from bench_core.traversal.trees import (
    FEW,
    aligned,
    descend,
    descend_few,
    find_leaves,
    gather,
)
from bench_core.traversal.vectors import (
    above,
    above_or_missing,
    add_leaves,
    number_few,
    transpose,
    unpack,
)

TILE = vectors.ROWS
_ONE, _I = np.uint64(1), np.uint64


class Tile(NamedTuple):
    """Rows side by side."""

    cells: Any  # float32 (64 (f + 1),)
    need: Any  # uint64 (f,): rows that need a feature
    paid: Any  # uint64 (64 w,): rows that have paid a sensor
    above: Any  # uint64 (c,): rows above a cut
    sets: Any  # uint64: the rows at each place of a tree
    leaf: Any  # uint8 (64,)
    found: Any  # int64 (64,): leaves
    rows: Any  # int64 (64,): their numbers, the last one repeated
    own: Any  # float64 (64 K,), as the next
    score: Any
    splits: Any  # float64 (64,)


@calling(trees, vectors)
def walk_segment(
    model: Model, begin: int, last: int, X: Any, rows: Any, bought: Any, places: Any, sums: Any
) -> None:
    """Take the picked ``rows`` of ``X`` (n, d) through the steps ``begin`` to ``last``; the other
    arrays are those of ``kernels.walk_rows``. PRICE is the bill up to there."""
    tile = _tile(model)
    for at in range(0, len(rows), TILE):
        count = min(TILE, len(rows) - at)
        for r in range(TILE):
            tile.rows[r] = rows[at + min(r, count - 1)]
        gather(tile.cells, X, tile.rows, model.features, model.squares)
        _begin(model, tile, count, sums, bought, begin > 0)
        _compare(model.splits, tile, begin)
        tile.sets[0] = ~_I(0) >> _I(TILE - count)
        billed = 0
        for p in range(begin, last + 1):
            billed += _add_trees(model, tile, p)
            _add_columns(model, tile, p)
            _combine(tile, model.steps[p, COMBINE])
        _pay(model, tile)
        _report(model, tile, last, count, billed, places, sums)
        _unpack(model, tile, count, bought)


@inner
def _tile(model: Any) -> Any:
    outputs, count = model.gates.shape[1] - 1, len(model.features)
    return Tile(
        aligned(4 * TILE * (count + 1)).view(np.float32),
        np.zeros(count, dtype=np.uint64),
        np.zeros(TILE * -(-len(model.prices) // TILE), dtype=np.uint64),
        np.zeros(len(model.splits.cell), dtype=np.uint64),
        np.zeros(_places(model.splits.root), dtype=np.uint64),
        aligned(TILE),
        np.zeros(TILE, dtype=np.int64),
        np.zeros(TILE, dtype=np.int64),
        aligned(8 * TILE * outputs).view(np.float64),
        aligned(8 * TILE * outputs).view(np.float64),
        aligned(8 * TILE).view(np.float64),
    )


@inner
def _begin(model: Any, tile: Any, count: int, sums: Any, bought: Any, later: bool) -> None:
    """What is known of the rows, where some may be on their way from steps before."""
    outputs = model.gates.shape[1] - 1
    for c in range(len(tile.need)):
        tile.need[c] = 0
    for s in range(len(tile.paid)):
        tile.paid[s] = 0
    for r in range(count):
        row = tile.rows[r]
        tile.splits[r] = sums[row, SPLITS]
        for k in range(outputs):
            tile.own[TILE * k + r] = sums[row, SUMS + k]
            tile.score[TILE * k + r] = sums[row, SUMS + outputs + k]
        if later:
            for s in range(len(model.prices)):
                tile.paid[s] |= _I(bought[row, s]) << _I(r)


@inner
def _places(root: Any) -> int:
    """Of the tree with the most."""
    most = 0
    for t in range(len(root) - 1):
        most = max(most, root[t + 1] - root[t])
    return 2 * most + 1


@inner
def _compare(splits: Any, tile: Any, begin: int) -> None:
    """Compare with all thresholds of the segment that begins with a step."""
    for k in range(splits.first[begin], splits.first[begin + 1]):
        cut = splits.cuts[k]
        cell, threshold = splits.cell[_I(cut)], splits.threshold[_I(cut)]
        at = np.int64(cell >> 1) * TILE
        if cell & 1:
            above_or_missing(tile.above, cut, tile.cells, at, threshold)
        else:
            above(tile.above, cut, tile.cells, at, threshold)


@inner
def _add_trees(model: Any, tile: Any, p: int) -> int:
    """Begin step p and add its trees; how many are billed."""
    s, uses, weights, marks = model.splits, model.uses, model.weights, model.splits.mark
    root, source, of_cut, feature, after = s.root, s.source, s.of_cut, s.feature, s.after
    value, path, bytes_ = s.value, s.path, marks.view(np.uint8)
    over, need, sets, leaf, found = tile.above, tile.need, tile.sets, tile.leaf, tile.found
    own, spent = tile.own, tile.splits
    billed = 0
    for k in range(model.gates.shape[1] - 1):
        for r in range(TILE * k, TILE * (k + 1)):
            own[r] = (own[r] if model.steps[p, CARRY] else 0.0) + model.gates[p, 1 + k]
    for u in range(model.steps[p, FIRST_USE], model.steps[p, LAST_USE]):
        t, line, weight = uses[u, 0], TILE * uses[u, 1], weights[u]
        first, end, counts = root[t], root[t + 1], np.float64(uses[u, 2])
        billed += uses[u, 2]
        if end - first <= FEW:
            descend_few(first, end, source, of_cut, feature, over, sets, need)
            number_few(leaf, sets, bytes_, 4 * first, end - first)
            add_leaves(own, line, leaf, end - first + 1, value, first + t, weight)
            add_leaves(spent, 0, leaf, end - first + 1, path, first + t, counts)
        else:
            descend(first, end, source, of_cut, feature, after, over, sets, need)
            find_leaves(first, end - first, bytes_, sets, leaf, found, first + t)
            for r in range(TILE):
                own[line + r] += value[_I(found[r])] * weight
                spent[r] += path[_I(found[r])] * counts
    return billed


@inner
def _add_columns(model: Any, tile: Any, p: int) -> None:
    """Add the columns of step p, which every row here needs."""
    for c in range(model.steps[p, FIRST_COLUMN], model.steps[p, LAST_COLUMN]):
        place, output, scaled = model.columns[c]
        weight, mean, factor = model.factors[c]
        tile.need[place] = ~_I(0)
        for r in range(TILE):
            x = np.float64(tile.cells[TILE * place + r])
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
def _unpack(model: Any, tile: Any, count: int, bought: Any) -> None:
    """Write what each row has paid."""
    sensors, flat = len(model.prices), bought.reshape(-1)
    for first in range(0, sensors, TILE):
        transpose(tile.paid, first)  # to words of sensors per row
        for r in range(count):
            at = tile.rows[r] * sensors + first
            unpack(flat, at, tile.paid[first + r], min(TILE, sensors - first))


@inner
def _prices(prices: Any, paid: Any) -> Any:
    """What each row has paid; by bytes and words of sensors, as ``Acquired.cost`` adds."""
    total, word, part = np.zeros(TILE), np.zeros(TILE), np.zeros(TILE)
    for s in range(len(prices)):
        if paid[s]:
            for r in range(TILE):
                part[r] += prices[s] if paid[s] >> _I(r) & _ONE else 0.0
        if s % 8 == 7 or s == len(prices) - 1:
            for r in range(TILE):
                word[r] += part[r]
                part[r] = 0.0
        if s % 64 == 63 or s == len(prices) - 1:
            for r in range(TILE):
                total[r] += word[r]
                word[r] = 0.0
    return total


@inner
def _report(
    model: Any, tile: Any, last: int, count: int, billed: int, places: Any, sums: Any
) -> None:
    """The bills of the rows, and where step ``last`` leads them."""
    total, rules = _prices(model.prices, tile.paid), model.rules
    outputs, step, value = model.gates.shape[1] - 1, model.steps[last], model.gates[last, 0]
    for r in range(count):
        row = tile.rows[r]
        places[row, TREES] += billed
        evaluated = rules[0] * tile.splits[r] + rules[1] * np.float64(places[row, TREES])
        sums[row, SPLITS], sums[row, PRICE] = tile.splits[r], total[r] + evaluated
        for k in range(outputs):
            sums[row, SUMS + k] = tile.own[TILE * k + r]
            sums[row, SUMS + outputs + k] = tile.score[TILE * k + r]
        passes = not step[GATED] or tile.score[r] >= value
        onward = step[THEN] if passes else step[ELSE]
        places[row, LAST_STEP], places[row, STEP] = last, onward
        places[row, STOPPED] = REJECTED if onward == -2 else END if passes else GATE
