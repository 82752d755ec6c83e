"""Every registered learner with settings for a quick fit, and difficult data for it."""

from dataclasses import replace

import numpy as np

from bench_core import Examples, Prices, Queries, Task
from bench_core.execution.audit import replay
from bench_core.execution.caps import Caps
from bench_core.execution.predict import predict_split
from bench_core.plugins import load_registry

LEARNERS = load_registry().learners
POLICIES = {
    "aaco",
    "aaco-tree",
    "backward-induction",
    "bayes-cmi",
    "exact-dp",
    "masked-gbrt",
    "opinion-pool",
    "tree-dime",
}
"""Learners of sequential policies."""
OF_TREES = {"aaco-tree", "masked-gbrt", "tree-dime"}
"""The ones with a program; others are served by their class."""

CYCLES = {"cycles": 2, "reweightings": 2, "steps": 5}


def quick_settings(count=5):
    """Settings of every learner with about ``count`` trees: a learner without a row is untested."""
    trees = {"trees": count, "min_rows": 4}
    base = {"base": LEARNERS["gbrt"](**trees)}
    cascade = {**base, "stages": 3, "relevant_grade": 1}
    gated = {"f0": LEARNERS["random-forest"](trees=count, min_rows=2)}
    shown = LEARNERS["masked-gbrt"](**trees, copies=2, parts=2, leaves=4)
    plans = {"rows": 50, "candidates": 5, "most": 2, "tradeoffs": (1, 0.1)}
    return {
        "aaco": {"predictor": shown, **plans},
        "aaco-tree": {
            **trees,
            "base": LEARNERS["aaco"](predictor=shown, **plans),
            "rows": 30,
            "most": 2,
            "choices": 3,
            "leaves": 4,
            "copies": 2,
        },
        "adapt-gbrt": {**gated, **trees, "iterations": 2, "gates": 3},
        "adapt-l1": {**gated, "supports": 2, "gates": 2},
        "adapt-lin": {**gated, "supports": 2, "iterations": 2, "gates": 2},
        "adapt-lstsq": {**gated, "supports": 2, "iterations": 2, "gates": 2},
        "and-or": {**cascade, "cycles": 2},
        "astc": {**base, "depth": 2},
        "backward-induction": {"trees": 2, "depth": 1, "min_rows": 4, "points": 5, "tried": 1},
        "bayes-cmi": {"points": 5},
        "best-single": {},
        "budget-boosting": trees,
        "budget-prune": {"base": LEARNERS["budget-rf"](**trees)},
        "budget-rf": trees,
        "cascade": {"thresholds": 4},
        "catboost": trees,
        "cegb": trees,
        "cheapest-first": {**trees, "steps": 3},
        "confidence-cascade": {
            "base": LEARNERS["cegb"](**trees, tradeoff=0.5),
            "large": LEARNERS["gbrt"](trees=2 * count, min_rows=4),
            "prefixes": 2,
            "gates": 2,
        },
        "constant": {},
        "cost-tree": {"min_rows": 4},
        "cronus": {**cascade, **CYCLES, "iterations": 20},
        "cronus-init": {**cascade, "iterations": 20},
        "cronus-single": {**base, "relevant_grade": 1, "iterations": 20},
        "cscc": {**base, **CYCLES, "stages": 2, "iterations": 20},
        "cstc": {**base, **CYCLES, "depth": 2, "iterations": 20},
        "cstc-single": {**base, "iterations": 20},
        "early-exit": {**base, "every": 2},
        "exact-dp": {"values": 2},
        "forward-selection": {**trees, "steps": 2, "leaves": 4},
        "gbrt": trees,
        "gbrt-subset": trees,
        "greedy-order": {**trees, "steps": 3},
        "imported": {},
        "l1": {"points": 5, "steps": 50},
        "lear": {**base, "sentinels": (2, 4), "trees": 3, "leaves": 4},
        "lightgbm": trees,
        "lightgbm-cegb": trees,
        "masked-gbrt": {**trees, "copies": 2, "parts": 2, "leaves": 4},
        "miser": trees,
        "opinion-pool": {"calls": 2, "parts": 2, "points": 5},
        "qwyc": {**base, "every": 2},
        "random-forest": {"trees": count},
        "random-order": {**trees, "steps": 3},
        "rbf-svm": {},
        "selection-cascade": {
            "base": LEARNERS["forward-selection"](**trees, steps=2, leaves=4),
            "thresholds": (0.6, 0.9),
        },
        "router": {"trees": 20, "min_rows": 4, "points": 4},
        "sklearn": {"estimator": "sklearn.tree.DecisionTreeClassifier"},
        "soft-cascade": {**cascade, "cycles": 2},
        "svm-average-kernel": {"max_rows": 500},
        "tree-dime": {
            "predictor": LEARNERS["masked-gbrt"](**trees, copies=2, parts=2, leaves=4),
            "trees": count,
            "min_rows": 4,
            "lookahead": 2,
            "evaluations": 500,
            "points": 4,
        },
        "xgboost": trees,
    }


OBJECTIVES = {
    Task.BINARY: "binary",
    Task.MULTICLASS: "multiclass",
    Task.RANKING: "regression",
    Task.REGRESSION: "regression",
}


def quick(name, task, train, folder, count=5):
    """A learner at its quick settings. ``imported`` gets a model of ``train``, ``sklearn`` an
    estimator for the task."""
    settings = dict(quick_settings(count)[name])
    if name == "imported":
        settings["file"] = str(_booster(task, train, folder, count))
    if name == "budget-prune" and task is Task.REGRESSION:
        settings["base"] = LEARNERS["gbrt"](trees=count, min_rows=4)
    if name == "sklearn" and task in (Task.RANKING, Task.REGRESSION):
        settings["estimator"] = "sklearn.linear_model.Ridge"
    return LEARNERS[name](**settings)


def predicted(model, splits, parts):
    """The path of a model, also under caps of these parts of the price of everything, and the caps.
    Choices have none: without a purchase there is no answer."""
    limits, calls = tuple(part * splits.costs.everything for part in parts), ()
    if splits.task is Task.CHOICE:
        limits, calls = (), splits.calls.tolist()
    caps = Caps(limits, splits.constant) if limits else None
    test, classes = splits.test, splits.classes
    return predict_split(model, test, splits.costs, classes, caps=caps, calls=calls), limits


def audited(model, splits, path):
    """The verdict of a full audit."""
    how = {"seed": "t", "path": path, "fresh": lambda: type(model).from_state(model.state())}
    return replay(model, splits.test, splits.costs, splits.classes, "full", **how)


def _booster(task, train, folder, count):
    """The file of a small model whose features are the columns in order."""
    import lightgbm

    path = folder / f"{task}-{train.X.shape[1]}.txt"
    if not path.exists():
        how = {"objective": OBJECTIVES[task], "num_leaves": 6, "verbose": -1}
        how |= {"num_threads": 1, "min_data_in_leaf": 4}
        if task is Task.MULTICLASS:
            how["num_class"] = len(np.unique(train.y))
        lightgbm.train(how, lightgbm.Dataset(np.array(train.X), train.y), count).save_model(path)
    return path


# Troubles: changes of ordinary splits

ALL = ("train", "valid", "test")


def _parts(splits, change, names=ALL):
    return replace(splits, **{name: change(getattr(splits, name)) for name in names})


def _sealed(array):
    array = np.ascontiguousarray(array)
    array.setflags(write=False)
    return array


def _cells(change, names=ALL):
    """A trouble that changes the cells of some parts in place."""

    def changed(part):
        X = np.array(part.X)
        change(X)
        return replace(part, X=_sealed(X))

    return lambda splits: _parts(splits, changed, names)


def _labels(change, names=ALL):
    """A trouble that replaces the labels of some parts, given them and the task."""

    def trouble(splits):
        def changed(part):
            return replace(part, y=_sealed(change(part.y, splits.task)))

        return _parts(splits, changed, names)

    return trouble


def _tells_nothing(X):
    """A constant column and an empty one, and rows without any value."""
    X[:, 0], X[:, 1], X[:8] = 3.0, np.nan, np.nan


def _extreme(X):
    X[:, 0] *= 1e30
    X[:, 2] *= 1e-30


def _lose(X):
    """The first query or row lacks everything."""
    X[::2, :4] = np.nan
    X[:8] = np.nan


def _at_test_alone(splits):
    """Cells never missing in training."""
    filled = _cells(lambda X: np.nan_to_num(X, copy=False), ("train", "valid"))(splits)
    return _cells(_lose, ("test",))(filled)


def _single_feature(splits):
    one = _parts(splits, lambda part: replace(part, X=_sealed(part.X[:, :1])))
    return replace(one, prices=Prices.additive(np.array([2.0])), feature_names=("f0",))


def _copies(part):
    copies = np.where(np.arange(len(part)) % 7 == 0, 30, 1)
    return replace(part, multiplicity=_sealed(copies.astype(np.int64)))


def _below_the_highest(y, task):
    """Without the highest class, grade or range of numbers."""
    top = np.unique(y)[-1] if task is not Task.REGRESSION else np.median(y)
    return np.where(y < top, y, np.unique(y)[0])


def _in_queries(sizes):
    def change(part):
        return replace(part, queries=Queries.from_sizes(sizes(len(part))))

    return lambda splits: _parts(splits, change)


def _row_of_each(splits):
    """One training and one validation row of each class or grade; of numbers, a single row."""

    def change(part):
        found = np.unique(part.y, return_index=True)[1]
        rows = np.sort(found if splits.task is not Task.REGRESSION else found[:1])
        queries = None if part.queries is None else Queries.from_sizes(np.array([len(rows)]))
        return Examples(_sealed(part.X[rows]), _sealed(part.y[rows]), queries)

    return _parts(splits, change, ("train", "valid"))


def _charged(change):
    return lambda splits: replace(splits, prices=change(splits.prices))


def _sensors(prices, sensors, price):
    changed = prices.sensor.copy()
    changed[sensors] = price
    return replace(prices, sensor=changed)


def _free(prices):
    return replace(_sensors(prices, list(range(prices.sensors)), 0.0), split=0.0, tree=0.0)


TROUBLES = {
    "a constant and an all-missing feature": _cells(_tells_nothing),
    "nothing varies": _cells(lambda X: X.fill(1.0)),
    "cells missing at test alone": _at_test_alone,
    "a single feature": _single_feature,
    "extreme values": _cells(_extreme),
    "enormous labels": _labels(lambda y, _: 1e12 * y + 1e15),
    "many copies": lambda splits: _parts(splits, _copies),
    "a class without a training row": _labels(_below_the_highest, ("train",)),
    "one training class": _labels(lambda y, _: np.ones_like(y), ("train",)),
    "one class everywhere": _labels(lambda y, _: np.zeros_like(y)),
    "one query": _in_queries(lambda n: np.array([n])),
    "queries of one document": _in_queries(lambda n: np.ones(n, np.int64)),
    "free features beside an enormous cost": _charged(
        lambda p: _sensors(_sensors(p, [2, 4], 0.0), [0], 1e12)
    ),
    "all free": _charged(_free),
    "everything enormous": _charged(lambda p: _sensors(p, list(range(p.sensors)), 1e12)),
    "everything minute": _charged(lambda p: _sensors(p, list(range(p.sensors)), 1e-12)),
    "a row of each class": _row_of_each,
}


ROUNDS = (
    (
        "a constant and an all-missing feature",
        "many copies",
        "free features beside an enormous cost",
    ),
    ("cells missing at test alone", "everything enormous", "one query"),
    ("extreme values", "everything minute", "queries of one document"),
    ("all free", "enormous labels"),
    ("a class without a training row",),
    ("a single feature",),
    ("nothing varies",),
    ("one training class",),
    ("one class everywhere",),
    ("a row of each class",),
)
"""Troubles that a learner meets together, as none hides another."""

ONLY_FOR = {
    "one query": Task.RANKING,
    "queries of one document": Task.RANKING,
    "enormous labels": Task.REGRESSION,
}

NOT_FOR_CHOICE = {
    *("a single feature", "a class without a training row", "one training class"),
    *("one class everywhere", "a row of each class"),
}
"""Troubles with the labels of classes, and without the calls of sources."""
