"""Purchases until all that decides a row's label is bought, on Syn1 to Syn3:

    python tests/acquisitions.py [LEARNER ...] [--size SIZE] [--seed SEED]

The policies (by default tree-dime) are trained on the quick size, 15000 rows, or another one, and
asked for all features in their order.
"""

import argparse
from typing import Any

from bench_datasets.acquisition.syn import Syn1, Syn2, Syn3, acquisitions

from bench_core import Features
from bench_core.conformance.tasks import fit
from bench_core.datasets.data_folder import DataFolder
from bench_core.plugins import load_registry


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
            needed = acquisitions(last.bills["path"].order, problem.relevant(splits.test.X))
            print(f"{problem.name} {name}: {needed.mean():.3f}", flush=True)


if __name__ == "__main__":
    main()
