"""XGBoost's JSON model (also read from UBJ), boosters ``gbtree`` and ``dart``.

A row goes left iff x < condition in float32, which is x <= the next lower float32; NaN goes to the
default side. A split on categories sends its set right. ``base_score`` is stored after the link (a
probability for ``binary:logistic``, a mean for a logarithmic link), one number or one per class.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bench_trees.arrays import Float64Array
from bench_trees.ensemble import Ensemble
from bench_trees.importers.categories import (
    CategorySplit,
    ChainOf,
    by_codes,
    segments,
    spelt_out,
)
from bench_trees.importers.imported import (
    Imported,
    ModelError,
    Tree,
    below,
    complete,
    flat,
    interleaved,
    kinds_of,
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
    """The trees of a parsed model; raises a one-line ModelError for anything else."""
    learner = document["learner"]
    about, objective = learner["learner_model_param"], str(learner["objective"]["name"])
    if objective not in _KINDS:
        raise ModelError(f"its objective {objective!r} is not one that can be imported")
    if int(about.get("num_target", 1)) > 1:
        raise ModelError("it has several targets, which cannot be imported")
    features, outputs = int(about["num_feature"]), max(1, int(about["num_class"]))
    model, trees = _trees(learner["gradient_booster"])
    output = np.asarray(model["tree_info"], np.int64).tolist()
    order = interleaved(output, outputs)
    base = _base(about["base_score"], objective, outputs)

    def spell(
        chain_of: ChainOf, features: int, counts: Mapping[int, int]
    ) -> tuple[Ensemble, Float64Array]:
        spelt = [
            spelt_out(trees[t][0], {n: chain_of(own) for n, own in trees[t][1].items()}, t)
            for t in order
        ]
        return flat(spelt, [output[t] for t in order], base, features)

    ensemble, limits = spell(by_codes, features, {})
    used = {own.feature for _, splits in trees for own in splits.values()}
    names = tuple(map(str, learner.get("feature_names") or ()))
    names = names if len(names) == features else ()
    link = "exp" if objective in _LOGARITHMIC else "identity"
    found = Imported(ensemble, limits, _KINDS[objective], "XGBoost", names, link=link)
    if not used:
        return found
    return replace(found, categories=_categories(model.get("cats") or {}, used), spell=spell)


def _categories(document: Mapping[str, Any], used: Collection[int]) -> dict[int, tuple[Any, ...]]:
    """The names of the categories of each used feature: texts, or numbers."""
    categories = dict.fromkeys(used, tuple[Any, ...]())
    for m, encoder in enumerate(document.get("enc") or ()):
        if m in used and "offsets" in encoder:
            data = bytes(np.asarray(encoder["values"], np.int64).astype(np.uint8).tobytes())
            categories[m] = tuple(part.decode() for part in segments(data, encoder["offsets"]))
        elif m in used:
            categories[m] = tuple(np.asarray(encoder["values"]).tolist())
    return categories


def _trees(
    booster: Mapping[str, Any],
) -> tuple[Mapping[str, Any], list[tuple[Tree, dict[int, CategorySplit]]]]:
    """The model of a booster, and its trees with their weights and their splits on categories."""
    dart = booster["name"] == "dart"
    if not dart and booster["name"] != "gbtree":
        raise ModelError(f"its booster is {booster['name']!r}, not one of trees")
    model = (booster["gbtree"] if dart else booster)["model"]
    weights = booster["weight_drop"] if dart else [1.0] * len(model["trees"])
    trees = zip(model["trees"], weights, strict=True)
    return model, [_tree(tree, float(weight)) for tree, weight in trees]


def _base(text: Any, objective: str, outputs: int) -> Float64Array:
    """Raw scores (K,) of the constant."""
    read = json.loads(text) if isinstance(text, str) else text
    score = np.array(np.broadcast_to(np.asarray(read, np.float64), outputs))
    with np.errstate(all="ignore"):
        if objective == "binary:logistic":
            score = np.log(score / (1 - score))
        elif objective in _LOGARITHMIC:
            score = np.log(score)
    if not np.isfinite(score).all():
        raise ModelError(f"its base_score {text!r} is out of range for {objective}")
    return score


def _tree(tree: Mapping[str, Any], weight: float) -> tuple[Tree, dict[int, CategorySplit]]:
    if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        raise ModelError("its leaves are vectors (multi_output_tree), which cannot be imported")
    condition = np.asarray(tree["split_conditions"], np.float64)
    feature, default = (np.asarray(tree[n], np.int64) for n in ("split_indices", "default_left"))
    codes = np.asarray(tree.get("categories", ()), np.int64)
    where = zip(
        *(tree.get(f"categories_{n}", ()) for n in ("nodes", "segments", "sizes")), strict=True
    )
    splits = {
        int(node): CategorySplit(
            feature=int(feature[node]),
            codes=frozenset(codes[start : start + size].tolist()),
            inside_left=False,
            missing_inside=not default[node],
        )
        for node, start, size in where
    }
    if np.count_nonzero(tree["split_type"]) != len(splits):
        raise ModelError("its splits on categories lack their categories")
    binary_tree = Tree(
        feature=feature,
        threshold=below(condition),
        left=np.asarray(tree["left_children"], np.int64),
        right=np.asarray(tree["right_children"], np.int64),
        missing_left=default != 0,
        value=weight * condition.astype(np.float32).astype(np.float64),
    )
    return binary_tree, splits
