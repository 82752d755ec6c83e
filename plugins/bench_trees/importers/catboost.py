"""CatBoost's JSON model: oblivious trees, and the plain trees of other growing policies.

A split's bit is x > border, in float32. Missing values follow the feature's treatment: below every
border, above every border, or compared as NaN, which is never above. In an oblivious tree every row
evaluates one split per level, level i giving bit i of the leaf's number. As a binary tree it has
the last level at the root, and each path has every split.

With K classes a leaf holds K values, stored in ``Imported.vectors``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bench_trees.arrays import Float64Array
from bench_trees.importers.imported import (
    Imported,
    ModelError,
    Tree,
    complete,
    flat,
    kinds_of,
)

_KINDS = kinds_of(
    regression="RMSE MAE Quantile Huber MAPE LogCosh Lq Expectile Poisson Tweedie",
    binary="Logloss CrossEntropy",
    multiclass="MultiClass MultiClassOneVsAll",
    ranking="QueryRMSE QuerySoftMax PairLogit PairLogitPairwise YetiRank YetiRankPairwise "
    "LambdaMart StochasticRank",
)
_LOGARITHMIC = ("Poisson", "Tweedie")
_DEEPEST = 16


@complete("CatBoost")
def from_catboost(document: Mapping[str, Any]) -> Imported:
    """The trees of a parsed model; raises a one-line ModelError for anything else."""
    loss = str(document["model_info"]["params"]["loss_function"]["type"])
    if loss not in _KINDS:
        raise ModelError(f"its loss {loss!r} is not one that can be imported")
    above, names = _columns(document["features_info"])
    scale, bias = document["scale_and_bias"]
    outputs = len(bias)
    base, factor = np.asarray(bias, np.float64), float(scale)
    grow = _oblivious if "oblivious_trees" in document else _plain
    described = document.get("oblivious_trees", document.get("trees"))
    trees, tables, rows = [], [], 0
    for described_tree in described:
        tree, leaves = grow(described_tree, above, outputs)
        number = tree.value.astype(np.int64)
        values = factor * leaves[number, 0] if outputs == 1 else rows + tree.value
        trees.append(replace(tree, value=values))
        tables.append(leaves)
        rows += len(leaves)
    ensemble, limits = flat(trees, [0] * len(trees), base, len(above))
    vectors = factor * np.concatenate([np.zeros((0, outputs)), *tables]) if outputs > 1 else None
    link = "exp" if loss in _LOGARITHMIC else "identity"
    link = "sigmoid" if loss == "MultiClassOneVsAll" else link
    listed = document["model_info"].get("class_params", {}).get("class_names", ())
    classes = tuple(c if isinstance(c, str) else f"{float(c):.15g}" for c in listed)
    kind = _KINDS[loss]
    return Imported(ensemble, limits, kind, "CatBoost", names, vectors, link=link, classes=classes)


def _columns(info: Mapping[str, Any]) -> tuple[list[bool], tuple[str, ...]]:
    """True for float features with NaN above every border; the names if all have one."""
    for kind in ("categorical_features", "text_features", "embedding_features"):
        if info.get(kind):
            raise ModelError(f"it has {kind.replace('_', ' ')}, which cannot be imported")
    columns = sorted(info["float_features"], key=lambda f: int(f["feature_index"]))
    if [int(f["flat_feature_index"]) for f in columns] != list(range(len(columns))):
        raise ModelError("its features are not numbered from 0 without gaps")
    above = [f.get("nan_value_treatment") == "AsTrue" for f in columns]
    names = tuple(str(f.get("feature_id") or "") for f in columns)
    return above, names if all(names) else ()


def _split(split: Mapping[str, Any], above: Sequence[bool]) -> tuple[int, float, bool]:
    """Column, border, and True if NaN goes left (is not above)."""
    if split.get("split_type", "FloatFeature") != "FloatFeature":
        raise ModelError("it has a categorical split, which cannot be imported")
    own = int(split["float_feature_index"])
    return own, float(split["border"]), not above[own]


def _oblivious(
    tree: Mapping[str, Any], above: Sequence[bool], outputs: int
) -> tuple[Tree, Float64Array]:
    """The tree, with leaf numbers as its leaf values, and the leaves (2^depth, K)."""
    splits = [_split(s, above) for s in tree.get("splits") or ()][::-1]  # the root is the last
    depth = len(splits)
    if depth > _DEEPEST:
        raise ModelError(f"a tree has {depth} levels; at most {_DEEPEST} are imported")
    leaves = np.asarray(tree["leaf_values"], np.float64).reshape(2**depth, outputs)
    inner = 2**depth - 1
    level = np.repeat(np.arange(depth), 2 ** np.arange(depth))  # of nodes in rows of the heap
    column, border, left = (np.array([s[i] for s in splits] + [0])[level] for i in range(3))
    ends, node = np.zeros(2**depth), np.arange(inner)
    return Tree(
        feature=np.concatenate([column, ends]),
        threshold=np.concatenate([border, ends]).astype(np.float32),
        left=np.concatenate([2 * node + 1, ends - 1]).astype(np.int64),
        right=np.concatenate([2 * node + 2, ends - 1]).astype(np.int64),
        missing_left=np.concatenate([left, ends]) != 0,
        value=np.concatenate([np.zeros(inner), np.arange(2**depth)]),
    ), leaves


def _plain(
    tree: Mapping[str, Any], above: Sequence[bool], outputs: int
) -> tuple[Tree, Float64Array]:
    """The same for nested splits."""
    nodes: list[list[Any]] = []
    leaves: list[Float64Array] = []
    waiting = [(tree, -1, 0)]  # node, place of its parent, parent's field for it
    while waiting:
        described, parent, side = waiting.pop()
        if parent >= 0:
            nodes[parent][side] = len(nodes)
        if "split" in described:
            column, border, left = _split(described["split"], above)
            waiting += [(described["right"], len(nodes), 3), (described["left"], len(nodes), 2)]
            nodes.append([column, border, -1, -1, left, 0])
        else:
            nodes.append([-1, 0.0, -1, -1, False, len(leaves)])
            leaves.append(np.asarray(described["value"], np.float64).reshape(outputs))
    return Tree.of_nodes(nodes), np.array(leaves)
