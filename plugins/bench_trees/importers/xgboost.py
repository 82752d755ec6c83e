"""XGBoost's JSON model (also read from UBJ), boosters ``gbtree`` and ``dart``.

A row goes left iff x < condition in float32, which is x <= the next lower float32; NaN goes to
the default side. ``base_score`` is stored as what the link makes of it (a probability for
``binary:logistic``, a mean for a logarithmic link), one number or one per class.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_trees.arrays import Float64Array
from bench_trees.importers.imported import (
    MOST_OUTPUTS,
    Imported,
    ModelError,
    Tree,
    array,
    below,
    complete,
    flat,
    interleaved,
    kinds_of,
    whole,
)

_KINDS = kinds_of(
    regression="reg:squarederror reg:linear reg:absoluteerror reg:pseudohubererror "
    "reg:quantileerror count:poisson reg:gamma reg:tweedie",
    binary="binary:logistic binary:logitraw",
    multiclass="multi:softmax multi:softprob",
    ranking="rank:ndcg rank:map rank:pairwise",
)
_LOGARITHMIC = ("count:poisson", "reg:gamma", "reg:tweedie")


@complete("XGBoost")
def from_xgboost(document: Mapping[str, Any]) -> Imported:
    """The trees of a parsed model; ModelError in one line where it is none."""
    learner = document["learner"]
    about, objective = learner["learner_model_param"], str(learner["objective"]["name"])
    if objective not in _KINDS:
        raise ModelError(f"its objective {objective!r} is not one that can be imported")
    if whole(about.get("num_target", 1), "num_target", 0) > 1:
        raise ModelError("it has several targets, which cannot be imported")
    features = whole(about["num_feature"], "num_feature", 1)
    outputs = max(1, whole(about["num_class"], "num_class", 0, MOST_OUTPUTS))
    model, trees = _trees(learner["gradient_booster"])
    output = array(model["tree_info"], np.int64, len(trees), "tree_info").tolist()
    order = interleaved(output, outputs)
    base = _base(about["base_score"], objective, outputs)
    ensemble = flat([trees[t] for t in order], [output[t] for t in order], base, features)
    names = tuple(map(str, learner.get("feature_names") or ()))
    names = names if len(names) == features else ()
    link = "exp" if objective in _LOGARITHMIC else "identity"
    return Imported(ensemble, _KINDS[objective], "XGBoost", names, link=link)


def _trees(booster: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Tree]]:
    """The model of a booster, and its trees with their weights."""
    dart = booster["name"] == "dart"
    if not dart and booster["name"] != "gbtree":
        raise ModelError(f"its booster is {booster['name']!r}, not one of trees")
    model = (booster["gbtree"] if dart else booster)["model"]
    trees, weights = model["trees"], np.ones(len(model["trees"]))
    if dart:
        weights = array(booster["weight_drop"], np.float64, len(trees), "weight_drop")
    return model, [_tree(t, tree, weights[t]) for t, tree in enumerate(trees)]


def _base(text: Any, objective: str, outputs: int) -> Float64Array:
    try:
        read = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        raise ModelError(f"its base_score {text!r} is no number") from None
    values = read if isinstance(read, list) else [read]
    if len(values) == 1:
        values = values * outputs
    score = array(values, np.float64, outputs, "base_score")
    if objective == "binary:logistic":
        if not 0 < score[0] < 1:
            raise ModelError(f"its base_score {score[0]:g} is no probability")
        return np.array([math.log(score[0] / (1 - score[0]))])
    if objective in _LOGARITHMIC:
        if not score[0] > 0:
            raise ModelError(f"its base_score {score[0]:g} has no logarithm")
        score = np.log(score)
    return score


def _tree(number: int, tree: Mapping[str, Any], weight: float) -> Tree:
    about = tree["tree_param"]
    if whole(about.get("size_leaf_vector", 1), "size_leaf_vector", 0) > 1:
        raise ModelError("its leaves are vectors (multi_output_tree), which cannot be imported")
    count = len(tree["left_children"])
    if count == 0:
        raise ModelError(f"tree {number} has no nodes")

    def numbers(name: str, dtype: Any) -> NDArray[Any]:
        return array(tree[name], dtype, count, f"{name} of tree {number}")

    if bool(np.any(numbers("split_type", np.int64))) or len(tree.get("categories_nodes", ())):
        raise ModelError(f"tree {number} has a categorical split, which cannot be imported")
    condition = numbers("split_conditions", np.float64)
    return Tree(
        feature=numbers("split_indices", np.int64),
        threshold=below(condition),
        left=numbers("left_children", np.int64),
        right=numbers("right_children", np.int64),
        missing_left=numbers("default_left", np.int64) != 0,
        value=weight * condition.astype(np.float32).astype(np.float64),
    )
