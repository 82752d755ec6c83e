from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from helpers import toys

from bench_core import Examples, Features, Prediction, Splits, Task, param
from bench_core.conformance import ConformanceError, cases, check_learner, checks, task_splits

GOOD = toys.Prefix(0.3)


@pytest.mark.parametrize(
    ("check", "splits"), cases(GOOD), ids=lambda x: getattr(x, "__name__", None) or str(x.task)
)
def test_an_honest_learner_keeps_every_promise(check: Any, splits: Splits) -> None:
    check(GOOD, splits)


def test_tasks_are_those_that_all_it_stands_on_do_too() -> None:
    @dataclass(frozen=True)
    class Everything(toys.Stacked):
        tasks: ClassVar[frozenset[Task]] = frozenset(Task)

    assert {splits.task for _, splits in cases(Everything())} == toys.Prefix.tasks


@pytest.mark.parametrize("check", checks.CHECKS)
def test_every_check_says_what_it_promises(check: Any) -> None:
    assert check.__doc__
    assert check.__name__.startswith("check_")


class Model(toys.PrefixModel):
    pass


@dataclass(frozen=True)
class Faulty(toys.Prefix):
    """Makes a model of another class, with a fault in it."""

    name: ClassVar[str] = "faulty"
    model: ClassVar[type[toys.PrefixModel]] = Model

    def fit(self, *arguments: Any) -> Any:
        fitted = super().fit(*arguments)
        return self.model(fitted.order, fitted.weight, fitted.needs)


class Reused(toys.PrefixModel):
    def predict_path(self, features: Features) -> Iterator[Prediction]:
        buffer = np.zeros(len(features))
        for prediction in super().predict_path(features):
            buffer[:] = prediction.scores
            yield Prediction(prediction.point, buffer, prediction.bills)


class Lossy(toys.PrefixModel):
    def state(self) -> dict[str, Any]:
        return {**super().state(), "weight": self.weight.astype(np.float32)}


class Centred(toys.PrefixModel):
    def predict_path(self, features: Features) -> Iterator[Prediction]:
        for p in super().predict_path(features):
            yield Prediction(p.point, p.scores - p.scores.mean(), p.bills)


class Peeking(toys.PrefixModel):
    def predict_path(self, features: Features) -> Iterator[Prediction]:
        last = np.nan_to_num(features.X[:, self.order[-1]].astype(float))
        for p in super().predict_path(features):
            yield Prediction(p.point, p.scores + last, p.bills)


class Wide(toys.PrefixModel):
    def predict_path(self, features: Features) -> Iterator[Prediction]:
        for p in super().predict_path(features):
            yield Prediction(p.point, p.scores[:, None], p.bills)


@pytest.mark.parametrize(
    ("model", "check", "line"),
    [
        (Reused, checks.check_own_arrays, "changed later"),
        (Lossy, checks.check_state, "reloaded: its scores differ"),
        (Centred, checks.check_blocks, "its scores differ"),
        (Peeking, checks.check_audit, "its scores change"),
        (Wide, checks.check_contract, "scores have shape"),
    ],
)
def test_a_fault_is_found_by_its_check(model: Any, check: Any, line: str) -> None:
    @dataclass(frozen=True)
    class Mine(Faulty):
        pass

    Mine.model = model
    with pytest.raises(ConformanceError, match=line):
        check(Mine(), task_splits(Task.RANKING))


@dataclass(frozen=True)
class Greedy(toys.Prefix):
    """Compares prices with a number of its own."""

    name: ClassVar[str] = "greedy"

    def fit(self, train: Any, valid: Any, prices: Any, context: Any) -> Any:
        model = super().fit(train, valid, prices, context)
        model.order = np.argsort(prices.feature_price() > 5, kind="stable")
        return model


def test_a_learner_that_minds_the_unit_of_cost_is_found() -> None:
    with pytest.raises(ConformanceError, match="with all costs times 1024"):
        checks.check_rescaled_costs(Greedy(), task_splits(Task.REGRESSION))


@dataclass(frozen=True)
class Noisy(toys.Prefix):
    """Draws from a state of its own instead of the seed."""

    name: ClassVar[str] = "noisy"

    def fit(self, *arguments: Any) -> Any:
        model = super().fit(*arguments)
        model.weight = model.weight + np.random.default_rng().normal(size=len(model.weight))
        return model


def test_a_learner_that_ignores_its_seed_is_found() -> None:
    with pytest.raises(ConformanceError, match="fitted again"):
        checks.check_repeatable(Noisy(), task_splits(Task.REGRESSION))


@dataclass(frozen=True)
class Blind(toys.Prefix):
    """Counts every row once, however many copies it stands for."""

    name: ClassVar[str] = "blind"

    def fit(self, train: Any, *others: Any) -> Any:
        return super().fit(Examples(train.X, train.y, train.queries), *others)


def test_a_learner_that_ignores_multiplicity_is_found() -> None:
    with pytest.raises(ConformanceError, match="trained on physical copies"):
        checks.check_multiplicity(Blind(), task_splits(Task.REGRESSION))


@dataclass(frozen=True)
class Undocumented(toys.Prefix):
    name: ClassVar[str] = "undocumented"
    extra: int = 3


@dataclass
class Mutable:
    name: ClassVar[str] = "mutable"
    trees: int = param(3, "trees")


@pytest.mark.parametrize(
    ("learner", "line"), [(Undocumented(), "extra has no doc"), (Mutable(), "no frozen dataclass")]
)
def test_faults_of_the_class_are_found(learner: Any, line: str) -> None:
    with pytest.raises(ConformanceError, match=line):
        checks.check_parameters(learner, task_splits(Task.BINARY))


def test_check_learner_lists_every_broken_promise() -> None:
    Faulty.model = Wide
    with pytest.raises(ConformanceError) as caught:
        check_learner(Faulty(), [Task.BINARY])
    lines = str(caught.value).splitlines()
    assert any(line.startswith("check_contract (binary): at {'features': 1}") for line in lines)
    assert any(line.startswith("check_audit (binary)") for line in lines)
    assert not any(line.startswith("check_parameters") for line in lines)
