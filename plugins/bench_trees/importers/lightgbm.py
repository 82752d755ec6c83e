"""LightGBM's text model, as written by ``Booster.save_model`` and ``model_to_string``.

A row goes left iff x <= threshold, in float64; everything within 1e-35 of zero is read as zero.
Missing values follow a node's missing type. ``nan`` sends NaN to the default side. ``none`` reads
NaN as zero. ``zero`` sends NaN and zeros to the default side; if zero lies on the other side of the
threshold, that takes three of our splits (with copies of the branches). A split on categories sends
its set left, and all others and NaN right.
"""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bench_trees.arrays import Float64Array
from bench_trees.ensemble import LEAF, Ensemble
from bench_trees.importers.categories import (
    CategorySplit,
    Chain,
    ChainOf,
    Link,
    bits,
    by_codes,
    segments,
    spelt_out,
)
from bench_trees.importers.imported import (
    Imported,
    ModelError,
    Tree,
    at_most,
    complete,
    flat,
    interleaved,
    kinds_of,
)

_KINDS = {"custom": "", "none": "", "": ""} | kinds_of(
    regression="regression regression_l1 huber fair quantile mape poisson gamma tweedie",
    binary="binary cross_entropy",
    multiclass="multiclass multiclassova",
    ranking="lambdarank rank_xendcg",
)
_LOGARITHMIC = ("poisson", "gamma", "tweedie")

_ZERO = np.float32(1e-35)  # LightGBM's bound of zero, on both sides
_BELOW_ZERO = np.nextafter(-_ZERO, np.float32(-np.inf))
_NONE, _ZEROS = 0, 1  # missing types


@complete("LightGBM")
def from_lightgbm(text: str) -> Imported:
    """The trees of a model's text; raises a one-line ModelError for other text."""
    body, ended, end = text.replace("\r\n", "\n").partition("\nend of trees")
    head, *blocks = re.split(r"^Tree=\d+[ \t]*$", body, flags=re.M)
    if not head.startswith("tree\n"):
        raise ModelError("it does not begin like a LightGBM model")
    if not ended:
        raise ModelError("it is cut short: there is no line 'end of trees'")
    facts = _facts(head)
    listed = len(facts["tree_sizes"].split()) if "tree_sizes" in facts else max(1, len(blocks))
    if listed != len(blocks):
        raise ModelError(f"it lists {listed} trees and has {len(blocks)}")
    features = int(facts["max_feature_idx"]) + 1
    outputs = int(facts.get("num_tree_per_iteration", 1))
    scale, kind, link = _objective(facts.get("objective", ""))
    trees = [_tree(t, _facts(block), scale) for t, block in enumerate(blocks)]
    output = [t % outputs for t in range(len(trees))]
    interleaved(output, outputs)  # rejects an incomplete iteration

    def spell(
        chain_of: ChainOf, features: int, counts: Mapping[int, int]
    ) -> tuple[Ensemble, Float64Array]:
        spelt = []
        for t, (tree, apart, splits) in enumerate(trees):
            every = {**splits, **_sets(tree, apart, splits, counts)}
            chains = {**apart, **{n: chain_of(split) for n, split in every.items()}}
            spelt.append(spelt_out(tree, chains, t))
        return flat(spelt, output, np.zeros(outputs), features)

    ensemble, limits = spell(by_codes, features, {})
    used = {split.feature for _, _, splits in trees for split in splits.values()}
    names, average = tuple(facts.get("feature_names", "").split()), "average_output" in facts
    names = names if len(names) == features else ()
    ranges = _ranges(facts.get("feature_infos", ""), features)
    model = Imported(ensemble, limits, kind, "LightGBM", names, average, link, ranges)
    # of all columns of categories, also of those that are split by thresholds on their codes
    line = re.search(r"^pandas_categorical:(\[.*\])$", end, flags=re.M)
    names_of = tuple(map(tuple, json.loads(line[1]))) if line else ()
    if not used and not names_of:
        return model
    return replace(model, categories=dict.fromkeys(used, ()), listed=names_of, spell=spell)


def _sets(
    tree: Tree, apart: Collection[int], splits: Collection[int], counts: Mapping[int, int]
) -> dict[int, CategorySplit]:
    """Thresholds on codes as sets: the splits by node on features with ``counts`` of codes."""
    sets = {}
    for n in np.flatnonzero((tree.left >= 0) & np.isin(tree.feature, [*counts])).tolist():
        if n not in splits:
            missing, m = bool(tree.missing_left[n]), int(tree.feature[n])
            left = {code for code in range(counts[m]) if code <= tree.threshold[n]}
            if n in apart:  # zero goes where missing values go
                left = left | {0} if missing else left - {0}
            sets[n] = CategorySplit(m, frozenset(left), True, missing)
    return sets


def _ranges(text: str, features: int) -> Float64Array:
    """The lowest and highest value of each feature in training, (features, 2): ``[0.5:7] none``."""
    ranges = np.full((features, 2), np.nan)
    for j, info in enumerate(text.split()[:features]):
        if info.startswith("["):  # otherwise categories, or a constant
            ranges[j] = info.strip("[]").split(":")
    return ranges


def _facts(block: str) -> dict[str, str]:
    """``name=value`` lines; a bare name has the value ""."""
    pairs = (line.partition("=") for line in block.split("\n") if line.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _objective(text: str) -> tuple[float, str, str]:
    """The factor that makes raw scores log-odds, the kind of task and the link."""
    name, *options = text.split() or [""]
    if name not in _KINDS:
        raise ModelError(f"its objective {name!r} is not one that can be imported")
    if "sqrt" in options:
        raise ModelError("it was trained on square roots of the label (reg_sqrt)")
    scale = 1.0
    for option in options:
        if option.startswith("sigmoid:") and name in ("binary", "multiclassova"):
            scale = float(option.partition(":")[2])
    link = "exp" if name in _LOGARITHMIC else "identity"
    return scale, _KINDS[name], "sigmoid" if name == "multiclassova" else link


def _tree(
    number: int, facts: Mapping[str, str], scale: float
) -> tuple[Tree, dict[int, Chain], dict[int, CategorySplit]]:
    """A tree, the chains of its nodes that separate zeros, and its splits on categories."""
    leaves = int(facts["num_leaves"])
    if facts.get("is_linear", "0") != "0":
        raise ModelError(f"tree {number} has linear leaves, which cannot be imported")

    def numbers(name: str, dtype: Any, length: int = leaves - 1) -> Any:
        found = np.array(facts.get(name, "").split(), dtype)
        return found.reshape(length)

    value = scale * numbers("leaf_value", np.float64, leaves)
    if leaves == 1:
        return Tree.of_nodes([(LEAF, 0.0, LEAF, LEAF, False, value[0])]), {}, {}
    inner, kind = leaves - 1, numbers("decision_type", np.int64)
    threshold, feature = (numbers(n, t) for n, t in (("threshold", float), ("split_feature", int)))
    words = np.array(facts.get("cat_threshold", "").split(), np.int64)
    sets = segments(words, facts.get("cat_boundaries", "0").split())
    splits = {  # a cell's fraction is cut off, so -0.5 is category 0
        n: CategorySplit(int(feature[n]), bits(sets[int(threshold[n])]), True, False, lowest=-1.0)
        for n in np.flatnonzero(kind & 1).tolist()
    }
    missing, default = (kind >> 2) & 3, (kind & 2) > 0
    zeros = missing == _ZEROS
    zero_left = np.where(zeros, default, threshold >= 0)
    limit = at_most(threshold)
    near = (limit >= _BELOW_ZERO) & (limit <= _ZERO)  # to its edge: the band goes to one side
    limit, threshold = (
        np.where(near, np.where(zero_left, _ZERO, _BELOW_ZERO), t) for t in (limit, threshold)
    )
    ends = np.full(leaves, -1)
    children = [numbers(f"{side}_child", np.int64) for side in ("left", "right")]
    left, right = (np.where(c < 0, inner - 1 - c, c) for c in children)  # its leaf c is -c - 1
    tree = Tree(
        feature=np.concatenate([feature, ends]),
        threshold=np.concatenate([threshold, np.zeros(leaves)]),
        left=np.concatenate([left, ends]),
        right=np.concatenate([right, ends]),
        missing_left=np.concatenate([np.where(missing == _NONE, zero_left, default), ends > 0]),
        value=np.concatenate([np.zeros(inner), value]),
    )
    apart = zeros & ((limit > _ZERO) & ~default | (limit < _BELOW_ZERO) & default)
    apart &= (kind & 1) == 0
    chains = {
        n: _zeros_apart(int(feature[n]), limit[n], bool(default[n]))
        for n in np.flatnonzero(apart).tolist()
    }
    return tree, chains, splits


def _zeros_apart(feature: int, limit: float, default: bool) -> Chain:
    """Zeros (and NaN) go to the default side, between numbers that go to the other one::

    default right   x < zeros: left     zeros: right   zeros < x <= t: left   t < x: right
    default left    x <= t: left   t < x < zeros: right   zeros: left   zeros < x: right
    """
    edges = [limit, _BELOW_ZERO, _ZERO] if default else [_BELOW_ZERO, _ZERO, limit]
    a, b, c = map(float, edges)
    links: list[Link] = [
        (feature, a, True, None),
        (feature, b, False, None),
        (feature, c, True, False),
    ]
    return Chain(links, True, default)
