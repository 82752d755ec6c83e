"""Claims on the stages of a cascade, on made ones: each holds, does not hold, and shows nothing."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from bench_claims import measures
from bench_claims.verdicts import FAILS, HOLDS, UNRUN, judge, settle
from bench_models.staged import Point, Stage, StagedModel
from helpers.claim_cases import ACCURACY, claim, frame, info, rows, use

from bench_core import Examples, price_list
from bench_core._io.digests import canonical
from bench_core.errors import InputError


def trial(learner, *points, quality=0.9, **params):
    """Points (trees, the share of rows that reach each stage), each better than the one before and
    the last of this quality; of another setting than the learner's other trials. The trial's name
    is that share."""
    last = len(points) - 1
    made = rows(
        learner,
        [
            (k + 1, quality - 0.0001 * (last - k), quality - 0.0001 * (last - k))
            for k in range(last + 1)
        ],
        params=json.dumps(params, sort_keys=True),
    )
    for k, row in enumerate(made):
        trees, reached = points[k // 2]
        row |= {"point": canonical({"trees": trees}), "trial": json.dumps(reached)}
    return made


def judged(measure, *parts, **rule):
    compact = frame(*parts).astype(dict.fromkeys(("learner", "params", "point"), "category"))
    store = SimpleNamespace()  # not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measures, "stages_of", shares)
        return judge(claim(measure, **rule), compact, ACCURACY, store)  # as a report has them


def shares(store, trial, point):
    reached = json.loads(trial)
    return (len(reached), [*reached, 1.0][1]) if reached else (np.nan, np.nan)


PLAIN = trial("second", (100, None))


def test_the_stages_of_a_model_without_quality_show_nothing():
    found = judged("stages", trial("first", (5, (1.0, 0.5)), quality=0.6), PLAIN, near=2, within=0)
    assert (found.word, found.shown) == (FAILS, "2")
    assert "on test its best quality is 0.6, and the other's 0.9" in found.how


def test_a_model_that_is_gone_is_named():
    found = judged("stages", trial("first", (5, None)), PLAIN, near=2, within=0)
    assert (found.word, found.shown) == (FAILS, "-")
    assert "a stored model or its data is gone" in found.how


def test_stages_are_counted_at_the_best_point_on_validation():
    def word(*reached):
        better = trial("first", (5, reached), tradeoff=1)
        worse = trial("first", (5, (1.0,)), tradeoff=2, quality=0.895)
        return judged("stages", better, worse, PLAIN, near=4, within=0)

    four = [1.0, 0.7, 0.5, 0.1]
    assert (word(*four).word, word(*four).shown) == (HOLDS, "4")
    assert word(*four[:3]).word == word(*four, 0.05).word == FAILS


def test_the_first_stage_is_compared_with_the_initial_cascades_at_the_same_trade_off():
    def found(own, other, quality=0.9):
        first = trial("first", (5, (1.0, own)), tradeoff=1, quality=quality)
        second = trial("second", (5, (1.0, other)), tradeoff=1)
        third = trial("second", (5, (1.0, 0.01)), tradeoff=2)
        return judged("passed", first, second, third, holds="< 0")

    assert (found(0.6, 0.85).word, found(0.6, 0.85).shown) == (HOLDS, "-25.0%")
    assert found(0.9, 0.85).word == found(0.85, 0.85).word == FAILS
    assert found(0.1, 0.85, quality=0.5).word == FAILS  # turns all away, and is worth nothing
    alone, other = trial("first", (5, (1.0,)), tradeoff=3), trial("second", (5, (1.0, 0.6)))
    assert judged("passed", alone, other, holds="< 0").word == FAILS


def test_stages_are_counted_on_the_stored_model(monkeypatch):
    """A chain of two stages: rows with a first cell below 0.5 end at the first."""
    halves = Stage(np.array([0]), np.ones(1), np.zeros(1), bar=0.5, then=1)
    last = Stage(np.array([1]), np.ones(1), np.zeros(1))
    points = [Point(k, {"stages": k + 1}) for k in range(2)]
    model = StagedModel([halves, last], points, price_list(np.ones(2)))
    X = np.array([[0, 1], [1, 1], [0.7, 0], [0.2, 0]], dtype=np.float32)
    test = Examples(X, np.zeros(4), multiplicity=np.array([1, 2, 3, 4]))
    splits = SimpleNamespace(test=test, costs=price_list(np.ones(2)))
    spec = SimpleNamespace(data="prepared", fit="f")
    store = SimpleNamespace(path=Path("s.db"), trial={"t": spec}.__getitem__)
    monkeypatch.setattr(measures, "open_prepared", lambda folder: splits)
    monkeypatch.setattr(measures, "load_model", lambda path: model)
    assert measures.stages_of(store, "t", '{"stages": 2}') == (2, 0.5)
    assert measures.stages_of(store, "t", '{"stages": 1}') == (1, 1)

    def gone(folder):
        raise InputError("no such folder")

    monkeypatch.setattr(measures, "open_prepared", gone)
    assert np.isnan(measures.stages_of(store, "t", '{"stages": 2}')).all()


def test_stages_need_the_store():
    made = frame(trial("first", (1, None)), PLAIN)
    found = settle(claim("stages", near=2, within=0), info(use("letters")), made)
    assert found.word == UNRUN
