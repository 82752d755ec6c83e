"""What ``fit`` gets of the harness, and what it does not."""

import time
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import toys
from helpers.kit import refused

import bench_core
from bench_core import Examples, Queries, param, plugins, price_list
from bench_core._io.large_arrays import inputs_digest
from bench_core.api import plan
from bench_core.execution import fitting
from bench_core.execution.fitting import (
    find_metric,
    fit_context,
    fit_in_process,
    open_splits,
    run_fit,
)
from bench_core.metrics import parse_metric
from bench_core.parameters import encode
from bench_core.protocols import FitContext
from bench_core.splits import Splits


class Looking(toys.Prefix):
    """Keeps what it was handed."""

    name = "toy-looking"

    def fit(self, *given):
        type(self).given = given
        return super().fit(*given)


def spec_of(home):
    made = plan(data="toy-binary", learners=[Looking()], plugins="helpers.toys")
    return made.fits[0]


class Learning(toys.Prefix):
    """Trains while it names what it stands on."""

    name = "toy-learning"

    def needs(self):
        time.sleep(0.3)
        return ()


def test_what_a_learner_computes_to_name_its_needs_counts_as_training(home):
    made = plan(data="toy-binary", learners=[Learning()], plugins="helpers.toys")
    assert run_fit(made.fits[0]).seconds > 0.3


def test_the_plugins_of_a_metric_are_loaded_once(monkeypatch):
    loaded = []

    def load(given):
        loaded.append(given)
        return SimpleNamespace(metrics={"toy-error": "a metric"})

    monkeypatch.setattr(plugins, "load_registry", load)
    for _ in range(3):
        assert find_metric("toy-error", ["toy_metrics"]) == "a metric"
    assert loaded == [("toy_metrics",)]


def test_fit_sees_no_test_rows(home):
    run_fit(spec_of(home))
    train, valid, prices, context = Looking.given
    assert (len(train), len(valid), prices.features) == (300, 300, train.X.shape[1])
    assert all(hasattr(context, name) for name in FitContext.__annotations__)
    assert not any(isinstance(value, Splits) for value in Looking.given)


def test_what_is_fitted_in_this_process_sees_no_test_rows_either():
    splits = toys.ToyBinary().prepare(None, "quick", 0, 0)
    fit_in_process(Looking(), splits, parse_metric("accuracy"), 0, 1)
    assert len(Looking.given[0]) == len(splits.train)
    assert not any(isinstance(value, Splits) for value in Looking.given)


def test_test_rows_are_opened_only_to_predict(home):
    spec = spec_of(home)
    splits = open_splits(spec, ("train", "valid"))
    assert (len(splits.train), len(splits.test)) == (300, 0)
    assert splits.test.X.shape[1] == splits.train.X.shape[1]
    assert len(open_splits(spec).test) == 300


def test_builds_may_ask_again_or_fail(home):
    spec = spec_of(home)
    context = fit_context(spec, open_splits(spec), lambda done, total: None)

    def outer():
        return {"twice": 2 * context.shared("inner", lambda: {"x": np.arange(3)})["x"]}

    def broken():
        raise OSError("no room")

    for build in (outer, broken):  # the second is not asked
        twice = context.shared("outer", build)["twice"]
        assert twice.tolist() == [0, 2, 4]
    with pytest.raises(ValueError, match="read-only"):
        twice[0] = 5
    refused("no room", context.shared, "broken", broken, error=OSError)
    assert context.shared("broken", outer)["twice"].tolist() == [0, 2, 4]


@dataclass(frozen=True)
class Sharing(toys.Prefix):
    """Asks for arrays that take a second for each part, and is fitted in no time."""

    name = "toy-sharing"

    method: str = param("shared", "how they are shared")
    parts: int = param(1, "how many there are")
    times: int = param(1, "how often it asks")

    def fit(self, train, valid, prices, context):
        def build():
            self.clock[0] += self.parts
            return {"x": np.arange(self.parts)}

        size = (self.parts,) if self.method == "trained" else ()
        for _ in range(self.times):
            found = getattr(context, self.method)("slow", build, *size)["x"]
            assert found[: self.parts].tolist() == list(range(self.parts))
        return super().fit(train, valid, prices, context)


@pytest.fixture
def fit_seconds(home, monkeypatch):
    """Function that fits, and returns the seconds that passed and those of training."""
    clock = Sharing.clock = [0.0]
    monkeypatch.setattr(fitting, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    spec = spec_of(home)

    def fitted(changes=(), **parameters):
        started = clock[0]
        learner = encode(Sharing(**parameters))
        seconds = run_fit(replace(spec, learner=learner, **dict(changes))).seconds
        return clock[0] - started, round(seconds, 3)

    return fitted


@pytest.mark.parametrize("method", ["shared", "trained"])
def test_the_time_to_build_arrays_counts_once_in_every_fit_that_uses_them(fit_seconds, method):
    assert fit_seconds(method=method) == (1, 1)
    assert fit_seconds(method=method, times=2) == (0, 1)


def test_a_part_of_trained_arrays_counts_as_a_part_of_their_time(fit_seconds):
    assert fit_seconds(method="trained", parts=4) == (4, 4)
    assert fit_seconds(method="trained", parts=1) == (0, 1)
    assert fit_seconds(method="trained", parts=5) == (5, 5)  # four are too few
    assert fit_seconds(method="trained", parts=4) == (0, 4)


@pytest.mark.parametrize("change", [("seed", 1), ("metric", "auc")], ids=str)
def test_fits_with_other_inputs_train_their_own_arrays(fit_seconds, change):
    assert fit_seconds(method="trained") == (1, 1)
    assert fit_seconds([change], method="trained") == (1, 1)


def inputs(**changes):
    X = np.arange(12.0, dtype=np.float32).reshape(4, 3)
    values = {
        "name": "codes",
        "array": X,
        "examples": Examples(X, np.array([0.0, 1, 1, 0])),
        "learner": toys.Prefix(tradeoff=0.5),
        "prices": price_list([1.0, 2.0]),
        "several": (1, 2.5, None, {"a": [True]}),
    }
    return {**values, **changes}


def test_shared_arrays_are_known_by_the_content_of_their_inputs():
    X = np.arange(12.0, dtype=np.float32).reshape(4, 3)
    y = np.array([0.0, 1, 1, 0])
    changes = {
        "another name": {"name": "words"},
        "another cell": {"array": X + (X == 5)},
        "another type": {"array": X.astype(np.float64)},
        "another shape": {"array": X.reshape(3, 4)},
        "other labels": {"examples": Examples(X, 1 - y)},
        "other copies": {"examples": Examples(X, y, multiplicity=np.array([1, 2, 1, 1]))},
        "other queries": {"examples": Examples(X, y, Queries.from_sizes(np.array([2, 2])))},
        "another setting": {"learner": toys.Prefix(tradeoff=0.6)},
        "other prices": {"prices": price_list([1.0, 3.0])},
        "another number": {"several": (1, 2.5, 0, {"a": [True]})},
    }
    first = inputs_digest(inputs())
    assert inputs_digest(inputs()) == first
    found = {inputs_digest(inputs(**change)) for change in changes.values()}
    assert len(found | {first}) == 1 + len(changes)
    refused("give arrays or JSON", inputs_digest, inputs(name=object()), error=TypeError)


@pytest.mark.parametrize("method", ["shared", "trained"])
def test_a_learner_fitted_inside_another_on_other_rows_gets_arrays_of_its_own(home, method):
    spec = spec_of(home)
    splits = open_splits(spec)
    context = fit_context(spec, splits, lambda done, total: None)

    def sum_of(train):
        return getattr(context, method)(("sum", train), lambda: {"x": train.X.sum(axis=0)})["x"]

    half = Examples(splits.train.X[::2], splits.train.y[::2])
    assert sum_of(splits.train).tolist() == splits.train.X.sum(axis=0).tolist()
    assert sum_of(half).tolist() == half.X.sum(axis=0).tolist()
    # the same rows under another name of the object
    calls = []
    again = replace(splits.train)
    getattr(context, method)(("sum", again), lambda: calls.append(1) or {"x": np.zeros(1)})
    assert calls == []


def test_trained_arrays_are_deleted_at_the_end_of_a_run(home):
    Sharing.clock = [0.0]
    learners = [Sharing(method="trained", tradeoff=k) for k in (0.1, 0.2)]
    for _ in range(2):
        bench_core.run(
            data="toy-binary",
            learners=learners,
            plugins="helpers.toys",
            executor="inline",
            fresh=True,
        )
    assert Sharing.clock == [2]  # once in each run
    assert not list(home.rglob("trained"))


def test_reports_of_progress_are_rare_however_many_there_are(home):
    spec, heard = spec_of(home), []
    context = fit_context(spec, open_splits(spec), lambda done, total: heard.append((done, total)))
    for _ in range(20_000):
        context.progress(1, 1)
    assert heard[0] == (1, 1)
    assert len(heard) < 20
