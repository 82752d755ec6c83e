"""Every registered learner's model, exported: another process that asks for features one sensor at
a time gets the benchmark's scores and bills."""

import shutil
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from subprocess import PIPE

import helpers
import numpy as np
import pytest
from helpers.boosted_cases import paid
from helpers.compiled_c import SAFE, assert_same, served
from helpers.every_learner_cases import LEARNERS, OF_TREES, POLICIES, quick

from bench_core import Features, Task, UsageError
from bench_core.conformance import task_splits
from bench_core.conformance.cases import fit
from bench_core.execution.caps import Caps
from bench_core.execution.predict import predict_split
from bench_core.serving import Exportable, Folder, Predictor, write_folder
from bench_core.serving.model_programs import capped_program

EXACT = {"rtol": 1e-9, "atol": 1e-9}
ROWS = 120  # and half as many to test on
SCRIPT = Path(helpers.__file__).parent / "serve_rows.py"
PAIRS = [
    (name, task)
    for name in sorted(LEARNERS)
    for task in sorted(LEARNERS[name].tasks)
    if name != "sklearn" or task in (Task.BINARY, Task.MULTICLASS)  # the others have no trees
]
CLASSES = (Task.BINARY, Task.MULTICLASS, Task.CHOICE)


def in_turn(tasks):
    """Each learner with one of these tasks of its own, in turn."""
    for k, name in enumerate(sorted({name for name, _ in PAIRS})):
        if some := [task for other, task in PAIRS if other == name and task in tasks]:
            yield name, some[k % len(some)]


IN_TURN = [*in_turn(Task)]
IN_C = [pair for pair in in_turn(CLASSES) if pair[0] not in POLICIES - OF_TREES]
IN_C.append(("lear", Task.RANKING))

ordinary = cache(lambda task: task_splits(task, ROWS))
fitted = {}


def model_of(name, task, folder):
    """Trained once for all tests of this file."""
    if (name, task) not in fitted:
        splits = ordinary(task)
        fitted[name, task] = fit(quick(name, task, splits.train, folder), splits)
    return fitted[name, task]


def some(predictions):
    """The first, a middle and the last point."""
    last = len(predictions) - 1
    for place in sorted({0, last // 2, last}):
        yield predictions[place]


@pytest.fixture(scope="module")
def serve():
    """What a process makes of a folder that has trained nothing."""
    command = [sys.executable, str(SCRIPT)]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True) as process:

        def served(folder):
            print(folder, file=process.stdin, flush=True)
            assert process.stdout.readline() == "\n"
            return np.load(folder / "served.npz")

        yield served
        process.communicate()


def exported(model, splits, prediction):
    program = model.program(prediction.point)
    return Folder(program, splits.costs, splits.names, {"task": str(splits.task)})


@pytest.mark.parametrize(
    ("name", "task"),
    [pytest.param(*pair, marks=() if pair in IN_TURN else pytest.mark.slow) for pair in PAIRS],
    ids=str,
)
def test_what_is_served_equals_the_benchmark(name, task, folder, tmp_path, serve):
    splits, model = ordinary(task), model_of(name, task, folder)
    test = splits.test.features
    for number, prediction in enumerate(some(list(model.predict_path(test)))):
        place = tmp_path / str(number)
        write_folder(place / "model", exported(model, splits, prediction))
        np.save(place / "X.npy", test.X)
        if test.queries is not None:
            np.save(place / "sizes.npy", test.queries.sizes)
        served = serve(place)
        acquired = prediction.bills["path"].acquired.rows(len(test))
        cost = paid(prediction, splits.costs, test.queries)
        assert np.allclose(served["scores"], prediction.scores, **EXACT)
        assert np.allclose(served["spent"], cost, **EXACT)
        assert np.array_equal(served["sensors"], acquired.unpack())
        assert served["repeats"] == 0
        assert served["unlike"] == 0


@pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc")
@pytest.mark.parametrize(
    ("name", "task", "flags"),
    [
        *((*pair, ("-O0",)) for pair in IN_C[::3]),
        *(pytest.param(*pair, SAFE, marks=pytest.mark.slow) for pair in IN_C),
    ],
    ids=str,
)
def test_a_model_in_c_serves_as_the_predictor_does(name, task, flags, folder, tmp_path):
    """A slow test has all models and points, and shows that they stay within their tables."""
    splits, model = ordinary(task), model_of(name, task, folder)
    rows, path = np.ascontiguousarray(splits.test.X), list(model.predict_path(splits.test.features))
    # C refuses other points of a ranking cascade
    several = flags == SAFE and task is not Task.RANKING
    for number, prediction in enumerate(some(path) if several else path[-1:]):
        (tmp_path / str(number)).mkdir()
        program = exported(model, splits, prediction)
        answers = served(program, tmp_path / str(number), flags, "gcc", 0.0, rows)
        assert_same(program, answers, None, rows)


@pytest.mark.parametrize(
    ("name", "task"),
    [pair for pair in PAIRS if pair[0] in POLICIES and pair[1] is not Task.CHOICE],
    ids=str,
)
def test_a_policy_under_a_cap_buys_what_it_buys_in_the_benchmark(name, task, folder):
    splits, model = ordinary(task), model_of(name, task, folder)
    test, prices = splits.test.features, splits.prices
    sensors = replace(prices, split=0.0, tree=0.0)  # the benchmark's caps are on these alone
    *_, last = model.predict_path(test)
    served = Predictor(replace(exported(model, splits, last), costs=sensors))
    for cap in np.multiply([0.1, 0.4], prices.everything).tolist():
        expected = model.predict_capped(test, cap, sensors)
        for rows in (slice(None), slice(20)):  # together, and one by one
            found = served.predict_rows(test.X[rows], cap=cap)
            bits = expected.bills["path"].acquired.unpack()[rows]
            assert np.array_equal(found.bought, bits)
            assert np.allclose(found.scores, expected.scores[rows], **EXACT)


@pytest.mark.parametrize("name", ["gbrt", "cegb", "random-forest", "cstc"])
def test_a_capped_row_answers_at_the_last_point_within_the_cap(name, folder):
    splits = task_splits(Task.REGRESSION, 400)  # on which the costs of paths rise
    model = fit(quick(name, Task.REGRESSION, splits.train, folder), splits)
    part = Features(splits.test.X[:60])
    path = list(model.predict_path(part))
    costs = [paid(p, splits.costs) for p in path]
    served, cap = Predictor(exported(model, splits, path[-1])), float(np.median(costs[-1]))
    found = served.predict_rows(part.X, cap=cap)
    last = (np.array(costs) <= cap).sum(axis=0) - 1
    assert len(np.unique(last)) > 1
    reached = last >= 0
    expected = np.array([p.scores for p in path])[last, np.arange(60)]
    assert np.allclose(found.scores[reached], expected[reached], **EXACT)


@pytest.mark.parametrize(
    ("name", "task"),
    {n: (n, t) for n, t in PAIRS if t in CLASSES[:2] and n not in {"sklearn", *POLICIES}}.values(),
    ids=str,
)
def test_a_model_exported_under_a_cap_answers_as_measured_under_it(name, task, folder):
    splits, model = ordinary(task), model_of(name, task, folder)
    costs = replace(splits.prices, split=0.0, tree=0.0)
    program = capped_program(model, name, len(splits.names))
    program = replace(program, nothing=np.atleast_1d(splits.constant))
    served = Predictor(Folder(program, costs, splits.names, {"task": str(task)}))
    for cap in np.multiply([0.15, 0.7], costs.sensor.sum()).tolist():
        caps = Caps((cap,), np.asarray(splits.constant))
        path = predict_split(model, splits.test, costs, splits.classes, caps=caps)
        found = served.predict_rows(splits.test.X, cap=cap)
        assert np.allclose(found.scores, path.scores[len(path.points)], **EXACT)
        # the benchmark bills rows that stop between two points for the most that they may buy
        assert (found.spent <= path.cost[len(path.points)] + 1e-9).all()


def test_an_estimator_of_scikit_learn_says_why_it_stays(folder):
    model = model_of("sklearn", Task.REGRESSION, folder)
    assert isinstance(model, Exportable)
    with pytest.raises(UsageError, match="serve it with scikit-learn"):
        model.program({"model": 1})
