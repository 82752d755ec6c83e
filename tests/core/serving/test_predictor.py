"""Small programs by hand, alone and as estimators of scikit-learn: what is asked for and paid."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from bench_trees import Ensemble
from helpers.kit import refused
from helpers.random_trees import stump

from bench_core import DiscountGroup, Queries, price_list
from bench_core.costs.shipped import PerQueryPrices
from bench_core.serving import (
    END,
    REJECT,
    ExplainedStep,
    Folder,
    Predictor,
    Program,
    Step,
    Stop,
    WeightedColumns,
    no_trees,
)

NAMES = ("a", "b", "c", "d")


def step(*trees, bias=0.0, **more):
    chosen = np.array(trees, dtype=np.int64)
    return Step(chosen, np.ones(len(trees)), np.ones(len(trees), bool), np.array([bias]), **more)


def predictor(steps, trees, prices=None, **more):
    return Predictor(folder_of(steps, trees, prices, **more))


def folder_of(steps, trees, prices=None, **more):
    nothing = np.array([-9.0])
    more = {"stops": [Stop(k, {"stage": k}) for k in range(len(steps))], "nothing": nothing, **more}
    program = Program(
        1, steps, Ensemble.concat(trees) if trees else no_trees(1, 4), np.ones(4), **more
    )
    costs = prices or price_list(np.array([1.0, 2.0, 4.0, 8.0]), split=0.5, tree=0.25)
    return Folder(program, costs, NAMES, {"task": "binary"})


def asking(**values):
    calls = []

    def acquire(names):
        calls.append(names)
        return [values[name] for name in names]

    return acquire, calls


CASCADE = [
    step(0, bias=0.5, gate="score", value=1.0, then=1, otherwise=REJECT),
    step(1, carry=True, then=END),
]
STUMPS = [stump(0, 0.0, 1.0), stump(2, 10.0, 20.0)]


def model_of(task, names=(), matrix=None):
    errors = matrix and {"matrix": matrix, "column": np.full(np.shape(matrix), -1).tolist()}
    facts = {"task": task, "classes": len(names), "class_names": names, "error_costs": errors}
    return Predictor(replace(folder_of(CASCADE, STUMPS), about=facts))


@pytest.mark.parametrize(
    ("matrix", "label"),
    [(None, "yes"), (((0, 3), (1, 0)), "no")],  # 0.38 * 3 > 0.62 * 1
)
def test_an_answer_has_the_label_of_its_row(matrix, label):
    model = model_of("binary", ["no", "yes"], matrix)
    answer = model.predict({"a": -1.0})
    assert answer.score == 0.5
    assert answer.label == model.labels(answer.score) == label
    assert model.labels([0.5, -0.5]).tolist() == [label, "no"]
    assert pickle.loads(pickle.dumps(answer)).label == label
    assert "bought=('a',)" in repr(answer)
    assert "classes" not in repr(answer)
    assert repr(answer).startswith(f"Answer(label='{label}', score=0.5, spent=")


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["0", "1"], [0, 1]),
        (["-1", "1"], [-1, 1]),
        (["False", "True"], [False, True]),
        (["01", "1"], ["01", "1"]),
        (["1", "none"], ["1", "none"]),
    ],
)
def test_labels_are_integers_or_booleans_if_all_classes_are(names, labels):
    model = model_of("binary", names)
    found = model.predict({"a": -1.0}).label
    assert (found, type(found)) == (labels[1], type(labels[1]))
    assert model.labels([-0.5, 0.5]).tolist() == labels


def test_scores_of_one_row_or_of_several_have_labels():
    model = model_of("multiclass", ["a", "b", "c"])
    assert model.labels([0.0, 2.0, 1.0]) == "b"
    assert model.labels([[0.0, 2.0, 1.0], [3.0, 2.0, 1.0]]).tolist() == ["b", "a"]
    refused("scores must be (n, 3) for 3 classes, not ()", model.labels, 0.5)
    refused("scores must be (n, 3) for 3 classes, not (1, 2)", model.labels, [[0.5, 1.0]])
    two = model_of("binary", ["a", "b"])
    refused("scores must be (n,) for 2 classes, not (2, 3)", two.labels, np.zeros((2, 3)))


def test_a_score_of_a_regression_has_no_label():
    model = model_of("regression")
    answer = model.predict({"a": -1.0})
    refused("this model has no classes; use the answer's score", getattr, answer, "label")
    refused("a regression model has no classes; use the scores", model.labels, 0.5)


def test_an_explanation_has_purchases_scores_and_the_reason_of_the_end():
    model = predictor(CASCADE, STUMPS)
    told = model.explain({"a": -1.0, "c": 3.0})
    assert told.steps == (ExplainedStep(0, ("a",), 1.75, 0.5),)
    assert told.why == (
        "its score 0.5 is below 1, the gate of step 0; the purchases of step 1 cost at most 4"
    )
    told = model.explain({"a": 1.0, "c": 3.0})
    assert told.steps == (ExplainedStep(0, ("a",), 1.75, 1.5), ExplainedStep(1, ("c",), 4.75, 21.5))
    assert repr(told) == (
        "step 0: bought a for 1.75, score 1.5\n"
        "step 1: bought c for 4.75, score 21.5\n"
        "score 21.5 for 6.5; the model has no further step"
    )
    told = model.explain(pd.Series({"a": 1.0, "c": 3.0}), cap=6)
    assert told.steps[1] == ExplainedStep(1, (), 0.0, None)
    assert (told.answer.score, told.answer.spent, told.answer.stopped) == (1.5, 1.75, "cap")
    assert told.why == "c for 4 and evaluations would exceed the cap of 6"
    told = model.explain({"a": 1.0, "c": 3.0}, cap=1.7)
    assert told.why == "a for 1 and evaluations would exceed the cap of 1.7"
    told = model.explain({"a": 1.0, "c": 3.0}, cap=0.5)
    assert told.why == "the cap of 0.5 is below 1, the price of any answer"
    assert (told.answer.score, told.answer.step) == (-9.0, -1)
    refused("explain takes a row as a mapping", model.explain, pd.DataFrame({"a": [1.0]}))


def test_an_early_answer_of_a_sure_class_is_explained_with_its_probability():
    steps = [
        step(0, gate="class", value=0.7, then=1, otherwise=END),
        step(1, carry=True),
    ]
    told = predictor(steps, STUMPS).explain({"a": 1.0, "c": 3.0})
    assert told.answer.stopped == "gate"
    sure = 1 / (1 + math.exp(-1))  # .731
    assert told.why == (
        f"its likeliest class has the probability {sure:.6g}, above 0.7, the gate of step 0; "
        "the purchases of step 1 cost at most 4"
    )


def test_what_a_declined_step_reads_but_the_row_has_costs_nothing():
    steps = [
        step(0, gate="class", value=0.7, then=1, otherwise=END),
        step(0, 1, carry=True),
    ]
    told = predictor(steps, STUMPS).explain({"a": 1.0, "c": 3.0})
    assert told.why.endswith("; the purchases of step 1 cost at most 4")
    told = predictor([steps[0], step(0, carry=True)], STUMPS).explain({"a": 1.0})
    assert told.why.endswith("the gate of step 0")


@pytest.mark.parametrize("missing", [pd.NaT, pd.NA, np.datetime64("NaT"), np.nan])
def test_a_missing_value_of_any_library_is_missing(missing):
    model = predictor([step(0, then=END)], [stump(0, 1.0, 2.0)])
    none = model.predict({"a": None}).score
    assert model.predict({"a": missing}).score == none
    assert model.predict_rows([{"a": missing}, {"a": 0.5}]).scores[0] == none


@pytest.mark.parametrize("cap", ["3", "x", -1, np.nan, [1]])
def test_a_cap_that_is_not_a_number_is_refused(cap):
    model = predictor([step(0, then=END)], [stump(0, 1.0, 2.0)])
    calls = [
        lambda: model.predict({"a": 0.5}, cap=cap),
        lambda: model.explain({"a": 0.5}, cap=cap),
        lambda: model.predict_rows([{"a": 0.5}], cap=cap),
        lambda: model.predict_query(lambda document, names: [0.5], 1, cap=cap),
    ]
    for call in calls:
        refused(f"cap={cap!r}|number of at least 0", call)


@pytest.mark.parametrize("documents", ["2", "x", 1.5, -1, None, np.nan])
def test_documents_that_are_not_a_count_are_refused(documents):
    model = predictor([step(0, then=END)], [stump(0, 1.0, 2.0)])
    refused(
        f"number of documents|{documents!r}",
        model.predict_query,
        lambda document, names: [0.5],
        documents,
    )


@pytest.mark.parametrize("given", [None, 3.0])
def test_a_function_that_returns_no_list_is_named(given):
    model = predictor([step(0, then=END)], [stump(0, 1.0, 2.0)])
    words = f"acquire returned a {type(given).__name__}|list of values"
    refused(words, model.predict, lambda names: given)


def test_a_sensor_gives_all_its_features_at_once_and_never_again():
    prices = price_list(np.array([3.0, 3.0, 1.0, 1.0]), shared=[[0, 1]])
    model = predictor([step(0, 1, then=END)], [stump(0, 1, 2), stump(1, 10, 20)], prices)
    acquire, calls = asking(a=-1.0, b=1.0)
    answer = model.predict(acquire)
    assert calls == [["a", "b"]]
    assert (answer.score, answer.spent) == (21.0, 3.0)


def test_features_that_the_model_never_reads_are_not_asked_for():
    prices = price_list(np.array([3.0, 3.0, 1.0, 1.0]), shared=[[0, 1]])
    acquire, calls = asking(a=-1.0)
    assert predictor([step(0, then=END)], [stump(0, 1, 2)], prices).predict(acquire).spent == 3.0
    assert calls == [["a"]]


def test_what_is_surely_needed_is_asked_for_at_once():
    """All roots up to the next gate, then what the nodes that were reached need."""
    deep = replace(
        stump(0, 1.0, 2.0),
        start=np.array([0, 5], np.int32),
        feature=np.array([0, 1, -1, -1, -1], np.int32),
        threshold=np.zeros(5, np.float32),
        left=np.array([1, 2, -1, -1, -1], np.int32),
        right=np.array([4, 3, -1, -1, -1], np.int32),
        missing_left=np.zeros(5, bool),
        value=np.arange(5.0),
    )
    steps = [
        step(0, then=1),
        step(1, gate="score", value=0.0, then=2, otherwise=REJECT),
        step(2, then=END),
    ]
    trees = [deep, stump(2, 1.0, 1.0), stump(3, 1.0, 1.0)]
    acquire, calls = asking(a=-1.0, b=1.0, c=1.0, d=1.0)
    answer = predictor(steps, trees).predict(acquire)
    assert calls == [["a", "c"], ["b"], ["d"]]
    assert answer.bought == ("a", "c", "b", "d")


@pytest.mark.parametrize(("cap", "asked"), [(2.9, []), (3.0, [["a"], ["b"]])])
def test_a_cap_below_what_every_row_needs_for_an_answer_buys_nothing(cap, asked):
    """The tree reads a at its root, b on both sides, d on one; the next step reads c."""
    deep = replace(
        stump(0, 0.0, 0.0),
        start=np.array([0, 9], np.int32),
        feature=np.array([0, 1, 3, -1, -1, -1, 1, -1, -1], np.int32),
        threshold=np.zeros(9, np.float32),
        left=np.array([1, 2, 3, -1, -1, -1, 7, -1, -1], np.int32),
        right=np.array([6, 5, 4, -1, -1, -1, 8, -1, -1], np.int32),
        missing_left=np.zeros(9, bool),
        value=np.arange(9.0),
    )
    prices = price_list(np.array([1.0, 2.0, 4.0, 8.0]))
    model = predictor([step(0, then=1), step(1, then=END)], [deep, stump(2, 10, 20)], prices)
    acquire, calls = asking(a=1.0, b=1.0)
    answer = model.predict(acquire, cap=cap)
    assert calls == asked
    assert (answer.score, answer.spent) == ((8.0, 3.0) if asked else (-9.0, 0.0))
    assert answer.stopped == "cap"


def test_a_discount_is_for_the_second_of_a_group():
    prices = price_list(
        np.array([5.0, 5.0, 1.0, 1.0]), discounted=[DiscountGroup((0, 1), (2.0, 2.0))]
    )
    model = predictor([step(0, 1, then=END)], [stump(0, 1, 2), stump(1, 10, 20)], prices)
    acquire, calls = asking(a=-1.0, b=1.0)
    assert model.predict(acquire).spent == 7.0
    assert calls == [["a", "b"]]
    assert model.predict(acquire, cap=9.0).bought == ("a", "b")
    assert calls[1:] == [["a"], ["b"]]


def test_columns_are_bought_together_and_a_missing_cell_adds_nothing():
    two = np.zeros(2)
    columns = WeightedColumns(np.array([0, 3]), two.astype(int), np.array([2.0, 5.0]), two, two + 1)
    model = predictor([step(bias=1.0, columns=columns, then=END)], [])
    acquire, calls = asking(a=3.0, d=float("nan"))
    answer = model.predict(acquire)
    assert calls == [["a", "d"]]
    assert (answer.score, answer.spent) == (7.0, 9.0)


def test_a_column_counts_from_its_mean():
    one = np.ones(1)
    columns = WeightedColumns(np.array([1]), np.array([0]), 2 * one, one, one / 4)
    model = predictor([step(bias=1.0, columns=columns, then=END)], [])
    assert model.predict(lambda names: [9.0]).score == 1.0 + 2.0 * (9.0 - 1.0) / 4.0
    assert model.predict(lambda names: [math.inf]).score == 1.0


@pytest.mark.parametrize(
    ("cap", "score", "spent", "at"),
    [(1.7, -9.0, 0.0, -1), (1.75, 1.5, 1.75, 0), (6.49, 1.5, 1.75, 0), (6.5, 21.5, 6.5, 1)],
)
def test_a_cap_ends_the_way_at_the_last_stop(cap, score, spent, at):
    acquire, _ = asking(a=1.0, c=1.0)
    answer = predictor(CASCADE, STUMPS).predict(acquire, cap=cap)
    assert (answer.score, answer.spent, answer.step) == (score, spent, at)
    assert answer.stopped == ("end" if cap == 6.5 else "cap")


def test_a_model_exported_under_a_cap_keeps_it():
    free = predictor(CASCADE, STUMPS)
    about = {"task": "binary", "budget": {"amount": 2.0, "kind": "cap"}}
    model = Predictor(Folder(free.program, free.costs, NAMES, about))
    assert model.predict(lambda names: [1.0]).spent == 1.75
    assert model.predict(lambda names: [1.0], cap=6.5).spent == 1.75  # a call only lowers it
    assert model.predict(lambda names: [1.0], cap=1.0).spent <= 1.0
    assert free.predict(lambda names: [1.0]).spent == 6.5


def test_without_an_answer_for_nothing_a_cap_may_leave_none():
    model = predictor(CASCADE, STUMPS, nothing=None)
    assert math.isnan(model.predict(lambda names: [1.0], cap=0.0).score)


RANKED = [
    step(0, gate="rank", value=1.0, then=1, otherwise=REJECT),
    step(1, carry=True, then=END),
]


def test_documents_of_a_query_are_ranked_among_each_other():
    cells = [{"a": -1.0, "c": 1.0}, {"a": 1.0, "c": 1.0}, {"a": -1.0, "c": 1.0}]
    asked = []

    def acquire(document, names):
        asked.append((document, names))
        return [cells[document][name] for name in names]

    model = predictor(RANKED, STUMPS, rejected="below")
    answers = model.predict_query(acquire, 3)
    assert asked == [(0, ["a"]), (1, ["a"]), (2, ["a"]), (1, ["c"])]
    assert [a.score for a in answers] == [20.0, 21.0, 20.0]  # losers one below the survivor
    assert [a.stopped for a in answers] == ["gate", "end", "gate"]
    X = np.array([[c["a"], 0, c["c"], 0] for c in cells])
    together = model.predict_rows(X, Queries.from_sizes(np.array([3])))
    assert model.predict_rows(X, [7, 7, 7]).scores.tolist() == together.scores.tolist()
    refused("queries has 2 rows, X 3", model.predict_rows, X, [7, 7])
    assert together.scores.tolist() == [20.0, 21.0, 20.0]
    assert model.predict_rows(X).scores.tolist() == [20.0, 21.0, 20.0]  # each by itself: all pass


def test_a_price_per_query_is_shared_by_its_documents():
    prices = price_list(np.array([6.0, 2.0, 4.0, 8.0]))
    shared = PerQueryPrices.of(prices, np.array([True, False, False, False]))
    model = predictor([step(0, then=END)], [stump(0, 0.0, 1.0)], shared)
    answers = model.predict_query(lambda document, names: [1.0], 3)
    assert [a.spent for a in answers] == [2.0, 2.0, 2.0]
    asked = lambda document, names: [1.0]  # noqa: E731
    refused("'per-query' share bills", model.predict_query, asked, 3, cap=5.0)
    refused("'per-query' share bills", model.predict_rows, np.ones((3, 4)), [1, 1, 1], cap=5.0)


def test_cells_are_compared_as_float32():
    model = predictor([step(0, then=END)], [stump(0, 0.0, 1.0, threshold=0.1)])
    assert model.predict(lambda names: [0.1]).score == 0.0
    assert model.predict(lambda names: [0.100000003]).score == 0.0  # the same float32
    assert model.predict(lambda names: [1e300]).score == 1.0


def test_probabilities_of_log_odds():
    model = predictor([step(0, then=END)], [stump(0, 0.0, math.log(3.0))])
    shares = model.predict_proba(np.array([[1.0, 0, 0, 0], [-1.0, 0, 0, 0]]))
    assert np.allclose(shares, [[0.25, 0.75], [0.5, 0.5]])


def test_a_tree_is_billed_once_on_a_way():
    again = Step(np.array([0]), np.ones(1), np.zeros(1, bool), np.zeros(1), then=END)
    model = predictor([step(0, then=1), again], [stump(0, 0.0, 1.0)])
    assert model.predict(lambda names: [1.0]).spent == 1.75


def test_steps_that_lead_back_are_no_program():
    given = 1, [step(then=1), step(then=0)], no_trees(1, 4), np.ones(4)
    refused("step 1 cannot lead to step 0", Program, *given, error=ValueError)


@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_columns_of_a_frame_are_found_by_their_names(frame):
    made = pytest.importorskip(frame, reason=f"{frame} is not installed").DataFrame
    model = predictor(CASCADE, STUMPS)
    X = np.random.default_rng(0).normal(size=(30, len(model.names))).astype(np.float32)
    columns = dict(zip(model.names, X.T, strict=True))
    mixed = made({"other": X[:, 0], **{name: columns[name] for name in reversed(model.names)}})
    by_name, by_place = model.predict_rows(mixed), model.predict_rows(X)
    assert by_name.scores.tolist() == by_place.scores.tolist()
    assert by_name.spent.tolist() == by_place.spent.tolist()
    lacking = made({name: columns[name] for name in model.names[1:]})
    refused(f"X has no column '{model.names[0]}'", model.predict_rows, lacking)
    refused("X must be (n, 4)", model.predict_rows, X[:, :3])


def test_answers_are_printed_with_their_first_rows():
    answers = predictor(CASCADE, STUMPS).predict_rows(np.zeros((7, 4)), cap=6.5)
    first, row, *_, last = repr(answers).splitlines()
    mean = f"{answers.spent.mean():.6g}"
    assert first == f"7 answers, {mean} spent on average, {answers.capped.sum()} ended by the cap"
    bought = ", ".join(n for n, paid in zip("abcd", answers.bought[0], strict=True) if paid)
    assert bought
    spent = f"{answers.spent[0]:.6g}"
    assert row == f"row 0: score {answers.scores[0]:g}, spent {spent}, bought {bought}"
    assert last == "2 more rows in .scores, .spent and .bought, by .sensors"
    assert answers.bought.shape == (7, 4)
    assert repr(predictor(CASCADE, STUMPS).predict_rows(np.zeros((0, 4)))).startswith("0 answers,")
