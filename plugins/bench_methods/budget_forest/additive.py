"""What a tree whose values are added or averaged loses where a node becomes a leaf.

A row of m copies whose leaf adds v (one number, or a vector of K) loses m |v - v_h|^2 / 2 where
node h answers in its place. That is least if v_h is the mean of v over the training rows in h, and
then a node loses what its children l and r lose and

    m_l m_r / (m_l + m_r) |v_l - v_r|^2 / 2

so losses add up over a tree as misclassified rows do. They are counted in units in which all
trees, pruned to their roots, lose as much as there are rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bench_core import Examples
from bench_core.arrays import FloatArray
from bench_methods.budget_forest.forest import upwards
from bench_methods.budget_forest.problem import NodeLoss, leaf_mass

if TYPE_CHECKING:
    from bench_trees import Ensemble
    from bench_trees.threads import Workers


def with_means(
    trees: Ensemble, leaves: FloatArray, rows: Examples, crew: Workers
) -> tuple[FloatArray, NodeLoss]:
    """What every node adds as a leaf (nodes, K) and what it loses, from ``leaves`` (L, K)."""
    leaf = trees.feature < 0
    mass, loss = np.zeros(trees.nodes), np.zeros(trees.nodes)
    value = np.zeros((trees.nodes, leaves.shape[1]))
    mass[leaf], value[leaf] = leaf_mass(trees, rows, crew), leaves
    for u in upwards(trees):
        a, b = trees.left[u], trees.right[u]
        mass[u] = mass[a] + mass[b]
        part, apart = mass[b] / mass[u], value[b] - value[a]
        value[u] = value[a] + part[:, None] * apart
        loss[u] = loss[a] + loss[b] + 0.5 * mass[a] * part * (apart**2).sum(axis=1)
    everything, count = float(loss[trees.start[:-1]].sum()), float(rows.weights.sum())
    return value, NodeLoss(loss * (count / everything if everything > 0 else 0.0), count)
