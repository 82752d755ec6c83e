"""CatBoost's JSON model: oblivious trees, and the plain trees of other growing policies.

A split's bit is x > border, in float32. Missing values follow the feature's treatment: below every
border, above every border, or compared as NaN, which is never above. In an oblivious tree every row
evaluates one split per level, level i giving bit i of the leaf's number. As a binary tree it has
the last level at the root, and each path has every split.

With K classes a leaf holds a vector of K values.

A split on a category (``one_hot_max_size``) compares hashes with that of one text. A file has the
texts only if it was written with the training's ``pool``.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from bench_trees.arrays import Float64Array
from bench_trees.ensemble import Ensemble
from bench_trees.importers.categories import CategorySplit, ChainOf, by_codes, spelt_out
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
_WORD = 0xFFFFFFFF  # hashes have 32 bits, with or without a sign
_MISSING = ("", "nan", "NaN", "None")  # texts that programs make of missing cells


@complete("CatBoost")
def from_catboost(document: Mapping[str, Any]) -> Imported:
    """The trees of a parsed model; raises a one-line ModelError for anything else."""
    loss = str(document["model_info"]["params"]["loss_function"]["type"])
    if loss not in _KINDS:
        raise ModelError(f"its loss {loss!r} is not one that can be imported")
    columns = _columns(document["features_info"])
    scale, bias = document["scale_and_bias"]
    outputs = len(bias)
    base, factor = np.asarray(bias, np.float64), float(scale)
    grow = _oblivious if "oblivious_trees" in document else _plain
    described = document.get("oblivious_trees", document.get("trees"))
    trees, tables, rows = list[tuple[Tree, dict[int, CategorySplit]]](), [], 0
    for described_tree in described:
        tree, splits, leaves = grow(described_tree, columns, outputs)
        number = tree.value.astype(np.int64)
        values = factor * leaves[number, 0] if outputs == 1 else rows + tree.value
        trees.append((replace(tree, value=values), splits))
        tables.append(leaves)
        rows += len(leaves)

    def spell(
        chain_of: ChainOf, features: int, counts: Mapping[int, int]
    ) -> tuple[Ensemble, Float64Array]:
        spelt = [
            spelt_out(tree, {n: chain_of(split) for n, split in splits.items()}, t)
            for t, (tree, splits) in enumerate(trees)
        ]
        ensemble, limits = flat(spelt, [0] * len(trees), base, features)
        return (ensemble if outputs == 1 else ensemble.with_vectors(vectors)), limits

    vectors = factor * np.concatenate([np.zeros((0, outputs)), *tables])
    ensemble, limits = spell(by_codes, columns.width, {})
    link = "exp" if loss in _LOGARITHMIC else "identity"
    link = "sigmoid" if loss == "MultiClassOneVsAll" else link
    listed = document["model_info"].get("class_params", {}).get("class_names", ())
    classes = tuple(c if isinstance(c, str) else f"{float(c):.15g}" for c in listed)
    kind = _KINDS[loss]
    model = Imported(ensemble, limits, kind, "CatBoost", columns.names, link=link, classes=classes)
    texts = {m: tuple(texts.values()) for m, texts in columns.categories}
    return replace(model, categories=texts, spell=spell) if texts else model


class _Columns(NamedTuple):
    """Features by their places in the table."""

    width: int
    names: tuple[str, ...]  # if all have one
    numbers: list[tuple[int, bool]]  # place, and True if NaN is above every border
    categories: list[tuple[int, dict[int, str]]]  # place, texts by hash


def _columns(info: Mapping[str, Any]) -> _Columns:
    for kind in ("text_features", "embedding_features"):
        if info.get(kind):
            raise ModelError(f"it has {kind.replace('_', ' ')}, which cannot be imported")
    numbers, categories = (
        sorted(info.get(f"{kind}_features") or (), key=lambda f: int(f["feature_index"]))
        for kind in ("float", "categorical")
    )
    by_place = {int(f["flat_feature_index"]): f for f in (*numbers, *categories)}
    if sorted(by_place) != list(range(len(numbers) + len(categories))):
        raise ModelError("its features are not numbered from 0 without gaps")
    names = tuple(str(by_place[m].get("feature_id") or "") for m in range(len(by_place)))
    texts = {int(t["hash"]): str(t["value"]) for t in info.get("cat_features_hash") or ()}
    places = [int(f["flat_feature_index"]) for f in (*numbers, *categories)]
    hashes = [[int(v) & _WORD for v in f.get("values") or ()] for f in categories]
    if any(value not in texts for of_feature in hashes for value in of_feature):
        raise ModelError(
            "it lacks the texts of its categories: write it with the training's pool, "
            "save_model('model.json', format='json', pool=pool)"
        )
    return _Columns(
        width=len(places),
        names=names if all(names) else (),
        numbers=[
            (place, f.get("nan_value_treatment") == "AsTrue")
            for place, f in zip(places, numbers, strict=False)
        ],
        categories=[
            (place, {value: texts[value] for value in of_feature})
            for place, of_feature in zip(places[len(numbers) :], hashes, strict=True)
        ],
    )


def _split(
    split: Mapping[str, Any], columns: _Columns
) -> tuple[int, float, bool, CategorySplit | None]:
    """Column, border, True if NaN goes left (is not above), and a split on a category."""
    kind = split.get("split_type", "FloatFeature")
    if kind == "OneHotFeature":
        place, texts = columns.categories[int(split["cat_feature_index"])]
        code = [*texts].index(int(split["value"]) & _WORD)
        missing = [*texts.values()][code] in _MISSING
        return place, 0.0, not missing, CategorySplit(place, frozenset([code]), False, missing)
    if kind != "FloatFeature":
        raise ModelError(
            "it splits on statistics of categories, which cannot be imported: train it with "
            "one_hot_max_size of at least the number of categories"
        )
    place, above = columns.numbers[int(split["float_feature_index"])]
    return place, float(split["border"]), not above, None


def _oblivious(
    tree: Mapping[str, Any], columns: _Columns, outputs: int
) -> tuple[Tree, dict[int, CategorySplit], Float64Array]:
    """The tree, with leaf numbers as its leaf values, its splits on categories, and the leaves
    (2^depth, K)."""
    splits = [_split(s, columns) for s in tree.get("splits") or ()][::-1]  # the root is the last
    depth = len(splits)
    if depth > _DEEPEST:
        raise ModelError(f"a tree has {depth} levels; at most {_DEEPEST} are imported")
    leaves = np.asarray(tree["leaf_values"], np.float64).reshape(2**depth, outputs)
    inner = 2**depth - 1
    level = np.repeat(np.arange(depth), 2 ** np.arange(depth))  # of nodes in rows of the heap
    column, border, left = (np.array([s[i] for s in splits] + [0])[level] for i in range(3))
    ends, node = np.zeros(2**depth), np.arange(inner)
    on_categories = {n: split for n, k in enumerate(level.tolist()) if (split := splits[k][3])}
    grown = Tree(
        feature=np.concatenate([column, ends]),
        threshold=np.concatenate([border, ends]).astype(np.float32),
        left=np.concatenate([2 * node + 1, ends - 1]).astype(np.int64),
        right=np.concatenate([2 * node + 2, ends - 1]).astype(np.int64),
        missing_left=np.concatenate([left, ends]) != 0,
        value=np.concatenate([np.zeros(inner), np.arange(2**depth)]),
    )
    return grown, on_categories, leaves


def _plain(
    tree: Mapping[str, Any], columns: _Columns, outputs: int
) -> tuple[Tree, dict[int, CategorySplit], Float64Array]:
    """The same for nested splits."""
    nodes: list[list[Any]] = []
    on_categories: dict[int, CategorySplit] = {}
    leaves: list[Float64Array] = []
    waiting = [(tree, -1, 0)]  # node, place of its parent, parent's field for it
    while waiting:
        described, parent, side = waiting.pop()
        if parent >= 0:
            nodes[parent][side] = len(nodes)
        if "split" in described:
            column, border, left, on_category = _split(described["split"], columns)
            if on_category is not None:
                on_categories[len(nodes)] = on_category
            waiting += [(described["right"], len(nodes), 3), (described["left"], len(nodes), 2)]
            nodes.append([column, border, -1, -1, left, 0])
        else:
            nodes.append([-1, 0.0, -1, -1, False, len(leaves)])
            leaves.append(np.asarray(described["value"], np.float64).reshape(outputs))
    return Tree.of_nodes(nodes), on_categories, np.array(leaves)
