"""Scores of an ensemble by walking every row down every tree in plain Python."""

from __future__ import annotations

import numpy as np
from bench_trees.ensemble import Ensemble


def leaf_of(e: Ensemble, tree: int, row: np.ndarray) -> int:
    node = int(e.start[tree])
    while e.feature[node] >= 0:
        x = row[e.feature[node]]
        left = e.missing_left[node] if np.isnan(x) else x <= e.threshold[node]
        node = int(e.left[node] if left else e.right[node])
    return node


def scores_of(e: Ensemble, X: np.ndarray) -> np.ndarray:
    """(K, n)."""
    scores = np.repeat(e.base[:, None], len(X), axis=1)
    for tree in range(e.trees):
        for i, row in enumerate(X):
            scores[e.output[tree], i] += e.value[leaf_of(e, tree, row)]
    return scores
