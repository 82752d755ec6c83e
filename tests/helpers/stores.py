"""Small stores filled by hand, with results similar to a run's."""

from dataclasses import replace

import numpy as np

from bench_core.results.records import (
    COSTS,
    FitResult,
    FitSpec,
    Job,
    OperatingPoint,
    Outcome,
    Sensors,
    Status,
    StoredValues,
    Trial,
    TrialSpec,
)
from bench_core.results.store_files import save_model, state_path, states_folder
from bench_core.results.writer import open_writer

ABOUT = {
    "suite": "s",
    "title": "By hand",
    "profile": "quick",
    "accounting": "path",
    "metrics": ["mse"],
    "higher_is_better": {"mse": False},
    "datasets": [],
    "request": {},
}
FIT = FitSpec("f", "fit of one", {}, "one", "cars", "", "mse", 0, "")
TRIAL = TrialSpec(
    key="t", title="one on cars", fit="f", learner="one", learner_version="1", params={},
    dataset="cars", fold=0, seed=0, fingerprint="0", stand_in=False, task="regression", data="",
    states="", metrics=("mse",), unit="euro",
)  # fmt: skip


class Weight:
    """A model of one number."""

    def __init__(self, weight):
        self.weight = np.array([weight])

    def state(self):
        return {"weight": self.weight}

    @classmethod
    def from_state(cls, state):
        return cls(float(state["weight"][0]))


def outcome(key, status, *, metric=0.5, value=1.0, mark=""):
    """Outcome of the trial ``key``, with one point on two splits if it is ok."""
    spec = replace(TRIAL, key=key)
    if status != Status.OK:
        return Outcome(Job("score", spec), status, f"{key} went wrong", seconds=1.0)
    rows = tuple(
        point_row(0, {"step": 0}, split, {"mse": metric}, (1.0,) * 4, 1)
        for split in ("valid", "test")
    )
    array = np.full((1, 3), value, np.float32)
    values = StoredValues("test", (0,), array, array, array[0], array[0], array[:, :1])
    marks = (str(mark),) if mark else ()
    return ended_well(spec, rows, (values,), Sensors(("a",), (1.0,)), marks)


def point_row(index, point, split, metrics, costs, features):
    """One operating point; ``costs`` follow ``records.COSTS``, in order."""
    paid = dict(zip(COSTS, map(float, costs), strict=True))
    return OperatingPoint(
        index, point, split, metrics, cap=point.get("cap"), features_used=features, **paid
    )


def ended_well(spec, rows, values, sensors, marks=()):
    """Outcome of a successful trial with these rows and values."""
    result = Trial.of(
        spec,
        points=tuple(rows),
        values=tuple(values),
        audit="sampled",
        predict_seconds=0.1,
        peak_rss_mb=5.0,
        marks=marks,
        sensors=sensors,
    )
    return Outcome(Job("score", spec), Status.OK, result=result, seconds=1.0)


def filled(path, trials, *, run="r", listed=(), weight=None):
    """A store with one run, these trials and their fit, with its model if it has a weight."""
    if weight is not None:
        save_model(state_path(states_folder(path), FIT.key), Weight(weight))
    with open_writer(path) as writer:
        writer.begin(run, ABOUT, [*(listed or trials)])
        put_fit(writer, run, FIT)
        for key, status in trials.items():
            put_trial(writer, run, outcome(key, status))
        writer.end(run, "finished")


def put_fit(writer, run, spec):
    """A successful fit, and its attempt."""
    fit = Outcome(Job("fit", spec), Status.OK, result=FitResult(1.5, 9.0), seconds=1.5)
    writer.attempt(run, fit)
    writer.fit(fit)


def put_trial(writer, run, ended):
    """A trial with this outcome, and its attempt."""
    writer.attempt(run, ended)
    writer.trial(ended)
