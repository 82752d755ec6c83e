"""Every registered learner with settings that make a fit quick, and what may trouble it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench_core import Examples, Prices, Queries, Splits, Task
from bench_core.registry import load_registry

LEARNERS = load_registry().learners
TREES = {"trees": 5, "min_rows": 4}


def _stands_on(name: str = "gbrt", **more: Any) -> Callable[[], dict[str, Any]]:
    """The settings of a learner with a base, made late because the base is a learner too."""
    return lambda: {"base": LEARNERS[name](**TREES), **more}


def _gates(**more: Any) -> Callable[[], dict[str, Any]]:
    f0 = LEARNERS["random-forest"]
    return lambda: {"f0": f0(trees=3, depth=4), **more}  # type: ignore[call-arg]


CYCLES = {"cycles": 2, "reweightings": 2, "steps": 5}

QUICK: dict[str, Mapping[str, Any] | Callable[[], dict[str, Any]]] = {
    "adapt-gbrt": _gates(trees=3, iterations=2, gates=3, min_rows=5),
    "adapt-l1": _gates(supports=4, gates=2),
    "adapt-lin": _gates(supports=4, iterations=3, gates=2),
    "adapt-lstsq": _gates(supports=4, iterations=3, gates=2),
    "and-or": _stands_on(stages=3, cycles=2, relevant_grade=1),
    "astc": _stands_on(depth=2),
    "budget-prune": _stands_on("budget-rf"),
    "budget-rf": TREES,
    "catboost": TREES,
    "cegb": TREES,
    "cheapest-first": {"steps": 3, **TREES},
    "constant": {},
    "cronus": _stands_on(stages=3, iterations=20, relevant_grade=1, **CYCLES),
    "cronus-init": _stands_on(stages=3, iterations=20, relevant_grade=1),
    "cronus-single": _stands_on(iterations=20, relevant_grade=1),
    "cscc": _stands_on(stages=2, iterations=20, **CYCLES),
    "cstc": _stands_on(depth=2, iterations=20, **CYCLES),
    "cstc-single": _stands_on(iterations=20),
    "early-exit": _stands_on(every=2),
    "gbrt": TREES,
    "gbrt-subset": TREES,
    "greedy-order": {"steps": 3, **TREES},
    "imported": {},
    "l1": {"points": 5, "steps": 50},
    "lear": _stands_on(sentinels=(2, 4), trees=3, leaves=4),
    "lightgbm": TREES,
    "lightgbm-cegb": TREES,
    "miser": TREES,
    "random-forest": {"trees": 3},
    "random-order": {"steps": 3, **TREES},
    "rbf-svm": {},
    "sklearn": {"estimator": "sklearn.tree.DecisionTreeClassifier"},
    "soft-cascade": _stands_on(stages=3, cycles=2, relevant_grade=1),
    "svm-average-kernel": {},
    "xgboost": TREES,
}

OBJECTIVES = {
    Task.BINARY: "binary",
    Task.MULTICLASS: "multiclass",
    Task.RANKING: "regression",
    Task.REGRESSION: "regression",
}


def quick(name: str, splits: Splits, folder: Path) -> Any:
    """A learner at its quick settings. ``imported`` gets a model, ``sklearn`` an estimator."""
    row = QUICK[name]
    settings = dict(row() if callable(row) else row)
    if name == "imported":
        settings["file"] = str(_booster(splits, folder))
    if name == "sklearn" and splits.task in (Task.RANKING, Task.REGRESSION):
        settings["estimator"] = "sklearn.linear_model.Ridge"
    return LEARNERS[name](**settings)


def _booster(splits: Splits, folder: Path) -> Path:
    """The file of a small model of as many features as the data has."""
    import lightgbm

    task = splits.task
    path = folder / f"{task}-{splits.train.X.shape[1]}.txt"
    if not path.exists():
        how: dict[str, Any] = {
            "objective": OBJECTIVES[task],
            "num_leaves": 6,
            "verbose": -1,
            "num_threads": 1,
        }
        if task is Task.MULTICLASS:
            how["num_class"] = splits.classes
        names = list(splits.feature_names) or "auto"
        rows = lightgbm.Dataset(np.array(splits.train.X), splits.train.y, feature_name=names)
        lightgbm.train(how, rows, 5).save_model(path)
    return path


# Troubles: what becomes of ordinary splits

Trouble = Callable[[Splits], Splits]


def _column(j: int, value: float) -> Trouble:
    def change(part: Examples) -> Examples:
        X = np.array(part.X)
        X[:, j] = value
        return replace(part, X=_sealed(X))

    return lambda splits: _parts(splits, change, ("train", "valid", "test"))


def _at_test_alone(splits: Splits) -> Splits:
    """Cells that training never missed; the first query or row lacks everything."""

    def fill(part: Examples) -> Examples:
        return replace(part, X=_sealed(np.nan_to_num(part.X)))

    def lose(part: Examples) -> Examples:
        X = np.array(part.X)
        X[::2, :4] = np.nan
        X[:8] = np.nan
        return replace(part, X=_sealed(X))

    return _parts(_parts(splits, fill, ("train", "valid")), lose, ("test",))


def _lone_feature(splits: Splits) -> Splits:
    def change(part: Examples) -> Examples:
        return replace(part, X=_sealed(part.X[:, :1]))

    one = _parts(splits, change, ("train", "valid", "test"))
    return replace(one, prices=Prices.additive(np.array([2.0])), feature_names=("f0",))


def _extreme_values(splits: Splits) -> Splits:
    def change(part: Examples) -> Examples:
        X = np.array(part.X)
        X[:, 0] *= 1e30
        X[:, 2] *= 1e-30
        return replace(part, X=_sealed(X))

    return _parts(splits, change, ("train", "valid", "test"))


def _enormous_labels(splits: Splits) -> Splits:
    def change(part: Examples) -> Examples:
        return replace(part, y=_sealed(1e12 * part.y + 1e15))

    return _parts(splits, change, ("train", "valid", "test"))


def _copies(splits: Splits) -> Splits:
    def change(part: Examples) -> Examples:
        copies = np.where(np.arange(len(part)) % 7 == 0, 30, 1)
        return replace(part, multiplicity=_sealed(copies.astype(np.int64)))

    return _parts(splits, change, ("train", "valid", "test"))


def _unseen_class(splits: Splits) -> Splits:
    """The highest class, grade or range of numbers has no training row."""

    def change(part: Examples) -> Examples:
        top = np.unique(part.y)[-1] if splits.task is not Task.REGRESSION else np.median(part.y)
        kept = np.where(part.y < top, part.y, np.unique(part.y)[0])
        return replace(part, y=_sealed(kept))

    return _parts(splits, change, ("train",))


def _lone_documents(splits: Splits) -> Splits:
    def change(part: Examples) -> Examples:
        return replace(part, queries=Queries.from_sizes(np.ones(len(part), dtype=np.int64)))

    return _parts(splits, change, ("train", "valid", "test"))


def _nothing_varies(splits: Splits) -> Splits:
    def change(part: Examples) -> Examples:
        return replace(part, X=_sealed(np.ones_like(part.X)))

    return _parts(splits, change, ("train", "valid", "test"))


def _one_class(label: float, parts: tuple[str, ...]) -> Trouble:
    def change(part: Examples) -> Examples:
        return replace(part, y=_sealed(np.full(len(part), label)))

    return lambda splits: _parts(splits, change, parts)


def _one_query(splits: Splits) -> Splits:
    def change(part: Examples) -> Examples:
        return replace(part, queries=Queries.from_sizes(np.array([len(part)])))

    return _parts(splits, change, ("train", "valid", "test"))


def _row_of_each(splits: Splits) -> Splits:
    """One training and one validation row of each class or grade; of numbers, a single row."""

    def change(part: Examples) -> Examples:
        found = np.unique(part.y, return_index=True)[1]
        rows = np.sort(found if splits.task is not Task.REGRESSION else found[:1])
        queries = None if part.queries is None else Queries.from_sizes(np.array([len(rows)]))
        return Examples(_sealed(part.X[rows]), _sealed(part.y[rows]), queries)

    return _parts(splits, change, ("train", "valid"))


def _charged(change: Callable[[Prices], Prices]) -> Trouble:
    return lambda splits: replace(splits, prices=change(splits.prices))


def _sensors(prices: Prices, sensors: list[int], price: float) -> Prices:
    changed = prices.sensor.copy()
    changed[sensors] = price
    return replace(prices, sensor=changed)


def _free(prices: Prices) -> Prices:
    return replace(_sensors(prices, list(range(prices.sensors)), 0.0), split=0.0, tree=0.0)


TROUBLES: dict[str, Trouble] = {
    "a constant feature": _column(0, 3.0),
    "an all-missing feature": _column(0, np.nan),
    "nothing varies": _nothing_varies,
    "cells missing at test alone": _at_test_alone,
    "a lone feature": _lone_feature,
    "extreme values": _extreme_values,
    "enormous labels": _enormous_labels,
    "many copies": _copies,
    "a class without a training row": _unseen_class,
    "one training class": _one_class(1.0, ("train",)),
    "one class everywhere": _one_class(0.0, ("train", "valid", "test")),
    "one query": _one_query,
    "queries of one document": _lone_documents,
    "some free features": _charged(lambda p: _sensors(p, [0, 2], 0.0)),
    "all free": _charged(_free),
    "an enormous cost": _charged(lambda p: _sensors(p, [0], 1e12)),
    "everything enormous": _charged(lambda p: _sensors(p, list(range(p.sensors)), 1e12)),
    "everything minute": _charged(lambda p: _sensors(p, list(range(p.sensors)), 1e-12)),
    "a row of each class": _row_of_each,
}


ONLY_FOR = {
    "one query": Task.RANKING,
    "queries of one document": Task.RANKING,
    "enormous labels": Task.REGRESSION,
}


def _parts(
    splits: Splits, change: Callable[[Examples], Examples], names: tuple[str, ...]
) -> Splits:
    return replace(splits, **{name: change(getattr(splits, name)) for name in names})


def _sealed(array: Any) -> Any:
    array = np.ascontiguousarray(array)
    array.setflags(write=False)
    return array
