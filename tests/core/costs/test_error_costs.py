"""Costs of errors: what a text, a file and values of Python mean, and the answers of least cost."""

import numpy as np
import pandas as pd
import pytest
from helpers.kit import refused

from bench_core import Examples
from bench_core.costs.error_costs import (
    ErrorCosts,
    answers_of_least_cost,
    error_columns,
    error_costs,
    error_costs_text,
)

TWO, THREE = ("no", "yes"), ("a", "b", "c")
FILES = {
    "two.csv": ",no,yes\nno,,50\nyes,500,\n",
    "turned.csv": "true;yes;no\r\nyes;10;500\r\nno;50;0\r\n",
    "three.csv": "true,a,b,c\na,0,1,2\nb,3,0,column:loss\nc,5,6,0\n",
    "two.json": '{"yes": {"no": 500}, "no": 50}',
    "unknown.csv": ",no,maybe\nno,0,1\nyes,1,0\n",
    "short.csv": ",no,yes\nno,0,50\nyes,500\n",
    "twice.csv": ",no,yes\nno,0,50\nno,500,0\n",
    "lacks.csv": ",no,yes\nno,0,50\n",
    "hole.csv": ",no,yes\nno,0,\nyes,5,0\n",
    "empty.csv": "",
    "broken.json": '{"yes": ',
}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)


@pytest.mark.parametrize(
    ("text", "classes", "matrix"),
    [
        ("500", TWO, ((0, 500), (500, 0))),
        ("2.5", THREE, ((0, 2.5, 2.5), (2.5, 0, 2.5), (2.5, 2.5, 0))),
        ("50, 500", TWO, ((0, 50), (500, 0))),
        ("1,2,3", THREE, ((0, 1, 1), (2, 0, 2), (3, 3, 0))),
        ("two.csv", TWO, ((0, 50), (500, 0))),
        ("turned.csv", TWO, ((0, 50), (500, 10))),  # a treatment of the ill costs, too
        ("three.csv", THREE, ((0, 1, 2), (3, 0, "column:loss"), (5, 6, 0))),
        ("two.json", TWO, ((0, 50), (500, 0))),
        ("column:loss", TWO, ((0, "column:loss"), ("column:loss", 0))),
    ],
)
def test_what_is_written_is_a_matrix_of_the_true_class_and_the_answer(files, text, classes, matrix):
    assert error_costs(text, classes) == matrix


@pytest.mark.parametrize(
    "value",
    [
        (50, 500),
        np.array([50.0, 500.0]),
        {"no": 50, "yes": 500},
        {"no": {"yes": 50}, "yes": {"no": 500}},
        [[0, 50], [500, 0]],
        np.array([[0, 50], [500, 0]]),
        pd.DataFrame([[0, 50], [500, 0]], index=TWO, columns=TWO),
        pd.DataFrame([[500, 0], [0, 50]], index=TWO[::-1], columns=TWO),
        pd.Series({"yes": 500, "no": 50}),
    ],
)
def test_values_of_python_mean_what_their_text_means(value):
    assert error_costs(error_costs_text(value), TWO) == ((0, 50), (500, 0))


def test_a_number_of_python_is_for_every_error_and_a_file_is_a_file(files, tmp_path):
    assert error_costs(error_costs_text(np.float32(5)), TWO) == ((0, 5), (5, 0))
    assert error_costs(error_costs_text(tmp_path / "two.csv"), TWO) == ((0, 50), (500, 0))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("-5", "errors on no is -5.0|at least 0"),
        ("inf", "errors on no is inf"),
        ("0", "every cost of an error is 0"),
        ("1,2,3", "3 costs for 2 classes (no, yes)"),
        ("errors.csv", "no such file, and not a number|CSV file of the true class"),
        ("unknown.csv", "unknown.csv: unknown answer 'maybe'|no, yes; the first column names"),
        ("short.csv", "short.csv, line 3: class 'yes' has 1 of 2 costs"),
        ("twice.csv", "twice.csv, line 3: class 'no' is given twice"),
        ("lacks.csv", "lacks.csv: no costs of class yes"),
        ("hole.csv", "hole.csv: the cost of yes for no is ''|a number"),
        ("empty.csv", "empty.csv: the file is empty"),
        ("broken.json", "broken.json: not JSON"),
        ('{"no": "much", "yes": 1}', "errors on no is 'much'"),
        ('{"no": null, "yes": 1}', "no costs of class no"),
        ("[[0, 1], [1]]", "the row of class yes has 1 costs"),
    ],
)
def test_what_gives_no_costs_is_refused_in_one_line(files, text, words):
    refused(words, error_costs, text, TWO)
    refused("error_costs: None is not a cost", error_costs_text, [None, 1])


def test_columns_of_costs_are_known_before_the_data_is_read(files):
    assert [column.column for column in error_columns("three.csv")] == ["loss"]
    assert [column.column for column in error_columns("column: loss ")] == ["loss"]
    assert error_columns("500") == error_columns("") == ()


@pytest.mark.parametrize("k", [2, 3, 4])
def test_answers_have_the_least_expected_cost(k):
    rng = np.random.default_rng(k)
    scores = rng.normal(0, 2, (200, k)) if k > 2 else rng.normal(0, 2, 200)
    matrix = rng.choice([0.0, 1.0, 7.0, 50.0], (k, k))
    answers = answers_of_least_cost(scores, matrix)
    for row, answer in zip(scores, answers, strict=True):
        logits = row if k > 2 else np.array([0.0, row])
        shares = np.exp(logits) / np.exp(logits).sum()
        costs = [sum(shares[t] * matrix[t, a] for t in range(k)) for a in range(k)]
        assert costs[answer] <= min(costs) + 1e-12


def test_equal_costs_answer_with_the_most_likely_class():
    scores = np.array([-1.0, 0.0, 1e-9, 800.0, -800.0])
    assert answers_of_least_cost(scores, 1 - np.eye(2)).tolist() == [0, 0, 1, 1, 0]
    # a threshold of 1/11: an error on class 1 costs ten times as much
    near = np.log([1 / 10.1, 1 / 9.9])
    assert answers_of_least_cost(near, np.array([[0, 1], [10, 0]])).tolist() == [0, 1]


def test_costs_by_row_are_billed_and_their_class_mean_decides():
    loss = np.array([[1.0], [3.0], [100.0], [300.0]])
    train = Examples(np.zeros((4, 1), np.float32), np.array([0.0, 0, 1, 1]), None,
                     np.array([1, 3, 1, 1]), None, loss)  # fmt: skip
    costs = ErrorCosts.of(((0, 8), ("column:loss", 0)), train, ("loss",))
    assert costs.matrix.tolist() == [[0, 8], [200, 0]]  # the mean over rows of class 1
    both = ErrorCosts.of((("column:loss", 0.0), (1, 0)), train, ("loss",))
    assert both.matrix[0, 0] == (1 + 3 * 3) / 4  # copies count
    y, answers = np.array([0.0, 1.0, 1.0, 1.0]), np.array([1, 0, 1, 0])
    assert costs.billed(y, answers, loss).tolist() == [8, 3, 0, 300]
    assert costs.billed(y, answers, None).tolist() == [8, 200, 0, 200]
    unknown = ((0, "column:fine"), (1, 0))
    refused("unknown column of costs 'fine'", ErrorCosts.of, unknown, train, ("loss",))
