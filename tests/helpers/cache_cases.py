"""A data set that is prepared at once, and its entry in the cache."""

import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bench_core.costs.model import DiscountGroup, price_list
from bench_core.data import Examples, Queries, Task
from bench_core.datasets.cache import prepare
from bench_core.datasets.data_folder import DataFolder
from bench_core.splits import Splits


def made(scale, rows=4):
    def part(n):
        X = (np.arange(n * 3, dtype=np.float32) + n / 16).reshape(n, 3) * np.float32(scale)
        X[0, 0] = np.nan
        return Examples(
            X,
            np.arange(n, dtype=np.float64),
            Queries.from_sizes(np.array([n - 1, 1])),
            np.arange(1, n + 1),
        )

    prices = price_list(
        np.array([3.0, 4.0, 9.0]),
        discounted=[DiscountGroup((0, 1), (2.0, 3.0))],
        derived={2: (0, 1)},
        split=0.25,
        tree=0.1,
        unit="ms",
    )
    return Splits(
        part(rows), part(rows + 1), part(rows + 2), prices, Task.RANKING,
        feature_names=("x", "y", "z"), stand_in=True, notes=("a note",),
    )  # fmt: skip


@dataclass(frozen=True)
class Toy:
    scale: float = 1.0
    log: str = ""
    wait: float = 0.0

    name, task = "toy", Task.RANKING
    files = ("toy.data",)
    version = 1

    def prepare(self, source, size, fold, seed):
        with Path(self.log).open("a") as log:
            log.write(f"{size} {fold} {seed}\n")
        time.sleep(self.wait)
        return made(self.scale + seed)


def entry(folder, toy=None, **options):
    toy = toy or Toy()
    toy = replace(toy, log=str(folder / "log"))
    kept = prepare(toy, source=DataFolder(folder / "data"), cache_dir=folder / "cache", **options)
    return kept.path, kept.splits
