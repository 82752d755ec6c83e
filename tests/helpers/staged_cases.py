"""Random staged models with random prices, and their definition, row by row."""

from dataclasses import dataclass, field

import numpy as np
from bench_models.staged import END, Point, Stage, StagedModel

from bench_core import DiscountGroup, Features, Queries, price_list
from helpers.random_trees import path, random_ensemble, random_rows, used_features

D = 8


def random_prices(rng):
    """Shared (0, 1), discounted (2, 3, 4) and derived (7 from 5 and 2) features."""
    cost = rng.choice([1.0, 5.0, 20.0], size=D)
    cost[1] = cost[0]
    later = rng.choice([0.25, 0.5], size=3)
    cost[2:5] = later + 0.5
    return price_list(
        cost,
        shared=[[0, 1]],
        discounted=[DiscountGroup((2, 3, 4), tuple(float(x) for x in later))],
        derived={7: [5, 2]},
        split=0.25,
        tree=0.5,
        multiplier=rng.choice([1.0, 0.25], size=D),
    )


def random_model(rng, *, outputs=1, trees=6):
    """Stages over trees and raw columns; any routing if there is one output, else a chain."""
    ensemble = random_ensemble(rng, trees=trees, features=D, leaves=5, outputs=outputs)
    count = int(rng.integers(1, 6))
    bars = [_bar(rng) if outputs == 1 else None for _ in range(count)]
    onward = _routing(rng, bars)
    stages = []
    for k, bar in enumerate(bars):
        size = int(rng.integers(0, 5))
        columns = rng.random() < 0.4
        stages.append(
            Stage(
                entries=rng.integers(0, trees + (D if columns else 0), size=size),
                weights=rng.choice([0.0, 1.0, -0.75], size=size),
                bias=rng.normal(size=outputs),
                carry=bool(rng.random() < 0.5),
                bar=bar,
                then=onward[k][0],
                otherwise=onward[k][1],
            )
        )
    inner = [k for k in range(count - 1) if rng.random() < 0.6]
    points = [Point(k, {"stages": k + 1}) for k in [*inner, count - 1]]
    rejected = rng.choice(["score", "below", "number"])
    return StagedModel(
        stages,
        points,
        random_prices(rng),
        ensemble,
        rejected=-1.5 if rejected == "number" else str(rejected),
    )


def _bar(rng):
    return float(rng.normal()) if rng.random() < 0.6 else None


def _routing(rng, bars):
    """Successors such that every stage is entered from one earlier stage."""
    onward = [[END, END] for _ in bars]
    for k in range(1, len(bars)):
        free = [
            (p, side)
            for p in range(k)
            for side in ((0,) if bars[p] is None else (0, 1))
            if onward[p][side] == END
        ]
        p, side = free[int(rng.integers(len(free)))]
        onward[p][side] = k
    return onward


def random_features(rng, queries=True):
    """0 to 5 queries of 1 to 6 rows."""
    sizes = rng.integers(1, 7, size=int(rng.integers(0, 6)))
    X = random_rows(rng, int(sizes.sum()), D)
    return Features(X, Queries.from_sizes(sizes) if queries else None)


@dataclass
class RowState:
    """One row in the stages, and its charges."""

    score: list[float]
    stage: int = -1
    next: int = 0
    rejected: bool = False
    sensors: set[int] = field(default_factory=set)
    splits: float = 0.0
    trees: set[int] = field(default_factory=set)
    model_sensors: set[int] = field(default_factory=set)


def walk_rows(model, features):
    """The states of all rows at every point, by the definition of a staged model."""
    from copy import deepcopy

    rows = [RowState([0.0] * model.outputs) for _ in range(len(features))]
    reported = []
    ends = {p.stage for p in model.points}
    for k, stage in enumerate(model.stages):
        here = [i for i, row in enumerate(rows) if row.next == k]
        for i in here:
            _evaluate(model, k, features.X[i], rows[i])
        if k in ends:
            reported.append(deepcopy(rows))
        passed = {i: stage.bar is None or rows[i].score[0] >= stage.bar for i in here}
        for i in here:
            rows[i].next = stage.then if passed[i] else stage.otherwise
            rows[i].rejected = not passed[i] and stage.otherwise == END
    return reported


def _evaluate(model, k, x, row):
    stage, prices, ensemble = model.stages[k], model.prices, model.ensemble
    if not stage.carry:
        row.score = [0.0] * model.outputs
    row.score = [s + b for s, b in zip(row.score, stage.bias.tolist(), strict=True)]
    row.stage = k
    entries = list(zip(stage.entries.tolist(), stage.weights.tolist(), strict=True))
    for entry, weight in entries:
        if entry < ensemble.trees and weight != 0:
            tested, value, _ = path(ensemble, entry, x)
            row.score[int(ensemble.output[entry])] += weight * value
            if entry not in row.trees:
                row.splits += sum(float(prices.multiplier[f]) for f in tested)
            if len(used_features(ensemble, entry)):
                row.trees.add(entry)
            row.sensors |= {s for f in tested for s in prices.sensors_of(f).tolist()}
            for f in used_features(ensemble, entry):
                row.model_sensors |= set(prices.sensors_of(int(f)).tolist())
    for entry, weight in entries:
        if entry >= ensemble.trees and weight != 0:
            cell = float(x[entry - ensemble.trees])
            row.score[0] += 0.0 if np.isnan(cell) else weight * cell
            row.sensors |= set(prices.sensors_of(entry - ensemble.trees).tolist())
            row.model_sensors |= set(prices.sensors_of(entry - ensemble.trees).tolist())
