"""The checks of data sets, metrics and cost models: all of the project pass, broken ones do not.

``tests/test_plugin_mistakes.py`` has further mistakes, with the answers of ``bench check``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bench_core import Examples, MetricValues, SensorPrices, Splits, Task, price_list
from bench_core.conformance import (
    ConformanceError,
    check_cost_model,
    check_dataset,
    check_metric,
    check_report,
    prices,
)
from bench_core.contracts import dataset_of
from bench_core.costs.shipped import MODELS
from bench_core.plugins import load_registry

REGISTRY = load_registry()
METRICS = REGISTRY.metrics.values()
SMALL = ["breast-cancer", "digits", "cstc-synthetic", "adapt-synthetic-1"]
OPTIONS = {
    "per-query": {"per_query": ["2", "7"]},
}


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: m.name)
def test_every_metric_keeps_its_promises(metric):
    check_metric(metric)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in SMALL else pytest.mark.slow)
        for name, dataset in sorted(REGISTRY.datasets.items())
        if not dataset_of(dataset).files
    ],
)
def test_data_sets_without_files_keep_their_promises(name):
    check_dataset(REGISTRY.dataset(name)())


@pytest.mark.parametrize("name", MODELS)
def test_every_shipped_cost_model_keeps_its_promises(name):
    check_cost_model(MODELS[name].from_options(prices(), OPTIONS.get(name, {}), int))


class Data:
    name, task, title = "mine", Task.BINARY, "Random numbers"
    change: Callable[[dict[str, Any]], Any] = staticmethod(lambda made: None)

    def prepare(self, source, size, fold, seed):
        rng = np.random.default_rng(seed)
        y = np.arange(30) % 2.0
        X = rng.normal(size=(30, 2)).astype(np.float32)
        made = {"X": X, "y": y, "prices": price_list(np.ones(2)), "classes": 2}
        type(self).change(made)
        parts = [Examples(made["X"][i::3], made["y"][i::3]) for i in range(3)]
        return Splits(*parts, prices=made["prices"], task=Task.BINARY, classes=made["classes"])


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda m: m.update(y=np.random.default_rng().permutation(m["y"])), "check_repeatable"),
        (lambda m: m["X"].__setitem__(3, np.inf), "check_cells: a cell of X is infinite"),
        (lambda m: m.update(y=m["y"] * (np.arange(30) % 3 > 0)), "check_labels: no training row"),
        (
            lambda m: m["X"].__setitem__(slice(1, None, 3), m["X"][::3]),
            "check_disjoint: 100% of the",
        ),
    ],
)
def test_a_broken_data_set_is_named_with_the_promise(change, line):
    broken = type("Broken", (Data,), {"change": staticmethod(change)})
    with pytest.raises(ConformanceError, match=line):
        check_dataset(broken())


def test_a_data_set_that_says_it_does_not_depend_on_the_seed_and_does():
    broken = type("Broken", (Data,), {"depends_on": ()})
    with pytest.raises(ConformanceError, match=r"prepared again with \{'seed': 1, 'fold': 0\}"):
        check_dataset(broken())


class Share:
    name, higher_is_better, tasks = "share", True, frozenset({Task.BINARY})

    def values(self, scores, y, queries=None, multiplicity=None):
        weights = np.ones(len(y)) if multiplicity is None else multiplicity.astype(float)
        return MetricValues(((scores > 0) == (y > 0)).astype(float), weights)


def changed(change):
    """The values of a metric with this change."""
    return lambda metric, *arguments: change(Share.values(metric, *arguments))


def judged_by_place(metric, scores, y, queries=None, multiplicity=None):
    """Values of the first of the rows with the largest score."""
    return MetricValues((np.arange(len(y)) % 2 == (scores > 0)) * 1.0, np.ones(len(y)))


def sorting(metric, scores, *others):
    found = Share.values(metric, scores.copy(), *others)
    scores.sort()
    return found


UNEVEN = changed(lambda found: MetricValues(found.values, found.weights[1:]))
PERCENT = changed(lambda found: MetricValues(100 * found.values, found.weights))
GAPS = changed(lambda found: MetricValues(found.values + np.nan, found.weights))
NO_COPIES = changed(lambda found: MetricValues(found.values, np.ones(len(found.values))))


@pytest.mark.parametrize(
    ("members", "line"),
    [
        (
            {"higher_is_better": False},
            r"check_direction \(binary\): labels as scores give 1, their",
        ),
        ({"values": NO_COPIES}, r"check_copies \(binary\)"),
        ({"values": GAPS}, r"check_values \(binary\): a value is not finite"),
        ({"values": sorting}, r"check_repeatable \(binary\): it changes the scores"),
        ({"values": judged_by_place}, r"check_ties \(binary\)"),
        ({"values": PERCENT, "bounds": (0.0, 1.0)}, r"check_bounds \(binary\): .*, outside 0 to 1"),
        ({"order_only": True}, r"check_order_only \(binary\)"),
        ({"values": UNEVEN}, r"check_values \(binary\): \(200,\) values and \(199,\) weights"),
    ],
)
def test_a_broken_metric_is_named_with_the_promise(members, line):
    with pytest.raises(ConformanceError, match=line):
        check_metric(type("Broken", (Share,), members)())


def bills(change):
    """The feature costs of a cost model with this change, which gets it and its usual costs."""
    return lambda model, acquired, queries=None: change(model, acquired.cost(model.sensor))


def doubled(model):
    return {**SensorPrices.state(model), "sensor": model.sensor * 2}


REBATE = bills(lambda model, cost: np.where((cost > 20) & (cost < model.everything), 1.0, cost))


@pytest.mark.parametrize(
    ("members", "line"),
    [
        (
            {"feature_cost": bills(lambda _, cost: cost + 1)},
            "check_bills: buying nothing costs some",
        ),
        ({"feature_cost": REBATE}, "check_more_costs_more: with more sensors a query costs less"),
        (
            {"feature_cost": bills(lambda _, cost: cost / len(cost))},
            "check_blocks: a query alone is",
        ),
        ({"feature_cost": REBATE}, "check_surrogate: parts that cost"),
        ({"state": doubled}, "check_state: rebuilt from its state it bills differently"),
    ],
)
def test_a_broken_cost_model_is_named_with_the_promise(members, line):
    broken = type("Broken", (SensorPrices,), {"name": "odd", **members})
    with pytest.raises(ConformanceError, match=line):
        check_cost_model(broken(**prices().state()))


class Lines:
    name, suffixes = "lines", (".txt",)

    def write(self, run, frame, output, *, sections):
        output.write_text("\n".join(frame["learner"]))


@pytest.mark.parametrize(
    ("check", "sound"), [(check_dataset, Data()), (check_metric, Share()), (check_report, Lines())]
)
def test_a_sound_one_passes(check, sound):
    check(sound)


def test_a_broken_report_is_named_with_the_promise():
    with pytest.raises(ConformanceError, match="check_members: suffix 'txt' does not begin with a"):
        check_report(type("Dotless", (Lines,), {"suffixes": ("txt",)})())


@pytest.mark.parametrize("name", REGISTRY.reports)
def test_every_report_keeps_its_promises(name):
    check_report(REGISTRY.reports[name])
