"""Descriptive statistics of plugins/bench_datasets/yahoo/README.md: grades, queries, zeros, columns
by price, and the trees that plain boosting (LightGBM, no prices) needs to saturate. One minute:

    python tests/yahoo_sim_statistics.py
"""

import lightgbm
import numpy as np
from bench_datasets.yahoo import sim

from bench_core.metrics import Labels, parse_metric

SHAPE = {"objective": "regression", "num_leaves": 16, "max_depth": 4, "learning_rate": 0.1}
SETTINGS = SHAPE | {"max_bin": 127, "num_threads": 1, "verbose": -1}


def ndcg(data, scores):
    """The mean over queries."""
    labels = Labels(data.y, data.queries)
    return float(parse_metric("ndcg@5").judge(scores.astype(float), labels).values.mean())


def describe(data):
    """Of training rows of seed 0, no learner involved."""
    queries, zero, n = data.queries, (data.X == 0).mean(axis=0), len(data.y)
    print("grades in percent", np.round(100 * np.bincount(data.y.astype(int)) / n, 1))
    print(f"queries {len(queries)}, mean {queries.sizes.mean():.1f}, most {queries.sizes.max()}")
    print(f"zeros {zero.mean():.0%}, by column", np.quantile(zero, [0.25, 0.5, 0.75]).round(2))
    hidden = sim.hidden(0, 0, np.arange(n).astype("u8"), queries.index().astype("u8"))
    known = np.random.default_rng(0).random(n), sim.relevance(hidden)
    print("largest value", data.X.max())
    print("ndcg@5 of random and noiseless order", [round(ndcg(data, one), 2) for one in known])
    y, X = (  # less the mean of the query
        part - (np.add.reduceat(part, queries.boundaries[:-1]).T / queries.sizes).T[queries.index()]
        for part in (data.y, data.X)
    )
    strength = np.abs(y @ X) / np.sqrt((y**2).sum() * (X**2).sum(axis=0) + 1e-9)
    prices = sim.features().price.to_numpy()
    print("price; correlation within queries: median; best three; their ndcg@5")
    for price in np.unique(prices):
        own = np.flatnonzero(prices == price)
        best = own[np.argsort(-strength[own])][:3]
        found = [max(ndcg(data, x), ndcg(data, -x)) for x in data.X[:, best].T]
        print(price, *(np.round(v, 3) for v in (np.median(strength[own]), strength[best], found)))


describe(sim.generate(0, 0, 60000))
train, test = sim.generate(0, 0, 30000), sim.generate(0, 2, 6000)
model = lightgbm.train(SETTINGS, lightgbm.Dataset(train.X, train.y), 600)
for trees in (1, 25, 50, 100, 200, 600):
    read = (model.feature_importance(iteration=trees) > 0).sum()
    score = ndcg(test, model.predict(test.X, num_iteration=trees))
    print(f"{trees} trees: ndcg@5 {score:.3f}, {read} columns")
