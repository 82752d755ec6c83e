"""The named model on test rows that it has not seen: on five divisions of five data sets its total
cost is not above that of trees that are blind to costs and of cost-sensitive trees, each at its
least total cost on validation, of the best constant, which buys nothing, and of buying all."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, make_classification

import bench_core
from bench_core.results.operating_points import best_points, operating_points

SEEDS = range(5)
RIVALS = ("gbrt", "cost-tree", "constant")
LEARNERS = {
    "gbrt": {"trees": 100, "min_rows": 5},
    "cost-tree": {"min_rows": 5, "price_power": [0.0, 1.0]},
    "budget-boosting": {},
    "constant": {},
}
TURNEY = (50, 500, 5000)
"""Three of the seven costs of an error in Turney (1995), section 4.1.1, in dollars."""


def _shipped(name, size="quick"):
    """Rows, labels and prices of a shipped data set, all splits together."""

    def read(folder):
        from bench_core.datasets.data_folder import DataFolder
        from bench_core.plugins import load_registry

        splits = load_registry().datasets[name]().prepare(DataFolder(folder), size, 0, 0)
        parts = splits.train, splits.valid, splits.test
        X = np.concatenate([part.X for part in parts])
        return X, np.concatenate([part.y for part in parts]).astype(int), splits.prices

    return read


def _cancer(folder):
    """Cheap means, dearer errors and worst values; a miss costs ten false alarms."""
    X, y = load_breast_cancer(return_X_y=True)
    return X, 1 - y, np.repeat([1.0, 3.0, 5.0], 10)


def _spam(folder):
    """A lost mail costs ten that get through; words are cheap, runs of capitals are not."""
    rows = pd.read_csv(next((folder / "spambase").glob("*.csv"))).iloc[::3].to_numpy()
    return rows[:, :-1], rows[:, -1].astype(int), np.repeat([1.0, 4.0], [48, 9])


def _classes(folder):
    """Three classes, of which the last is rare; its errors cost most."""
    X, y = make_classification(
        2000, 12, n_informative=6, n_classes=3, weights=[0.6, 0.3, 0.1], random_state=0
    )
    return X, y, np.resize([1.0, 2.0, 4.0], 12)


CASES = {
    "hepatitis": (_shipped("hepatitis"), TURNEY),
    "thyroid": (_shipped("thyroid"), TURNEY),
    "breast-cancer": (_cancer, ("20,200",)),
    "spambase": (_spam, ("100,10",)),
    "three classes": (_classes, ("[[0, 10, 20], [20, 0, 20], [90, 60, 0]]",)),
}


def totals(name, folder, seed):
    """Total costs on test by cost of errors: of the named model, of each rival and of buying all;
    one training for all costs."""
    read, errors = CASES[name]
    X, y, costs = read(folder)
    rng = np.random.default_rng(seed)
    parts = np.repeat(["train", "valid", "test"], [6, 2, 2])[rng.permutation(len(y)) % 10]
    how = {"executor": "inline"}
    data = {"X": X, "y": y, "split": parts, "costs": costs, "name": f"own {name}"}
    result = bench_core.run(**data, error_costs=errors[0], learners=LEARNERS, seeds=seed, **how)
    found = {}
    for cost in errors:
        if cost != errors[0]:
            result = bench_core.reprice(result.run, error_costs=cost, **how)
        (board,) = result._boards.values()
        points = operating_points(result.frame(), "total_cost")
        least = best_points(points, higher=False).set_index("learner")["test_quality"]
        named = result.best()
        everything, nothing = board.extremes
        found[cost] = {"named": named.quality, "learner": named.learner, "all": everything,
                       "nothing": nothing} | {rival: least[rival] for rival in RIVALS}  # fmt: skip
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_named_model_costs_least_in_truth(name, real_data, elsewhere, capsys):
    runs = [totals(name, real_data, seed) for seed in SEEDS]
    lines, worse = [], []
    for cost in CASES[name][1]:
        table = pd.DataFrame([run[cost] for run in runs])
        mean = table.drop(columns="learner").mean()
        names = ", ".join(f"{n} {k}" for n, k in table["learner"].value_counts().items())
        figures = "  ".join(f"{key} {value:9.2f}" for key, value in mean.items())
        lines.append(f"{name} {cost!s:>7}  {figures}  ({names})")
        for rival in (*RIVALS, "all", "nothing"):
            gap = table["named"] - table[rival]  # two standard errors over the divisions
            if gap.mean() > 2 * gap.std() / len(gap) ** 0.5 + 0.01 * mean[rival]:
                worse.append((cost, rival, mean["named"], mean[rival]))
    with capsys.disabled():
        print("\n" + "\n".join(lines))
    assert not worse
