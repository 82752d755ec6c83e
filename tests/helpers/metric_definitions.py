"""Ranking metrics straight from their definitions, for one query in a given order, and their mean
over every order of tied documents. Slow and obvious: what the engine is held against."""

from itertools import permutations, product
from math import inf, log2

import numpy as np


def ndcg(grades, k):
    def dcg(order):
        return sum((2**g - 1) / log2(i + 2) for i, g in enumerate(order[:k]))

    return dcg(grades) / dcg(sorted(grades, reverse=True))


def precision(grades, k):
    return sum(g >= 1 for g in grades[:k]) / k


def ap(grades, k):
    relevant = [g >= 1 for g in grades]
    hits = [i for i, r in enumerate(relevant[:k]) if r]
    return sum(sum(relevant[: i + 1]) / (i + 1) for i in hits) / sum(relevant)


def leading_run_precision(grades, k):
    run = 0
    while run < min(k, len(grades)) and grades[run] >= 1:
        run += 1
    return 1.0 if run == len(grades) else run / k


def err(grades, k):
    value, goes_on = 0.0, 1.0
    for i, g in enumerate(grades[:k]):
        satisfied = (2**g - 1) / 2**4
        value += goes_on * satisfied / (i + 1)
        goes_on *= 1 - satisfied
    return value


def mrr(grades, k):
    places = [i + 1 for i, g in enumerate(grades) if g >= 1]
    return 1 / places[0] if places[0] <= (k or inf) else 0.0


DEFINITIONS = {
    "ndcg": ndcg,
    "precision": precision,
    "ap": ap,
    "leading_run_precision": leading_run_precision,
    "err": err,
    "mrr": mrr,
}
NEED_CUT_OFF = ("precision", "leading_run_precision")


def spelling(family, k, options=""):
    return family + (f"@{k}" if k else "") + (f"({options})" if options else "")


def copies(values, multiplicity):
    return [v for v, m in zip(values, multiplicity, strict=True) for _ in range(m)]


def orders(scores, grades):
    """The grades in every order that descending scores allow."""
    groups = [
        [g for s, g in zip(scores, grades, strict=True) if s == level]
        for level in sorted(set(scores), reverse=True)
    ]
    for parts in product(*(permutations(group) for group in groups)):
        yield [g for part in parts for g in part]


def expected(family, k, scores, grades):
    """Mean of the definition over all orders; 0 without a relevant document."""
    if max(grades) < 1:
        return 0.0
    return float(np.mean([DEFINITIONS[family](order, k) for order in orders(scores, grades)]))


def stable_order(scores, grades):
    """The grades by descending score, equal scores in row order."""
    ranks = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    return [grades[i] for i in ranks]
