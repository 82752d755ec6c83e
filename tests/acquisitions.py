"""Purchases until all that decides a row's label is bought, on Syn1 to Syn3:

    python tests/acquisitions.py [LEARNER ...] [--size SIZE] [--seed SEED]

The policies (by default tree-dime) are trained on the quick size, 15000 rows, or another one, and
asked for all features in their order.
"""

import argparse
from typing import Any

import numpy as np
from bench_datasets.acquisition.syn import RULES, Syn1, Syn2, Syn3

from bench_core import Features
from bench_core.conformance.tasks import fit
from bench_core.datasets.data_folder import DataFolder
from bench_core.plugins import load_registry

TERMS = {"a": (0, 1), "b": (2, 3, 4, 5), "c": (6, 7, 8, 9)}  # the features of each logit


def relevant(problem: Syn1, X: Any) -> Any:
    """The features (n, 11) that decide the label of each row: x11 and those of its logit."""
    below, above = (np.isin(range(11), (*TERMS[term], 10)) for term in RULES[problem.number - 1])
    return np.where(X[:, -1:] < 0, below, above)


def acquisitions(order: Any, relevant: Any) -> Any:
    """How many sensors each row (n,) has bought when its ``relevant`` set (n, s) is complete.

    ``order`` (n, s) is that of a ``Bill``: the step of each purchase, -1 for none. A row that never
    has them all counts as one that buys all s. The mean over test rows is the figure of SEFA's
    table, which asks every model for all features.
    """
    last = np.where(relevant, order, -1).max(axis=1)
    until = ((order >= 0) & (order <= last[:, None])).sum(axis=1)
    complete = (order >= 0).all(axis=1, where=relevant)
    return np.where(complete, until, order.shape[1])


def main() -> None:
    """Print a line for each policy and problem."""
    parser = argparse.ArgumentParser()
    parser.add_argument("learners", nargs="*", default=["tree-dime"])
    parser.add_argument("--size", default="quick")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    for problem in (Syn1(), Syn2(), Syn3()):
        data: Any = problem
        splits = problem.prepare(DataFolder(""), asked.size, 0, 0).complete(data.task)
        for name in asked.learners:
            learner: Any = load_registry().learners[name]
            model = fit(learner(), splits, seed=asked.seed)
            *_, last = model.predict_path(Features(splits.test.X))
            needed = acquisitions(last.bills["path"].order, relevant(problem, splits.test.X))
            print(f"{problem.name} {name}: {needed.mean():.3f}", flush=True)


if __name__ == "__main__":
    main()
