"""``budget-boosting`` against five yardsticks at five budgets on every real set at hand:

    BENCH_TEST_DATA=DATA python tests/budget_cells.py [SET ...] [--set key=value ...]

A set is NAME or NAME/PROFILE, quick where none is given, or a FILE.csv whose last column is the
class: 60% of its rows train and 20% are validated on, each feature costs 1. The configurations of a
learner are pooled. Budgets are five, spread evenly by factor from the cheapest feature to all of
them. At each a learner takes its point of best validation quality whose mean validation cost is
within the budget (of equals the cheapest), and is judged on test rows. A difference is more than
noise where 95% of 500 paired resamples of the test rows or queries have its sign: ``+``, ``-``,
else ``=``. Yardsticks that are not installed are left out.
"""

import ast
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from helpers.real_cases import DATA, documents

from bench_core import Examples, Queries, SensorPrices, Splits, Task, UsageError
from bench_core.conformance.cases import fit
from bench_core.datasets.cache import prepare
from bench_core.datasets.data_folder import DataFolder
from bench_core.execution.predict import predict_split
from bench_core.metrics import default_metric
from bench_core.metrics.frontier import best_within
from bench_core.plugins import load_registry

OURS = "budget-boosting"
SEEDS = {"hepatitis": 8, "breast-cancer": 2, "ranking": 2}  # sets whose test rows are few
SETS = (*SEEDS, "thyroid", "digits", "letters", "forest/standard", "letters-26")
YARDSTICKS = (
    *("lightgbm-cegb", "forward-selection", "selection-cascade", "cost-tree"),
    "confidence-cascade",
)
BUDGETS = 5
RESAMPLES = 500
FEW_ROWS = 2000


def configurations(name, rows):
    """What is pooled for a learner on a set of so many training rows."""
    least = {"min_rows": 5 if rows < FEW_ROWS else 20}
    grids = {
        "lightgbm-cegb": [
            *({**least, "tradeoff": t} for t in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)),
            *({**least, "tradeoff": t, "learning_rate": 0.3} for t in (0.03, 0.3)),
        ],
        "forward-selection": [{}, {"leaves": 64} if rows > FEW_ROWS else {"min_rows": 5}],
        "cost-tree": [
            *({"criterion": c} for c in ("cs-id3", "idx", "eg2")),
            {"price_power": 0.0},
        ],
    }
    return grids.get(name, [{}])


def splits_of(name, seed):
    """The three splits of a data set (NAME or NAME/PROFILE), or of the ranking sample."""
    if name.endswith(".csv"):
        return _of_file(name, seed)
    if name != "ranking":
        name, _, profile = name.partition("/")
        dataset = load_registry().dataset(name)()
        return prepare(dataset, profile or "quick", 0, seed, DataFolder(DATA)).splits
    known, test, prices = documents()
    assert known.queries is not None
    order = np.random.default_rng(seed).permutation(len(known.queries))
    cut = 3 * len(order) // 4
    train, valid = (_queries(known, np.sort(part)) for part in (order[:cut], order[cut:]))
    return Splits(train, valid, test, prices=prices, task=Task.RANKING, classes=0)


def _of_file(name, seed):
    table = pd.read_csv(name)
    classes, y = np.unique(table.pop(table.columns[-1]).astype(str), return_inverse=True)
    X, order = table.to_numpy(np.float32), np.random.default_rng(seed).permutation(len(table))
    cuts = (np.array([0.6, 0.8]) * len(order)).astype(int)
    parts = (Examples(X[rows], y[rows].astype(float)) for rows in np.split(order, cuts))
    task = Task.MULTICLASS if len(classes) > 2 else Task.BINARY
    prices = SensorPrices.additive(np.ones(X.shape[1]))
    return Splits(*parts, prices=prices, task=task, classes=len(classes))


def _queries(known, chosen):
    assert known.queries is not None
    rows = np.isin(known.queries.index(), chosen)
    return Examples(known.X[rows], known.y[rows], Queries.from_sizes(known.queries.sizes[chosen]))


@dataclass(frozen=True)
class Points:
    """All operating points of a learner: validation cost and quality (p,), test values (p, m)."""

    cost: Any
    quality: Any
    values: Any
    weights: Any
    seconds: float = 0.0

    @classmethod
    def of(cls, name, settings, splits):
        """One configuration, fitted."""
        metric, start = default_metric(splits.task), time.perf_counter()
        model = fit(load_registry().learner(name)(**settings), splits)
        seconds, found = time.perf_counter() - start, []
        for part in (splits.valid, splits.test):
            path = predict_split(model, part, splits.costs, splits.classes)
            judged = [
                metric.values(np.asarray(s), part.y, part.queries, part.multiplicity)
                for s in path.scores
            ]
            found.append((path.cost.mean(axis=1), judged))
        (cost, valid), (_, test) = found
        sign = 1 if metric.higher_is_better else -1
        quality = np.array([sign * own.mean for own in valid])
        values = sign * np.array([own.values for own in test])
        return cls(cost, quality, values, test[0].weights, seconds)

    @classmethod
    def pooled(cls, parts):
        """Those of several configurations."""
        cost, quality, values = (
            np.concatenate([getattr(p, n) for p in parts]) for n in ("cost", "quality", "values")
        )
        return cls(cost, quality, values, parts[0].weights, sum(p.seconds for p in parts))

    def at(self, budget):
        """Test values (m,) of what is chosen for a budget, None where nothing is within it."""
        point = int(best_within(self.cost, self.quality[None], budget)[0])
        return self.values[point] if point >= 0 else None


def difference(one, other, weights):
    """Mean of one - other over test rows (m,), and its sign if it is more than noise."""
    gap, rng = one - other, np.random.default_rng(0)
    drawn = rng.integers(0, len(gap), (RESAMPLES, len(gap)))
    means = (gap[drawn] * weights[drawn]).sum(axis=1) / weights[drawn].sum(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    sign = "+" if low > 0 else "-" if high < 0 else "="
    return float(gap @ weights / weights.sum()), sign


def main(words):
    """Print the cells of these sets, and what each yardstick comes to."""
    names, ours = list(words), {}
    if "--set" in names:
        place = names.index("--set")
        pairs = (word.partition("=") for word in names[place + 1 :])
        ours, names = {k: ast.literal_eval(v) for k, _, v in pairs}, names[:place]
    totals = {}
    for name in names or SETS:
        for other, found in cells_of(name, ours).items():
            totals.setdefault(other, []).append(found)
    for other, sets in totals.items():
        mean = np.mean([np.mean([gap for gap, _ in found]) for found in sets])
        signs = [sign for found in sets for _, sign in found]
        counts = " ".join(f"{signs.count(sign)} {sign}" for sign in "+=-")
        print(f"against {other}: {mean:+.4f} on average over {len(sets)} sets; cells {counts}")


def cells_of(name, ours):
    """By yardstick the cells of a set, all its seeds; printed on the way."""
    found = {}
    for seed in range(SEEDS.get(name, 3 if name.endswith(".csv") else 1)):
        splits = splits_of(name, seed)
        price = splits.prices.feature_price()
        budgets = np.geomspace(price[price > 0].min(), splits.prices.everything, BUDGETS)
        own = Points.of(OURS, ours, splits)
        print(f"{name} {seed}: {OURS} in {own.seconds:.0f} s")
        for other in YARDSTICKS:
            if (theirs := _yardstick(other, splits)) is None:
                continue
            line = []
            for budget in budgets:
                one, two = own.at(budget), theirs.at(budget)
                if one is None or two is None:
                    line.append(f"{budget:.4g}: -")
                    continue
                cell = difference(one, two, own.weights)
                found.setdefault(other, []).append(cell)
                means = (float(np.average(v, weights=own.weights)) for v in (one, two))
                line.append(f"{budget:.4g}: " + "/".join(f"{m:.4f}" for m in means) + cell[1])
            print(f"  {other} in {theirs.seconds:.0f} s  ", "  ".join(line), flush=True)
    return found


def _yardstick(name, splits):
    try:
        learner = load_registry().learner(name)
    except UsageError:
        return None
    if splits.task not in learner.tasks:
        return None
    settings = configurations(name, len(splits.train))
    return Points.pooled([Points.of(name, how, splits) for how in settings])


if __name__ == "__main__":
    main(sys.argv[1:])
