"""Models of other libraries walked through their own documents, node by node."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
from bench_trees.importers.files import parse_ubj


def walked(data: bytes, source: str, X: np.ndarray) -> np.ndarray | None:
    """The scores of rows; None where the document says what is not followed here."""
    if source == "LightGBM":
        return _lightgbm(data.decode().replace("\r\n", "\n"), X)
    document = parse_ubj(data) if data[1:2] in b"iUIlL$#" else json.loads(data)
    return (_xgboost if source == "XGBoost" else _catboost)(document, X)


def _lightgbm(text: str, X: np.ndarray) -> np.ndarray | None:
    if "average_output" in text or "sigmoid" in text:
        return None
    text = text.partition("\nend of trees")[0]
    head, *blocks = re.split(r"^Tree=\d+[ \t]*$", text, flags=re.MULTILINE)
    facts = dict(line.split("=", 1) for line in head.split("\n") if "=" in line)
    outputs = int(facts.get("num_tree_per_iteration", 1))
    assert len(facts.get("tree_sizes", "1 " * len(blocks)).split()) == len(blocks), "lost trees"
    sums = np.zeros((len(X), outputs))
    for k, block in enumerate(blocks):
        pairs = (line.partition("=") for line in block.split("\n"))
        tree = {a.strip(): b.split() for a, _, b in pairs}
        value = [float(v) for v in tree["leaf_value"]]
        for i, row in enumerate(X):
            node = 0 if int(tree["num_leaves"][0]) > 1 else -1
            while node >= 0:
                x = float(row[int(tree["split_feature"][node])])
                kind = int(tree["decision_type"][node])
                missing = (kind >> 2) & 3
                x = 0.0 if math.isnan(x) and missing < 2 else x
                left = x <= float(tree["threshold"][node])
                if math.isnan(x) or (missing == 1 and x == 0):
                    left = bool(kind & 2)
                node = int(tree["left_child" if left else "right_child"][node])
            sums[i, k % outputs] += value[-node - 1]
    return sums


def _xgboost(document: Any, X: np.ndarray) -> np.ndarray | None:
    learner = document["learner"]
    booster = learner["gradient_booster"]
    if booster["name"] != "gbtree":
        return None
    outputs = max(1, int(learner["learner_model_param"]["num_class"]))
    sums = np.zeros((len(X), outputs))
    for k, tree in zip(booster["model"]["tree_info"], booster["model"]["trees"], strict=True):
        for i, row in enumerate(X):
            node = 0
            while int(tree["left_children"][node]) >= 0:
                x = row[int(tree["split_indices"][node])]
                limit = np.float32(float(tree["split_conditions"][node]))
                left = int(tree["default_left"][node]) != 0 if np.isnan(x) else x < limit
                node = int(tree["left_children" if left else "right_children"][node])
            sums[i, int(k)] += float(np.float32(float(tree["split_conditions"][node])))
    base = learner["learner_model_param"]["base_score"]
    base = json.loads(base) if isinstance(base, str) else base
    base = np.ravel(base).astype(float)
    name = learner["objective"]["name"]
    if name == "binary:logistic":
        base = np.log(base / (1 - base))
    elif name in ("count:poisson", "reg:gamma", "reg:tweedie"):
        base = np.log(base)
    return sums + base


def _catboost(document: Any, X: np.ndarray) -> np.ndarray | None:
    if "oblivious_trees" not in document:
        return None
    columns = {int(f["feature_index"]): f for f in document["features_info"]["float_features"]}
    scale, bias = document["scale_and_bias"]
    sums = np.zeros((len(X), len(bias)))
    for tree in document["oblivious_trees"]:
        values = np.array(tree["leaf_values"], dtype=float).reshape(-1, len(bias))
        for i, row in enumerate(X):
            leaf = 0
            for level, split in enumerate(tree.get("splits") or ()):
                about = columns[int(split["float_feature_index"])]
                x = row[int(about["flat_feature_index"])]
                above = x > np.float32(float(split["border"]))
                if np.isnan(x):
                    above = about.get("nan_value_treatment") == "AsTrue"
                leaf |= int(above) << level
            sums[i] += values[leaf]
    return float(scale) * sums + np.array(bias, dtype=float)
