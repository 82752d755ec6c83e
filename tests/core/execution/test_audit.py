"""The three proofs of the replay audit; more models that it refuses are in ``canaries``."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from bench_trees import Ensemble
from helpers import models

from bench_core import Acquired, Bill, Examples, Prediction, Prices, Queries, price_list
from bench_core.costs.shipped import PerQueryPrices
from bench_core.errors import UsageError
from bench_core.execution.audit import REMEDY, replay
from bench_core.execution.new_process import ModelElsewhere
from bench_core.execution.predict import predict_split
from bench_core.execution.score_comparison import close, spreads
from bench_core.serving import Program, Step, WeightedColumns

PRICES = Prices.additive(np.array([1.0, 2, 3, 4, 5, 6]), split=0.5)


def data(n=600, ranked=True):
    X = np.random.default_rng(4).normal(size=(n, models.D)).astype(np.float32)
    return Examples(X, np.zeros(n), Queries(np.arange(0, n + 1, 5)) if ranked else None)


def verdict(say, mode="sample", ranked=True, **more):
    return replay(models.Scripted(say), data(ranked=ranked), PRICES, 0, mode, seed="s", **more)


def nested(X, features, point):
    """All rows buy one column after the other."""
    return X[:, :point].sum(axis=1), models.bought(len(X), *range(point))


both_modes = pytest.mark.parametrize("mode", ["sample", "full"])
ranked_or_not = pytest.mark.parametrize("ranked", [True, False])


@dataclass
class Inventing:
    """Shows other purchases of the same price to whoever asks first, and then what it buys."""

    first: Any
    then: Any
    asked: int = 0

    def predict_path(self, features):
        self.asked += 1
        mask = (self.first if self.asked == 1 else self.then)(features.X)
        scores = np.zeros(len(features))
        yield Prediction({"step": 1}, scores, {"path": Bill(Acquired.pack(mask))})


EQUAL = Prices.additive(np.ones(models.D))


def buying(column, other, first=np.inf):
    """Buys column 2, and another by what it finds there: one below a limit, else the other."""

    def mask(X):
        found = models.bought(len(X), 2, column)
        found[X[:, 2] >= first] = models.bought(1, 2, other)[0]
        return found

    return mask


@both_modes
def test_sensors_that_cost_the_same_cannot_be_invented(mode):
    """They decide which features a board says were used."""
    model = Inventing(buying(0, 1), buying(1, 0))
    found = replay(model, data(ranked=False), EQUAL, 0, mode, seed="s")
    assert found.word == "failed"
    assert "its purchases depend on rows" in found.reason


def test_the_full_audit_counts_the_buyers_of_each_sensor():
    model = Inventing(buying(0, 1, 0.0), buying(0, 1, 0.5))
    found = replay(model, data(ranked=False), EQUAL, 0, "full", seed="s")
    assert found.word == "failed"
    assert "differ from the trial's, sensor by sensor" in found.reason
    honest = Inventing(buying(0, 1, 0.0), buying(0, 1, 0.0))
    assert replay(honest, data(ranked=False), EQUAL, 0, "full", seed="s").word == "declared"


# -- all rows buy the same -------------------------------------------------------------------------


@ranked_or_not
@pytest.mark.parametrize(("mode", "word"), [("sample", "sampled"), ("full", "verified")])
def test_a_model_that_buys_the_same_for_all_rows_passes(mode, word, ranked):
    assert verdict(nested, mode, ranked).word == word


@both_modes
@pytest.mark.parametrize("say", [models.honest, models.ranks_in_query])
def test_purchases_that_differ_are_declared_with_the_point_and_the_remedy(say, mode):
    found = verdict(say, mode)
    assert found.word == "declared"
    assert found.reason == f"rows buy differently at {{'step': 1}}; {REMEDY}"


@both_modes
def test_a_point_that_cannot_use_a_hidden_cell_is_not_held_against_a_cheaper_one(mode):
    assert verdict(models.reads_more_than_it_can_use, mode).word != "failed"


def test_splits_and_trees_must_not_change_either():
    @dataclass
    class Counting:
        name: str

        def predict_path(self, features):
            counts = {self.name: np.isnan(features.X[:, 5]).astype(float)}
            bill = Bill(Acquired.nothing(models.D), **counts)
            yield Prediction({}, np.zeros(len(features)), {"path": bill})

    for name in ("splits", "trees"):
        assert f"its {name} change" in replay(Counting(name), data(), PRICES, 0).reason


def test_a_feature_whose_sensors_came_with_another_may_be_read():
    """Column 5 is derived from 0 and 1: whoever bought both may read it."""
    prices = price_list(np.array([1.0, 2, 3, 4, 5, 0]), derived={5: [0, 1]})

    class Derived:
        def predict_path(self, features):
            bill = Bill(prices.acquired(np.array([5])))
            yield Prediction({}, features.X[:, 5].astype(float), {"path": bill})

    assert replay(Derived(), data(), prices, 0, "full", seed="s").word == "verified"


def test_a_model_that_raises_where_cells_are_hidden_is_refused():
    def picky(X, features, point):
        if np.isnan(X[:, 3]).any():
            raise ValueError("NaN")
        return nested(X, features, point)

    found = verdict(picky)
    assert (found.word, "it raises ValueError: NaN" in found.reason) == ("failed", True)


# -- nothing but the query decides -----------------------------------------------------------------


def first_is_best(X, features, point):
    """Files list a query's documents by grade often enough."""
    place = np.arange(len(X)) - features.queries.boundaries[features.queries.index()]
    return -place.astype(float), models.bought(len(X))


def test_purchases_that_depend_on_the_block_are_refused():
    def some(X, features, point):
        return np.zeros(len(X)), models.bought(len(X)) | (np.arange(len(X)) < 9)[:, None]

    assert "its costs depend on" in verdict(some).reason


def test_the_order_of_a_querys_rows_is_kept_for_a_model_that_says_it_goes_by_it():
    model = models.Scripted(first_is_best)
    model.reads_order = True
    assert replay(model, data(), PRICES, 0, "full", seed="s").word == "verified"


def test_points_that_change_with_the_block_are_refused():
    class Renames:
        def predict_path(self, features):
            median = float(np.median(features.X[:, 0]))
            bill = Bill(Acquired.nothing(models.D))
            yield Prediction({"threshold": median}, np.zeros(len(features)), {"path": bill})

    assert "its path changes" in replay(Renames(), data(), PRICES, 0, seed="s").reason


def test_rows_that_are_said_to_be_independent_are_asked_about_without_their_query():
    model = models.Scripted(lambda X, features, point: (X[:, 0], models.bought(len(X), 0)))
    model.independent_rows = True
    assert replay(model, data(), PRICES, 0, "full", seed="s").word == "verified"
    model.say = models.ranks_in_query
    found = replay(model, data(), PRICES, 0, seed="s")
    assert (found.word, "independent_rows" in found.reason) == ("failed", True)


# -- an order of purchases -------------------------------------------------------------------------


@dataclass
class Ordered:
    """Buys column 0; column 1 or 2 by its sign; then both others, by whether that was above 1."""

    peeks: bool = False
    forgets: bool = False

    def predict_path(self, features):
        X = np.nan_to_num(features.X.astype(float), nan=-9.0)
        order = np.full(X.shape, -1)
        order[:, 0] = 0
        first = X[:, 5 if self.peeks else 0] > 0
        order[first, 1], order[~first, 2] = 1, 1
        second = np.where(first, X[:, 1], X[:, 2])
        on = second > 1
        order[np.ix_(on, [3, 4])] = 2
        scores = X[:, 0] + second + np.where(on, X[:, 3] + X[:, 4], 0.0)
        if self.forgets and np.isnan(features.X).any():
            order = np.where(order > 0, 1, order)
        yield Prediction({}, scores, {"path": Bill(Acquired.pack(order >= 0), order=order)})


@ranked_or_not
@pytest.mark.parametrize(("mode", "word"), [("sample", "sampled"), ("full", "verified")])
def test_purchases_in_a_declared_order_pass(mode, word, ranked):
    found = replay(Ordered(), data(ranked=ranked), PRICES, 0, mode, seed="s")
    assert (found.word, found.reason) == (word, "")


@both_modes
@pytest.mark.parametrize("model", [Ordered(peeks=True), Ordered(forgets=True)])
def test_an_order_that_is_not_that_of_the_purchases_is_refused(model, mode):
    assert replay(model, data(), PRICES, 0, mode, seed="s").word == "failed"


# -- a program -------------------------------------------------------------------------------------


@dataclass
class Stump:
    """Buys column 0, and column 1 where column 0 is above 0; its program does ``more`` or less."""

    step: float = 0.0
    sensor: bool = False
    splits: float = 0.0
    refuses: str = ""

    def predict_path(self, features):
        X = features.X.astype(float)
        on = X[:, 0] > 0
        mask = models.bought(len(X), 0)
        mask[on, 1] = True
        scores = np.where(on, np.where(X[:, 1] > 0, 3.0, 2.0), 1.0)
        bill = Bill(Acquired.pack(mask), splits=1.0 + on + self.splits, trees=1)
        yield Prediction({"k": 1}, scores, {"path": bill})

    def program(self, point):
        if self.refuses:
            raise UsageError(self.refuses)
        trees = Ensemble(
            start=np.array([0, 5], np.int32),
            feature=np.array([0, -1, 2 if self.sensor else 1, -1, -1], np.int32),
            threshold=np.zeros(5, np.float32),
            left=np.array([1, -1, 3, -1, -1], np.int32),
            right=np.array([2, -1, 4, -1, -1], np.int32),
            missing_left=np.ones(5, dtype=bool),
            value=np.array([0.0, 1.0, 0.0, 2.0, 3.0]),
            output=np.zeros(1, np.int32),
            base=np.zeros(1),
            features=models.D,
        )
        one = np.zeros(1, dtype=np.int64)
        step = Step(one, np.ones(1), one == 0, np.array([self.step]), WeightedColumns.none())
        return Program(1, [step], trees, np.ones(models.D))


@ranked_or_not
@pytest.mark.parametrize(("mode", "word"), [("sample", "sampled"), ("full", "verified")])
def test_a_model_with_a_program_is_asked_again_and_passes(mode, word, ranked):
    found = replay(Stump(), data(ranked=ranked), PRICES, 0, mode, seed="s")
    assert (found.word, found.reason) == (word, "")


def test_in_the_sample_a_program_is_asked_row_by_row(monkeypatch):
    """The walk of whole blocks, which has all cells, may be what judged the model."""

    def run(*_):
        raise AssertionError("a block")

    monkeypatch.setattr("bench_core.serving.block_walk.BlockWalk.run", run)
    assert replay(Stump(), data(), PRICES, 0, "sample", seed="s").word == "sampled"


@both_modes
@pytest.mark.parametrize(
    ("model", "what"),
    [
        (Stump(step=1e-6), "its scores change"),
        (Stump(sensor=True), "it buys other sensors"),
        (Stump(splits=-1.0), "it pays for other splits or trees"),
    ],
)
def test_a_program_that_answers_otherwise_is_refused(model, what, mode):
    found = replay(model, data(), PRICES, 0, mode, seed="s")
    assert found.word == "failed"
    assert f"asked again by its program, {what}" in found.reason


def test_a_model_without_a_program_at_a_point_needs_another_proof():
    found = replay(Stump(refuses="none here"), data(), PRICES, 0, seed="s")
    assert found.word == "declared"


def test_copies_that_share_a_bill_are_charged_as_in_the_trial():
    """A query's price is shared by its rows, copies included, of which a program knows nothing."""
    copies = np.random.default_rng(0).integers(1, 4, 600)
    examples = replace(data(), multiplicity=copies)
    prices = PerQueryPrices.of(PRICES, np.arange(models.D) < 3)
    assert replay(Stump(), examples, prices, 0, "full", seed="s").word == "verified"
    path = predict_split(Stump(), examples, prices, 0)
    path.cost[0] += 1e-6
    assert "its costs" in replay(Stump(), examples, prices, 0, path=path).reason


# -- how much is looked at -------------------------------------------------------------------------


def test_without_an_audit_costs_are_only_declared():
    assert verdict(first_is_best, "off").word == "declared"


@ranked_or_not
@pytest.mark.parametrize("step", [1, 50, 100])
def test_with_enough_queries_the_sample_leaves_no_point_out(step, ranked):
    def peeks_once(X, features, point):
        return X[:, 0] + X[:, 5] if point == step else X[:, 0], models.bought(len(X), 0)

    found = replay(models.Scripted(peeks_once, 100), data(1800, ranked), PRICES, 0, seed="s")
    assert f"'step': {step}" in found.reason


def test_a_peek_at_a_single_row_and_point_is_found_by_the_full_audit():
    """Row 8005 stands in the second block."""
    examples = data(8100, ranked=False)
    examples.X[8005, 0] = 9

    def peeks_once(X, features, point):
        scores, mask = nested(X, features, point)
        return np.nan_to_num(scores) + ((X[:, 0] == 9) & (point == 2) & np.isnan(X[:, 4])), mask

    found = replay(models.Scripted(peeks_once), examples, PRICES, 0, "full", seed="s")
    assert found.reason == (
        "row 8005 at {'step': 2}: where cells that it did not pay for are replaced by NaN, "
        "its scores change"
    )


# -- large scores ----------------------------------------------------------------------------------

LEAST = float(np.finfo(np.float32).min)


def masked(by, most=2):
    """Scores of three classes, for the largest two by cells that it did not pay for; another class
    is masked for all rows, for most, or for some."""

    def say(reads, X, point):
        scores = np.stack([X[:, 0], X[:, 5] if reads else X[:, 0] / 2, X[:, 1]], axis=1)
        scores[X[:, 2] < most, 2] = by
        return scores

    return say


def by_row(reads, X, point):
    """Each row has an offset of its own in all classes."""
    unpaid = X[:, 5] if reads else X[:, 0] / 2
    return 1e10 * X[:, [0]] + np.stack([X[:, 0], unpaid, X[:, 1]], axis=1)


def with_offset(by):
    return lambda reads, X, point: by + (X[:, 0] + X[:, 5] if reads else X[:, 0])


def by_query(reads, X, point):
    """All documents of a query have an offset, which changes no order."""
    scores = X[:, 0] + X[:, 5] if reads else X[:, 0]
    return scores + np.repeat(1e10 * X[:, 0].reshape(-1, 5).max(axis=1), 5)


@both_modes
@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize(
    ("say", "classes", "ranked"),
    [
        (masked(LEAST), 3, False),
        (masked(-1e10), 3, False),
        (masked(-1e10, 0.0), 3, False),
        (masked(LEAST, -1.0), 3, False),
        (by_row, 3, False),
        (with_offset(1e10), 0, False),
        (with_offset(-1e13), 0, False),
        (with_offset(1e10), 0, True),
        (by_query, 0, True),
    ],
    ids=["least", "mask", "half", "some", "row", "offset", "larger", "ranking", "query"],
)
def test_no_large_number_hides_a_change_of_the_others(say, classes, ranked, reads, mode):
    model = models.Scripted(
        lambda X, features, point: (say(reads, X, point), models.bought(len(X), 0, 1, 2))
    )
    found = replay(model, data(ranked=ranked), PRICES, classes, mode, seed="s")
    if reads:
        assert (found.word, found.reason[-17:]) == ("failed", "its scores change")
    else:
        assert found.word == ("verified" if mode == "full" else "sampled")


def test_a_row_with_a_large_score_hides_no_other():
    scores = np.random.default_rng(3).normal(size=4000)
    scores[7] = 1e15
    scale = spreads(scores[:, None], None)
    moved = scores + 1e-6
    assert close(scores[:, None], moved[:, None], scale).tolist() == [k == 7 for k in range(4000)]
    assert scale[0].size[0] == pytest.approx(4, abs=2)  # as of the others


# -- rounding --------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_scores_may_differ_by_rounding_and_no_more(size):
    def drifts(by):
        def say(X, features, point):
            return size * (X[:, 0] + by * X[:, 0].mean()), models.bought(len(X), 0)

        return say

    assert verdict(drifts(1e-12), "full").word == "verified"
    assert verdict(drifts(1e-5), "full").word == "failed"


def test_where_another_process_cannot_load_a_model_it_is_asked_here_and_why_is_kept(
    tmp_path, monkeypatch
):
    model = models.Scripted(nested)
    monkeypatch.setattr(ModelElsewhere, "load_here", lambda self: model)
    with ModelElsewhere(tmp_path / "of_a_notebook.npz") as elsewhere:
        assert elsewhere.fault == ""
        assert elsewhere.fresh() is model
    assert "of_a_notebook.npz" in elsewhere.fault
