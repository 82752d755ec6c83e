"""A run made of arrays: its export rows and the values per unit that a store would hold."""

import json
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from bench_core.results.records import Sensors, Trial, TrialValues
from helpers import example
from helpers.stores import TRIAL


@dataclass
class ValuedRun:
    """Replaces a store: ``add`` trials, then take ``info``, ``frame`` and ``values``."""

    reference: str = "gbrt"
    baselines: tuple[str, ...] = ()
    rows: list[dict[str, Any]] = field(default_factory=list)
    kept: list[TrialValues] = field(default_factory=list)
    ordered: tuple[str, ...] = ()  # learners that buy f1, then f2, and f3 in step 1 or 3

    def add(self, learner, quality, cost, *, seed=0, fingerprint="f" * 64, params=None, **more):
        """One trial: ``quality`` and ``cost`` (p, m) on validation and on test."""
        params = params or {}
        dataset = more.pop("dataset", "d")
        points = [{"trees": k + 1} for k in range(len(quality[0]))]
        for split, good, paid in zip(("valid", "test"), quality, cost, strict=True):
            for point, q, c in zip(points, good, paid, strict=True):
                trial = example.trial(dataset, learner, params, seed=seed, audit="sampled")
                self.rows.append(
                    trial
                    | {"point": json.dumps(point), "split": split, "accuracy": float(q.mean())}
                    | {"cost": float(c.mean()), "evaluation_cost": 0.0}
                    | {"cost_max": float(c.max()), "fingerprint": fingerprint}
                    | more
                )
            ones = np.ones(good.shape[1], dtype=np.float32)
            spec = replace(
                TRIAL,
                key=f"{dataset} {learner} {seed} {json.dumps(params)}",
                learner=learner,
                params=params,
                dataset=dataset,
                seed=seed,
                fingerprint=fingerprint,
            )
            sensors = Sensors(("f1", "f2", "f3"), (1.0, 1.0, 4.0))
            bought = np.minimum(np.outer(1 + np.arange(len(points)), [0.5, 0.25, 0.1]), 1)
            none, half = np.zeros(len(points)), bought[:, 2] / 2
            steps = np.stack(
                [
                    bought * [1, 2, 2],  # the mean of steps, over all rows
                    np.stack([bought[:, 0], none, half], axis=1),
                    np.stack([none, bought[:, 1], none], axis=1),
                    np.stack([none, none, half], axis=1),
                ],
                axis=1,
            )
            self.kept.append(
                TrialValues(
                    split=split,
                    points=tuple(range(len(points))),
                    metric=good.astype(np.float32),
                    cost=paid.astype(np.float32),
                    weights=ones,
                    rows=ones,
                    bought=bought.astype(np.float32),
                    steps=steps.astype(np.float32) if learner in self.ordered else None,
                    trial=Trial.of(spec, audit=more.get("audit", "sampled"), sensors=sensors),
                    settings=tuple(points),
                )
            )

    def answer(self, learner, *points, units=1000, **more):
        """One trial of points (number of wrong units, cost), the same on validation and on test."""
        quality = np.stack([right(wrong, units) for wrong, _ in points])
        cost = np.outer([cost for _, cost in points], np.ones(units))
        self.add(learner, [quality] * 2, [cost] * 2, **more)

    def answer_constantly(self, wrong):
        """The constant as the only point of a trial, wrong on so many units."""
        self.answer("constant", (wrong, 0.0))
        for k in (-1, -2):
            self.rows[k]["point"] = '{"constant": 1}'
            self.kept[k] = replace(self.kept[k], settings=({"constant": 1},))

    @property
    def frame(self):
        return pd.DataFrame(self.rows)

    @property
    def info(self):
        names = {str(row["dataset"]): str(row["accounting"]) for row in self.rows}
        same = {name: name.partition("(")[0] * ("(" in name) for name in names}
        uses = tuple(
            example.use(
                name,
                metrics=("accuracy",),
                accounting=accounting,
                same_as=same[name],
                reference=self.reference,
            )
            for name, accounting in names.items()
        )
        return example.info(datasets=uses, baselines=self.baselines, metrics=("accuracy",))

    def values(self, run, *, split="test", dataset, learner="", cap=None, capped=False):
        """Like ``Store.values``, without caps, of three sensors."""
        for one in self.kept:
            wanted = one.split, one.trial.dataset, learner or one.trial.learner
            if wanted == (split, dataset, one.trial.learner):
                yield one


def right(wrong, units=1000):
    """1 for each unit but the first ``wrong``."""
    return (np.arange(units) >= wrong).astype(float)


def learner_of(rng, skill, cost, units):
    """Quality and cost (p, units) on two splits, of points with these means."""
    shape = len(skill), units
    quality = [np.array(skill)[:, None] + rng.normal(0, 0.2, shape) for _ in range(2)]
    paid = [np.array(cost)[:, None] * rng.uniform(0.8, 1.2, shape) for _ in range(2)]
    return quality, paid
