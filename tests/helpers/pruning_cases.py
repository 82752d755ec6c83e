"""The pruning of trees as its linear program, and by enumeration of all choices of leaves.

``lost`` (nodes,) is the share of the total lost at a node as a leaf.
"""

from itertools import product
from typing import Any, NamedTuple

import numpy as np
from bench_methods.budget_forest.prune import even_tradeoffs
from bench_methods.budget_forest.pruning import search
from bench_trees.threads import workers

from helpers.random_trees import path


class CountedForest(NamedTuple):
    """Trees, and the training rows of each class in their nodes (nodes, K)."""

    trees: Any
    counts: np.ndarray


def forest_of(model):
    """The trees and class counts of a fitted forest."""
    return CountedForest(model.trees, model.counts)


def misclassified(forest):
    """The share of the rows of all bags that each node of a forest misclassifies."""
    wrong = forest.counts.sum(axis=1) - forest.counts.max(axis=1)
    return np.asarray(wrong / forest.counts[forest.trees.start[:-1]].sum())


def moved(trees, leaves, train):
    """Value of each node as a leaf (nodes, K), and the distance that rows move by it.

    Copy by copy: half the squared distance to their leaf's value, a row of ``leaves`` (L, K). A
    leaf without rows counts as if it had one.
    """
    ends = np.flatnonzero(trees.feature < 0)
    own = dict(zip(ends.tolist(), leaves, strict=True))
    said = [[] for _ in trees.feature]
    for row, copies in zip(train.X, train.weights, strict=True):
        for tree in range(trees.trees):
            passed = path(trees, tree, row).nodes
            for node in passed:
                said[node] += [own[passed[-1]]] * int(copies)
    for end in ends:
        if not said[end]:
            for node in lineage(trees, int(end)):
                said[node].append(own[int(end)])
    means = np.array([np.mean(values, axis=0) for values in said])
    lost = np.array([((v - m) ** 2).sum() / 2 for v, m in zip(said, means, strict=True)])
    everything = lost[trees.start[:-1]].sum()
    return means, lost / everything if everything > 0 else lost


def program_value(forest, lost, valid, prices, tau):
    """The optimum of the linear program, by HiGHS: loss + tau x mean cost of a row.

    Variables: z per node, then w per (row, sensor), then v per (row, tree): the root is kept.
    """
    from scipy.optimize import linprog

    nodes, n, s = len(forest.feature), len(valid), prices.sensors
    share = valid.weights / valid.weights.sum()
    cost = np.zeros(nodes + n * s)
    cost[:nodes] = lost
    cost[nodes:] = tau * (share[:, None] * prices.sensor).ravel()
    constant = 0.0
    equal, above = [], []
    for tree in range(forest.trees):
        for i, row in enumerate(valid.X):
            passed = path(forest, tree, row).nodes
            for depth, node in enumerate(passed[:-1]):
                pays = prices.split * prices.multiplier[forest.feature[node]]
                pays += prices.tree if depth == 0 else 0.0
                constant += tau * share[i] * pays  # unless z = 1 here or above
                cost[passed[: depth + 1]] -= tau * share[i] * pays
                for sensor in prices.sensors_of(int(forest.feature[node])):
                    line = np.zeros(len(cost))
                    line[passed[: depth + 1]] = -1
                    line[nodes + i * s + sensor] = -1
                    above.append(line)
        for leaf in range(forest.start[tree], forest.start[tree + 1]):
            if forest.feature[leaf] < 0:
                line = np.zeros(len(cost))
                line[lineage(forest, leaf)] = 1
                equal.append(line)
    found = linprog(
        cost,
        A_ub=np.array(above) if above else None,
        b_ub=-np.ones(len(above)) if above else None,
        A_eq=np.array(equal),
        b_eq=np.ones(len(equal)),
        bounds=(0, 1),
        method="highs",
    )
    assert found.status == 0, found.message
    return float(found.fun) + constant


def lineage(forest, node):
    """A node and all its ancestors."""
    found = [node]
    while True:
        parents = np.flatnonzero((forest.left == found[-1]) | (forest.right == found[-1]))
        if len(parents) == 0:
            return found
        found.append(int(parents[0]))


def value_of(forest, lost, kept, valid, prices, tau):
    """The objective of keeping these inner nodes as splits, counted row by row."""
    total = 0.0
    for tree in range(forest.trees):
        waiting = [int(forest.start[tree])]
        while waiting:
            node = waiting.pop()
            if node in kept:
                waiting += [int(forest.left[node]), int(forest.right[node])]
            else:
                total += lost[node]
    share = valid.weights / valid.weights.sum()
    for i, row in enumerate(valid.X):
        bought = set()
        paid = 0.0
        for tree in range(forest.trees):
            for depth, node in enumerate(path(forest, tree, row).nodes):
                if node not in kept:
                    break
                bought |= {int(k) for k in prices.sensors_of(int(forest.feature[node]))}
                paid += prices.split * prices.multiplier[forest.feature[node]]
                paid += prices.tree if depth == 0 else 0.0
        total += tau * share[i] * (paid + sum(prices.sensor[k] for k in bought))
    return float(total)


def all_prunings(forest):
    """Every set of inner nodes that holds the parents of its members."""
    inner = [int(u) for u in np.flatnonzero(forest.feature >= 0)]
    above = {u: set(lineage(forest, u)[1:]) for u in inner}
    for chosen in product((False, True), repeat=len(inner)):
        kept = {u for u, yes in zip(inner, chosen, strict=True) if yes}
        if all(above[u] <= kept for u in kept):
            yield kept


def solved(problem, *tradeoffs, passes=5000, threads=1):
    """The prunings at falling tradeoffs, or all of a path, to 1e-10 if passes suffice."""
    one = np.array(tradeoffs, dtype=np.float64)
    with workers(threads) as pool:
        return search(
            problem,
            pool,
            choice=(lambda *_: one) if tradeoffs else even_tradeoffs,
            tolerance=1e-10,
            passes=passes,
        )
