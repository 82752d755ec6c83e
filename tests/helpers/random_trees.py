"""Random ensembles and rows, and the definition of an ensemble, for the tests of inference."""

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
from bench_trees.ensemble import Ensemble


def stump(feature, low, high, threshold=0.0, features=4):
    """One split: low at or below the threshold, high above; a missing cell goes right."""
    leaf = [-1, 0.0, -1, -1, False]
    nodes = [[feature, threshold, 1, 2, False, 0.0], [*leaf, low], [*leaf, high]]
    return ensemble([nodes], [0], [0.0], features)


def ensemble(trees, output, base, features):
    """Trees given as nodes: feature, threshold, left, right, missing_left and value of each."""
    names = ("feature", "threshold", "left", "right", "missing_left", "value")
    columns = [dict(zip(names, zip(*nodes, strict=True), strict=True)) for nodes in trees]
    return Ensemble.of_trees([SimpleNamespace(**own) for own in columns], output, base, features)


def random_ensemble(rng, *, trees, features, leaves=8, outputs=1, shape="any"):
    """Trees of 1 to ``leaves`` leaves of any shape, thresholds and values on a coarse grid.

    With the shapes ``even`` (filled level by level) and ``comb`` (one leaf a level) all have the
    most leaves.
    """
    made = []
    for _ in range(trees):
        rows = [[-1, 0.0, -1, -1, False, 0.0]]
        for _ in range(int(rng.integers(0, leaves)) if shape == "any" else leaves - 1):
            open_leaves = [i for i in range(len(rows)) if rows[i][0] == -1]
            which = {"any": int(rng.choice(open_leaves)), "even": open_leaves[0]}
            i, j = which.get(shape, open_leaves[-1]), len(rows)
            threshold = rng.choice([-1.5, -0.5, 0.0, 0.5, np.inf])
            rows[i] = [rng.integers(0, features), threshold, j, j + 1, rng.random() < 0.5, 0.0]
            rows += [[-1, 0.0, -1, -1, False, 0.0], [-1, 0.0, -1, -1, False, 0.0]]
        for row in rows:
            row[5] = float(rng.normal()) if row[0] == -1 else 0.0
        made.append(rows)
    output = rng.integers(0, outputs, size=trees)
    return ensemble(made, output, rng.normal(size=outputs), features)


def random_rows(rng, n, d):
    """Cells on the grid of the thresholds, so that ties are common, some missing."""
    X = rng.choice([-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0], size=(n, d)).astype(np.float32)
    X[rng.random((n, d)) < 0.15] = np.nan
    return X


class Path(NamedTuple):
    """The features tested on one row's path through one tree, the leaf's output, and the nodes
    from root to leaf."""

    features: list[int]
    value: float
    nodes: list[int]


def path(ensemble, tree, row):
    """One row's path through one tree, node by node."""
    nodes, features = [int(ensemble.start[tree])], []
    while ensemble.feature[node := nodes[-1]] >= 0:
        feature = int(ensemble.feature[node])
        features.append(feature)
        cell = float(row[feature])
        if np.isnan(cell):
            left = bool(ensemble.missing_left[node])
        else:
            left = cell <= float(ensemble.threshold[node])
        nodes.append(int(ensemble.left[node] if left else ensemble.right[node]))
    return Path(features, float(ensemble.value[node]), nodes)


def leaves_of(e, X):
    """(T, n) the leaf of each row in each tree, by walking all rows down in numpy."""
    found = np.repeat(e.start[:-1, None], len(X), axis=1)
    for node in found:
        while (inner := np.flatnonzero(e.feature[node] >= 0)).size:
            at = node[inner]
            cell = X[inner, e.feature[at]]
            left = np.where(np.isnan(cell), e.missing_left[at], cell <= e.threshold[at])
            node[inner] = np.where(left, e.left[at], e.right[at])
    return found


def scores_of(e, X):
    """(K, n) the sums of the trees' values."""
    scores = np.repeat(e.base[:, None], len(X), axis=1)
    np.add.at(scores, e.output, e.value[leaves_of(e, X)])
    return scores


def used_features(trees, tree):
    """The features that one tree tests, rising, each once."""
    tested = trees.feature[trees.start[tree] : trees.start[tree + 1]]
    return np.unique(tested[tested >= 0])
