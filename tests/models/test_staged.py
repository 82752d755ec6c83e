"""The staged model against its definition row by row, and the promises every model makes."""

import json

import numpy as np
import pytest
from bench_models.staged import END, Point, Stage, StagedModel
from helpers.random_trees import random_ensemble, random_rows
from helpers.staged_cases import D, random_features, random_model, walk_rows
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_core import Features, Queries, price_list

SEEDS = st.integers(0, 2**32)
NO_ENTRIES = np.zeros(0, dtype=np.int64)


def masks(prediction, bill, n):
    rows = prediction.bills[bill].acquired.unpack()
    return [set(np.flatnonzero(row)) for row in np.broadcast_to(rows, (n, rows.shape[1]))]


def counts(value, n):
    return np.broadcast_to(np.asarray(value, dtype=float), (n,)).tolist()


def costliest_path(model, tree):
    trees = model.ensemble

    def below(node):
        if trees.feature[node] < 0:
            return 0.0
        own = float(model.prices.multiplier[trees.feature[node]])
        return own + max(below(int(trees.left[node])), below(int(trees.right[node])))

    return below(int(trees.start[tree]))


@settings(max_examples=150, deadline=None)
@given(SEEDS, st.integers(1, 3), st.booleans())
def test_scores_and_bills_at_every_point_are_those_of_the_definition(seed, outputs, grouped):
    rng = np.random.default_rng(seed)
    model = random_model(rng, outputs=outputs)
    features = random_features(rng, grouped)
    n = len(features)
    path = list(model.predict_path(features))
    expected = walk_rows(model, features)
    assert [p.point for p in path] == [p.values for p in model.points]
    for got, rows in zip(path, expected, strict=True):
        assert masks(got, "path", n) == [r.sensors for r in rows]
        assert masks(got, "model", n) == [r.model_sensors for r in rows]
        assert counts(got.bills["path"].splits, n) == [r.splits for r in rows]
        for bill in ("path", "model"):
            assert counts(got.bills[bill].trees, n) == [len(r.trees) for r in rows]
        costliest = [sum(costliest_path(model, t) for t in r.trees) for r in rows]
        assert counts(got.bills["model"].splits, n) == costliest
        assert got.scores.shape == ((n,) if outputs == 1 else (n, outputs))
        kept = [i for i, r in enumerate(rows) if model.rejected == "score" or not r.rejected]
        plain = got.scores.reshape(n, outputs)
        assert plain[kept].tolist() == [rows[i].score for i in kept]
        check_rejected(model, features, got.scores, rows)


def check_rejected(model, features, scores, rows):
    out = [i for i, r in enumerate(rows) if r.rejected]
    if model.rejected == "score":
        return
    if isinstance(model.rejected, float):
        assert all(scores[i] == model.rejected for i in out)
        return
    if features.queries is None:
        assert all(scores[i] == rows[i].score[0] for i in out)
        return
    query = features.queries.index()
    for i in out:
        for j, rival in enumerate(rows):
            if query[i] == query[j]:
                mine = (0, rows[i].stage, rows[i].score[0])
                other = (not rival.rejected, rival.stage if rival.rejected else 0, rival.score[0])
                assert (scores[i] < scores[j]) == (mine < other)


def bits(prediction):
    bill, n = prediction.bills["path"], len(prediction.scores)
    return [
        prediction.scores.tobytes(),
        bill.acquired.bits.tobytes(),
        np.array(counts(bill.splits, n)).tobytes(),
        np.array(counts(bill.trees, n)).tobytes(),
        prediction.bills["model"].acquired.bits.tobytes(),
    ]


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_a_query_predicted_alone_agrees_bitwise_with_its_block(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    features = random_features(rng)
    block = list(model.predict_path(features))
    for q in range(len(features.queries)):
        rows = slice(*features.queries.boundaries[q : q + 2])
        alone = Features(features.X[rows], features.queries.select(q, q + 1))
        for one, all_rows in zip(model.predict_path(alone), block, strict=True):
            assert one.scores.tobytes() == all_rows.scores[rows].tobytes()
            whole = all_rows.bills["path"].acquired.bits
            assert one.bills["path"].acquired.bits.tobytes() == whole[rows].tobytes()


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_a_model_rebuilt_from_its_state_predicts_the_same(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    features = random_features(rng)
    state = model.state()
    arrays = {k: v for k, v in state.items() if isinstance(v, np.ndarray)}
    values = json.loads(json.dumps({k: v for k, v in state.items() if k not in arrays}))
    rebuilt = StagedModel.from_state({**arrays, **values})
    assert rebuilt.prices.unit == model.prices.unit
    for one, other in zip(
        model.predict_path(features), rebuilt.predict_path(features), strict=True
    ):
        assert dict(one.point) == dict(other.point)
        assert bits(one) == bits(other)


def test_predictions_do_not_change_when_earlier_ones_are_written_to():
    rng = np.random.default_rng(0)
    chain = chain_of(random_ensemble(rng, trees=40, features=D), price_list(np.ones(D)))
    features = Features(random_rows(rng, 50, D))
    expected = [bits(p) for p in chain.predict_path(features)]
    for k, prediction in enumerate(chain.predict_path(features)):
        assert bits(prediction) == expected[k]
        prediction.scores[:] = 7
        prediction.bills["path"].acquired.bits[:] = 0
        prediction.bills["model"].acquired.bits[:] = 0
    assert [bits(p) for p in chain.predict_path(features)] == expected


def chain_of(ensemble, prices):
    count, one, none = ensemble.trees, np.ones(1), np.zeros(1)
    onward = [*range(1, count), END]
    stages = [Stage(np.array([t]), one, none, carry=t > 0, then=onward[t]) for t in range(count)]
    return StagedModel(stages, [Point(t, {"trees": t + 1}) for t in range(count)], prices, ensemble)


def test_long_chains_cut_into_legs_keep_adding_up():
    rng = np.random.default_rng(1)
    ensemble = random_ensemble(rng, trees=40, features=D)
    features = Features(random_rows(rng, 70, D))
    model = chain_of(ensemble, price_list(np.ones(D)))
    assert [bits(p)[0] for p in model.predict_path(features)] == [
        np.array([r.score[0] for r in rows]).tobytes() for rows in walk_rows(model, features)
    ]


def test_boosted_chains_charge_the_model_bill_to_all_rows_alike():
    rng = np.random.default_rng(2)
    model = chain_of(random_ensemble(rng, trees=3, features=D), price_list(np.ones(D)))
    last = list(model.predict_path(Features(random_rows(rng, 5, D))))[-1]
    assert last.bills["model"].acquired.bits.shape == (1, 1)
    assert np.ndim(last.bills["model"].splits) == 0


def test_a_model_of_raw_columns_only_needs_no_trees():
    stage = Stage(np.array([1, 0]), np.array([2.0, 0.5]), np.array([1.0]))
    model = StagedModel([stage], [Point(0, {})], price_list(np.array([3.0, 4.0, 5.0])))
    model = StagedModel.from_state(model.state())
    X = np.array([[2.0, 10.0, np.nan], [np.nan, 1.0, 0.0]], dtype=np.float32)
    (only,) = model.predict_path(Features(X))
    assert only.scores.tolist() == [22.0, 3.0]
    assert only.bills["path"].feature_cost(model.prices, 2).tolist() == [7.0, 7.0]
    assert only.bills["path"].evaluation_cost(model.prices, 2).tolist() == [0.0, 0.0]


def test_a_row_that_scores_exactly_the_threshold_passes():
    gate = Stage(np.array([0]), np.ones(1), np.zeros(1), bar=0.5, then=1)
    after = Stage(NO_ENTRIES, np.zeros(0), np.array([100.0]))
    model = StagedModel([gate, after], [Point(1, {})], price_list(np.ones(1)))
    X = np.array([[0.5], [0.25]], dtype=np.float32)
    (only,) = model.predict_path(Features(X))
    assert only.scores.tolist() == [100.0, 0.25]


def test_rejected_rows_rank_below_survivors_by_exit_stage_and_then_score():
    def gated(column, then):
        return Stage(np.array([column]), np.ones(1), np.zeros(1), bar=0.0, then=then)

    stages = [gated(0, 1), gated(1, 2), Stage(np.array([2]), np.ones(1), np.zeros(1))]
    model = StagedModel(stages, [Point(2, {})], price_list(np.ones(3)), rejected="below")
    X = [[-1, 9, 9], [-3, 9, 9], [1, -5, 9], [1, 1, -70], [1, 1, 4], [1, -5, 8], [-3, 0, 0]]
    queries = Queries.from_sizes(np.array([6, 1]))
    (only,) = model.predict_path(Features(np.array(X, dtype=np.float32), queries))
    assert only.scores[3:5].tolist() == [-70.0, 4.0]
    assert np.argsort(-only.scores[:6], kind="stable").tolist() == [4, 3, 2, 5, 0, 1]
    assert only.scores[2] == only.scores[5]


def test_a_block_of_the_wrong_width_is_refused():
    model = random_model(np.random.default_rng(6))
    with pytest.raises(ValueError, match=r"expected X \(n, 8\), got \(2, 3\)"):
        next(model.predict_path(Features(np.zeros((2, 3), dtype=np.float32))))
