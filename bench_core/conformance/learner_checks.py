"""Promises of learners, one function each, given the learner and a task's splits.

The last four use small data with problems of real tables. Learners must handle them, or raise
UsageError or InputError.
"""

import json
import tempfile
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench_core.conformance.cases import (
    ConformanceError,
    expect,
    fit,
    fitted,
    sealed,
    task_splits,
    with_copies,
    with_learners,
)
from bench_core.contracts import check
from bench_core.costs.model import price_list
from bench_core.data import Examples, Features, Queries, Task
from bench_core.errors import BenchError
from bench_core.execution.audit import replay
from bench_core.execution.caps import Caps
from bench_core.execution.predict import PredictedPath, gather, predict_split, readable, units
from bench_core.execution.score_comparison import close, spreads
from bench_core.parameters import as_json, decode, encode, parameters
from bench_core.protocols import CompleteLearner
from bench_core.results.store_files import load_model, save_model
from bench_core.splits import SPLITS, Splits

TOLERANCE = 1e-9
COPIES_TOLERANCE = 1e-6
ALONE = 20  # rows or queries that are predicted separately
SCALE = 1024.0  # a power of two: rescaling is exact in binary
HUGE = 1e6  # tradeoff at which a feature costs more than any error
CAPPED = 0.3  # cap of a row, as a part of the price of everything
FEW, WIDE = 60, 150  # rows; features, which need more than two words of bits


def check_parameters(learner: Any, splits: Splits) -> None:
    """A learner is a frozen dataclass whose fields are documented and have JSON values. ``name``
    and ``tasks`` are ClassVars. The learner is equal after a round trip to a worker. A learner
    without parameters need not be a dataclass.

    Remedy: write @dataclass(frozen=True) above the class and fields as
    ``depth: int = param(3, "levels of the tree")``.
    """
    cls = type(learner)
    check(cls, CompleteLearner, cls.__name__)
    if not is_dataclass(learner):
        expect(not vars(learner), "it has values and is not a frozen dataclass")
        return
    wrong = {"name", "tasks"}.intersection(f.name for f in fields(learner))
    expect(not wrong, f"{' and '.join(wrong)} must be a ClassVar of the class")
    for p in parameters(cls):
        expect(p.doc, f"parameter {p.name} has no documentation: use param()")
    learner = with_learners(learner)
    json.dumps(as_json(learner))
    expect(decode(encode(learner)) == learner, "it does not come back equal from its JSON form")


def check_contract(learner: Any, splits: Splits) -> None:
    """``fit`` returns a model whose path has 1 to 100 points, the same on all blocks. Scores are
    finite and (n,), or (n, K) for K classes; bills contain the sensors bought, (n or 1) rows of
    bits. If there is a bill ``model``, each point has one, which contains all purchases of bill
    ``path``. A policy's ``stops`` are one name with 1 to 100 different numbers.

    Remedy: compare with the valid learner that 'bench new learner NAME' writes.
    """
    model = fitted(learner, splits)
    _path(model, splits)
    if "model" in next(iter(model.predict_path(splits.test.features))).bills:
        _path(model, splits, "model")


def check_arrays(learner: Any, splits: Splits) -> None:
    """Neither ``fit`` nor ``predict_path`` modifies its input arrays or the arrays of a prediction
    that it has yielded.

    Remedy: work on a copy, as ``X = np.array(features.X)``, and give each Prediction its own arrays
    (``scores.copy()``), not a reused buffer.
    """
    prices, features = splits.prices, splits.test.features
    test_rows = Features(features.X.copy(), features.queries)
    before = [a.tobytes() for a in (prices.sensor, prices.needed)]
    # each prediction as yielded, and a copy of its arrays at that time
    predictions = []
    for prediction in fit(learner, splits).predict_path(test_rows):
        arrays = prediction.scores, prediction.bills["path"].acquired.bits
        predictions.append((prediction.point, arrays, [np.array(array) for array in arrays]))
    for point, arrays, copies in predictions:
        same = all(map(np.array_equal, arrays, copies))
        expect(same, f"the prediction at {dict(point)} changed later")
    expect(test_rows.X.tobytes() == features.X.tobytes(), "predict_path changes the features")
    after = [a.tobytes() for a in (prices.sensor, prices.needed)]
    expect(after == before, "it changes the prices")


def check_state(learner: Any, splits: Splits) -> None:
    """``state`` is arrays and JSON; a model rebuilt by ``from_state`` predicts the same bits.

    Remedy: put everything that predict_path uses into state(), without rounding.
    """
    model = fitted(learner, splits)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model.npz"
        save_model(place, model)
        again = load_model(place)
    # predictions must be identical to the bit
    _same(_path(model, splits), _path(again, splits), 0.0, "reloaded")


def check_repeatable(learner: Any, splits: Splits) -> None:
    """Two fits with the same seed give the same model, for any number of threads.

    Remedy: draw from np.random.default_rng(context.seed), never from another generator.
    """
    one, two = (_path(m, splits) for m in (fitted(learner, splits), fit(learner, splits, 0, 2)))
    _same(one, two, TOLERANCE, "fitted again, with two threads")


def check_blocks(learner: Any, splits: Splits) -> None:
    """A row (or query) alone, in a smaller block or in another order gets the same scores to 1e-9,
    and the same bill.

    Remedy: score each row (or query) independently, without running sums, orders, means or other
    statistics of the block; compute them in ``fit``.
    """
    model, test = fitted(learner, splits), splits.test
    whole = _path(model, splits)
    number = len(units(test.features)) - 1
    # a unit is a query, or a row without queries
    alone = [np.array([unit]) for unit in range(min(number, ALONE))]
    shuffled = np.random.default_rng(0).permutation(number)
    for chosen in (*alone, np.arange(number // 2), shuffled):
        block, rows, _ = gather(test.features, chosen)
        part = replace(splits, test=Examples(block.X, test.y[rows], block.queries))
        expected = replace(whole, scores=whole.scores[:, rows], cost=whole.cost[:, rows])
        _same(expected, _path(model, part), TOLERANCE, f"on a block of {len(rows)} rows")


def check_unpaid_cells(learner: Any, splits: Splits) -> None:
    """At every point of every row the model reads only values that it paid for. Its program, or NaN
    and other rows' values in all other cells, give the same result (the audit of each row). A
    policy does the same under a cap, and at each point alone.

    Remedy: bill each feature that predict_path reads, by ``prices.acquired(features)``, or do not
    read it; compare ``program`` with predict_path step by step.
    """
    model = fitted(learner, splits)
    data = splits.test, splits.prices, splits.classes
    caps = Caps((CAPPED * splits.prices.everything,), splits.constant)
    path = predict_split(model, *data, caps=caps)

    def fresh() -> Any:
        return type(model).from_state(deepcopy(model.state()))  # it has seen no row

    found = replay(model, *data, "full", seed="conformance", path=path, fresh=fresh)
    if found.word == "failed":
        raise ConformanceError(f"{found.reason}{_feature_read(model, splits)}")


def check_rescaled_costs(learner: Any, splits: Splits) -> None:
    """A learner with ``tradeoff`` does not depend on the unit of cost.

    Remedy: divide prices by ``prices.everything``, and compare them with nothing else.
    """
    if not hasattr(learner, "tradeoff"):
        return
    prices = splits.prices
    scaled = {name: getattr(prices, name) * SCALE for name in ("sensor", "split", "tree")}
    expensive = replace(splits, prices=replace(prices, **scaled))
    one = _path(fitted(learner, splits), splits)
    two = _path(fit(learner, expensive), expensive)
    two = replace(two, cost=two.cost / SCALE)  # exact: a power of two
    _same(one, two, TOLERANCE, "with all costs times 1024")


def check_tradeoff(learner: Any, splits: Splits) -> None:
    """A ``tradeoff`` may be 0 or 1000000, and the cost does not increase with it.

    Remedy: 0 ignores costs, and a huge value buys next to nothing: avoid divisions by zero and
    empty choices.
    """
    if not isinstance(getattr(learner, "tradeoff", None), float | int):
        return
    free, costly = (
        float(_path(fit(replace(learner, tradeoff=tradeoff), splits), splits).cost[-1].mean())
        for tradeoff in (0.0, HUGE)
    )
    cheaper = costly <= free * (1 + TOLERANCE)
    expect(cheaper, f"its cost is {free:g} with tradeoff 0, {costly:g} with {HUGE:g}")


def check_multiplicity(learner: Any, splits: Splits) -> None:
    """Deterministic training on a row of multiplicity m equals training on m copies. Learners that
    depend on the seed are exempt, as they only agree in distribution. So are learners that compare
    the rows of a query at prediction, where each row counts once.

    Remedy: weight each row by ``train.weights`` in every sum, mean and count.
    """
    # a learner that depends on the seed is exempt
    models = fitted(learner, splits), fit(learner, splits, seed=1)
    first, second = (_path(model, splits) for model in models)
    if not np.array_equal(first.scores, second.scores) or _compares_rows(learner, splits):
        return
    first, second = (
        _path(fit(learner, replace(splits, train=train)), splits)
        for train in with_copies(splits.train)
    )
    _same(first, second, COPIES_TOLERANCE, "trained on physical copies")


def check_poor_features(learner: Any, splits: Splits) -> None:
    """A feature that is always missing, a constant one, and rows without any value are handled.

    Remedy: replace NaN before arithmetic (``np.nan_to_num``); use a constant for means of only NaN.
    Guard divisions by a deviation or a range, which may be 0.
    """

    def spoil(part: Examples) -> Examples:
        X = np.array(part.X)
        X[:, 0], X[:, 1], X[:8] = np.nan, 1, np.nan
        return replace(part, X=sealed(X))

    _copes(learner, splits, spoil)


def check_one_class(learner: Any, splits: Splits) -> None:
    """Training labels of one class, or of two of three, are handled: some folds lack rare classes.

    Remedy: fit a constant. Multi-class scores have a column for every class of
    ``context.classes``, also for one without rows; those of two classes are (n,).
    """
    for most in (0, 1) if splits.classes > 2 else (0,):

        def without(part: Examples, most: int = most) -> Examples:
            return replace(part, y=sealed(np.clip(part.y, 0, most)))

        _copes(learner, splits, without, ["train"])


def check_few_rows(learner: Any, splits: Splits) -> None:
    """One training and one validation row of each class or grade suffice, or a single row for
    numeric targets.

    Remedy: guard divisions by the number of rows minus one, and splits with an empty side.
    """

    def keep(examples: Examples) -> Examples:
        first_rows = np.sort(np.unique(np.round(examples.y), return_index=True)[1])
        rows = first_rows if splits.classes or examples.queries is not None else first_rows[:1]
        queries = None if examples.queries is None else Queries.from_sizes(np.array([len(rows)]))
        return Examples(sealed(examples.X[rows]), sealed(examples.y[rows]), queries)

    _copes(learner, splits, keep, ["train", "valid"])


def check_wide_data(learner: Any, splits: Splits) -> None:
    """More features than rows, and more sensors than bits in a word, are handled.

    Remedy: pack purchases by ``prices.acquired`` or ``Acquired.pack``, and regularise.
    """

    def widen(part: Examples) -> Examples:
        more = np.random.default_rng(len(part)).normal(size=(len(part), WIDE))
        more[:, : part.X.shape[1]] = part.X
        return replace(part, X=sealed(more.astype(np.float32)))

    prices = price_list(np.ones(WIDE), split=0.25)
    _copes(learner, splits, widen, prices=prices, feature_names=())


def _copes(
    learner: Any,
    splits: Splits,
    change: Callable[[Examples], Examples],
    names: Sequence[str] = SPLITS,
    **more: Any,
) -> None:
    """Fit and predict on a few rows, partly changed; a one-line error is also valid."""
    few = task_splits(splits.task or Task.BINARY, FEW)
    more |= {name: change(getattr(few, name)) for name in names}
    few = replace(few, **more)
    try:
        model = fit(learner, few)
    except BenchError:
        return
    _path(model, few)


def _path(model: Any, splits: Splits, accounting: str = "path") -> PredictedPath:
    return predict_split(model, splits.test, splits.prices, splits.classes, accounting)


def _same(one: PredictedPath, two: PredictedPath, tolerance: float, how: str) -> None:
    expect(one.points == two.points, f"{how}: its path differs")
    for name in ("scores", "cost"):
        for a, b in zip(getattr(one, name), getattr(two, name), strict=True):
            near = close(a, b, spreads(a, None), tolerance=tolerance)
            expect(near.all(), f"{how}: its {name} differ by up to {np.abs(a - b).max():.3g}")


def _compares_rows(learner: Any, splits: Splits) -> bool:
    """True if a row alone gets another prediction than within its query."""
    features, model = splits.test.features, fitted(learner, splits)
    alone = Features(features.X, Queries.from_sizes(np.ones(len(features), dtype=np.int64)))
    pairs = zip(model.predict_path(features), model.predict_path(alone), strict=True)
    among_others = features.queries is not None
    return among_others and any(not np.allclose(a.scores, b.scores, TOLERANCE) for a, b in pairs)


def _feature_read(model: Any, splits: Splits) -> str:
    """Find a feature that a model reads unpaid at its first point by hiding each, or ""."""
    features = splits.test.features
    first = next(iter(model.predict_path(features)))
    scores = np.array(first.scores)
    bought = first.bills["path"].acquired.rows(len(features)).unpack()
    unpaid = ~readable(bought, splits.prices)
    for j in range(features.X.shape[1]):
        X = features.X.copy()
        # other rows' values in unpaid cells
        X[unpaid[:, j], j] = features.X[::-1][unpaid[:, j], j]
        after = next(iter(model.predict_path(Features(X, features.queries))))
        if not np.array_equal(scores, after.scores):
            return f"; it reads feature {splits.names[j]} (column {j}) unpaid"
    return ""
