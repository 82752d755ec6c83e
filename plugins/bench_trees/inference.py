"""Walking an ensemble: scores, the sensors on each row's path, and the splits evaluated.

One pass over the rows gives all of these for every reported prefix of trees
(``kernels/traversal.py``). A row's score is summed tree by tree in float64 in the order of the
trees, independently of the other rows: a block and a single row give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_trees.arrays import Float32Array, Float64Array, Int32Array, Int64Array, frozen
from bench_trees.kernels.traversal import Layout, Steps, Walked, ordered, walk_tiles

__all__ = ["Layout", "Needs", "Steps", "Walked", "lay_out", "walk"]

_LOWEST, _HIGHEST = -(2**31), 2**31 - 1  # keys below and above all numbers


@dataclass(frozen=True, slots=True, eq=False)
class Needs:
    """Sensors needed by each feature, in row-compressed form, and the multiplier of its splits."""

    start: Int32Array  # feature j needs the sensors needed[start[j]:start[j + 1]]
    needed: Int32Array
    multiplier: Float64Array  # (d,)
    sensors: int

    @classmethod
    def nothing(cls, features: int, multiplier: Float64Array | None = None) -> Needs:
        """No feature needs a sensor; splits count ``multiplier`` (d,), by default 0."""
        start = np.zeros(features + 1, dtype=np.int32)
        return cls(start, start[:0], np.zeros(features) if multiplier is None else multiplier, 0)


def lay_out(
    trees: Any,
    needs: Needs,
    chosen: Sequence[int] | NDArray[np.integer] | None = None,
    weights: Float64Array | None = None,
    billed: NDArray[np.bool_] | None = None,
) -> Layout:
    """Lay out ``chosen`` trees (default all) with ``weights`` (default ones).

    ``trees`` is an ``Ensemble`` or has the same arrays. ``billed`` (same length) marks the trees
    whose splits are counted.
    """
    every = np.arange(len(trees.start) - 1)
    picked = every if chosen is None else np.asarray(chosen, dtype=np.int64)
    first, tree, left, level, splits = _level_by_level(trees, needs, picked)
    order = np.argsort(tree, kind="stable")  # a tree's nodes together, still by level
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order))
    node, tree, left, level = first[order], tree[order], left[order], level[order]
    inner = left >= 0
    key = np.full(len(node), _HIGHEST, dtype=np.int32)
    key[inner] = ordered(trees.threshold[node[inner]])
    pairs = 2 * trees.feature[node[inner]].astype(np.int64) + trees.missing_left[node[inner]]
    columns = np.flatnonzero(np.bincount(pairs))
    number = np.zeros(columns.max(initial=-1) + 1, dtype=np.int32)
    number[columns] = np.arange(len(columns))
    cell = np.zeros(len(node), dtype=np.int32)
    cell[inner] = number[pairs]
    word, mask, bundles = _payments(needs, columns // 2)
    value = np.where(inner, 0.0, trees.value[node])
    root = place[: len(picked)]
    return Layout(
        root=root,
        levels=np.maximum.reduceat(level, root) if len(root) else level,
        output=np.asarray(trees.output)[picked].astype(np.int32),
        cell=cell,
        key=key,
        left=np.where(inner, place[left], np.arange(len(node))).astype(np.int32),
        word=np.append(word, 0)[np.where(inner, cell, -1)],
        mask=np.append(mask, np.uint64(0))[np.where(inner, cell, -1)],
        value=value if weights is None else value * np.asarray(weights)[tree],
        splits=splits[order] if billed is None else splits[order] * np.asarray(billed)[tree],
        columns=(columns // 2).astype(np.int32),
        missing=np.where(columns % 2 == 1, _LOWEST, _HIGHEST).astype(np.int32),
        bundles=bundles,
        sensors=needs.sensors,
    )


def _level_by_level(trees: Any, needs: Needs, picked: Int64Array) -> tuple[NDArray[Any], ...]:
    """All nodes of the picked trees, level by level, children in pairs: their numbers, trees,
    places of their left children (-1 at a leaf), levels, and sums of multipliers on the path."""
    parts: list[tuple[NDArray[Any], ...]] = []
    node, tree = trees.start[picked].astype(np.int64), np.arange(len(picked))
    splits, placed = np.zeros(len(picked)), 0
    while len(node):
        placed += len(node)
        inner = np.flatnonzero(trees.feature[node] >= 0)
        left = np.full(len(node), -1)
        left[inner] = placed + 2 * np.arange(len(inner))
        parts.append((node, tree, left, np.full(len(node), len(parts), np.int32), splits))
        splits = np.repeat(splits[inner] + needs.multiplier[trees.feature[node[inner]]], 2)
        tree = np.repeat(tree[inner], 2)
        node = np.column_stack([trees.left[node[inner]], trees.right[node[inner]]]).ravel()
        node = node.astype(np.int64)
    empty = np.zeros(0, np.int64)
    parts.append((empty, empty, empty, empty.astype(np.int32), np.zeros(0)))
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def _payments(needs: Needs, columns: Int64Array) -> tuple[Int32Array, NDArray[np.uint64], Any]:
    """``word`` and ``mask`` of every column, and the ``bundles``."""
    words = max(1, -(-needs.sensors // 64))
    word = np.zeros(len(columns), dtype=np.int32)
    mask = np.zeros(len(columns), dtype=np.uint64)
    bundles: list[NDArray[np.uint64]] = []
    for c, feature in enumerate(columns.tolist()):
        sensors = needs.needed[needs.start[feature] : needs.start[feature + 1]].tolist()
        bit = sensors[0] if len(sensors) == 1 else 64 * words + len(bundles)
        if sensors:
            word[c], mask[c] = bit // 64, np.uint64(1) << np.uint64(bit % 64)
        if len(sensors) > 1:
            row = np.zeros(words, dtype=np.uint64)
            for sensor in sensors:
                row[sensor // 64] |= np.uint64(1) << np.uint64(sensor % 64)
            bundles.append(row)
    return word, mask, np.array(bundles, dtype=np.uint64).reshape(-1, words)


def walk(
    layout: Layout,
    steps: Steps,
    X: Float32Array,
    before: Walked,
    rows: Int64Array | None = None,
) -> Walked:
    """Continue from the last step of ``before`` through all ``steps``.

    ``X`` float32 (N, d); ``rows`` (n,) picks the rows to walk (default all), in the order of
    ``before``'s rows. Cells that no evaluated split of a row reads do not influence that row's
    result.
    """
    picked = np.arange(len(X), dtype=np.int64) if rows is None else rows
    p, n = len(steps.ends), len(picked)
    bits = np.empty((p, n, layout.words), dtype=np.uint64)
    done = Walked(np.empty((p, n, steps.bias.shape[1])), bits, np.empty((p, n)))
    walk_tiles(layout, frozen(X, np.float32), picked, steps, before, done)
    return done
