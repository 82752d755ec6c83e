"""Splits on sets of categories, and others that need several thresholds, as chains of splits.

LightGBM and XGBoost test whether a row's category code is in a set. A chain tests one range of
codes after another, or, for one-hot columns, one feature of 0 and 1 after another. The branches
below are copied to every end of the chain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from bench_trees.importers.imported import ModelError, Tree, below

MOST_NODES = 20_000
"""Limit of one tree, copies included."""

Link = tuple[int, float, bool | None, bool | None]
"""Feature, threshold, and the outcome of rows at most and above it: None goes to the next link."""


@dataclass(frozen=True, slots=True)
class CategorySplit:
    """A split of a model's feature: the ``codes`` of the categories inside, their side, and True if
    missing values count as inside."""

    feature: int
    codes: frozenset[int]
    inside_left: bool
    missing_inside: bool
    lowest: float = 0.0  # the number just above which code 0 begins, if cells are truncated


@dataclass(frozen=True, slots=True)
class Chain:
    """Links in order; the last one has both outcomes. Outcomes are inside or not."""

    links: Sequence[Link]
    inside_left: bool
    missing_inside: bool
    apart: Sequence[int] = ()  # features of 0 and 1 of one column: at most one of them is 1


Known = Mapping[int, tuple[float, float, bool]]
"""Bounds on the rows of a branch by feature: above, up to, and True if some may be missing."""

ChainOf = Callable[[CategorySplit], Chain]


def by_codes(split: CategorySplit) -> Chain:
    """The chain for a column of the model's own codes, integers from 0."""
    codes = sorted(split.codes)
    runs: list[list[int]] = []
    for code in codes:
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    first = split.lowest if split.lowest < 0 else float(below(0.0))
    ranges = [(float(below(a)) if a else first, float(below(b + 1))) for a, b in runs]
    return by_ranges(split, split.feature, ranges)


def by_ranges(split: CategorySplit, feature: int, ranges: Iterable[tuple[float, float]]) -> Chain:
    """The chain for a column whose numbers in ``ranges`` (above low, up to high) are inside."""
    links: list[Link] = []
    for low, high in ranges:
        links += [(feature, low, False, None), (feature, high, True, None)]
    if links:
        links[-1] = (*links[-1][:3], False)
    return _chain(split, links, feature)


def by_columns(split: CategorySplit, inside: Sequence[int], column: Sequence[int]) -> Chain:
    """The chain for one-hot features: those ``inside``, of all features of the ``column``."""
    links: list[Link] = [(feature, 0.5, None, True) for feature in inside]
    if links:
        links[-1] = (inside[-1], 0.5, False, True)
    return replace(_chain(split, links, column[0]), apart=column)


def _chain(split: CategorySplit, links: list[Link], feature: int) -> Chain:
    nothing: Link = (feature, np.inf, False, split.missing_inside)
    return Chain(links or [nothing], split.inside_left, split.missing_inside)


_ANY = (-np.inf, np.inf, True)


def _within(chain: Chain, bounds: Known) -> tuple[list[Link], bool]:
    """The links that divide the rows of a branch; if there are none, the outcome of all rows."""
    links: list[Link] = []
    outcome = False
    for feature, threshold, low, high in chain.links:
        least, most, _ = bounds.get(feature, _ANY)
        if least < threshold < most:
            links.append((feature, threshold, low, high))
            continue
        forced = high if threshold <= least else low
        if forced is not None:
            outcome = forced
            break
    if links:
        feature, threshold, low, high = links[-1]
        links[-1] = (
            feature,
            threshold,
            outcome if low is None else low,
            outcome if high is None else high,
        )
    elif bounds.get(feature, _ANY)[2] and outcome != chain.missing_inside:
        links = [(feature, np.inf, outcome, chain.missing_inside)]
    return links, outcome


def bits(words: Sequence[int]) -> frozenset[int]:
    """The numbers of the bits set in words of 32."""
    return frozenset(
        32 * k + b for k, word in enumerate(words) for b in range(32) if int(word) >> b & 1
    )


def segments(values: Any, bounds: Any) -> list[Any]:
    """The parts of an array between bounds."""
    return [values[a:b] for a, b in pairwise(np.asarray(bounds, np.int64).tolist())]


def spelt_out(tree: Tree, chains: Mapping[int, Chain], number: int) -> Tree:
    """The tree with a chain in place of each of these nodes. Raises ModelError if too large."""
    if not chains:
        return tree
    nodes: list[list[Any]] = []
    feature, left, right = tree.feature.tolist(), tree.left.tolist(), tree.right.tolist()
    # node, place of its parent, parent's field for it, bounds there
    waiting: list[tuple[int, int, int, Known]] = [(0, -1, 0, {})]

    def put(link: Sequence[Any], missing_left: bool, node: int, parent: int, side: int) -> int:
        nodes.append([link[0], link[1], -1, -1, missing_left, tree.value[node]])
        if parent >= 0:
            nodes[parent][side] = len(nodes) - 1
        return len(nodes) - 1

    while waiting:
        node, parent, side, bounds = waiting.pop()
        if node not in chains:
            split = (feature[node], tree.threshold[node])
            place = put(split, bool(tree.missing_left[node]), node, parent, side)
            if left[node] >= 0:
                waiting += [(left[node], place, 2, bounds), (right[node], place, 3, bounds)]
            continue
        chain = chains[node]
        branch = {chain.inside_left: left[node], not chain.inside_left: right[node]}
        links, outcome = _within(chain, bounds)
        if not links:
            waiting.append((branch[outcome], parent, side, bounds))
        for link in links:
            f, threshold, low, high = link
            missing = chain.missing_inside
            missing_left = high != missing if low is None else low == missing
            parent = put(link, missing_left, node, parent, side)
            least, most, some = bounds.get(f, _ANY)
            below_it = {g: (*bounds.get(g, _ANY)[:2], some and missing_left) for g in chain.apart}
            above_it = dict.fromkeys(chain.apart, (-np.inf, 0.5, some and not missing_left))
            below_it = {**bounds, **below_it, f: (least, threshold, some and missing_left)}
            above_it = {**bounds, **above_it, f: (threshold, most, some and not missing_left)}
            for outcome_here, field, here in ((low, 2, below_it), (high, 3, above_it)):
                if outcome_here is None:
                    side, bounds = field, here
                else:
                    waiting.append((branch[outcome_here], parent, field, here))
        if len(nodes) > MOST_NODES:
            raise ModelError(
                f"tree {number} splits on too many categories: as splits on numbers it has over "
                f"{MOST_NODES} nodes; train with fewer in a split (max_cat_threshold) or leaves"
            )
    return Tree.of_nodes(nodes)
