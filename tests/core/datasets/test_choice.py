"""Tables of a choice among services: scores are answers, a call is a sensor."""

import json

import numpy as np
import pandas as pd
import pytest
from helpers.kit import prepared, refused

from bench_core import Examples, Splits, Task, price_list
from bench_core.contracts import labels_fault
from bench_core.costs.bill import Acquired, Bill, Prediction
from bench_core.datasets.table_options import TableOptions
from bench_core.datasets.user_arrays import InMemory, array_splits
from bench_core.execution.contract import ContractError, check_returned
from bench_core.metrics import Labels, evaluate, parse_metric
from bench_core.planning.request import RunRequest
from bench_core.planning.resolve_learners import choose_learners
from bench_core.planning.suites import NO_SUITE
from bench_core.plugins import load_registry

N = 90
COSTS = {
    "costs": {
        "big": {"column": "big_price", "when": "quoted"},
        "small": {"column": "small_price", "features": ["small_sure"]},
        "small_mini": 1,
        "words": 0,
    },
    "unit": "USD",
}


def table():
    rng = np.random.default_rng(3)
    return pd.DataFrame({
        "words": rng.integers(1, 40, N), "label": rng.choice(list("ABC"), N),
        "small_sure": rng.random(N).round(3), "small_price": rng.random(N).round(4),
        "big_price": (10 * rng.random(N)).round(4),
        "small_score": rng.integers(0, 2, N), "big_score": rng.random(N).round(2),
        "small_mini_score": rng.integers(0, 2, N),
        "split": np.array(["train", "valid", "test"])[np.arange(N) // 30],
    })  # fmt: skip


def read(folder, frame, **options):
    frame.to_csv(folder / "calls.csv", index=False)
    (folder / "costs.json").write_text(json.dumps(COSTS), encoding="utf-8")
    return prepared(folder / "calls.csv", costs=str(folder / "costs.json"), **options)


def test_scores_are_labels_and_calls_are_sensors(tmp_path):
    frame = table()
    splits = read(tmp_path, frame, choose=("*_score",))
    assert (splits.task, splits.classes) == (Task.CHOICE, 3)
    assert splits.class_names == ("small", "big", "small_mini")
    # without score, price and label; a call that yields nothing has a column of ones
    assert splits.names == ("words", "small_sure", "big", "small_mini")
    assert splits.calls.tolist() == [1, 2, 3]
    assert splits.test.X[:, 2:].tolist() == [[1.0, 1.0]] * 30
    scores = frame[["small_score", "big_score", "small_mini_score"]].to_numpy(float)
    assert splits.test.y.tolist() == scores[60:].tolist()
    assert any("column 'label' may be an answer and is left out" in str(n) for n in splits.notes)
    means = frame[:30][["small_price", "big_price"]].mean()
    price = splits.prices.feature_price()
    assert price == pytest.approx([0.0, means["small_price"], means["big_price"], 1.0])


def test_a_frame_is_read_as_a_file(tmp_path):
    frame = table()
    of_file = read(tmp_path, frame, choose=("*_score",))
    rows = {n: frame[frame["split"] == n].drop(columns="split") for n in ("train", "valid", "test")}
    options = TableOptions(choose=("small_score,big_score", "small_mini_score"))
    splits = array_splits(rows["train"], None, valid=rows["valid"], test=rows["test"],
                          options=options)  # fmt: skip
    assert splits.class_names == ("small", "big", "small_mini")
    assert np.array_equal(splits.valid.y, of_file.valid.y)
    # without a cost file, prices are features
    assert splits.names == ("words", "small_sure", "small_price", "big_price", "small_mini")


@pytest.mark.parametrize(
    ("change", "choose", "said"),
    [
        ({}, "*_quality", "choose: no column is called *_quality; name the scores of two"),
        ({}, "big_score", "choose: big_score; name the scores of two or more sources"),
        ({}, "big_scores,words", "choose: unknown column 'big_scores': did you mean big_score"),
        ({"big_score": 1.5}, "*_score", "line 2, column 'big_score': the score 1.5 is not from 0"),
        ({"big_score": None}, "*_score", "line 2"),
        ({"big_score": "good"}, "*_score", "big_score"),
    ],
)
def test_scores_that_are_none_are_refused_in_one_line(change, choose, said, tmp_path):
    frame = table().astype(object)
    for column, value in change.items():
        frame.loc[0, column] = value
    refused(said, read, tmp_path, frame, choose=(choose,))


def test_a_choice_has_no_label_and_no_columns_of_svmlight(tmp_path):
    for other in ({"label": "words"}, {"task": "binary"}, {"positive": "1"}, {"query": "words"}):
        refused("leave it out", TableOptions, choose=("*_score",), **other)
    (tmp_path / "a.svm").write_text("1 1:2\n0 1:3\n")
    chosen = TableOptions(choose=("*_score",))
    words = "an SVMlight file has no column names"
    refused(words, prepared, tmp_path / "a.svm", choose=chosen.choose)
    refused("without y and queries", array_splits, table(), np.ones(N), options=chosen)


def choice(scores, names=("a", "b"), features=("a", "b_sure", "b")):
    parts = [Examples(np.ones((2, 3), np.float32), np.array(scores, float))] * 3
    prices = price_list(np.array([1.0, 2.0, 3.0]))
    return Splits(*parts, prices, class_names=names, feature_names=features).complete()


def test_each_source_alone_and_the_oracle_have_scores_and_costs_on_test():
    # a costs 1, b 3; row 0 is answered by b alone, in row 1 a is better
    assert choice([[0, 1], [0.5, 0.25]]).sources == {
        "a alone": {"score": 0.25, "regret": 0.5, "cost": 1.0},
        "b alone": {"score": 0.625, "regret": 0.125, "cost": 3.0},
        "oracle": {"score": 0.75, "regret": 0.0, "cost": 2.0},
    }


def test_splits_of_a_plugin_are_checked():
    good = choice([[0, 1], [0.5, 0]])
    assert labels_fault(Task.CHOICE, good) == ""
    assert (good.task, good.classes) == (Task.CHOICE, 2)
    assert good.calls.tolist() == [0, 2]  # the feature of the name itself
    prefixed = choice([[0, 1], [0.5, 0]], features=("a", "b_free", "b_sure"))
    assert prefixed.calls.tolist() == [0, 2]  # the dearest
    assert "0 to 1" in labels_fault(Task.CHOICE, choice([[0, 1], [2, 0]]))
    assert "'c' of the class_names" in labels_fault(Task.CHOICE, choice([[0, 1]] * 2, ("a", "c")))
    assert "class_names" in labels_fault(Task.CHOICE, choice([[0, 1]] * 2, ()))


def test_score_and_regret_by_hand():
    y = np.array([[1.0, 0.0, 0.5], [0.0, 0.2, 1.0]])
    scores = np.array([[3.0, 9.0, 1.0], [0.0, 0.0, 1.0]])  # returns sources 1 and 2
    labels = Labels(y, None, np.array([3, 1]))
    values = evaluate([parse_metric("score"), parse_metric("regret")], scores, labels)
    assert values["score"].mean == pytest.approx((3 * 0.0 + 1.0) / 4)
    assert values["regret"].mean == pytest.approx((3 * 1.0 + 0.0) / 4)
    two = Labels(y[:, :2])
    assert parse_metric("score").judge(np.array([-1.0, 2.0]), two).values.tolist() == [1.0, 0.2]


def test_an_answer_that_was_not_bought_is_refused():
    splits = choice([[0, 1], [0.5, 0]])
    bought = np.array([[True, False, False], [True, False, True]])
    bill = {"path": Bill(Acquired.pack(bought))}
    paid = Prediction({"p": 1}, np.array([-1.0, 1.0]), bill)
    check_returned(paid, splits.costs, splits.calls)
    unpaid = Prediction({"p": 1}, np.array([1.0, 1.0]), bill)
    call = check_returned, unpaid, splits.costs, splits.calls
    refused("row 0 of a block returns the answer of source 1", *call, error=ContractError)


def test_without_learners_a_choice_has_its_own():
    line = "learners: best-single, cascade, router (a first board)"
    notes = []
    for request in (
        RunRequest(data=("a",), choose=("*_score",)),
        RunRequest(data=(InMemory("calls", choice([[0, 1], [0.5, 0]])),)),
    ):
        chosen = choose_learners(
            request, NO_SUITE, load_registry(), (), lambda text, _: notes.append(text)
        )
        assert [learner.name for learner in chosen] == ["best-single", "cascade", "router"]
    assert len([text for text in notes if text.startswith(line)]) == 2
