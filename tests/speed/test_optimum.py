"""The optimum of all thirty named problems: at most ten minutes on two cores."""

from __future__ import annotations

import time

import pytest
from bench_datasets.acquisition.bayes_net import BINARY, CLASSES

from bench_core import Prices
from bench_core.optimum import optimum_of

pytestmark = pytest.mark.speed


def test_the_optimum_of_all_problems() -> None:
    began = time.perf_counter()
    for name, problem in (BINARY | CLASSES).items():
        start = time.perf_counter()
        prices = Prices.additive([float(price) for price in problem.prices])
        caps = range(1, int(prices.everything) + 1)
        stated = optimum_of({"table": problem.table()}, prices, caps)
        took = time.perf_counter() - start
        print(f"{name}: {len(stated['accuracy'])} corners, {len(caps)} caps, {took:.2f} s")
    print(f"all: {time.perf_counter() - began:.1f} s")
    assert time.perf_counter() - began < 600
