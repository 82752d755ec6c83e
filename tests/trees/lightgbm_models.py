"""LightGBM models as flat ensembles."""

from __future__ import annotations

from typing import Any

import numpy as np
from bench_trees.ensemble import Ensemble


def from_lightgbm(booster: Any, features: int) -> Ensemble:
    """The trees of a LightGBM model of one output without categorical features."""
    rows: list[list[float]] = []
    start = [0]

    def add(node: Any) -> int:
        here = len(rows)
        if "split_feature" not in node:
            rows.append([-1, 0.0, -1, -1, False, node["leaf_value"]])
            return here
        threshold = np.float32(node["threshold"])
        if float(threshold) > node["threshold"]:  # x is float32: round the limit down
            threshold = np.nextafter(threshold, np.float32(-np.inf))
        rows.append([])
        children = add(node["left_child"]), add(node["right_child"])
        rows[here] = [node["split_feature"], threshold, *children, node["default_left"], 0.0]
        return here

    for tree in booster.dump_model()["tree_info"]:
        add(tree["tree_structure"])
        start.append(len(rows))
    table = np.array(rows, dtype=np.float64)
    return Ensemble(
        start=np.array(start, dtype=np.int32),
        feature=table[:, 0].astype(np.int32),
        threshold=table[:, 1].astype(np.float32),
        left=table[:, 2].astype(np.int32),
        right=table[:, 3].astype(np.int32),
        missing_left=table[:, 4].astype(np.bool_),
        value=table[:, 5],
        output=np.zeros(len(start) - 1, dtype=np.int32),
        base=np.zeros(1),
        features=features,
    )
