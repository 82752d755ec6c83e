"""Small discrete problems, and every policy on them: no recursion of values, only enumeration."""

from itertools import pairwise, product

import numpy as np

from bench_core import DiscountGroup, price_list

# the numbers of values of each sensor's columns: so few that all policies can be listed
SHAPES = [
    [[2], [2], [2], [2]],
    [[2], [2], [2]],
    [[3], [2], [2]],
    [[3], [3], [2]],
    [[2, 2], [2], [2]],
    [[2, 2], [3]],
    [[2], [3], [2]],
    [[4]],
]
DISCOUNTED, OPEN = 3, 5  # problems with these numbers, modulo 8, have a discount, a free column


class Problem:
    """A random table (v1, .., vd, K), and prices of its sensors."""

    def __init__(self, number):
        rng = np.random.default_rng([number, 37])
        shape = SHAPES[number % len(SHAPES)]
        sizes = [size for own in shape for size in own]
        ends = np.cumsum([0, *map(len, shape)])
        groups = [list(range(a, b)) for a, b in pairwise(ends)]
        classes = int(rng.integers(2, 4))
        weight = rng.gamma(0.4, size=(*sizes, classes))  # few cells hold most
        weight[rng.random(weight.shape) < 0.2] = 0
        self.table = weight / weight.sum()
        cost = rng.integers(0 if number % 5 == 0 else 1, 6, len(shape)).astype(float)
        cost /= float(rng.choice([1, 1, 3]))
        price = np.concatenate([np.full(len(own), c) for own, c in zip(groups, cost, strict=True)])
        shared = [own for own in groups if len(own) > 1]
        if number % 8 == DISCOUNTED:
            rule = [DiscountGroup((0, 1), tuple(price[:2] - min(price[:2]) / 2))]
            self.prices = price_list(price, discounted=rule)
        elif number % 8 == OPEN:
            self.prices = price_list(price, shared=shared, derived={len(price) - 1: []})
        else:
            self.prices = price_list(price, shared=shared)
        # by hand: cost of the columns of each purchase after the purchases made
        self.purchases = groups
        self.needs = [
            frozenset(int(s) for j in own for s in self.prices.sensors_of(j)) for own in groups
        ]

    def rows(self):
        """All cells, and the probabilities (K,) of each."""
        return [(x, self.table[x]) for x in product(*map(range, self.table.shape[:-1]))]

    def policies(self):
        """Mean cost, highest cost of a row and accuracy of all policies."""
        return self._from(self.rows(), frozenset(), frozenset())

    def _from(self, rows, made, paid):
        mass = sum(p for _, p in rows)
        found = [(np.zeros(1), np.zeros(1), np.array([mass.max()]))]
        for k in set(range(len(self.purchases))) - made:
            new = self.needs[k] - paid
            price = float(sum(self.prices.sensor[s] for s in new))
            parts = {}
            for x, p in rows:
                parts.setdefault(tuple(x[j] for j in self.purchases[k]), []).append((x, p))
            cost, worst, quality = np.zeros(1), np.zeros(1), np.zeros(1)
            for part in parts.values():
                if sum(p.sum() for _, p in part) == 0:
                    continue
                c, w, q = self._from(part, made | {k}, paid | new)
                cost = np.add.outer(cost, c).ravel()
                worst = np.maximum.outer(worst, w).ravel()
                quality = np.add.outer(quality, q).ravel()
            found.append((cost + price * mass.sum(), worst + price, quality))
        return tuple(np.concatenate(one) for one in zip(*found, strict=True))


def best_mixture(cost, quality, budget):
    """The best mean quality of two policies, mixed so that their mean cost is within a budget."""
    order = np.lexsort((-quality, cost))
    hull = []
    for c, q in zip(cost[order].tolist(), quality[order].tolist(), strict=True):
        if hull and q <= hull[-1][1] + 1e-13:
            continue
        while len(hull) > 1:
            (a, b), (e, f) = hull[-2:]
            if (f - b) * (c - a) > (q - b) * (e - a):
                break
            hull.pop()
        hull.append((c, q))
    return float(np.interp(budget, *zip(*hull, strict=True)))
