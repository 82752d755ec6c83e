import re
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from helpers import toys

from bench_core import Acquired, Bill, Examples, Prediction, Task, UsageError, param
from bench_core.conformance import (
    ConformanceError,
    check_learner,
    cost_model_checks,
    dataset_checks,
    learner_cases,
    learner_checks,
    metric_checks,
    policy_checks,
    promise_test,
    report_checks,
    task_splits,
)
from bench_core.conformance.cases import Case, checks_of, promise_of

GOOD = toys.Prefix(0.3)


@pytest.mark.parametrize("case", learner_cases(GOOD), ids=lambda case: case.name)
def test_an_honest_learner_keeps_every_promise(case):
    case()


def test_tasks_are_those_that_all_it_stands_on_do_too():
    @dataclass(frozen=True)
    class Everything(toys.Stacked):
        tasks: ClassVar[frozenset[Task]] = frozenset(Task)

    assert {case.on for case in learner_cases(Everything())} == toys.Prefix.tasks


MODULES = (
    learner_checks,
    policy_checks,
    dataset_checks,
    metric_checks,
    cost_model_checks,
    report_checks,
)


@pytest.mark.parametrize("check", [check for module in MODULES for check in checks_of(module)])
def test_every_check_says_what_it_promises_and_how_to_fix_it(check):
    assert all(len(part.split()) > 3 for part in promise_of(check))


def fault(learner, check, task):
    return Case("it", check, (learner, task_splits(task))).fault()


class Model(toys.PrefixModel):
    pass


@dataclass(frozen=True)
class Faulty(toys.Prefix):
    """Makes a model of another class, with a fault in it."""

    name: ClassVar[str] = "faulty"
    model: ClassVar[type[toys.PrefixModel]] = Model

    def fit(self, *arguments):
        fitted = super().fit(*arguments)
        return self.model(fitted.order, fitted.weight, fitted.needs)


class Reused(toys.PrefixModel):
    def predict_path(self, features):
        buffer = np.zeros(len(features))
        for prediction in super().predict_path(features):
            buffer[:] = prediction.scores
            yield Prediction(prediction.point, buffer, prediction.bills)


class Lossy(toys.PrefixModel):
    def state(self):
        return {**super().state(), "weight": self.weight.astype(np.float32)}


def altered(change):
    """A class of models with other predictions: the fields that ``change`` returns."""

    def predict_path(self, features):
        for prediction in toys.PrefixModel.predict_path(self, features):
            yield replace(prediction, **change(self, prediction, features))

    return type("Altered", (toys.PrefixModel,), {"predict_path": predict_path})


def peeking(model, prediction, features):
    last = np.nan_to_num(features.X[:, model.order[-1]].astype(float))
    return {"scores": prediction.scores + last}


def covert(model, prediction, features):
    """Bills less by accounting ``model`` than a row used."""
    empty = np.zeros((1, model.needs.shape[1]), dtype=bool)
    return {"bills": {**prediction.bills, "model": Bill(Acquired.pack(empty))}}


WIDE = altered(lambda model, p, features: {"scores": p.scores[:, None]})
CENTRED = altered(lambda model, p, features: {"scores": p.scores - p.scores.mean()})
PEEKING, COVERT = altered(peeking), altered(covert)
RUNNING = altered(lambda model, p, features: {"scores": np.cumsum(p.scores)})


class Scribbling(toys.PrefixModel):
    def predict_path(self, features):
        yield from super().predict_path(features)
        features.X[:] = 0


@pytest.mark.parametrize(
    ("model", "check", "line"),
    [
        (Reused, learner_checks.check_arrays, "changed later"),
        (Scribbling, learner_checks.check_arrays, "predict_path changes the features"),
        (Lossy, learner_checks.check_state, "reloaded: its scores differ"),
        (CENTRED, learner_checks.check_blocks, "on a block of .* rows: its scores differ"),
        (RUNNING, learner_checks.check_blocks, "its scores differ"),
        (PEEKING, learner_checks.check_unpaid_cells, "its scores change.*it reads feature f"),
        (COVERT, learner_checks.check_contract, "bill 'model' leaves out sensors"),
    ],
)
@pytest.mark.parametrize("task", [Task.BINARY, Task.RANKING])
def test_a_fault_of_a_model_is_found(model, check, line, task):
    mine = type("Mine", (Faulty,), {"model": model})
    assert re.search(line, fault(mine(), check, task))


@dataclass(frozen=True)
class Greedy(toys.Prefix):
    """Compares prices with a number of its own."""

    name: ClassVar[str] = "greedy"

    def fit(self, train, valid, prices, context):
        model = super().fit(train, valid, prices, context)
        model.order = np.argsort(prices.feature_price() > 5, kind="stable")
        return model


@dataclass(frozen=True)
class Noisy(toys.Prefix):
    """Draws from a state of its own instead of the seed."""

    name: ClassVar[str] = "noisy"

    def fit(self, *arguments):
        model = super().fit(*arguments)
        model.weight = model.weight + np.random.default_rng().normal(size=len(model.weight))
        return model


@dataclass(frozen=True)
class Blind(toys.Prefix):
    """Counts every row once, however many copies it stands for."""

    name: ClassVar[str] = "blind"

    def fit(self, train, *others):
        return super().fit(Examples(train.X, train.y, train.queries), *others)


def test_check_learner_lists_the_broken_promise_in_three_lines():
    mine = type("Mine", (Faulty,), {"model": WIDE})
    with pytest.raises(ConformanceError) as caught:
        check_learner(mine(), [Task.BINARY])
    seen, expected, fix = str(caught.value).splitlines()  # what needs the contract is left out
    assert seen.startswith("check_contract (binary): at {'features': 1}: scores have shape")
    assert expected.startswith("  expected: ``fit`` returns a model whose path has 1 to 100 points")
    assert fix.startswith("  to fix: compare with")


@dataclass(frozen=True)
class Delicate(toys.Prefix):
    """Fails in the way that ``how`` says."""

    name: ClassVar[str] = "delicate"
    how: str = param("missing", "missing, alike, few or wide")

    def fit(self, train, *others):
        X, y = train.X, train.y
        faults = {
            "missing": bool(np.isnan(X).all(axis=0).any()),
            "alike": len(set(y.tolist())) == 1,
            "few": len(X) < 5,
            "wide": X.shape[1] > 100,
        }
        if faults[self.how]:
            raise ZeroDivisionError(self.how)
        return super().fit(train, *others)


@pytest.mark.filterwarnings("ignore:All-NaN")
@pytest.mark.parametrize(
    ("how", "check"),
    [
        ("missing", learner_checks.check_poor_features),
        ("alike", learner_checks.check_one_class),
        ("few", learner_checks.check_few_rows),
        ("wide", learner_checks.check_wide_data),
    ],
)
def test_data_that_trouble_a_learner_are_found(how, check):
    assert f"ZeroDivisionError: {how}" in fault(Delicate(how=how), check, Task.BINARY)
    refusing = type("Refusing", (Delicate,), {"fit": _refuse})
    check(refusing(how=how), task_splits(Task.BINARY))  # one line of its own is an answer


def test_training_labels_of_two_of_three_classes_are_tried():
    seen = []

    def fit(learner, train, *others):
        seen.append({*train.y.tolist()})
        raise UsageError("no")

    learner = type("Refusing", (toys.Prefix,), {"fit": fit})()
    learner_checks.check_one_class(learner, task_splits(Task.MULTICLASS))
    assert seen == [{0.0}, {0.0, 1.0}]


def _refuse(*arguments):
    raise UsageError("no")


@dataclass(frozen=True)
class Upside(toys.Prefix):
    """Buys more where features are dearer."""

    name: ClassVar[str] = "upside"

    def fit(self, *arguments):
        model = super().fit(*arguments)
        if self.tradeoff == 0:
            model.order = model.order[:2]
        return model


@pytest.mark.parametrize(
    ("learner", "check", "line"),
    [
        (Greedy(), learner_checks.check_rescaled_costs, "with all costs times 1024"),
        (Noisy(), learner_checks.check_repeatable, "fitted again"),
        (Blind(), learner_checks.check_multiplicity, "trained on physical copies"),
        (Upside(), learner_checks.check_tradeoff, "with tradeoff 0"),
    ],
)
def test_a_fault_of_a_learner_is_found(learner, check, line):
    assert line in fault(learner, check, Task.REGRESSION)


def cases_of(test):
    """The parameters of a test."""
    (mark,) = test.pytestmark
    return mark.args[1]


def test_names_of_plugins_objects_and_modules_give_a_case_for_each_promise():
    (case,) = cases_of(promise_test("csv"))
    assert str(case) == "report csv: check_members"
    case()


def test_settings_are_those_of_the_command():
    case, *_ = cases_of(promise_test("per-query", settings=['per-query.per_query=["2"]']))
    assert case.arguments[0].name == "per-query"


def test_an_unknown_name_is_refused_in_one_line():
    with pytest.raises(UsageError, match="nothere"):
        promise_test("nothere")
