"""The estimators keep scikit-learn's promises, and their own: the budget."""

import gc
import pickle
import warnings
import weakref
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from helpers.kit import refused
from helpers.toys import Prefix, Stacked
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import bench_core
from bench_core import (
    Acquired,
    Bill,
    BudgetedClassifier,
    BudgetedRanker,
    BudgetedRegressor,
    MetricValues,
    Prediction,
    Task,
)
from bench_core.execution.fitting import fit_in_process
from bench_core.serving import load

FAST = {"parameters": {"trees": 15, "tradeoff": 0.1}}


UNLIKE = {
    f"check_sample_weight_equivalence_on_{kind}_data": "the validation part is drawn by row number"
    for kind in ("dense", "sparse")
}


@parametrize_with_checks(
    [BudgetedClassifier(**FAST), BudgetedRegressor(**FAST), BudgetedRanker(**FAST)],
    expected_failed_checks=lambda estimator: UNLIKE,
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


N = 300
RNG = np.random.default_rng(11)
X = RNG.normal(size=(N, 3))
SIGNAL = X[:, 0] + 1.5 * X[:, 2]
POSITIVE = (SIGNAL > 0).astype(int)
ILL = np.where(SIGNAL > 0, "ill", "well")
GRADES, QUERIES = np.clip(np.round(SIGNAL + 1), 0, 4), np.repeat(np.arange(60), 5)
COSTS = [1.0, 5.0, 20.0]
GRID = {"parameters": {"trees": 15, "tradeoff": [0.1, 1.0]}}


@pytest.fixture
def trained(monkeypatch):
    """What was trained so far: for each fit its learner, its splits and more, in a list."""
    seen = []

    def counted(*arguments):
        seen.append(arguments)
        return fit_in_process(*arguments)

    monkeypatch.setattr("bench_core.api.budget_choice.fit_in_process", counted)
    return seen


def test_the_positive_class_is_1_for_the_learner_and_classes_stay_sorted(trained):
    y = np.where(SIGNAL > 0.5, "ill", "well")
    fitted = BudgetedClassifier(costs=COSTS, positive="ill", **FAST)
    fitted.fit(X[:200], y[:200], X[200:], y[200:])
    _, splits, *_ = trained[0]
    assert splits.train.y.tolist() == (y[:200] == "ill").tolist()
    assert splits.valid.y.tolist() == (y[200:] == "ill").tolist()
    assert fitted.classes_.tolist() == ["ill", "well"]
    assert fitted.score(X[200:], y[200:]) == fitted.quality_ > 0.85
    assert ((fitted.predict_proba(X)[:, 0] > 0.5) == (fitted.predict(X) == "ill")).all()


def test_times_in_seconds_stay_apart_in_float32():
    passed = np.random.default_rng(3).permutation(300)
    times = (1.7e9 + passed)[:, None]  # float32 has a value every 128 seconds
    fitted = BudgetedClassifier(**FAST).fit(times[:200], passed[:200] > 110)
    assert fitted.score(times[200:], passed[200:] > 110) > 0.97


def test_within_a_mean_budget_the_best_single_point_answers_a_row_alike_anywhere():
    """The path of ``Prefix`` buys columns 0, 2 and 1, so its points cost 1, 21 and 26."""
    for budget, spent in ((25.0, 21.0), (6.5, 1.0), (0.5, 0.0)):
        cheapest = (
            "budget 0.5: every row gets the same answer; .* features 1 of toy-prefix, costs 1$"
        )
        with nullcontext() if spent else pytest.warns(UserWarning, match=cheapest):
            fitted = BudgetedClassifier(Prefix(), budget=budget, costs=COSTS).fit(X, ILL)
        assert fitted.cost_ == spent
        assert set(fitted.row_costs(X)) == {spent}
        whole = fitted.decision_function(X)
        for row in range(50):
            assert fitted.decision_function(X[row : row + 1]) == whole[row]
    assert set(fitted.predict(X)) == {"ill"}  # of the constant, which alone is within 0.5


@pytest.mark.parametrize("budget", [0, 3.0, 6.0, 21.5, None])
def test_a_cap_holds_for_every_row_that_is_predicted(budget):
    fitted = BudgetedClassifier(budget=budget, budget_kind="cap", costs=COSTS, **GRID)
    with nullcontext() if budget != 0 else pytest.warns(UserWarning, match="cap 0: every row"):
        fitted.fit(X[:200], ILL[:200])
    others = RNG.normal(size=(500, 3)) * 3
    paid = fitted.row_costs(others)
    if budget is not None:
        assert paid.max() <= budget
        assert fitted.cost_ <= budget
        assert fitted.point_["cap"] == budget
    alone = np.concatenate([fitted.predict(row[None]) for row in others[:20]])
    np.testing.assert_array_equal(alone, fitted.predict(others)[:20])
    if budget == 0:  # nothing can be bought: the more frequent class
        assert fitted.purchases_ == {}
        assert set(fitted.predict(others)) == {max(*ILL[:200], key=[*ILL[:200]].count)}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run whose validation rows are its test rows."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    how = {"executor": "inline", "progress": False, "store": tmp_path / "x.db"}
    return lambda train, valid, **more: bench_core.run(
        *train, valid=valid, test=valid, **how, **more
    )


def test_a_cap_is_what_a_run_measures_under_it(run):
    halves = (X[:200], POSITIVE[:200]), (X[200:], POSITIVE[200:])
    fitted = BudgetedClassifier(Half(0.1), budget=6, budget_kind="cap", costs=COSTS)
    fitted.fit(*halves[0], *halves[1])
    best = run(*halves, costs=COSTS, learners=[Half(0.1)], caps=6).best(6, "cap")
    assert (best.quality, best.cost) == pytest.approx(
        (fitted.quality_, fitted.row_costs(X[200:]).mean())
    )


class CostlyFirst:
    """Points that each buy one feature and answer with it: the costliest, then the cheapest."""

    def predict_path(self, features):
        for k in (2, 0):
            bill = Bill(Acquired.pack(np.eye(3, dtype=bool)[[k]]))
            yield Prediction({"feature": k}, features.X[:, k].astype(float), {"path": bill})


@dataclass(frozen=True)
class LearnsCostlyFirst:
    name: ClassVar[str] = "costly-first"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY})

    def fit(self, train, valid, prices, context):
        return CostlyFirst()


def test_a_point_within_the_cap_is_used_alone_if_the_path_begins_above_it():
    y = (X[:, 0] > 0).astype(int)
    fitted = BudgetedClassifier(LearnsCostlyFirst(), budget=3, budget_kind="cap", costs=COSTS).fit(
        X, y
    )
    assert fitted.point_ == {"feature": 0, "cap": 3}
    np.testing.assert_array_equal(fitted.predict(X), y)
    assert set(fitted.row_costs(X)) == {1.0}
    assert fitted.purchases_ == {"x0": 1.0}
    poor = BudgetedClassifier(LearnsCostlyFirst(), budget=0.5, budget_kind="cap", costs=COSTS)
    said = "cap 0.5: every row gets the same answer; the cheapest point, feature 0 of costly-first"
    with pytest.warns(UserWarning, match=f"{said}, costs 1$"):
        poor.fit(X, y)
    assert set(poor.row_costs(X)) == {0.0}
    assert len(set(poor.predict(X))) == 1


def test_a_ranker_keeps_a_cap():
    how = {"trees": 15, "tradeoff": 1.0}
    ranker = BudgetedRanker(costs=COSTS, budget=6, budget_kind="cap", parameters=how)
    ranker.fit(X, GRADES, QUERIES)
    assert ranker.row_costs(X, QUERIES).max() <= 6
    assert ranker.score(X, GRADES, QUERIES) > 0.6


CITIES = np.where(SIGNAL > 0.5, "Ulm", np.where(X[:, 1] > 0, "Bonn", "Kiel"))


def applicants():
    """A frame with few texts, many texts, a category and missing cells."""
    frame = pd.DataFrame(X, columns=["age", "weight", "scan"]).assign(city=CITIES)
    frame["job"] = pd.Categorical([f"job {k % 17}" for k in range(N)])
    frame.loc[3:9, "city"] = None
    frame.loc[8:12, "age"] = np.nan
    return frame


def test_a_frame_with_text_is_encoded_as_by_a_run(run):
    frame = applicants()
    costs = {"age": 1, "weight": 5, "scan": 20, "city": 2, "job": 3}
    halves = (frame[:200], ILL[:200]), (frame[200:], ILL[200:])
    fitted = BudgetedClassifier("gbrt", costs=costs, parameters={"trees": 15}, budget=26)
    fitted.fit(*halves[0], *halves[1])
    best = run(*halves, costs=costs, learners={"gbrt": {"trees": 15}}).best(26)
    assert (best.quality, best.cost) == pytest.approx((fitted.quality_, fitted.cost_))
    assert fitted.row_costs(frame[200:]).mean() == pytest.approx(fitted.cost_)
    assert fitted.n_features_in_ == 5
    assert fitted.feature_names_in_.tolist() == [*frame]
    assert dict(zip(frame, fitted.feature_costs_, strict=True)) == costs


def test_integers_beyond_numpys_are_read_and_one_column_is_no_table():
    frame = pl.DataFrame({"a": [2**60, 3] * 60}, schema={"a": pl.Int128})
    model = BudgetedClassifier("gbrt", budget=3, parameters={"trees": 2}).fit(frame, [0, 1] * 60)
    assert model.predict(frame[:2]).tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"X is one column or row; give a table: X.to_frame\(\)"):
        model.fit(pd.Series(["yes", "no"] * 60), range(120))


FORMS = {
    "polars": pl.from_pandas,
    "arrow": pa.Table.from_pandas,
    "mapping": lambda frame: {name: frame[name].tolist() for name in frame},
    "records": lambda frame: frame.to_dict("records"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_table_in_any_form_is_fitted_as_its_frame(form):
    frame = applicants().astype({"job": "str"})
    one, two = (
        BudgetedClassifier(costs=[1, 5, 20, 2, 3], **FAST).fit(table, POSITIVE)
        for table in (frame, FORMS[form](frame))
    )
    for rows in (frame, frame[3:4]):
        assert one.predict_proba(rows).tolist() == two.predict_proba(FORMS[form](rows)).tolist()


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("columns", [["age", "weight"], ["age", "city"]])
def test_a_frame_without_rows_is_refused_as_an_array_is(kind, columns):
    frame = applicants()[columns]
    frame = frame if kind == "pandas" else pytest.importorskip("polars").from_pandas(frame)
    fitted = BudgetedClassifier(**FAST).fit(frame, SIGNAL > 0)
    refused("Found array with 0 sample(s)", fitted.predict, frame[:0], error=ValueError)


def test_columns_that_cannot_be_encoded_are_one_line():
    dates = applicants().assign(day="2024-01-01", note=[f"text {k}" for k in range(N)])
    fit = BudgetedClassifier(**FAST).fit
    says = "'day' holds dates|dates=True|'note' holds 300|drop=['day', 'note']"
    refused(says, fit, dates, SIGNAL > 0, error=ValueError)
    commas = applicants().assign(age="1,5")
    refused("decimal=','", fit, commas, SIGNAL > 0, error=ValueError)
    fitted = BudgetedClassifier(**FAST).fit(applicants(), SIGNAL > 0)
    with pytest.raises(ValueError, match="feature names"):  # scikit-learn's, of several lines
        fitted.predict(applicants().drop(columns="city"))


def test_dates_and_decimal_commas_are_read_as_by_a_run():
    days = 19000 + np.random.default_rng(2).integers(0, 500, N)
    y = SIGNAL + (days - 19250) / 100 > 0
    numbers = applicants().assign(age=X[:, 0].round(2), day=days.astype(float))
    written = numbers.assign(
        age=numbers["age"].map(lambda x: f"{x:.2f}".replace(".", ",")),
        day=pd.to_datetime(days, unit="D").strftime("%d.%m.%Y"),
    )
    costs = [1, 5, 20, 2, 3, 1]
    plain = BudgetedClassifier(costs=costs, **FAST).fit(numbers, y)
    fitted = BudgetedClassifier(costs=costs, dates=True, decimal=",", **FAST).fit(written, y)
    assert fitted.score(written, y) > 0.8
    assert fitted.feature_importances_[5] > 0.5
    typed = numbers.assign(day=pd.to_datetime(days, unit="D"))
    for table in (written, typed, written.to_numpy(), typed.assign(day=typed["day"].dt.date)):
        with warnings.catch_warnings(action="ignore"):  # scikit-learn's: X has no names
            assert (
                fitted.decision_function(table).tolist()
                == plain.decision_function(numbers).tolist()
            )
    again = BudgetedClassifier(costs=costs, **FAST).fit(typed, y)
    assert again.decision_function(typed).tolist() == plain.decision_function(numbers).tolist()
    refused("'day' needs dates|'x'", fitted.predict, written.assign(day="x"), error=ValueError)


def test_a_weight_counts_copies():
    y = np.where(SIGNAL > 0, "ill", "well")
    copies = np.random.default_rng(5).integers(0, 4, 200)
    rows = np.repeat(np.arange(200), copies)
    for learner in ("cegb", "gbrt"):
        one, two = (
            BudgetedClassifier(learner, costs=COSTS, parameters={"trees": 15}) for _ in "ab"
        )
        one.fit(X[:200], y[:200], X[200:], y[200:], sample_weight=copies.astype(float))
        two.fit(X[rows], y[rows], X[200:], y[200:])
        np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), rtol=1e-9)
        assert (one.cost_, one.quality_) == pytest.approx((two.cost_, two.quality_))
    ranker, rows = BudgetedRanker(costs=COSTS, **FAST), (X, GRADES, QUERIES)
    scores = ranker.fit(*rows, *rows, sample_weight=np.full(N, 2)).predict(X, QUERIES)
    two = ranker.fit(*(np.repeat(part, 2, axis=0) for part in rows), *rows)
    np.testing.assert_allclose(scores, two.predict(X, QUERIES), rtol=1e-9)
    half = {"sample_weight": np.full(N, 0.5)}
    refused("sample_weight|0.5", BudgetedClassifier(**FAST).fit, X, y, **half, error=ValueError)


def test_purchases_are_the_shares_of_the_validation_rows_that_buy():
    y = np.where((X[:, 0] > 0) & (X[:, 2] > 0), "ill", "well")
    fitted = BudgetedClassifier("cost-tree", costs=COSTS).fit(X[:200], y[:200], X[200:], y[200:])
    # column 0 is always bought, column 2 for rows that pay 1 + 20
    both = (fitted.row_costs(X[200:]) == 21).mean()
    assert 0.3 < both < 0.7
    assert fitted.purchases_ == {"x0": 1.0, "x2": pytest.approx(both)}
    assert fitted.feature_importances_.tolist() == [1.0, 0.0, pytest.approx(both)]
    paid = sum(COSTS[int(name[1:])] * share for name, share in fitted.purchases_.items())
    assert paid == pytest.approx(fitted.cost_)


def test_rows_of_a_query_may_be_anywhere():
    ranker = BudgetedRanker(costs=COSTS, **FAST).fit(X, GRADES, QUERIES)
    order = RNG.permutation(N)
    mixed = X[order], QUERIES[order]
    assert ranker.predict(*mixed).tolist() == ranker.predict(X, QUERIES)[order].tolist()
    bought = ranker.row_purchases(*mixed).to_numpy()
    assert bought.tolist() == ranker.row_purchases(X, QUERIES).to_numpy()[order].tolist()
    assert (bought @ COSTS).tolist() == ranker.row_costs(*mixed).tolist()
    score = ranker.score(X, GRADES, QUERIES)
    assert ranker.score(X[order], GRADES[order], QUERIES[order]) == score > 0.8


@dataclass(frozen=True)
class Half(Prefix):
    """The toy learner under another name, as a user's own class."""

    name: ClassVar[str] = "half"


def test_a_learner_may_be_an_instance_with_what_it_stands_on():
    own = BudgetedClassifier(Half(0.1), costs=COSTS).fit(X, POSITIVE)
    assert own.score(X, POSITIVE) > 0.8
    stacked = BudgetedClassifier(Stacked(base=Half(0.1)), costs=COSTS).fit(X, POSITIVE)
    np.testing.assert_array_equal(own.predict(X), stacked.predict(X))  # half the log-odds


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": -1}, "budget must be a number >= 0"),
        ({"parameters": [{"trees": 3}]}, "parameters must map names to values or lists of them"),
        ({"budget_kind": "most"}, "budget_kind must be mean or cap"),
        ({"learner": "cegbb"}, "unknown learner 'cegbb': did you mean cegb?"),
        ({"positive": 2}, "positive=2 is not a class of y"),
        ({"learner": Prefix(), "parameters": {"a": 1}}, "parameters need a learner given by name"),
        ({"costs": {"age": 1}}, "X has no names; in a pipeline, set_output(transform='pandas')"),
        (
            {"metric": "x"},
            "known: accuracy, auc, balanced_accuracy, log_loss, seg, total_cost; one of",
        ),
        ({"metric": "mse"}, "metric mse judges regression, not binary"),
        ({"budget": "60"}, "budget must be a number >= 0, not '60'"),
        ({"decimal": ";"}, "decimal must be '.' or ',', not ';'"),
        ({"validation_fraction": 2}, "validation_fraction must be between 0 and 1"),
    ],
)
def test_what_cannot_be_used_is_a_value_error_of_one_line(options, message):
    estimator = BudgetedClassifier(**({"costs": COSTS, **FAST} | options))
    refused(message, estimator.fit, X, (SIGNAL > 0).astype(int), error=ValueError)


def test_what_does_not_go_with_the_data_is_refused():
    fit, three = BudgetedClassifier(Prefix()).fit, np.arange(N) % 3
    refused("not multiclass", fit, X, three, error=ValueError)
    refused("y holds grades|from 0", BudgetedRanker(**FAST).fit, X, SIGNAL, error=ValueError)
    fit, y = BudgetedClassifier(metric="auc", **FAST).fit, (np.arange(N) < 150).astype(int)
    refused("auc|validation part|one class|use more", fit, X, y, X[:9], y[:9], error=ValueError)
    # a transformer's price among those of columns
    fit = BudgetedRegressor(costs={"a": 1, "place": 5}, **FAST).fit
    words = "not used: 'place'|verbose_feature_names_out=True"
    refused(words, fit, pd.DataFrame(X, columns=["a", "b", "c"]), SIGNAL, error=ValueError)


@dataclass
class Spied:
    """A model that notes the rows it is given and the points it is asked for."""

    model: Any
    rows: list[int]
    points: list[int]

    def predict_path(self, features):
        self.rows.append(len(features))
        for k, prediction in enumerate(self.model.predict_path(features)):
            self.points.append(k)
            yield prediction


def test_rows_are_predicted_by_blocks_up_to_the_point_that_was_chosen():
    fitted = BudgetedClassifier(Prefix(), budget=21.5, costs=COSTS).fit(X, ILL)
    assert fitted.position_ == 1  # of three points, after which columns 0 and 2 are bought
    many = RNG.normal(size=(20_000, 3))
    whole = fitted.decision_function(many), fitted.row_costs(many)
    fitted.model_ = Spied(fitted.model_, [], [])
    assert np.array_equal(fitted.decision_function(many), whole[0])
    assert fitted.model_.rows == [8000, 8000, 4000]
    assert fitted.model_.points == 3 * [*range(fitted.position_ + 1)]
    parts = [fitted.row_costs(many[k : k + 500]) for k in range(0, len(many), 500)]
    assert np.array_equal(np.concatenate(parts), whole[1])


@pytest.mark.parametrize("start", [2**63 - 1000, 2**60])
def test_integers_that_float64_makes_equal_are_refused(start):
    numbers = np.arange(N, dtype=np.uint64) + np.uint64(start)
    y = (np.arange(len(X)) % 2).astype(int)
    for table, name in (
        (np.column_stack([numbers, numbers]), "0"),
        (pd.DataFrame({"a": X[:, 0], "id": numbers}), "'id'"),
        (pl.DataFrame({"a": X[:, 0], "id": numbers}), "'id'"),
    ):
        fit = BudgetedClassifier(**FAST).fit
        refused(f"X, column {name} holds integers beyond 2^53", fit, table, y, error=ValueError)
    apart = pd.DataFrame({"id": numbers - np.uint64(start)})
    assert BudgetedClassifier(**FAST).fit(apart, y).n_features_in_ == 1


def test_the_metric_may_be_an_object():
    @dataclass(frozen=True)
    class Least:
        """Share of rows scored below 0: a point that scores them so wins."""

        name: ClassVar[str] = "least"
        higher_is_better: ClassVar[bool] = True
        tasks: ClassVar[frozenset[Task]] = frozenset({Task.REGRESSION})

        def values(self, scores, y, queries=None, multiplicity=None):
            return MetricValues((scores < 0).astype(float), np.ones(len(y)))

    fitted = BudgetedRegressor(metric=Least(), **FAST).fit(X, SIGNAL)
    assert fitted.score(X, SIGNAL) > 0
    assert fitted.metric_ == Least()
    assert 0.3 < fitted.quality_ <= 1


def test_a_constant_that_nothing_beats_is_warned_of_with_the_cheapest_point():
    noise = np.random.default_rng(8).normal(size=(200, 1))
    y = (np.arange(200) % 10 == 0).astype(int)

    class Wrong(CostlyFirst):
        def predict_path(self, features):
            bill = Bill(Acquired.pack(np.ones((1, 1), dtype=bool)))
            yield Prediction({"way": 1}, 1.0 + np.arange(len(features)), {"path": bill})

    @dataclass(frozen=True)
    class LearnsWrong(LearnsCostlyFirst):
        name: ClassVar[str] = "wrong"

        def fit(self, train, valid, prices, context):
            return Wrong()

    message = "no point has a better accuracy on the held-out rows; the cheapest point, way 1 of wr"
    with pytest.warns(UserWarning, match=message):
        fitted = BudgetedClassifier(LearnsWrong(), budget=5, costs=[2.0]).fit(noise, y)
    assert fitted.point_ == {"constant": 1}
    BudgetedClassifier(LearnsWrong(), costs=[2.0]).fit(noise, y)  # without a budget, no warning


@pytest.mark.parametrize("kind", ["mean", "cap"])
def test_one_fit_holds_all_budgets(trained, kind):
    how = {"costs": COSTS, **GRID}
    whole = BudgetedClassifier(**how).fit(X, ILL)
    assert len(trained) == 2
    for budget in (2.0, 6.0, None):
        other = whole.at(budget, kind)
        assert len(trained) == 2
        fresh = BudgetedClassifier(budget=budget, budget_kind=kind, **how).fit(X, ILL)
        del trained[2:]
        assert other.get_params() == fresh.get_params()
        assert (other.point_, other.cost_, other.quality_) == (
            fresh.point_,
            fresh.cost_,
            fresh.quality_,
        )
        assert other.purchases_ == fresh.purchases_
        assert other.predict_proba(X).tolist() == fresh.predict_proba(X).tolist()
        assert other.row_costs(X).tolist() == fresh.row_costs(X).tolist()
    assert whole.budget is None  # unchanged
    kept = pickle.loads(pickle.dumps(whole)).at(2.0, kind)
    assert kept.row_costs(X).tolist() == whole.at(2.0, kind).row_costs(X).tolist()
    refused("budget must be a number >= 0, not -1", whole.at, -1, error=ValueError)


@pytest.mark.parametrize("inside", [False, True])
def test_a_grid_search_over_budgets_trains_once_for_each_other_setting(trained, inside):
    model = BudgetedClassifier("gbrt", costs=COSTS)
    name = "budgetedclassifier__" if inside else ""
    grid = {
        "budget": [22, 26, None],
        "budget_kind": ["mean", "cap"],
        "parameters": [{"trees": 2}, {"trees": 3}],
    }
    search = GridSearchCV(
        make_pipeline(StandardScaler(), model) if inside else model,
        {f"{name}{key}": values for key, values in grid.items()},
        cv=3,
    ).fit(X, POSITIVE)
    assert len(trained) == 2 * 3 + 1  # settings by folds, and the best on all rows
    assert len(search.cv_results_["params"]) == 12
    alone = clone(search.best_estimator_).fit(X, POSITIVE)
    assert alone.predict(X).tolist() == search.predict(X).tolist()


def test_other_rows_or_settings_are_trained_anew(trained):
    y, base = (SIGNAL > 0).astype(int), clone(BudgetedClassifier("gbrt", costs=COSTS))
    base.set_params(parameters={"trees": 2})
    changes = {"costs": [1, 5, 21], "random_state": 1, "metric": "auc", "threads": 2}
    clone(base).fit(X, y)
    clone(base).fit(X.copy(), y)
    assert len(trained) == 1
    for count, (name, value) in enumerate(changes.items(), start=2):
        clone(base).set_params(**{name: value}).fit(X, y)
        assert len(trained) == count
    clone(base).fit(X[::-1], y[::-1])
    clone(base).fit(X, 1 - y)
    clone(base).fit(X, y, sample_weight=np.full(N, 2))
    clone(base).fit(X, y, X, y)
    assert len(trained) == 9


def test_models_of_clones_go_with_them(trained):
    y, model = (SIGNAL > 0).astype(int), BudgetedClassifier("gbrt", parameters={"trees": 2})
    base = clone(model)
    fitted = clone(base).fit(X, y)
    kept = weakref.ref(fitted.model_)
    assert "_fits" not in pickle.loads(pickle.dumps(base)).__dict__
    del fitted, base
    gc.collect()
    assert kept() is None
    clone(model).fit(X, y)
    assert len(trained) == 2


@pytest.mark.parametrize("kind", ["mean", "cap"])
def test_purchases_of_rows_add_up_to_their_costs(kind):
    y = np.where((X[:, 0] > 0) & (X[:, 2] > 0), "ill", "well")
    frame = pd.DataFrame(X, columns=["age", "weight", "scan"], index=np.arange(N) * 2)
    fitted = BudgetedClassifier("cost-tree", costs=COSTS, budget=21, budget_kind=kind)
    fitted.fit(frame, y)
    bought = fitted.row_purchases(frame)
    assert bought.index.equals(frame.index)
    assert [*bought.columns] == ["age", "weight", "scan"]
    assert {*bought.dtypes} == {np.dtype(bool)}
    assert 0 < bought["scan"].mean() < 1
    assert (bought.to_numpy() @ COSTS).tolist() == fitted.row_costs(frame).tolist()


SERVED = [
    ("gbrt", {"trees": 12}),
    ("cegb", {"trees": 12, "tradeoff": 0.1}),
    ("l1", {}),
    ("masked-gbrt", {"trees": 20}),
    ("cost-tree", {}),
]


@pytest.mark.parametrize(("learner", "parameters"), SERVED)
@pytest.mark.parametrize(("budget", "kind"), [(None, "mean"), (21.5, "mean"), (22.0, "cap")])
def test_an_exported_model_answers_and_pays_as_the_estimator(
    learner, parameters, budget, kind, tmp_path
):
    y = np.where((X[:, 0] > 0) | (X[:, 2] > 1), "ill", "well")
    frame = pd.DataFrame(X, columns=["age", "weight", "scan"])
    frame["age"] += 1.7e9  # kept apart by an offset
    if learner in ("gbrt", "l1"):
        frame["city"] = CITIES
    costs = {"age": 1, "weight": 5, "scan": 20, "city": 3}
    how = {"costs": {name: costs[name] for name in frame}, "positive": "ill"}
    fitted = BudgetedClassifier(
        learner, budget=budget, budget_kind=kind, parameters=parameters, **how
    ).fit(frame, y)
    fitted.export(tmp_path / "model")
    for model in (fitted.export(), load(tmp_path / "model")):
        answers = model.predict_rows(frame)
        scores = fitted.decision_function(frame)  # of "well", the second class
        np.testing.assert_allclose(-answers.scores, scores, rtol=1e-9, atol=1e-9)
        assert model.classes == ("well", "ill")
        paid = fitted.row_costs(frame)
        if kind == "mean":
            np.testing.assert_allclose(answers.spent, paid, rtol=1e-9)
            bought = answers.bought[:, : len(frame.columns)]
            assert bought.tolist() == fitted.row_purchases(frame).to_numpy().tolist()
        assert (answers.spent <= paid + 1e-9).all()
        assert (answers.spent <= (budget or 1e9) * (1 + 1e-9)).all() or kind == "mean"


def test_what_cannot_be_exported_is_a_value_error(tmp_path):
    fitted = BudgetedClassifier(LearnsCostlyFirst(), costs=COSTS).fit(X, POSITIVE)
    refused("costly-first|CostlyFirst|'program'", fitted.export, error=ValueError)
    (tmp_path / "mine.txt").write_text("")
    fitted = BudgetedClassifier("gbrt", parameters={"trees": 2}).fit(X, POSITIVE)
    refused("contains other files|new folder", fitted.export, tmp_path, error=ValueError)
    with pytest.raises(NotFittedError):
        BudgetedClassifier().export()


def test_a_sparse_matrix_is_its_array():
    y, sparse = (SIGNAL > 0).astype(int), csr_array(np.where(X > 1, X, 0))
    one = BudgetedClassifier(**FAST).fit(sparse, y)
    two = BudgetedClassifier(**FAST).fit(sparse.toarray(), y)
    assert one.predict_proba(sparse).tolist() == two.predict_proba(sparse.toarray()).tolist()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("estimator", [BudgetedClassifier, BudgetedRegressor])
def test_rows_of_a_group_stay_in_one_part(estimator, weighted, monkeypatch):
    """Labels are coin tosses by patient, and the one feature tells patients apart."""
    rng, parts = np.random.default_rng(0), []
    patient = rng.permutation(np.repeat(np.arange(40), 8))
    y = rng.permutation(np.arange(40) % 2)[patient]
    cut = estimator._divided
    monkeypatch.setattr(
        estimator, "_divided", lambda self, *args: parts.append(cut(self, *args)) or parts[-1]
    )
    weight = rng.integers(0, 3, len(y)) if weighted else None
    X = patient[:, None] + 0.5
    estimator("gbrt", parameters={"trees": 2}, random_state=0).fit(
        X, y, sample_weight=weight, groups=patient
    )
    train, valid = ({*part.X[:, 0].tolist()} for part in parts[0])
    assert not train & valid
    assert len(train | valid) == 40
    assert all(part.queries is None for part in parts[0])
    three = {"groups": [1, 2, 3]}
    refused("groups has 3 values for 320", estimator("gbrt").fit, X, y, **three, error=ValueError)
    one = {"groups": [1] * len(y)}
    refused("groups holds one id|X_val", estimator("gbrt").fit, X, y, **one, error=ValueError)
