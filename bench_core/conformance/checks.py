"""The promises a learner makes, one function each.

Every function takes a learner and a task's splits and raises ``ConformanceError`` (one line) where
the learner breaks the promise that the function's docstring states.
"""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench_core.arrays import Array, IntArray
from bench_core.class_names import decode, encode
from bench_core.conformance.tasks import ConformanceError, fit, with_copies, with_learners
from bench_core.costs.bill import Prediction
from bench_core.data import Features
from bench_core.execution.audit import gather, replay
from bench_core.execution.caps import Caps
from bench_core.execution.contract import ContractError, predictions
from bench_core.execution.predict import Path as ScoredPath
from bench_core.execution.predict import predict_split
from bench_core.parameters import as_json, parameters
from bench_core.results.store_files import StateError, load_model, save_model
from bench_core.splits import Splits

TOLERANCE = 1e-9
COPIES_TOLERANCE = 1e-6
CAPS = (0.05, 0.3)  # parts of the price of everything
SCALE = 1024.0  # a power of two: rescaling is exact in binary


def check_parameters(learner: Any, splits: Splits) -> None:
    """A learner is a frozen dataclass whose fields are documented and have JSON values.

    It has ``name`` and ``tasks``, and comes back equal from what is sent to a worker.
    """
    cls = type(learner)
    if not is_dataclass(learner) or not cls.__dataclass_params__.frozen:
        raise ConformanceError("it is no frozen dataclass")
    for attribute in ("name", "tasks"):
        if attribute in {f.name for f in fields(learner)} or not hasattr(cls, attribute):
            raise ConformanceError(f"{attribute} must be a ClassVar of the class")
    for p in parameters(cls):
        if not p.doc:
            raise ConformanceError(f"parameter {p.name} has no documentation: use param()")
    learner = with_learners(learner)
    json.dumps(as_json(learner))
    if decode(encode(learner)) != learner:
        raise ConformanceError("it does not come back equal from its JSON form")


def check_contract(learner: Any, splits: Splits) -> None:
    """Paths have 1 to 100 points, alike on all blocks; shapes, finite scores and bills hold."""
    _path(fit(learner, splits), splits)


def check_state(learner: Any, splits: Splits) -> None:
    """``state`` is arrays and JSON; a model rebuilt from it predicts the same bits."""
    model = fit(learner, splits)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model.npz"
        with _promised():
            save_model(place, model)
        again = load_model(place)
    _same(_path(model, splits), _path(again, splits), 0.0, "reloaded")


def check_repeatable(learner: Any, splits: Splits) -> None:
    """Two fits with the same seed give the same model, whatever the number of threads."""
    one, two = (_path(fit(learner, splits, threads=n), splits) for n in (1, 2))
    _same(one, two, TOLERANCE, "fitted again, with two threads")


def check_blocks(learner: Any, splits: Splits) -> None:
    """A query's result depends on nothing outside it: blocks of any size and order agree to 1e-9,
    bills exactly."""
    model = fit(learner, splits)
    features = splits.test.features
    whole = _predict(model, features, splits)
    units = len(features) if features.queries is None else len(features.queries)
    rng = np.random.default_rng(0)
    for chosen in [[u] for u in range(min(units, 20))] + [rng.permutation(units)[: units // 2]]:
        block, rows, _ = gather(features, np.asarray(chosen))
        part = _predict(model, block, splits)
        _same_answers(whole, part, rows)


def check_own_arrays(learner: Any, splits: Splits) -> None:
    """A prediction keeps its values after the next one was made."""
    model = fit(learner, splits)
    kept = [
        (prediction, np.array(prediction.scores), np.array(prediction.bills["path"].acquired.bits))
        for prediction in model.predict_path(splits.test.features)
    ]
    for prediction, scores, bits in kept:
        same = np.array_equal(prediction.scores, scores)
        if not same or not np.array_equal(prediction.bills["path"].acquired.bits, bits):
            raise ConformanceError(f"the prediction at {dict(prediction.point)} changed later")


def check_audit(learner: Any, splits: Splits) -> None:
    """At every point of every query the model reads only what it paid for (replay audit)."""
    model = fit(learner, splits)
    blind = type(model).from_state(model.state())
    test, prices, classes = splits.test, splits.prices, splits.classes
    found = replay(model, test, prices, classes, "full", seed="conformance", blind=blind)
    if found.word != "verified":
        raise ConformanceError(found.reason)


def check_caps(learner: Any, splits: Splits) -> None:
    """Under caps no row is billed more, and its answer depends on nothing that it had not bought
    when it was stopped (replay audit)."""
    model = fit(learner, splits)
    blind = type(model).from_state(model.state())
    test, prices, classes = splits.test, splits.prices, splits.classes
    limits = tuple(part * prices.everything for part in CAPS)
    caps = Caps.over(limits, splits.train, splits.task, classes)
    with _promised():
        path = predict_split(model, test, prices, classes, caps=caps)
    if path.capped is not None and bool(np.any(path.capped.cost > np.array(limits)[:, None])):
        raise ConformanceError("a row is billed more than the cap")
    found = replay(model, test, prices, classes, seed="conformance", blind=blind, caps=caps)
    if found.word == "failed":
        raise ConformanceError(found.reason)


def check_rescaled_costs(learner: Any, splits: Splits) -> None:
    """A learner with ``tradeoff`` does not care about the unit of cost."""
    if not hasattr(learner, "tradeoff"):
        return
    prices = splits.prices
    scaled = {name: getattr(prices, name) * SCALE for name in ("sensor", "split", "tree")}
    expensive = replace(splits, prices=replace(prices, **scaled))
    one, two = (_path(fit(learner, at), at) for at in (splits, expensive))
    two.cost /= SCALE
    _same(one, two, TOLERANCE, "with all costs times 1024")


def check_multiplicity(learner: Any, splits: Splits) -> None:
    """Deterministic training on a row that stands for m copies equals training on the copies.

    Learners that depend on the seed are let off: they must agree in distribution only.
    """
    seeds = [_path(fit(learner, splits, seed=s), splits) for s in (0, 1)]
    if not np.array_equal(seeds[0].scores, seeds[1].scores):
        return
    one, two = (
        _path(fit(learner, replace(splits, train=train)), splits)
        for train in with_copies(splits.train)
    )
    _same(one, two, COPIES_TOLERANCE, "trained on physical copies")


CHECKS = (
    check_parameters,
    check_contract,
    check_state,
    check_repeatable,
    check_blocks,
    check_own_arrays,
    check_audit,
    check_caps,
    check_rescaled_costs,
    check_multiplicity,
)


@contextmanager
def _promised() -> Iterator[None]:
    try:
        yield
    except (ContractError, StateError) as error:
        raise ConformanceError(str(error)) from error


def _path(model: Any, splits: Splits) -> ScoredPath:
    with _promised():
        return predict_split(model, splits.test, splits.prices, splits.classes)


def _predict(model: Any, features: Features, splits: Splits) -> list[Prediction]:
    with _promised():
        return list(predictions(model, features, splits.prices, splits.classes))


def _same(one: ScoredPath, two: ScoredPath, tolerance: float, how: str) -> None:
    if one.points != two.points:
        raise ConformanceError(f"{how}: its path is another one")
    for name in ("scores", "cost"):
        a, b = getattr(one, name), getattr(two, name)
        far = np.abs(a - b).max(initial=0.0)
        if far > tolerance * np.abs(a).max(initial=0.0):
            raise ConformanceError(f"{how}: its {name} differ by up to {far:.3g}")


def _same_answers(whole: list[Prediction], part: list[Prediction], rows: IntArray) -> None:
    if [dict(p.point) for p in whole] != [dict(p.point) for p in part]:
        raise ConformanceError("its path depends on the block")
    n = len(rows)
    for a, b in zip(whole, part, strict=True):
        at = f"at {dict(a.point)} on a block of {n} rows:"
        scale = float(np.abs(a.scores).max(initial=0.0))
        far = float(np.abs(np.asarray(a.scores)[rows] - b.scores).max(initial=0.0))
        if far > TOLERANCE * scale:
            raise ConformanceError(f"{at} its scores differ by {far:.3g}")
        for (how, among), (_, alone) in zip(_billed(a).items(), _billed(b).items(), strict=True):
            if not np.array_equal(among[rows], alone):
                raise ConformanceError(f"{at} it {how}")


def _billed(prediction: Prediction) -> dict[str, Array]:
    """What each row bought and evaluated, by the words for a difference."""
    bill, n = prediction.bills["path"], len(prediction.scores)
    return {
        "buys other sensors": bill.acquired.rows(n).bits,
        "counts other splits": np.broadcast_to(bill.splits, (n,)),
        "counts other trees": np.broadcast_to(bill.trees, (n,)),
    }
