"""Growing a tree by brute force: every candidate of every open leaf, again for every choice.

Plain Python over rows and raw values; no bins, no histograms, no counters, no stored gains.
"""

import math
from dataclasses import dataclass, field

INFINITY = float("inf")


@dataclass
class Problem:
    """Rows as lists. ``needs[j]``: sensors of feature j; ``edges[j]``: thresholds to try."""

    X: list[list[float]]
    edges: list[list[float]]
    copies: list[int]
    needs: list[list[int]]
    coupled: list[float]
    lazy: list[float]
    split: list[float]
    order: str = "best"
    stop: str = "net"
    charge: str = "tree"
    max_depth: int | None = None
    max_leaves: int = 8
    min_rows: int = 1
    l2: float = 0.0
    bought: set[int] = field(default_factory=set)
    paid: set[tuple[int, int]] = field(default_factory=set)


@dataclass
class Cut:
    raw: float
    net: float
    feature: int
    threshold: float
    missing_left: bool


@dataclass
class Node:
    rows: list[int]
    depth: int
    place: str
    feature: int = -1
    threshold: float = 0.0
    missing_left: bool = False
    left: int = -1
    right: int = -1
    value: float = 0.0


def grow(p, g, h):
    """One tree; updates the problem's purchases and payments."""
    nodes = [Node(list(range(len(p.X))), 0, "")]
    tree_purchases = set()
    while sum(node.feature < 0 for node in nodes) < p.max_leaves:
        choice = _choose(p, nodes, g, h)
        if choice is None:
            break
        node, cut = choice
        node.feature, node.threshold = cut.feature, cut.threshold
        node.missing_left = cut.missing_left
        for k in p.needs[cut.feature]:
            (tree_purchases if p.charge == "node" else p.bought).add(k)
            p.paid |= {(i, k) for i in node.rows}
        goes_left = [_left(p.X[i][cut.feature], cut.threshold, cut.missing_left) for i in node.rows]
        node.left, node.right = len(nodes), len(nodes) + 1
        for side, letter in ((True, "l"), (False, "r")):
            rows = [i for i, left in zip(node.rows, goes_left, strict=True) if left == side]
            nodes.append(Node(rows, node.depth + 1, node.place + letter))
    p.bought |= tree_purchases
    for node in nodes:
        if node.feature < 0:
            G, H, _ = _sums(p, node.rows, g, h)
            node.value = -G / (H + p.l2)
    return nodes


def _choose(p, nodes, g, h):
    open_nodes = [
        node
        for node in nodes
        if node.feature < 0 and (p.max_depth is None or node.depth < p.max_depth)
    ]
    if p.order == "level":
        for node in sorted(open_nodes, key=lambda one: (one.depth, one.place)):
            cut = _best_cut(p, node, g, h)
            if cut is not None:
                return node, cut
        return None
    found = [(node, cut) for node in open_nodes if (cut := _best_cut(p, node, g, h)) is not None]
    return max(found, key=lambda pair: pair[1].net) if found else None  # the first on ties


def _best_cut(p, node, g, h):
    best = None
    for j in range(len(p.edges)):
        cut = _best_of_feature(p, node, j, g, h)
        if cut is None:
            continue
        G, H, _ = _sums(p, node.rows, g, h)
        if p.charge == "tree" and cut.raw <= 1e-12 * G * G / (H + p.l2):
            continue
        if best is None or cut.net > best.net:
            best = cut
    if best is not None and p.stop == "net" and p.charge == "tree" and best.net <= 0:
        return None
    return best


def _best_of_feature(p, node, j, g, h):
    G, H, N = _sums(p, node.rows, g, h)
    missing = [i for i in node.rows if math.isnan(p.X[i][j])]
    owed = sum(p.coupled[k] for k in p.needs[j] if k not in p.bought)
    owed += sum(
        p.lazy[k] * sum(p.copies[i] for i in node.rows if (i, k) not in p.paid) for k in p.needs[j]
    )
    owed += p.split[j] * N
    best = None
    for threshold in [*p.edges[j], INFINITY]:
        for missing_left in (False, True) if missing else (False,):
            left = [i for i in node.rows if _left(p.X[i][j], threshold, missing_left)]
            Gl, Hl, Nl = _sums(p, left, g, h)
            Gr, Hr, Nr = G - Gl, H - Hl, N - Nl
            if min(Nl, Nr) < p.min_rows or min(Hl, Hr) + p.l2 <= 0:
                continue
            raw = 0.5 * (Gl * Gl / (Hl + p.l2) + Gr * Gr / (Hr + p.l2) - G * G / (H + p.l2))
            if best is None or raw > best.raw:
                towards_more = missing_left if missing else Nl >= Nr
                best = Cut(raw, raw - owed, j, threshold, towards_more)
    return best


def _left(x, threshold, missing_left):
    return missing_left if math.isnan(x) else x <= threshold


def _sums(p, rows, g, h):
    return (
        sum(p.copies[i] * g[i] for i in rows),
        sum(p.copies[i] * h[i] for i in rows),
        sum(p.copies[i] for i in rows),
    )
