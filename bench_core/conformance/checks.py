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
from bench_core.conformance.case import Check, ConformanceError
from bench_core.conformance.tasks import fit, fitted, with_copies, with_learners
from bench_core.costs.bill import Prediction
from bench_core.data import Features, Queries
from bench_core.errors import BenchError, UsageError
from bench_core.execution.audit import replay
from bench_core.execution.caps import Caps
from bench_core.execution.contract import ContractError, predictions
from bench_core.execution.predict import PredictedPath, gather, predict_split
from bench_core.execution.score import readable
from bench_core.parameters import as_json, parameters
from bench_core.results.store_files import StateError, load_model, save_model
from bench_core.serving import Exportable, Folder, Predictor
from bench_core.splits import Splits

TOLERANCE = 1e-9
COPIES_TOLERANCE = 1e-6
CAPS = (0.05, 0.3)  # parts of the price of everything
SCALE = 1024.0  # a power of two: rescaling is exact in binary
HUGE = 1e6  # a tradeoff at which a feature costs more than any error


def check_parameters(learner: Any, splits: Splits) -> None:
    """A learner is a frozen dataclass whose fields are documented and have JSON values. It has
    ``name`` and ``tasks`` as ClassVars, and comes back equal from what is sent to a worker. One
    without parameters need not be a dataclass.

    Remedy: write @dataclass(frozen=True) above the class and fields as
    ``depth: int = param(3, "levels of the tree")``.
    """
    cls = type(learner)
    if not is_dataclass(learner):
        if vars(learner):
            raise ConformanceError("it holds values and is no frozen dataclass")
        return
    if not cls.__dataclass_params__.frozen:
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
    """``fit`` gives a model whose path has 1 to 100 points, alike on all blocks. Scores are finite
    and (n,), or (n, K) for K classes; bills name the sensors bought, (n or 1) rows of bits.

    Remedy: compare with the learner that 'bench new learner NAME' writes, which is sound.
    """
    _path(fitted(learner, splits), splits)


def check_inputs(learner: Any, splits: Splits) -> None:
    """Neither ``fit`` nor ``predict_path`` writes to the arrays that it is given.

    Remedy: work on a copy, as ``X = np.array(features.X)``.
    """
    prices, features = splits.prices, splits.test.features
    own = Features(features.X.copy(), features.queries)
    before = [a.tobytes() for a in (prices.sensor, prices.needed)]
    list(fit(learner, splits).predict_path(own))
    if own.X.tobytes() != features.X.tobytes():
        raise ConformanceError("predict_path changes the features")
    if [a.tobytes() for a in (prices.sensor, prices.needed)] != before:
        raise ConformanceError("it changes the prices")


def check_own_arrays(learner: Any, splits: Splits) -> None:
    """A prediction keeps its values after the next one was made.

    Remedy: give each Prediction arrays of its own (``scores.copy()``), not a buffer used again.
    """
    kept = [
        (prediction, np.array(prediction.scores), np.array(prediction.bills["path"].acquired.bits))
        for prediction in fitted(learner, splits).predict_path(splits.test.features)
    ]
    for prediction, scores, bits in kept:
        same = np.array_equal(prediction.scores, scores)
        if not same or not np.array_equal(prediction.bills["path"].acquired.bits, bits):
            raise ConformanceError(f"the prediction at {dict(prediction.point)} changed later")


def check_state(learner: Any, splits: Splits) -> None:
    """``state`` is arrays and JSON; a model rebuilt by ``from_state`` predicts the same bits.

    Remedy: put all that predict_path uses into state(), in the precision that it is used in.
    """
    model = fitted(learner, splits)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model.npz"
        with _promised():
            save_model(place, model)
        again = load_model(place)
    _same(_path(model, splits), _path(again, splits), 0.0, "reloaded")


def check_repeatable(learner: Any, splits: Splits) -> None:
    """Two fits with the same seed give the same model, whatever the number of threads.

    Remedy: draw from np.random.default_rng(context.seed), never from a generator of your own.
    """
    one, two = (_path(m, splits) for m in (fitted(learner, splits), fit(learner, splits, 0, 2)))
    _same(one, two, TOLERANCE, "fitted again, with two threads")


def check_row_order(learner: Any, splits: Splits) -> None:
    """Rows (or queries) in another order get the same scores to 1e-9, and the same bills.

    Remedy: score each row (or query) by itself: no running sums, sorting or indices across rows.
    """
    rng = np.random.default_rng(0)
    _blocks_agree(learner, splits, [rng.permutation(_units(splits.test.features))])


def check_block_size(learner: Any, splits: Splits) -> None:
    """A row (or query) by itself, or in a smaller block, gets the same scores to 1e-9 and bills.

    Remedy: use no mean, maximum or other statistic of the rows at hand; take it in ``fit``.
    """
    units = _units(splits.test.features)
    alone = [np.array([u]) for u in range(min(units, 20))]
    _blocks_agree(learner, splits, [*alone, np.arange(units)[: units // 2]])


def check_unpaid_cells(learner: Any, splits: Splits) -> None:
    """At every point of every row the model reads only what it paid for: asked again by its
    program, or with NaN and with other rows' values in all other cells, nothing changes (replay
    audit).

    Remedy: bill each feature that predict_path reads, by ``prices.acquired(features)``, or do not
    read it.
    """
    model = fitted(learner, splits)
    blind = type(model).from_state(model.state())
    test, prices, classes = splits.test, splits.prices, splits.classes
    found = replay(model, test, prices, classes, "full", seed="conformance", fresh=lambda: blind)
    if found.word == "failed":
        raise ConformanceError(f"{found.reason}{_feature_read(blind, splits)}")


def check_accountings(learner: Any, splits: Splits) -> None:
    """What a row used (bill ``path``) is part of what it could use (bill ``model``), where there is
    one.

    Remedy: let the bill ``model`` name every sensor, split and tree of the stages that a row came
    to.
    """
    for prediction in fitted(learner, splits).predict_path(splits.test.features):
        used, could = prediction.bills["path"], prediction.bills.get("model")
        if could is None:
            continue
        at, n = f"at {dict(prediction.point)}", len(splits.test)
        if (used.acquired.rows(n).bits & ~could.acquired.rows(n).bits).any():
            raise ConformanceError(f"{at} bill 'path' has sensors that bill 'model' has not")


def check_caps(learner: Any, splits: Splits) -> None:
    """Under caps no row is billed more, and every row has a finite answer.

    Remedy: let all bills be finite and >= 0, and all scores finite, at every point of the path.
    """
    test, prices = splits.test, splits.prices
    limits = tuple(part * prices.everything for part in CAPS)
    caps = Caps.over(limits, splits.train, splits.task, splits.classes)
    with _promised():
        path = predict_split(fitted(learner, splits), test, prices, splits.classes, caps=caps)
    if path.capped is not None and bool(np.any(path.capped.cost > np.array(limits)[:, None])):
        raise ConformanceError("a row is billed more than the cap")


def check_rescaled_costs(learner: Any, splits: Splits) -> None:
    """A learner with ``tradeoff`` does not care about the unit of cost.

    Remedy: divide prices by ``prices.everything``, and compare them with nothing else.
    """
    if not hasattr(learner, "tradeoff"):
        return
    prices = splits.prices
    scaled = {name: getattr(prices, name) * SCALE for name in ("sensor", "split", "tree")}
    expensive = replace(splits, prices=replace(prices, **scaled))
    one = _path(fitted(learner, splits), splits)
    two = _path(fit(learner, expensive), expensive)
    two = replace(two, cost=two.cost / SCALE)
    _same(one, two, TOLERANCE, "with all costs times 1024")


def check_tradeoff(learner: Any, splits: Splits) -> None:
    """A learner with ``tradeoff`` works with 0 and with 1000000, and does not spend more where
    features are dearer.

    Remedy: 0 ignores costs, and a huge one buys next to nothing: mind divisions and empty choices.
    """
    if not isinstance(getattr(learner, "tradeoff", None), float | int):
        return
    spent = []
    for tradeoff in (0.0, HUGE):
        with _promised():
            extreme = replace(learner, tradeoff=tradeoff)
            try:
                model = fit(extreme, splits)
            except (BenchError, ValueError) as error:
                raise ConformanceError(f"with tradeoff {tradeoff:g}: {error}") from error
            spent.append(float(_path(model, splits).cost[-1].mean()))
    if spent[1] > spent[0] * (1 + TOLERANCE):
        raise ConformanceError(
            f"it spends {spent[0]:g} with tradeoff 0, {spent[1]:g} with {HUGE:g}"
        )


def check_multiplicity(learner: Any, splits: Splits) -> None:
    """Deterministic training on a row that stands for m copies equals training on the copies.
    Learners that depend on the seed are let off: they must agree in distribution only. So are those
    that compare the rows of a query while they serve, where a row counts once.

    Remedy: weigh each row by ``train.weights`` in every sum, mean and count.
    """
    one, two = (_path(m, splits) for m in (fitted(learner, splits), fit(learner, splits, seed=1)))
    if not np.array_equal(one.scores, two.scores) or _compares_rows(learner, splits):
        return
    one, two = (
        _path(fit(learner, replace(splits, train=train)), splits)
        for train in with_copies(splits.train)
    )
    _same(one, two, COPIES_TOLERANCE, "trained on physical copies")


def check_program(learner: Any, splits: Splits) -> None:
    """A model that can be exported (``program``) asks, as a program, for the features that it bills
    and gives the same scores.

    Remedy: compare ``program`` with ``predict_path`` at the point named, step by step.
    """
    model, test = fitted(learner, splits), splits.test.features
    if not isinstance(model, Exportable):
        return
    path = _predict(model, test, splits)
    for prediction in path[:: max(1, len(path) - 1)]:  # the first and the last
        try:
            program = model.program(prediction.point)
        except UsageError:  # which says why there is none
            return
        served = Predictor(Folder(program, splits.costs, splits.names, {"task": str(splits.task)}))
        found, at = served.predict_rows(test.X, test.queries), f"at {dict(prediction.point)}"
        if not np.allclose(found.scores, prediction.scores, rtol=TOLERANCE, atol=TOLERANCE):
            raise ConformanceError(f"{at} the program scores otherwise than predict_path")
        bought = prediction.bills["path"].acquired.rows(len(test)).unpack()
        if not np.array_equal(found.bought, bought):
            raise ConformanceError(f"{at} the program buys otherwise than predict_path bills")


CHECKS: tuple[Check, ...] = (
    check_parameters,
    check_contract,
    check_inputs,
    check_own_arrays,
    check_state,
    check_repeatable,
    check_row_order,
    check_block_size,
    check_unpaid_cells,
    check_accountings,
    check_caps,
    check_rescaled_costs,
    check_tradeoff,
    check_multiplicity,
    check_program,
)


@contextmanager
def _promised() -> Iterator[None]:
    try:
        yield
    except (ContractError, StateError) as error:
        raise ConformanceError(str(error)) from error


def _path(model: Any, splits: Splits) -> PredictedPath:
    with _promised():
        return predict_split(model, splits.test, splits.prices, splits.classes)


def _predict(model: Any, features: Features, splits: Splits) -> list[Prediction]:
    with _promised():
        return list(predictions(model, features, splits.prices, splits.classes))


def _same(one: PredictedPath, two: PredictedPath, tolerance: float, how: str) -> None:
    if one.points != two.points:
        raise ConformanceError(f"{how}: its path is another one")
    for name in ("scores", "cost"):
        a, b = getattr(one, name), getattr(two, name)
        far = np.abs(a - b).max(initial=0.0)
        if far > tolerance * np.abs(a).max(initial=0.0):
            raise ConformanceError(f"{how}: its {name} differ by up to {far:.3g}")


def _units(features: Features) -> int:
    """The number of rows, or queries, that are predicted independently."""
    return len(features) if features.queries is None else len(features.queries)


def _blocks_agree(learner: Any, splits: Splits, chosen: list[IntArray]) -> None:
    """Blocks of the chosen rows (or queries) get what these get in the whole split."""
    model, features = fitted(learner, splits), splits.test.features
    whole = _predict(model, features, splits)
    for units in chosen:
        block, rows, _ = gather(features, units)
        _same_answers(whole, _predict(model, block, splits), rows)


def _compares_rows(learner: Any, splits: Splits) -> bool:
    """True where a row by itself is answered otherwise than among its query's."""
    features = splits.test.features
    if features.queries is None:
        return False
    model = fitted(learner, splits)
    alone = Features(features.X, Queries.from_sizes(np.ones(len(features), dtype=np.int64)))
    pairs = zip(model.predict_path(features), model.predict_path(alone), strict=True)
    return any(not np.allclose(a.scores, b.scores, rtol=TOLERANCE) for a, b in pairs)


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
    """The purchases and evaluations of each row, by the words for a difference."""
    bill, n = prediction.bills["path"], len(prediction.scores)
    return {
        "buys other sensors": bill.acquired.rows(n).bits,
        "counts other splits": np.broadcast_to(bill.splits, (n,)),
        "counts other trees": np.broadcast_to(bill.trees, (n,)),
    }


def _feature_read(model: Any, splits: Splits) -> str:
    """The feature that a model reads unpaid, found by hiding one at a time, or ""."""
    features, n = splits.test.features, len(splits.test)
    before = [
        (np.array(p.scores), p.bills["path"].acquired.rows(n).unpack())
        for p in model.predict_path(features)
    ]
    for p, (scores, bought) in [*enumerate(before)][:: max(1, len(before) - 1)]:
        unpaid = ~readable(bought, splits.prices)
        for j in range(features.X.shape[1]):
            X = features.X.copy()
            X[unpaid[:, j], j] = features.X[::-1][unpaid[:, j], j]
            after = list(model.predict_path(Features(X, features.queries)))
            if not np.array_equal(scores, after[p].scores):
                return f"; it reads feature {splits.names[j]} (column {j}) unpaid"
    return ""
