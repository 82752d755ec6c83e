import mmap
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from helpers import models
from helpers.kit import refused
from helpers.toys import Prefix
from hypothesis import given
from hypothesis import strategies as st

from bench_core import (
    Acquired,
    Bill,
    Examples,
    MetricValues,
    Prediction,
    Prices,
    Queries,
    Splits,
    Task,
)
from bench_core._io import large_arrays
from bench_core.api import plan
from bench_core.execution import predict, trial
from bench_core.execution.caps import Caps
from bench_core.execution.contract import ContractError
from bench_core.execution.fitting import fit_context, open_splits, run_fit
from bench_core.execution.predict import blocks, predict_split
from bench_core.execution.trial import (
    beyond,
    condense,
    points_to_keep,
    run_trial,
    score_split,
    stored_values,
)
from bench_core.metrics import parse_metric
from bench_core.results.store_files import StateError, load_model, save_model

PRICES = Prices.additive(np.array([1.0, 2, 4, 8, 16, 32]), split=0.5)


def ranked(sizes, seed=0):
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    X = rng.normal(size=(n, models.D)).astype(np.float32)
    return Examples(X, rng.integers(0, 5, n).astype(float), Queries.from_sizes(np.array(sizes)))


@given(st.lists(st.integers(1, 30), min_size=1, max_size=40), st.integers(1, 60))
def test_blocks_cover_all_rows_in_order_and_cut_no_query(sizes, rows):
    examples = ranked(sizes)
    made = list(blocks(examples.features, rows))
    assert [b.rows.start for b in made][1:] == [b.rows.stop for b in made][:-1]
    assert made[0].rows.start == 0
    assert made[-1].rows.stop == len(examples)
    joined = [b.features.queries.sizes.tolist() for b in made if b.features.queries]
    assert [size for part in joined for size in part] == sizes
    for b in made:
        assert len(b.features) <= rows or len(b.features.queries) == 1
        assert np.array_equal(b.features.X, examples.X[b.rows])


def test_a_path_is_metered_by_hand_reckoned_costs():
    """Column 0 (1) for all; column 1 (2) where column 0 > 0; column 2 (4) at step 2; a split
    0.5 per step. The first row stands for three copies."""
    X = np.zeros((3, models.D), dtype=np.float32)
    X[:, 0] = [1, -1, -2]
    examples = Examples(X, np.array([1.0, 0, 0]), multiplicity=np.array([3, 1, 1]))
    path = predict_split(models.Scripted(models.honest, 2), examples, PRICES, 2)
    assert path.cost.tolist() == [[3.5, 1.5, 1.5], [8.0, 6.0, 6.0]]
    assert path.feature_cost.tolist() == [(3 * 3 + 1 + 1) / 5, (3 * 7 + 5 + 5) / 5]
    assert path.evaluation_cost.tolist() == [0.5, 1.0]
    rows = score_split(path, examples, PRICES, [parse_metric("accuracy")], "test").rows
    assert rows[0].metrics == {"accuracy": 1.0}
    assert rows[0].cost == pytest.approx((3 * 3.5 + 1.5 + 1.5) / 5)
    assert rows[0].cost_max == 3.5
    assert [row.features_used for row in rows] == [2, 3]
    # columns 0 and 1 are codes of one column of the user's table
    own = path, examples, PRICES, [parse_metric("accuracy")], "test", 1
    scored = score_split(*own, ("colour", "colour", *"cdef"))
    assert [row.features_used for row in scored.rows] == [1, 2]


def test_every_path_begins_with_the_best_constant_for_nothing():
    """Two of three training labels are 1: log-odds of log 2, right on one of four rows here."""
    X = np.zeros((4, models.D), dtype=np.float32)
    examples = Examples(X, np.array([1.0, 0, 0, 0]))
    train = Examples(X[:3], np.array([1.0, 1, 0]))
    constant = Splits(train, examples, examples, PRICES, Task.BINARY, 2).constant
    assert constant == pytest.approx(np.log(2))
    path = predict_split(
        models.Scripted(models.honest, 2), examples, PRICES, 2, caps=Caps((), constant)
    )
    metrics = [parse_metric("accuracy"), parse_metric("log_loss")]
    first, *others = score_split(path, examples, PRICES, metrics, "valid").rows
    assert (first.number, first.point) == (-1, {"constant": 1})
    assert first.metrics["accuracy"] == 0.25
    assert first.metrics["log_loss"] == pytest.approx((np.log(3) * 3 + np.log(1.5)) / 4)
    assert first.cost == first.cost_max == first.features_used == 0
    assert [row.number for row in others] == [0, 1]
    assert points_to_keep((first, *others), metrics[0])[0] == -1


class AtOnce(models.Scripted):
    """Counts the threads that ask it."""

    def __init__(self, concurrent):
        super().__init__(models.ranks_in_query)
        self.concurrent, self.inside, self.most = concurrent, 0, 0

    def predict_path(self, features):
        self.inside += 1
        self.most = max(self.most, self.inside)
        time.sleep(0.002 * (len(features) % 3))  # blocks end in another order than they began
        yield from super().predict_path(features)
        self.inside -= 1


@pytest.mark.parametrize("concurrent", [False, True])
def test_blocks_change_nothing_and_only_a_model_that_allows_it_has_threads(concurrent, monkeypatch):
    examples, model = ranked([3, 1, 7, 2, 9, 4] * 5), AtOnce(concurrent)
    alone = predict_split(models.Scripted(models.ranks_in_query), examples, PRICES, 0)
    monkeypatch.setattr(predict, "blocks", lambda f: blocks(f, 5))
    path = predict_split(model, examples, PRICES, 0, threads=3)
    assert (model.most > 1) == concurrent
    for name in ("scores", "cost", "feature_cost", "evaluation_cost", "bought"):
        assert getattr(path, name).tobytes() == getattr(alone, name).tobytes()
    judged = [
        score_split(path, examples, PRICES, [parse_metric("ndcg@5")], "test", t) for t in (1, 3)
    ]
    assert judged[0].rows == judged[1].rows


def script(*predictions):
    class Fixed:
        def predict_path(self, features):
            yield from predictions

    return Fixed()


def good(n=4, **changes):
    bill = Bill(Acquired.nothing(models.D))
    usual = {"point": {"k": 1}, "scores": np.zeros(n), "bills": {"path": bill}}
    return Prediction(**usual | changes)


def bills(**changes):
    return {"path": Bill(**{"acquired": Acquired.nothing(models.D)} | changes)}


BAD = {
    "its path is empty": (),
    "scores have shape (3,) instead of (4,)": (good(3),),
    "1 scores are not finite": (good(scores=np.array([0, 0, np.nan, 0])),),
    "there is no bill 'path'": (good(bills={}),),
    "has 7 sensors, the prices have 6": (good(bills=bills(acquired=Acquired.nothing(7))),),
    "acquired is uint64 (3, 1)": (
        good(bills=bills(acquired=Acquired(np.zeros((3, 1), dtype=np.uint64), models.D))),
    ),
    "bits beyond the last sensor": (
        good(bills=bills(acquired=Acquired(np.full((1, 1), 64, dtype=np.uint64), models.D))),
    ),
    "splits must be finite": (good(bills=bills(splits=-1)),),
    "trees must be finite": (good(bills=bills(trees=np.zeros(3))),),
    "order is (3, 6), not (4 or 1, 6)": (good(bills=bills(order=np.zeros((3, 6), int))),),
    "order must be >= 0 for the sensors bought, -1 for others": (
        good(bills=bills(order=np.zeros((1, 6), int))),
    ),
    "order is float64: it must be whole numbers": (good(bills=bills(order=np.zeros((1, 6)))),),
    "'k': a point holds finite numbers of at most 2**53": (good(point={"k": "x"}),),
    "'n': a point holds finite numbers of at most": (good(point={"n": 10**5000}),),
    "'k': a point holds finite numbers": (good(point={"n": 1, "k": np.inf}),),
    "two points of its path are {'k': 1}": (good(), good()),
    "more than 100 points": tuple(good(point={"k": i}) for i in range(101)),
}


@pytest.mark.parametrize("line", BAD)
def test_a_broken_contract_is_named(line):
    examples = Examples(np.zeros((4, models.D), dtype=np.float32), np.zeros(4))
    refused(line, predict_split, script(*BAD[line]), examples, PRICES, 0, error=ContractError)


def test_another_path_on_another_block_is_named(monkeypatch):
    class Moody:
        def predict_path(self, features):
            for k in range(len(features)):
                yield good(len(features), point={"k": k})

    monkeypatch.setattr(predict, "blocks", lambda f: blocks(f, 3))
    examples = Examples(np.zeros((5, models.D), dtype=np.float32), np.zeros(5))
    words = "3 points on one block and 2 on another"
    refused(words, predict_split, Moody(), examples, PRICES, 0, error=ContractError)


def test_a_point_is_judged_by_what_its_arrays_held_when_it_was_handed_out():
    examples = Examples(np.zeros((4, models.D), dtype=np.float32), np.zeros(4))
    path = predict_split(models.Overwrites(), examples, PRICES, 0)
    assert path.scores.tolist() == [[1.0] * 4, [2.0] * 4, [3.0] * 4]


def test_an_accounting_has_a_bill_of_at_least_the_audited_path():
    examples = Examples(np.zeros((4, models.D), dtype=np.float32), np.zeros(4))
    call = predict_split, script(good()), examples, PRICES, 0, "model"
    refused("no bill 'model' (its accountings: path)", *call, error=ContractError)
    two, one = (Bill(PRICES.acquired(np.arange(k))) for k in (2, 1))
    full, less = (
        Prediction({"k": 1}, np.zeros(4), {"path": two, "model": billed}) for billed in (two, one)
    )
    predict_split(script(full), examples, PRICES, 0, "model")
    call = predict_split, script(less), examples, PRICES, 0, "model"
    refused("leaves out", *call, error=ContractError)


class Tagged:
    """A metric by the tags of groups: their sum of labels over their tag."""

    name = "tagged"
    higher_is_better = True
    tasks = frozenset({Task.BINARY})

    def values(self, scores, y, queries=None, multiplicity=None):
        sums = np.add.reduceat(y, queries.boundaries[:-1])
        return MetricValues(sums / queries.tags, np.ones(len(sums)))


def test_a_metric_sees_the_groups_that_the_model_does_not():
    groups = Queries(np.array([0, 6, 10]), np.array([2, 4]))
    examples = Examples(np.ones((10, models.D), np.float32), np.ones(10), groups=groups)
    path = predict_split(models.Scripted(models.honest), examples, PRICES, 2)
    score = score_split(path, examples, PRICES, [Tagged()], "test")
    assert score.units == 2
    assert score.primary[0].tolist() == [3.0, 1.0]
    assert score.rows[0].metrics["tagged"] == 2.0


def test_values_and_costs_of_rows_are_means_of_their_groups():
    y = np.array([1.0, 0.0, 1.0, 1.0, 0.0])
    copies, patients = np.array([1, 3, 1, 1, 2]), Queries(np.array([0, 2, 5]))
    examples = Examples(np.ones((5, models.D), np.float32), y, None, copies, patients)
    path = predict_split(models.Scripted(models.honest), examples, PRICES, 2)
    right = (path.scores[0] > 0) == (y > 0)
    score = score_split(path, examples, PRICES, [parse_metric("accuracy")], "test")
    stored = stored_values("test", examples, path, score, [0])
    means = [(right * copies)[rows].sum() / copies[rows].sum() for rows in ([0, 1], [2, 3, 4])]
    assert score.units == 2
    np.testing.assert_allclose(stored.metric[0], means, rtol=1e-6)
    assert stored.weights.tolist() == stored.rows.tolist() == [4, 4]
    paid = [(path.cost[0] * copies)[rows].sum() / 4 for rows in ([0, 1], [2, 3, 4])]
    np.testing.assert_allclose(stored.cost[0], paid, rtol=1e-6)


def test_too_many_units_become_weighted_means_of_neighbours():
    values, weights = condense(np.array([1.0, 2, 3, 4, 5]), np.array([1.0, 3, 1, 1, 2]), 3)
    assert values.tolist() == [1.75, 3.5, 5.0]
    assert weights.tolist() == [4.0, 2.0, 2.0]


@dataclass
class Kept:
    """A model with a state of every kind."""

    values: dict[str, Any]

    def state(self):
        return self.values

    @classmethod
    def from_state(cls, state):
        return cls(dict(state))


def test_a_state_comes_back_as_it_was(tmp_path):
    values = {
        "file": np.arange(6, dtype=np.int32).reshape(2, 3),
        "json": np.array([], dtype=np.float32),
        "flags": np.array([True, False]),
        "nested": {"a": [1, 2.5, None, "x"]},
        "": np.float64(3.0) * np.ones(1),
    }
    path = tmp_path / "deep" / "m.npz"
    save_model(path, Kept(values))
    back = load_model(path).values
    assert back.keys() == values.keys()
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            assert back[name].dtype == value.dtype
            assert np.array_equal(back[name], value)
        else:
            assert back[name] == value
    assert [p.name for p in path.parent.iterdir()] == ["m.npz"]


@pytest.mark.parametrize("value", [np.array([object()]), {1, 2}, object()])
def test_a_state_of_python_objects_is_refused(tmp_path, value):
    with pytest.raises(StateError):
        save_model(tmp_path / "m.npz", Kept({"x": value}))
    assert not list(tmp_path.iterdir())


def prepared(home, **options):
    return plan(plugins=("helpers.toys",), data="toy-binary", learners="toy-prefix", **options)


def test_the_time_to_predict_is_that_of_the_rows_all_learners_predict(home, monkeypatch):
    def timed(model, part, *more, **options):
        return replace(predict_split(model, part, *more, **options), seconds=float(len(part)))

    p = prepared(home, settings="toy-prefix.tradeoff=0.5")
    run_fit(p.fits[0])
    monkeypatch.setattr(trial, "predict_split", timed)
    spec = replace(p.trials[0], splits=("train", "valid", "test"))
    rows = p.datasets[0].rows
    assert run_trial(spec).predict_seconds == rows["valid"] + rows["test"]


def test_a_fit_cannot_ask_for_a_learner_it_does_not_need(home):
    spec = prepared(home).fits[0]
    context = fit_context(spec, open_splits(spec), lambda done, total: None)
    refused("is not among needs", context.fitted, Prefix(), error=KeyError)


def test_paths_too_large_for_memory_give_the_same_result(monkeypatch):
    examples = ranked([5] * 4000)
    model = models.Scripted(models.honest)
    found = []
    for limit in (1 << 30, 0):
        monkeypatch.setattr(large_arrays, "IN_MEMORY", limit)
        path = predict_split(model, examples, PRICES, 0)
        found.append((path, score_split(path, examples, PRICES, [parse_metric("ndcg@5")], "test")))
    (kept, score), (filed, other) = found
    assert isinstance(filed.scores.base.base, mmap.mmap)
    np.testing.assert_array_equal(kept.scores, filed.scores)
    np.testing.assert_array_equal(kept.cost, filed.cost)
    assert score.rows == other.rows


def test_rows_beyond_a_cap_count_with_their_copies():
    found = beyond(np.array([1.0, 6.0, 9.0]), 5.0, np.array([1.0, 2.0, 1.0]))
    assert found == {"over_cap": 0.75, "excess": (2 * 1 + 4) / 3}
    none = {"over_cap": 0.0, "excess": 0.0}
    assert beyond(np.array([5.0 + 1e-12]), 5.0, np.ones(1)) == none
    assert beyond(np.array([5.0]), np.inf, np.ones(1)) == none
