"""Pools of bought answers, on generated experts of known skill."""

from dataclasses import replace

import numpy as np
import pytest
from bench_c import write_c
from bench_methods.opinion_pool import OpinionPool, _right, _weights
from helpers.boosted_cases import curve
from helpers.fakes import FakeContext
from helpers.kit import refused

from bench_core import Examples, Features, SensorPrices, Splits, Task, price_list
from bench_core.conformance.cases import fit
from bench_core.datasets.splitting import hashed
from bench_core.encoding import ColumnEncoding
from bench_core.execution.predict import predict_split
from bench_core.metrics.calibration import Calibration
from bench_core.serving import Folder, load, write_folder
from bench_core.serving.model_programs import calibrated_program

K = 3
SKILL = -2.0, -1.0, 0.0
"""Log-odds of a right answer at confidence 0; at 1 they are 4 more."""


def drawn(n, seed):
    """Labels (n,), answers (n, 3) and confidences (n, 3)."""
    rng = np.random.default_rng(seed)
    y, confidence = rng.integers(0, K, n), rng.random((n, 3))
    right = rng.random((n, 3)) < 1 / (1 + np.exp(-np.array(SKILL) - 4 * confidence))
    wrong = (y[:, None] + rng.integers(1, K, (n, 3))) % K
    return y, np.where(right, y[:, None], wrong), confidence


def experts(n, seed, codes=False):
    """Answers and confidences of three experts: one-hot columns, or numbers of other meaning."""
    y, answers, confidence = drawn(n, seed)
    columns = []
    for answer, sure in zip(answers.T, confidence.T, strict=True):
        shown = [2.0 * ((answer + 1) % K)] if codes else [answer == c for c in range(K)]
        columns += [*shown, sure]
    return Examples(np.column_stack(columns).astype(np.float32), y.astype(np.float64))


def prices(codes=False, price=(1.0, 2.0, 8.0)):
    width = 2 if codes else K + 1
    base = price_list(np.ones(width * 3))
    return SensorPrices(
        base.start,
        np.repeat(np.arange(3), width).astype(np.int32),
        np.array(price),
        np.ones(width * 3),
    )


def fitted(codes=False, n=1500, price=(1.0, 2.0, 8.0), **settings):
    train = experts(n, 0, codes)
    of = prices(codes, price)
    context = FakeContext(task=Task.MULTICLASS, classes=K)
    return OpinionPool(**settings).fit(train, train, of, context), of


@pytest.mark.parametrize("codes", [False, True])
def test_a_pool_beats_the_best_expert_and_rules_of_one_threshold(codes):
    model, of = fitted(codes)
    _, accuracy, spent = curve(model, experts(20000, 1, codes), of)
    y, answers, confidence = drawn(20000, 1)
    right = answers == y[:, None]
    assert accuracy[-1] > right[:, 2].mean() + 0.02
    for threshold in (0.4, 0.6, 0.8):  # keep the answer of the first, else that of the second
        kept = confidence[:, 0] >= threshold
        rule = np.where(kept, right[:, 0], right[:, 1]).mean()
        cost = 1 + 2 * (~kept).mean()
        assert np.interp(cost, spent, accuracy) > rule + 0.002
    assert (spent[0], accuracy[0]) == pytest.approx((0, 1 / K), abs=0.02)


def test_scores_are_log_odds_of_agreeing_and_contradicting_experts():
    model, _ = fitted()
    low, high = 0.1, 0.9
    rows = np.array([[1, 0, 0, low, 1, 0, 0, high, 0, 1, 0, low]], dtype=np.float32)
    scores = model.policy.predict(rows, np.ones((1, 3), dtype=bool))[0]
    # an answer of skill s at confidence u: odds exp(s + 4u) against one of two others
    said = [skill + 4 * u + np.log(2) for skill, u in zip(SKILL, (low, high, low), strict=True)]
    assert scores[0] - scores[2] == pytest.approx(said[0] + said[1], abs=0.7)
    assert scores[1] - scores[2] == pytest.approx(said[2], abs=0.7)


def test_a_missing_answer_says_nothing_and_is_no_error():
    model, _ = fitted()
    rows = np.full((1, 12), np.nan, dtype=np.float32)
    nothing = model.policy.predict(rows, np.zeros((1, 3), dtype=bool))
    silent = model.policy.predict(rows, np.array([[True, False, False]]))
    assert np.isfinite(silent).all()
    assert np.abs(silent - nothing).max() < 1.0


def test_prices_of_a_row_decide_its_calls():
    model, _ = fitted()
    policy = model.policy
    cells = np.full((2, 12), np.nan, dtype=np.float32)
    none, left = np.zeros((2, 3), dtype=bool), np.full(2, np.inf)
    own = np.array([[1.0, 2.0, 8.0], [0.01, 1000.0, 1000.0]])
    stop = policy.price[len(policy.price) // 2]
    usual = policy.act(cells, none, left, stop)[0]
    assert policy.act(cells, none, left, stop, prices=own).tolist() == [usual, 0]


def test_newton_finds_the_stationary_point_of_the_penalised_likelihood():
    rng = np.random.default_rng(3)
    Z, y = rng.normal(size=(200, K, 4)), rng.integers(0, K, 200)
    copies = 1.0 + hashed(np.arange(200)) % np.uint64(3)
    w = _weights(Z, np.eye(K)[y], copies.astype(float), 2.0, np.zeros(4))
    e = np.exp(Z @ w)
    p = e / e.sum(1, keepdims=True)
    gradient = 2.0 * w
    for row in range(200):  # term by term
        gradient = gradient + copies[row] * (p[row] @ Z[row] - Z[row, y[row]])
    assert np.abs(gradient).max() < 1e-8


def choice(texts=True, price=(1.0, 2.0, 8.0)):
    """Scores of three sources, with their answers as texts or not at all."""
    sources, first = ("a", "b", "c"), 0 if texts else K
    keep = [4 * m + c for m in range(3) for c in range(first, K + 1)]
    parts = []
    for n, seed in ((1500, 0), (1500, 1), (5000, 2)):
        y, answers, _ = drawn(n, seed)
        X = experts(n, seed).X[:, keep]
        parts.append(Examples(X, (answers == y[:, None]).astype(float)))
    encodings = tuple(
        e
        for s in sources
        for e in (ColumnEncoding(f"{s}_answer", ("x", "y", "z"), one_hot=True),
                  ColumnEncoding(f"{s}_sure"))[0 if texts else 1 :]
    )  # fmt: skip
    width = len(keep) // 3
    paid = SensorPrices(
        np.arange(3 * width + 1, dtype=np.int32),
        np.repeat(np.arange(3), width).astype(np.int32),
        np.array(price),
        np.ones(3 * width),
    )
    names = tuple(name for e in encodings for name in e.features)
    return Splits(
        *parts, paid, encodings=encodings, feature_names=names, class_names=sources
    ).complete()


def scores_of(splits, **settings):
    """Mean cost and score of each point on test rows; each row buys what it returns."""
    model = fit(OpinionPool(**settings), splits)
    calls = splits.calls.tolist()
    path = predict_split(model, splits.test, splits.costs, splits.classes, calls=calls)
    y = splits.test.y
    scores = [y[np.arange(len(y)), s.argmax(axis=1)].mean() for s in path.scores]
    return np.column_stack([path.cost.mean(axis=1), scores])


def test_a_choice_returns_a_source_whose_answer_others_share():
    splits = choice()
    points, y = scores_of(splits), splits.test.y
    assert points[0, 0] == 1.0  # a row without a call has no answer
    assert points[-1, 1] > y.mean(axis=0).max() + 0.02
    # sources that answer in other words can only be kept or left
    alone = scores_of(choice(texts=False))
    assert points[-1, 1] > alone[-1, 1] + 0.01
    assert alone[-1, 1] > y.mean(axis=0).max()


def test_a_free_source_can_be_returned():
    points = scores_of(choice(price=(0.0, 2.0, 8.0)), calls=2, points=8, parts=2)
    assert points[0, 0] == 0.0
    assert points[0, 1] > 0.4
    assert points[-1, 1] > points[0, 1] + 0.1


def test_a_class_is_right_as_far_as_its_sources_score():
    voices = {
        7: np.array([[1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]], dtype=bool),
        8: np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0]], dtype=bool),
    }
    y = np.array([[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]])
    rows = Examples(np.zeros((3, 1), np.float32), y)
    # both right; both wrong: the other classes share; both right in their own words
    expected = [[1, 0, 0, 0], [0, 0, 0.5, 0.5], [0.5, 0.5, 0, 0]]
    assert _right(rows, voices, {7: 0, 8: 1}).tolist() == expected


def letters():
    """Labels and answers of three experts, as texts."""
    splits, parts = choice(), []
    for n, seed in ((1500, 0), (1500, 1), (300, 2)):
        parts.append(experts(n, seed))
    return replace(splits, train=parts[0], valid=parts[1], test=parts[2], class_names=()).complete()


def test_a_calibrated_pool_is_served_with_its_calibration(tmp_path):
    splits = letters()
    model, X, point = fit(OpinionPool(points=4, parts=2), splits), splits.test.X, {"price": 0.0}
    program, calibration = model.program(point), Calibration(0.5, (0.1, -0.2, 0.3))
    new = calibrated_program(program, calibration, capped=False)
    write_folder(tmp_path / "m", Folder(new, splits.costs, splits.names, {"task": "multiclass"}))
    expected = 0.5 * (np.array([0.1, -0.2, 0.3]) + model.predict_at(Features(X), point).scores)
    assert np.allclose(load(tmp_path / "m").predict_features(X).scores, expected)


def test_a_pool_whose_package_is_missing_is_refused_in_one_line(tmp_path, monkeypatch):
    splits = letters()
    program = fit(OpinionPool(points=4, parts=2), splits).program({"price": 0.0})
    monkeypatch.setattr("bench_core.serving.folder.remember_class", lambda kind: "no_such:Pool")
    write_folder(tmp_path / "m", Folder(program, splits.costs, splits.names, {}))
    refused("no_such:Pool|install its plugin", load, tmp_path / "m")


def test_c_names_python_as_the_way_of_a_pool(tmp_path):
    splits = letters()
    program = fit(OpinionPool(points=4, parts=2), splits).program({"price": 0.0})
    folder = Folder(program, splits.costs, splits.names, {"task": "multiclass"})
    refused("C: a policy of class Pool|in Python", write_c, folder, tmp_path)
