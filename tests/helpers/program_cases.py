"""Programs of every form, a price list of every rule, and rows for them."""

from dataclasses import replace

import numpy as np
from bench_models.boosting import chain

from bench_core import DiscountGroup, price_list
from bench_core.serving import (
    REJECT,
    Finish,
    Folder,
    Kernel,
    Program,
    WeightedColumns,
    WeightedPrices,
)
from helpers.random_trees import random_ensemble, random_rows

D, ROWS = 8, 100
rng = np.random.default_rng(5)
X = random_rows(rng, ROWS, D)


def prices(**more):
    """Two features of one sensor, two at a discount, one derived from two others, one free."""
    return price_list(
        np.array([1.3, 2.7, 2.7, 5.0, 6.0, 0.0, 0.0, 9.1]),
        shared=[[1, 2]],
        discounted=[DiscountGroup((3, 4), (2.0, 3.0))],
        derived={6: (0, 3)},
        split=0.37,
        tree=0.11,
        multiplier=np.array([1.0, 1.25, 1.1, 3.0, 0.7, 1.0, 2.0, 1.0]),
        **more,
    )


def trees(outputs=1, count=40, leaves=12):
    """A chain of prefixes."""
    ensemble = random_ensemble(rng, trees=count, features=D, leaves=leaves, outputs=outputs)
    model = chain(ensemble, prices(), {})
    return model.program(model.points[-1].values)


def gated():
    """Stages with gates, columns, a running minimum and sums."""
    program = trees()
    columns = WeightedColumns(
        np.array([1, 7]),
        np.zeros(2, np.int64),
        np.array([0.3, -0.7]),
        np.array([0.0, 0.2]),
        np.array([1.0, 1.7]),
    )
    steps = list(program.steps)
    for k, how in enumerate(("last", "min", "add", "and")):
        steps[k] = replace(
            steps[k], combine=how, gate="score", value=-0.4 - 2 * k, otherwise=REJECT, carry=k == 2
        )
    steps[1] = replace(steps[1], columns=columns, otherwise=5)
    return replace(program, steps=steps)


def chosen():
    """The largest of three outputs less prices decides which column is bought."""
    program = trees(outputs=3)
    priced = WeightedPrices(
        np.array([0, 1, 3, 0]),
        np.array([0, 1, 2, 1]),
        np.array([-0.2, -0.4, 0.3, 0.1]),
        np.array([1.0, 3.0, 2.5, 2.0]),
    )
    steps = list(program.steps[:5])
    for k in range(2):
        steps[k] = replace(steps[k], gate="largest", value=float(k), then=k + 2, otherwise=k + 1)
    steps[0] = replace(steps[0], prices=priced)
    for k, feature in enumerate((0, 1, 7), start=2):
        one = np.array([feature])
        columns = WeightedColumns(one, one % 3, one - 0.5, one + 0.1, one - 1.5)
        steps[k] = replace(steps[k], columns=columns, then=-1)
    steps[1] = replace(steps[1], otherwise=4)
    return replace(program, steps=steps, stops=())


def vectors():
    """Leaves that are rows of a table, averaged."""
    program = trees(count=12)
    leaf = program.trees.feature < 0
    number = np.where(leaf, np.cumsum(leaf) - 1.0, 0.0)
    table = rng.normal(size=(int(leaf.sum()), 3))
    whole = replace(program.trees, value=number, base=np.zeros(3)).with_vectors(table)
    step = replace(
        program.steps[0],
        trees=np.arange(12),
        weights=np.ones(12),
        fresh=np.ones(12, bool),
        bias=np.zeros(3),
        then=-1,
        finish=Finish((0.1, 0.2, 0.3), rounds=12.0, slope=2.0, intercept=-1.0).lined(3.0, 0.25),
    )
    return Program(3, [step], whole, program.multiplier)


def support():
    """Two groups of Gaussian kernels for three outputs."""
    kernel = Kernel(
        features=np.array([0, 3, 4]),
        mean=rng.normal(size=3),
        factor=np.ones(3),
        start=np.array([0, 1, 3]),
        gamma=np.array([0.3, 0.1]),
        vectors=rng.normal(size=(3, 21)),
        coefficients=rng.normal(size=(3, 21)),
        tile=8,
    )
    none = np.zeros(0, np.int64)
    base = trees(count=1)
    step = replace(
        base.steps[0],
        trees=none,
        weights=np.zeros(0),
        fresh=none > 0,
        bias=rng.normal(size=3),
        kernel=kernel,
        then=-1,
    )
    return Program(3, [step], base.trees, base.multiplier)


PROGRAMS = {
    "chain": trees(),
    "outputs": trees(outputs=3),
    "gated": gated(),
    "chosen": chosen(),
    "rejected": replace(gated(), rejected=-7.5),
    "vectors": vectors(),
    "support": support(),
    "constant": trees(count=3, leaves=1),
}


def folder_of(program, costs=None, **about):
    names = tuple(f'feature "{j}"?\\é' for j in range(D))
    return Folder(program, costs or prices(), names, {"task": "regression", **about})
