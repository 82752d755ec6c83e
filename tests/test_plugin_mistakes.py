"""Mistakes of plugin authors: none is an internal error, each answer names the culprit, and ``bench
check`` finds them all."""

import sys
from typing import NamedTuple

import pytest

SOUND = '''
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from bench_core import (
    Acquired, Bill, Examples, MetricValues, Prediction, SensorPrices, Splits, Task, hookimpl, param,
    price_list,
)


class Model:
    def __init__(self, columns, sensors):
        self.columns, self.sensors = columns, sensors

    def predict_path(self, features):
        bought = np.zeros((1, self.sensors), bool)
        bought[0, : self.columns] = True
        scores = np.nan_to_num(features.X[:, : self.columns]).sum(axis=1).astype(float)
        yield Prediction({"features": 1}, scores, {"path": Bill(Acquired.pack(bought))})

    def state(self):
        return vars(self)

    @classmethod
    def from_state(cls, state):
        return cls(**state)


@dataclass(frozen=True)
class Learner:
    """Adds up the first columns."""

    name: ClassVar[str] = "mine"
    tasks: ClassVar[frozenset] = frozenset({Task.BINARY})

    columns: int = param(2, "how many to add up")

    def fit(self, train, valid, prices, context):
        return Model(self.columns, prices.sensors)


class Data:
    name, task, title = "noisy", Task.BINARY, "Noise"

    def prepare(self, source, size, fold, seed):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, 90).astype(float)
        X = (y[:, None] + rng.normal(size=(90, 3))).astype(np.float32)
        parts = [Examples(X[i::3], y[i::3]) for i in range(3)]
        return Splits(*parts, prices=price_list(np.ones(3)))


class Hinge:
    name, higher_is_better, tasks = "hinge", False, frozenset({Task.BINARY})

    def values(self, scores, y, queries=None, multiplicity=None):
        weights = np.ones(len(y)) if multiplicity is None else multiplicity.astype(float)
        return MetricValues(np.maximum(0.0, 1 - (2 * y - 1) * scores), weights)


class Whole(SensorPrices):
    name = "whole"

    def feature_cost(self, acquired, queries=None):
        return np.ceil(acquired.cost(self.sensor))

    def surrogate(self, train):
        return SensorPrices.from_state(self.state())


@hookimpl
def bench_learners():
    return [Learner]


@hookimpl
def bench_datasets():
    return [Data]


@hookimpl
def bench_metrics():
    return [Hinge()]


@hookimpl
def bench_cost_models():
    return [Whole]
'''


class Mistake(NamedTuple):
    """``old`` of the sound module replaced by ``new``, the words that the answer must hold, and the
    exit status: 1 if a learner fails and others go on, 2 if nothing can be run, 0 if the mistake
    does no harm."""

    name: str
    old: str
    new: str
    says: tuple[str, ...]
    status: int = 2


_PATH = '{"path": Bill(Acquired.pack(bought))}'
_GIVEN = "return Splits(*parts, prices=price_list(np.ones(3)))"
_VALUES = "return MetricValues(np.maximum(0.0, 1 - (2 * y - 1) * scores), weights)"
_FIT = "return Model(self.columns, prices.sensors)"

MISTAKES = [  # name, old, new, words of the answer, exit status if not 2
    Mistake("a dataclass that is not frozen", "@dataclass(frozen=True)", "@dataclass",
            ("mine", "frozen")),
    Mistake("no name", '    name: ClassVar[str] = "mine"\n', "", ("Learner", "no name")),
    Mistake("no tasks", "    tasks: ClassVar[frozenset] = frozenset({Task.BINARY})\n", "",
            ("Learner", "no tasks")),
    Mistake("no fit", "def fit", "def fits", ("Learner", "no fit")),
    Mistake("a name that is taken", '= "mine"', '= "miser"', ("'miser'", "two plugins", "'mine'")),
    Mistake("a misspelt hook", "def bench_learners", "def bench_learner",
            ("bench_learner", "did you mean bench_learners")),
    Mistake("a forgotten mark", "@hookimpl", "", ("-p mine", "@hookimpl", "bench_learners")),
    Mistake("no from_state",
            "    @classmethod\n    def from_state(cls, state):\n        return cls(**state)\n", "",
            ("mine", "from_state"), 1),
    Mistake("an object in the state", "return vars(self)", 'return {"it": self}',
            ("mine", "state()", "neither array nor JSON"), 1),
    Mistake("reads a feature it did not pay for", "features.X[:, : self.columns]", "features.X",
            ("mine", "did not pay for"), 1),
    Mistake("no bill for the path", _PATH, "{}", ("mine", "path"), 1),
    Mistake("scores of another shape", "scores, {", "scores[:, None], {",
            ("mine", "shape", "(30, 1)"), 1),
    Mistake("no prediction", "yield Prediction", "Prediction", ("mine", "yield predictions"), 1),
    Mistake("a library that is missing", "import numpy as np", "import nothere",
            ("-p mine", "No module named 'nothere'", "install")),
    Mistake("an instance for a class", "return [Learner]", "return [Learner()]",
            ("bench_learners", "Learner", "expected a class instead")),
    Mistake("a hook that gives nothing", "return [Learner]", "[Learner]",
            ("-p mine", "bench_learners gives nothing", "return a list")),
    Mistake("prepare returns a tuple", _GIVEN, "return tuple(parts)",
            ("noisy", "prepare", "Splits")),
    Mistake("too few prices", "price_list(np.ones(3))", "price_list(np.ones(2))",
            ("noisy", "not for 3 features", "2 prices")),
    Mistake("labels from one", "y = rng.integers(0, 2, 90)", "y = rng.integers(1, 3, 90)",
            ("noisy", "labels [1.0, 2.0]", "2 classes are numbered from 0")),
    Mistake("labels of text", "Examples(X[i::3], y[i::3])",
            "Examples(X[i::3], y[i::3].astype(str))", ("noisy", "labels y are")),
    Mistake("splits of unequal width", "Examples(X[i::3], y[i::3])",
            "Examples(X[i::3, : 3 - i // 2], y[i::3])",
            ("noisy", "test has (30, 2)", "3 features")),
    Mistake("a cost model of one's own that is none", "prices=price_list(np.ones(3))",
            "prices=object()", ("noisy", "prices", "SensorPrices")),
    Mistake("cells of float64", ".astype(np.float32)", "", (), 0),
    Mistake("data that fail", _GIVEN, "return 1 / 0", ("noisy", "division by zero", "mine.py")),
    Mistake("no direction of a metric", 'higher_is_better, tasks = "hinge", False, ',
            'tasks = "hinge", ', ("Hinge", "higher_is_better")),
    Mistake("a metric that gives one number", _VALUES, "return 0.5", ("hinge", "float"), 1),
    Mistake("writes into the data", _FIT, "train.X[:] = 0; " + _FIT, ("mine", "mine.py"), 1),
    Mistake("a learner that fails", _FIT, "return 1 / 0", ("mine", "division by zero", "mine.py"),
            1),
    Mistake("no description of a parameter", 'param(2, "how many to add up")', "2", (), 0),
    Mistake("no title", ', title = "noisy", Task.BINARY, "Noise"', ' = "noisy", Task.BINARY', (),
            0),
    Mistake("a cost model that gives one number", "return np.ceil(acquired.cost(self.sensor))",
            "return 3.0", ("whole", "feature_cost has shape ()", "one cost for each row"), 1),
    Mistake("a cost model without a surrogate", "return SensorPrices.from_state(self.state())",
            "return None", ("whole", "surrogate")),
]  # fmt: skip


# what ``bench check`` says of mistakes that do no harm in a run, or names in other words than a run
CHECKED = {
    "reads a feature it did not pay for": ("mine", "did not pay for", "reads feature"),
    "scores of another shape": ("mine", "scores have shape (200, 1) instead of (200,)"),
    "cells of float64": ("noisy", "float64", "astype(np.float32)"),
    "no description of a parameter": ("mine", "columns has no documentation", "param("),
    "no title": ("noisy", "has no title", "title ="),
    "a metric that gives one number": ("hinge", "0.5", "MetricValues"),
    "a cost model that gives one number": ("whole", "feature_cost has shape ()"),
    "writes into the data": ("mine", "read-only", "mine.py"),
}


COMMAND = (
    *("run", "--data", "noisy", "--learners", "mine,constant", "--metric", "hinge"),
    *("--executor", "inline", "--no-progress", "-p", "mine", "--audit", "full"),
)


def module(folder, text):
    (folder / "mine.py").write_text(text)
    (folder / "costs.toml").write_text('model = "whole"\ncosts = [1, 1, 1]\n')
    sys.modules.pop("mine", None)


def test_the_module_without_a_mistake_is_sound(tmp_path, bench):
    module(tmp_path, SOUND)
    ended = bench(*COMMAND, "--costs", "costs.toml")
    assert ended.status == 0, ended.err
    checked = bench("check", "-p", "mine")
    assert checked.status == 0, checked.out
    assert [line.split()[0] for line in checked.out.splitlines()[::2]] == [
        *("learner", "data", "metric", "cost")
    ]


def missing(words, ended):
    return [word for word in words if word not in ended.out + ended.err]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_answered_by_its_name_and_found_by_check_with_what_to_do(
    mistake, tmp_path, bench
):
    assert mistake.old in SOUND
    module(tmp_path, SOUND.replace(mistake.old, mistake.new))
    ended = bench(*COMMAND, *(("--costs", "costs.toml") if "whole" in mistake.says else ()))
    assert ended.status == mistake.status, ended.err
    assert missing(mistake.says, ended) == [], ended

    sys.modules.pop("mine", None)
    says = CHECKED.get(mistake.name, mistake.says)
    culprit = [name for name in says[:1] if name in ("mine", "noisy", "hinge", "whole")]
    ended = bench("check", "-p", "mine", *culprit)  # the others are checked by the test above
    assert ended.status in (1, 2), ended.out
    assert missing(says, ended) == [], ended
    if ended.status == 1:  # of a module that does not load the one line says all
        assert ended.out.count("expected: ") == ended.out.count("to fix: ") > 0
