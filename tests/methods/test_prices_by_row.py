"""Every learner where some prices differ by row: bills by a plain meter, audits, served rows."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.every_learner_cases import LEARNERS, audited, predicted, quick
from helpers.priced_cases import priced_by_row

from bench_core import Task, UsageError
from bench_core.conformance import task_splits
from bench_core.conformance.cases import fit
from bench_core.costs.by_row import ByRow
from bench_core.sequential import Sequential
from bench_core.serving import Exportable, Folder, Predictor
from bench_core.serving.model_programs import capped_program
from bench_core.splits import SPLITS

pytestmark = pytest.mark.usefixtures("few_purchases")
CAPS = (0.1, 0.5)  # parts of the mean price of everything
# sensors: alone, shared, discounted and needed by a derived feature
PRICED = np.array([0, 3, 5, 6])
QUOTED = np.array([True, False, False, True])


def by_row(splits, seed=0):
    """The same data, where four sensors have prices by row, one of them now and then 0; with
    copies where rows are not in queries."""
    rng = np.random.default_rng(seed)
    prices = replace(splits.prices, split=0.0, tree=0.0)
    if splits.train.queries is None:
        parts = {name: getattr(splits, name) for name in SPLITS}
        copies = {name: rng.integers(1, 4, len(part)) for name, part in parts.items()}
        copied = {name: replace(parts[name], multiplicity=copies[name]) for name in parts}
        splits = replace(splits, **copied)

    def own(part):
        columns = rng.gamma(0.7, prices.sensor[PRICED] / 0.7 + 0.1, (len(part), len(PRICED)))
        columns[rng.random(len(part)) < 0.2, 1] = 0.0
        return columns

    return priced_by_row(splits, ByRow(prices, PRICED, np.arange(len(PRICED)), QUOTED), own)


def metered_by_hand(splits, bits):
    """What rows pay for these sensors (n, s), one row and one sensor after another."""
    costs, columns = splits.costs, splits.test.price_columns
    place = {int(s): k for k, s in enumerate(costs.priced)}
    return [
        sum(
            columns[i, costs.column[place[s]]] if s in place else float(costs.base.sensor[s])
            for s in np.flatnonzero(row).tolist()
        )
        for i, row in enumerate(bits)
    ]


SOME = [
    ("gbrt", Task.BINARY),
    ("cegb", Task.RANKING),
    ("tree-dime", Task.MULTICLASS),
    ("budget-boosting", Task.REGRESSION),
    ("cstc", Task.BINARY),
    ("cascade", Task.CHOICE),
    ("router", Task.CHOICE),
    ("opinion-pool", Task.CHOICE),
]
EVERY = [
    (name, sorted(LEARNERS[name].tasks)[k % len(LEARNERS[name].tasks)])
    for k, name in enumerate(sorted(LEARNERS))
]


@pytest.mark.parametrize(
    ("name", "task"),
    [*SOME, *(pytest.param(*pair, marks=pytest.mark.slow) for pair in EVERY if pair not in SOME)],
    ids=str,
)
def test_rows_pay_their_own_prices(name, task, folder):
    splits = by_row(task_splits(task, 80))
    test = splits.test
    model = fit(quick(name, task, splits.train, folder), splits)
    path, limits = predicted(model, splits, CAPS)
    for k, prediction in enumerate(model.predict_path(test.features)):
        bits = prediction.bills["path"].acquired.rows(len(test)).unpack()
        by_hand = metered_by_hand(splits, bits)
        np.testing.assert_allclose(path.cost[k], by_hand, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(path.bought[k], np.average(bits, 0, test.weights))
        assert path.paid[k].sum() == pytest.approx(path.feature_cost[k], rel=1e-9)
        mean = np.average(by_hand, weights=test.weights)
        assert path.feature_cost[k] == pytest.approx(mean, rel=1e-9)
    verdict = audited(model, splits, path)
    assert verdict.word == "verified", verdict.reason
    served_alike(model, splits, path, limits)


def served_alike(model, splits, path, limits):
    """Served rows answer and pay as in the benchmark, without and under a cap."""
    test, costs, paid = splits.test, splits.costs, splits.test.price_columns
    try:
        program = model.program(path.points[-1]) if isinstance(model, Exportable) else None
    except UsageError:
        program = None
    if program is None:
        return
    names = tuple(f"price of {s}" for s in PRICED)
    about = {"task": str(splits.task), "classes": splits.classes, "price_columns": names}
    about["class_names"] = splits.class_names
    last = len(path.points) - 1
    for point in (last // 2, last):
        program = model.program(path.points[point])
        served = Predictor(Folder(program, costs, splits.names, about))
        for answers in (
            served.predict_features(test.X, test.queries, prices=paid),
            served.replay(test.X, test.queries, paid),
        ):
            if test.queries is None:  # of a query only the order of scores counts
                np.testing.assert_allclose(answers.scores, path.scores[point], rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(answers.spent, path.cost[point], rtol=1e-9, atol=1e-9)
            by_hand = metered_by_hand(splits, answers.bought)
            np.testing.assert_allclose(answers.spent, by_hand, rtol=1e-9)
    for i in range(0 if test.queries else 5):  # one row, as a service is asked
        row = dict(zip(splits.names, test.X[i].tolist(), strict=True))
        answer = served.predict(row | dict(zip(names, paid[i].tolist(), strict=True)))
        np.testing.assert_allclose(answer.score, path.scores[last][i], rtol=1e-9, atol=1e-9)
        assert answer.spent == pytest.approx(path.cost[last][i])
    if test.queries is not None or not limits:
        return  # the benchmark stops queries, the served model rows; choices have no caps
    program = capped_program(model, "model", len(splits.names))
    if not isinstance(model, Sequential):
        program = replace(program, nothing=np.atleast_1d(splits.constant))
    served = Predictor(Folder(program, costs, splits.names, about))
    for k, limit in enumerate(limits, start=len(path.points)):
        answers = served.predict_features(test.X, None, limit, paid)
        np.testing.assert_allclose(answers.scores, path.scores[k], rtol=1e-9, atol=1e-9)
        # a row that stops between two points is billed for the most that it may buy
        assert (answers.spent <= path.cost[k] + 1e-9).all()
        if isinstance(model, Sequential):
            np.testing.assert_allclose(answers.spent, path.cost[k], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(answers.spent, metered_by_hand(splits, answers.bought))
        # beyond the cap by at most one purchase, which has a metered price
        excess = answers.spent - limit
        worst = paid[:, ~QUOTED].max(axis=1)
        assert (excess <= worst + 1e-9).all()
