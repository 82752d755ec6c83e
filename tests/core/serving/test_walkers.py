"""All ways to walk a program agree with one naive reference: plain Python, compiled single rows,
many rows at once."""

import copy
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import product
from threading import Barrier, BrokenBarrierError
from typing import NamedTuple

import numpy as np
import pytest
from bench_models.boosting import chain
from bench_trees.kernels.traversal import walk_tiles
from helpers.flat_costs_plugin import VisitFee
from helpers.kit import refused
from helpers.naive_walk import NaivePredictor
from helpers.program_cases import PROGRAMS, D, X, folder_of, prices, rng, trees
from helpers.random_trees import random_ensemble

from bench_core import Acquired, Features, Queries, SensorPrices, UsageError
from bench_core.serving import (
    END,
    REJECT,
    VECTOR,
    Finish,
    Predictor,
    row_walk,
)
from bench_core.serving.block_walk import BlockWalk


class Walked(NamedTuple):
    """What a row by itself answers, which features it read, and what was evaluated for it."""

    score: list[float]
    features: set[int]
    splits: float
    trees: int
    step: int


def walked(program, x, steps=None):
    """The row ``x`` (d,) to its end, without a cap. ``steps`` gets each step and the answer there,
    except for the last."""
    tree, features, splits, trees = program.trees, set(), 0.0, 0
    own = score = [0.0] * program.outputs
    at, last, onward = 0, END, 0
    while at >= 0:
        step = program.steps[at]
        own = [(a if step.carry else 0.0) + b for a, b in zip(own, step.bias.tolist(), strict=True)]
        for t, weight, fresh in zip(step.trees, step.weights, step.fresh, strict=True):
            node, walk_path = int(tree.start[t]), []
            while (f := int(tree.feature[node])) >= 0:
                walk_path.append(f)
                left = tree.missing_left[node] if math.isnan(x[f]) else x[f] <= tree.threshold[node]
                node = int((tree.left if left else tree.right)[node])
            features |= set(walk_path)
            if fresh:
                splits, trees = (
                    splits + sum(program.multiplier[walk_path]),
                    trees + (len(walk_path) > 0),
                )
            if tree.output[t] == VECTOR:
                own = [a + b for a, b in zip(own, tree.vectors[int(tree.value[node])], strict=True)]
            else:
                own[tree.output[t]] += tree.value[node] * weight
        features |= set(step.columns.feature.tolist())
        _add_columns(own, step.columns, x)
        if step.kernel is not None:
            features |= set(step.kernel.features.tolist())
            own = [a + b for a, b in zip(_kernel(step.kernel, x), step.bias, strict=True)]
        score = [_combined(step.combine, a, b) for a, b in zip(score, own, strict=True)]
        likeliest = 1 / (1 + math.exp(-abs(score[0]))) if len(score) == 1 else _softmax(score)
        value = {"always": True, "score": score[0] >= step.value, "class": likeliest <= step.value}
        last, onward = at, step.then if value[step.gate] else step.otherwise
        at = onward
        if steps is not None and at >= 0:
            steps.append((last, _answer_of(step, score)))
    if onward == REJECT and not isinstance(program.rejected, str):
        score = [float(program.rejected)] * program.outputs
    score = _answer_of(program.steps[last], score)
    return Walked(score, features, splits, trees, last)


def _answer_of(step, score):
    finish = step.finish
    while finish is not None:
        score, finish = _finished(finish, score), finish.onward
    return score


def _add_columns(own, columns, x):
    for j, f in enumerate(columns.feature):
        scaled = (float(x[f]) - columns.mean[j]) * columns.factor[j]
        own[columns.output[j]] += columns.weight[j] * (scaled if np.isfinite(x[f]) else 0.0)


def _kernel(kernel, x):
    z = [float(x[f]) if np.isfinite(x[f]) else None for f in kernel.features]
    centred = zip(z, kernel.mean, kernel.factor, strict=True)
    z = [0.0 if v is None else (v - m) * s for v, m, s in centred]
    total = [0.0] * len(kernel.coefficients)
    for i in range(kernel.vectors.shape[1]):
        for g, gamma in enumerate(kernel.gamma):
            places = range(kernel.start[g], kernel.start[g + 1])
            distance = sum((z[j] - kernel.vectors[j, i]) ** 2 for j in places)
            for k, own in enumerate(kernel.coefficients[:, i]):
                total[k] += own * math.exp(-gamma * distance)
    return total


def _combined(how, before, own):
    if how == "and":
        both = 1 / (1 + math.exp(-before)) / (1 + math.exp(-own))
        return math.log(both / (1 - both))
    return {"last": own, "min": min(before, own), "add": before + own}[how]


def _softmax(score):
    return math.exp(max(score)) / sum(map(math.exp, score))


def _finished(finish, score):
    raw = [b + s / finish.rounds for b, s in zip(finish.base, score, strict=True)]
    if finish.link == "exp":
        raw = [math.exp(min(r, 700.0)) for r in raw]
    if finish.link == "probability":
        raw = [min(max(r, 1e-6), 1 - 1e-6) for r in raw]
        raw = [math.log(r) - (math.log(1 - r) if len(raw) == 1 else 0.0) for r in raw]
    return [finish.slope * r + finish.intercept for r in raw]


CAPS = (None, 5.0, 60.0)
FEW = X[:20]
PLACE = {name: j for j, name in enumerate(folder_of(PROGRAMS["chain"]).names)}
EXACT = {"rtol": 1e-9, "atol": 1e-9}


def decided(name, least):
    """Exits where a class is likely enough, growing with the sums of trees."""
    steps = list(PROGRAMS[name].steps)
    for k in range(0, len(steps) - 1, 3):
        steps[k] = replace(steps[k], gate="class", value=least + 0.01 * k, then=k + 1)
    return replace(PROGRAMS[name], steps=steps)


def linked(name, link):
    program = PROGRAMS[name]
    finish = Finish((0.3,) * program.outputs, rounds=20.0, link=link)
    return replace(program, steps=[replace(step, finish=finish) for step in program.steps])


KNOWN = {
    **{name: PROGRAMS[name] for name in ("chain", "outputs", "gated", "rejected", "vectors")},
    "decided": decided("chain", 0.7),
    "classes": decided("outputs", 0.5),
}
EVERY = {
    **KNOWN,
    "support": PROGRAMS["support"],
    "exp": linked("chain", "exp"),
    "share": linked("chain", "probability"),
    "shares": linked("vectors", "probability"),
    "leaves": trees(count=2, leaves=2000),
}


def both(program):
    """The naive walk, and compiled code."""
    return NaivePredictor(folder_of(program)), Predictor(folder_of(program))


def same(one, other):
    parts = [(list(a.bought), a.step, a.stopped) for a in (one, other)]
    figures = [np.append(a.score, a.spent) for a in (one, other)]
    return parts[0] == parts[1] and np.allclose(*figures, equal_nan=True, **EXACT)


def equal(one, other):
    assert np.allclose(one.scores, other.scores, equal_nan=True, **EXACT)
    assert np.allclose(one.spent, other.spent, **EXACT)
    for name in ("bought", "step", "capped"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name


def assert_reference(folder, found, rows):
    program, costs = folder.program, folder.costs
    assert isinstance(costs, SensorPrices)
    for i, row in enumerate(rows):
        expected = walked(program, row)
        sensors = sorted({s for f in expected.features for s in costs.sensors_of(f).tolist()})
        spent = costs.sensor[sensors].sum() + costs.split * expected.splits
        assert np.allclose(found.scores[i], expected.score, **EXACT)
        assert np.flatnonzero(found.bought[i]).tolist() == sensors
        assert math.isclose(found.spent[i], spent + costs.tree * expected.trees, rel_tol=1e-9)
        assert found.step[i] == expected.step


@pytest.mark.parametrize("name", EVERY)
def test_rows_one_by_one_and_many_at_once_agree_with_the_reference(name):
    folder = folder_of(EVERY[name])
    for model in (NaivePredictor(folder), Predictor(folder)):
        assert_reference(folder, model.predict_rows(FEW), FEW)
    assert_reference(folder, model.predict_rows(X), X)


@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("name", EVERY)
def test_compiled_rows_ask_and_stop_as_the_naive_walk(name, cap):
    plain, model = both(EVERY[name])
    equal(plain.predict_rows(FEW, cap=cap), model.predict_rows(FEW, cap=cap))
    for row in FEW[:5]:
        asked = []
        expected = plain.predict(asking(row, asked), cap=cap)
        again = []
        assert same(expected, model.predict(asking(row, again), cap=cap))
        assert asked == again


@pytest.mark.parametrize("name", EVERY)
def test_every_step_of_a_row_is_explained_as_the_reference_walks(name):
    program, model = EVERY[name], Predictor(folder_of(EVERY[name]))
    for x in FEW:
        row = {n: None if np.isnan(v) else float(v) for n, v in zip(model.names, x, strict=True)}
        steps = []
        expected = walked(program, x, steps)
        told = model.explain(row)
        assert same(told.answer, model.predict(row))
        assert [own.step for own in told.steps] == [*(step for step, _ in steps), expected.step]
        scores = [*(score for _, score in steps), expected.score]
        for own, score in zip(told.steps, scores, strict=True):
            assert np.allclose(own.score, score, **EXACT)
        assert sum([own.bought for own in told.steps], ()) == told.answer.bought
        assert math.isclose(math.fsum(own.cost for own in told.steps), told.answer.spent)
        gate = program.steps[expected.step].gate
        assert (f"the gate of step {expected.step}" in told.why) == (gate != "always")
        assert told.why == "the model has no further step" or gate != "always"
        capped = model.explain(row, cap=5.0)
        assert same(capped.answer, model.predict(row, cap=5.0))
        assert sum([own.bought for own in capped.steps], ()) == capped.answer.bought
        assert math.fsum(own.cost for own in capped.steps) == pytest.approx(capped.answer.spent)
        if capped.answer.stopped == "cap":
            assert "cap of 5" in capped.why
            assert all(own.score is not None for own in capped.steps[:-1])


def test_bills_over_several_words_of_sensors():
    """Features far apart, some of which share sensors."""
    rng = np.random.default_rng(3)
    needs = [np.sort(rng.permutation(200)[: 2 + j]).astype(np.int32) for j in range(D)]
    start = np.cumsum([0, *map(len, needs)]).astype(np.int32)
    sensor, ones = 10 ** rng.uniform(-8, 8, 200), np.ones(D)
    prices = SensorPrices(start, np.concatenate(needs), sensor, ones, split=0.37, tree=0.11)
    folder = replace(folder_of(PROGRAMS["chain"]), costs=prices)
    plain, model = NaivePredictor(folder), Predictor(folder)
    equal(plain.predict_rows(FEW), model.predict_rows(FEW))
    equal(plain.predict_rows(X), model.predict_rows(X))


def test_costs_that_are_no_sum_are_those_of_the_cost_model():
    base = folder_of(PROGRAMS["chain"]).costs
    costs = VisitFee(base, 1.0)
    folder = replace(folder_of(PROGRAMS["chain"]), costs=costs)
    plain, model = NaivePredictor(folder), Predictor(folder)
    few, many = model.predict_rows(FEW), model.predict_rows(X)
    assert np.allclose(few.spent, many.spent[: len(FEW)], **EXACT)
    for cap in (None, 20.0):
        equal(plain.predict_rows(FEW, cap=cap), model.predict_rows(FEW, cap=cap))


def asking(row, asked):
    """Notes what it is asked for; None where a cell is missing."""

    def acquire(names):
        asked.append(list(names))
        values = [float(row[PLACE[n]]) for n in names]
        names.clear()  # it is the caller's
        return [None if math.isnan(v) else v for v in values]

    return acquire


def test_rows_with_and_without_a_cap_by_turns():
    """Two kinds of questions compile one kind of walk."""
    plain, model = both(KNOWN["gated"])
    for row, cap in zip(FEW, (None, 5.0, None, 60.0, 0.0, None), strict=False):
        expected = plain.predict(asking(row, []), cap=cap)
        assert same(expected, model.predict(asking(row, []), cap=cap))
    assert len(row_walk.ways.signatures) == 1


def test_two_threads_ask_by_turns():
    """Each waits in its first question for that of the other, and gets its own row's answer."""
    plain, model = both(KNOWN["chain"])
    meeting = Barrier(2)

    def walk(row):
        def acquire(names):
            kept = [*names]
            with suppress(BrokenBarrierError):  # the other has come to its end
                meeting.wait(1)
            assert names == kept
            return [row[PLACE[name]] for name in names]

        try:
            return model.predict(acquire)
        finally:
            meeting.abort()

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(walk, FEW[:2]))
    for row, answer in zip(FEW[:2], found, strict=True):
        assert same(plain.predict(asking(row, [])), answer)


def through_pickle(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, through_pickle])
@pytest.mark.parametrize("name", ["chain", "gated", "support"])
def test_a_predictor_is_copied_before_during_and_after_a_row(name, copied):
    model = Predictor(folder_of(PROGRAMS[name]))
    copies = [copied(model)]
    model.compile()

    def acquire(names):
        copies.append(copied(model))
        return asking(X[0], [])(names)

    expected = model.predict(acquire)
    model.predict_rows(X)
    assert len(copies) > 1
    for other in [*copies, copied(model)]:
        assert same(expected, other.predict(asking(X[0], [])))


KINDS = {
    "tuple": lambda values: tuple(values.tolist()),
    "iterator": lambda values: iter(values.tolist()),
    "float64": lambda values: values.astype(float),
    "too large": lambda values: np.where(values > 0, 1e300, values.astype(float)),
    "float32": lambda values: values,
    "strided": lambda values: np.repeat(values, 2)[::2],
    "whole": lambda values: np.nan_to_num(values, posinf=9, neginf=-9).astype(np.int16),
    "with None": lambda values: [None if math.isnan(v) else v for v in values.tolist()],
    "objects": lambda values: np.array([None if math.isnan(v) else v for v in values.tolist()]),
    "masked": lambda values: np.ma.MaskedArray(values, mask=False),
}


def test_values_of_any_kind():
    plain, model = both(KNOWN["gated"])
    for row, (kind, made) in product(FEW[:5], KINDS.items()):
        acquire = lambda names, row=row, made=made: made(row[[PLACE[n] for n in names]])  # noqa: E731
        assert same(plain.predict(acquire), model.predict(acquire)), kind


NO_CELLS = {
    "a complex number": lambda n: [1j] * n,
    "complex arrays": lambda n: np.ones(n) * 1j,
    "text": lambda n: ["1,5"] * n,
    "text as an array": lambda n: np.array(["1"] * n),
    "bytes": lambda n: b"1" * n,
    "one text": lambda n: "1" * n,
    "lists": lambda n: [[1.0]] * n,
    "a table": lambda n: np.ones((n, 1)),
    "ragged lists": lambda n: [[1.0, 2.0], *[[1.0]] * (n - 1)],
    "other names": lambda n: {str(k): 1.0 for k in range(n)},
    "a set": lambda n: set(range(n)),
    "times": lambda n: np.zeros(n, "datetime64[s]"),
}


@pytest.mark.parametrize("what", NO_CELLS)
def test_values_that_are_no_real_numbers_are_refused_by_both_walks(what):
    for model in both(KNOWN["gated"]):
        refused("", model.predict, lambda names: NO_CELLS[what](len(names)), error=UsageError)


def test_masked_cells_are_missing():
    plain, compiled = both(KNOWN["gated"])
    for model in (plain, compiled):
        masked = model.predict(lambda names: np.ma.masked_all(len(names), np.float64))
        assert same(masked, model.predict(lambda names: [None] * len(names)))


@pytest.mark.parametrize("cell", [1j, "1,5", b"1"])
def test_rows_of_no_real_numbers_are_refused(cell):
    for model in both(KNOWN["gated"]):
        for rows in (np.full((40, D), cell), np.full((2, D), cell, dtype=object)):
            refused("needs numbers, |not a number", model.predict_rows, rows)


def test_as_many_values_as_features():
    """Also where one would do for all, and where the caller changed the list that is his."""
    models = both(KNOWN["chain"])
    kinds = [list, np.array]
    for model, kind, number in product(models, kinds, (0, 1, 9)):
        asked = []
        given = kind([1.0] * number)

        def acquire(names, asked=asked, given=given):
            asked += names
            names.clear()
            return given

        line = refused(f"{number} values for ", model.predict, acquire)
        assert len(asked) > 1
        more = ", ..." if len(asked) > 3 else ""
        assert f"{len(asked)} features ({', '.join(asked[:3])}{more}); " in line


def compared(gate, value):
    """Gates among the rows of a query, and a tree that a later step uses again."""
    steps = list(PROGRAMS["chain"].steps)
    for k in range(2, len(steps) - 1, 5):
        steps[k] = replace(steps[k], gate=gate, value=value, k=3, then=k + 1, otherwise=REJECT)
    again = np.zeros(len(steps[1].trees), dtype=bool)
    steps[-1] = replace(steps[-1], trees=steps[1].trees, weights=steps[1].weights, fresh=again)
    return replace(PROGRAMS["chain"], steps=steps, rejected="below")


@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize(("gate", "value"), [("rank", 12.0), ("proximity", 4.0), ("capacity", 9.0)])
def test_gates_among_documents_agree_with_the_naive_walk(gate, value, cap):
    plain, model = both(compared(gate, value))
    found = []
    for walk in (plain, model):
        asked = []

        def acquire(i, names, asked=asked):
            asked.append((i, *names))
            return [X[i, PLACE[n]] for n in names]

        found.append((walk.predict_query(acquire, 40, cap=cap), asked))
    (expected, asked), (answers, again) = found
    assert all(map(same, expected, answers))
    assert asked == again
    queries = Queries(np.array([0, 10, 40]))
    equal(
        plain.predict_rows(X[:40], queries, cap=cap), model.predict_rows(X[:40], queries, cap=cap)
    )
    if cap is None:
        assert {answer.stopped for answer in answers} == {"end", "gate"}
        many = model.predict_rows(X[:40], Queries(np.array([0, 40])))
        assert np.allclose([answer.score for answer in answers], many.scores, **EXACT)
        assert np.allclose([answer.spent for answer in answers], many.spent, **EXACT)


@pytest.mark.parametrize("outputs", [1, 3])
def test_one_walk_shows_every_stop_as_it_is_served(outputs):
    costs = prices()
    model = chain(random_ensemble(rng, trees=40, features=D, leaves=12, outputs=outputs), costs, {})
    points = [point.values for point in model.points]
    walk = BlockWalk.at_stops(model.program(points[-1]), costs)
    shown = []
    for point, scores, rows in walk.path(Features(X)):
        shown.append(point)
        served = Predictor(folder_of(model.program(point))).predict_rows(X)
        paid = Acquired(rows.bits, costs.sensors).unpack() @ costs.sensor
        spent = paid + costs.split * rows.splits + costs.tree * rows.trees
        assert np.allclose(scores, served.scores, **EXACT)
        assert np.allclose(spent, served.spent, **EXACT)
    assert shown == points


def test_rows_of_any_kind_of_array():
    _, model = both(KNOWN["chain"])
    expected = model.predict_rows(X).scores
    model.predict_rows(X[:20])
    kernels = (walk_tiles, row_walk.ways)
    compiled = [len(kernel.signatures) for kernel in kernels]
    frozen = X.copy()
    frozen.flags.writeable = False
    for rows in (frozen, np.asfortranarray(X), X.astype(np.float64), X.tolist()):
        assert np.array_equal(model.predict_rows(rows).scores, expected)
        assert np.array_equal(model.predict_rows(rows[:20]).scores, expected[:20])
    assert [len(kernel.signatures) for kernel in kernels] == compiled


def test_a_row_that_is_given_up_leaves_others_alone():
    _, model = both(KNOWN["chain"])

    def broken(names):
        raise StopIteration

    def within(names):
        with pytest.raises(StopIteration):
            model.predict(broken)
        with pytest.raises(UsageError):
            model.predict(lambda names: [1.0] * (len(names) + 1))
        inner = model.predict(asking(X[1], []))
        assert same(inner, model.predict(asking(X[1], [])))
        return asking(X[0], [])(names)

    assert same(model.predict(within), model.predict(asking(X[0], [])))
