"""Choice among services: best-single, cascade and router against walks written out here."""

import time
from dataclasses import replace

import numpy as np
import pytest
from bench_methods.router import Router, lambdas
from bench_methods.services import BestSingle, Cascade, cuts_of
from helpers.priced_cases import priced_by_row

from bench_core import Examples, SensorPrices, Splits, price_list
from bench_core.conformance.cases import fit
from bench_core.costs.by_row import ByRow, with_known_prices
from bench_core.encoding import ColumnEncoding
from bench_core.execution.predict import predict_split
from bench_core.serving import Folder, load, write_folder

SOURCES = {2: ("a", "b"), 3: ("a", "b", "c")}
PRICE = dict(zip("abcdefghi", (1.0, 5.0, 20.0, 2.0, 3.0, 8.0, 10.0, 15.0, 30.0), strict=True))


def rows_of(n, sources, rng):
    """Free cells h (hard) and t (topic); each source's confidence is high where it is right."""
    hard, topic = rng.random(n), rng.integers(0, 3, n)
    X, y = [hard, topic], []
    for k, _ in enumerate(sources):
        right = (hard < min(0.35 + 0.25 * k, 0.9)) ^ (rng.random(n) < 0.05)
        right[topic == k] = True  # each source knows a topic
        sure = np.where(rng.random(n) < 0.85, right, ~right) * 0.5 + 0.5 * rng.random(n)
        sure[rng.random(n) < 0.05] = np.nan
        X.append((-sure if k == 1 else sure).round(2))  # b states its doubt
        y.append(right)
    return Examples(np.column_stack(X).astype(np.float32), np.column_stack(y).astype(float))


def splits_of(count=3, n=400, by_row=False, seed=0):
    rng, sources = np.random.default_rng(seed), tuple(PRICE)[:count]
    parts = [rows_of(n, sources, rng) for _ in range(3)]
    names = ("h", "t", *(f"{s}_sure" for s in sources))
    prices = price_list(np.array([0.0, 0.0, *(PRICE[s] for s in sources)]))
    splits = Splits(*parts, prices, feature_names=names, class_names=sources).complete()
    if by_row:
        quoted = np.ones(count, dtype=bool)
        costs = ByRow(prices, np.arange(2, 2 + count), np.arange(count), quoted)
        splits = priced_by_row(
            splits, costs, lambda part: prices.sensor[2:] * rng.uniform(0.2, 1.8, (n, 1))
        )
        splits = replace(splits, price_columns=tuple(f"{s}_price" for s in sources))
    return splits


def judged(model, splits, part="test"):
    path = predict_split(
        model, getattr(splits, part), splits.costs, splits.classes, calls=splits.calls.tolist()
    )
    return path, [chosen(scores) for scores in path.scores]


def chosen(scores):
    return (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)


def served(model, splits, point, folder):
    about = {
        "task": "choice", "classes": splits.classes, "class_names": splits.class_names,
        "price_columns": splits.price_columns,
    }  # fmt: skip
    write_folder(folder, Folder(model.program(point), splits.costs, splits.names, about))
    return load(folder)


@pytest.mark.parametrize("count", SOURCES)
def test_best_single_has_each_source_as_a_point(count):
    splits = splits_of(count)
    model = fit(BestSingle(), splits)
    path, answers = judged(model, splits)
    assert [point["source"] for point in path.points] == [*range(count)]
    for k, answer in enumerate(answers):
        assert {*answer} == {k}
        assert path.cost[k].tolist() == [PRICE[SOURCES[count][k]]] * len(splits.test)


def naive_rule(point, thresholds, X, prices):
    """The source returned to a row, and its bill, of a point of ``cascade``."""
    order = [int(point[n]) for n in ("first", "second", "third") if n in point]
    spent = 0.0
    for place, source in enumerate(order):
        spent += prices[source]
        if place == len(order) - 1:
            break
        at = thresholds[place]
        cell, sign = X[2 + source], -1 if source == 1 else 1
        # b's doubt must be below the threshold
        if not np.isnan(cell) and (cell > at if sign > 0 else cell < at):
            break
    return source, spent


@pytest.mark.parametrize("count", SOURCES)
@pytest.mark.parametrize("by_row", [False, True])
def test_a_cascade_follows_its_thresholds_and_pays_for_its_calls(count, by_row):
    splits = splits_of(count, by_row=by_row)
    model = fit(Cascade(), splits)
    path, answers = judged(model, splits)
    test = splits.test
    own = test.price_columns if by_row else np.tile([*PRICE.values()][:count], (len(test), 1))
    lengths = set()
    for p, point in enumerate(path.points):
        lengths.add(len([n for n in point if "on" not in n.partition("_")[2]]))
        at = model.threshold[p]
        rows = [naive_rule(point, at, x, paid) for x, paid in zip(test.X, own, strict=True)]
        assert answers[p].tolist() == [source for source, _ in rows]
        assert path.cost[p] == pytest.approx([spent for _, spent in rows], abs=1e-9)
    assert lengths == {*range(1, count + 1)}


def test_a_cascade_is_better_than_its_sources_for_their_price():
    splits = splits_of(3, n=1000)
    path, answers = judged(fit(Cascade(), splits), splits)
    y = splits.test.y
    score = [y[np.arange(len(y)), answer].mean() for answer in answers]
    cheaper = [s for s, cost in zip(score, path.cost, strict=True) if cost.mean() <= 12]
    assert max(cheaper) > y.mean(axis=0).max()  # the dearest source alone costs 20


def test_thresholds_lie_between_distinct_values():
    ties = np.array([0.0] * 50 + [-1.0, -2.0, -2.0, -np.inf])
    assert cuts_of(ties, 10).tolist() == [-2.0, -1.0]  # -inf never counts as sure
    assert cuts_of(np.zeros(9), 10).tolist() == []
    many = np.arange(1000.0)
    cuts = cuts_of(many, 4)
    assert len(cuts) == 4
    assert set(cuts) <= set(many[:-1])


@pytest.mark.parametrize("count", SOURCES)
@pytest.mark.parametrize("by_row", [False, True])
def test_a_router_maximises_score_minus_lambda_times_price(count, by_row):
    from bench_models.dictionary import sums

    splits = splits_of(count, by_row=by_row)
    model = fit(Router(points=6), splits)
    path, answers = judged(model, splits)
    test = splits.test
    own = test.price_columns if by_row else np.tile([*PRICE.values()][:count], (len(test), 1))
    predicted = sums(model.scores, np.where(np.arange(2 + count) < 2, test.X, np.nan))
    for p, point in enumerate(path.points):
        net, taken = predicted - point["lambda"] * own, (np.arange(len(own)), answers[p])
        assert net[taken] == pytest.approx(net.max(axis=1), abs=1e-9)  # ties at a turn
        assert path.cost[p] == pytest.approx(own[taken], abs=1e-9)
    # first all rows at the cheapest source, last at the best
    assert {*answers[0]} == {0}
    assert path.points[-1] == {"lambda": 0.0}
    assert path.cost[-1].mean() > path.cost[0].mean()


def test_a_router_knows_topics():
    splits = splits_of(3, n=1500)
    answers = judged(fit(Router(), splits), splits)[1]
    y = splits.test.y
    best = max(y[np.arange(len(y)), answer].mean() for answer in answers)
    assert best > y.mean(axis=0).max() + 0.02


def test_a_router_starts_from_the_means_of_each_text():
    from bench_models.dictionary import sums

    rng, texts = np.random.default_rng(4), ("p", "q", "r", "s")
    topic = rng.integers(0, 4, 300)
    flags = (topic[:, None] == np.arange(4)).astype(np.float32)
    y = rng.random((300, 2)) < np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5], [0.4, 0.9]])[topic]
    rows = Examples(np.column_stack([flags, np.ones((300, 2))]).astype(np.float32), y.astype(float))
    encodings = (ColumnEncoding("topic", texts, one_hot=True), ColumnEncoding("a"),
                 ColumnEncoding("b"))  # fmt: skip
    prices = price_list(np.array([0.0] * 4 + [1.0, 5.0]))
    names = tuple(name for e in encodings for name in e.features)
    splits = Splits(rows, rows, rows, prices, feature_names=names, class_names=("a", "b"),
                    encodings=encodings).complete()  # fmt: skip
    model = fit(Router(trees=0, prior=0.0), splits)
    relative = rows.y[:, 1] - rows.y.mean(axis=1)
    left = relative - relative.mean()
    table = [left[topic == k].mean() for k in range(4)]
    expected = relative.mean() + np.array(table)
    assert sums(model.scores, rows.X)[:, 1] == pytest.approx(expected[topic], abs=1e-6)


def test_lambdas_fall_to_zero_from_the_cheapest_source():
    scores, paid = np.array([[0.0, 1.0], [0.0, 0.5]]), np.array([[1.0, 2.0], [1.0, 3.0]])
    assert lambdas(scores, paid, 4).tolist() == [2.0, 1.0, 0.25, 0.0]
    assert lambdas(scores[:, ::-1], paid, 4).tolist() == [0.0]  # the cheap one is always better


@pytest.mark.parametrize(
    ("needed", "price"),
    [
        ([[], [], [0], [1], [0, 1]], [1.0, 5.0]),  # c's call is that of a and b
        ([[], [], [0], [1], [2]], [0.0, 5.0, 20.0]),  # a is free
    ],
)
def test_a_router_calls_sources_that_share_sensors_or_are_free(needed, price, tmp_path):
    whole, start = splits_of(3, n=200), np.cumsum([0, *map(len, needed)])
    needs = np.concatenate(needed).astype(np.int32)
    costs = SensorPrices(start.astype(np.int32), needs, np.array(price), np.ones(5))
    splits = Splits(
        whole.train, whole.valid, whole.test, costs,
        feature_names=whole.feature_names, class_names=whole.class_names,
    ).complete()  # fmt: skip
    model, of_call = fit(Router(points=6), splits), [sum(price[s] for s in n) for n in needed[2:]]
    path, answers = judged(model, splits)
    assert {*np.concatenate(answers).tolist()} == {0, 1, 2}
    for p, point in enumerate(path.points):
        assert path.cost[p].tolist() == [of_call[k] for k in answers[p]]
        replayed = served(model, splits, point, tmp_path / str(p)).replay(splits.test.X)
        assert chosen(replayed.scores).tolist() == answers[p].tolist()
        assert replayed.spent.tolist() == path.cost[p].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize(
    ("learner", "most"),
    [(BestSingle(), 1e-4), (Cascade(), 1e-4), (Router(), 2e-4)],
)
def test_rows_of_nine_services_take_little_time(learner, most, by_row, tmp_path):
    splits = splits_of(9, n=2000, by_row=by_row)
    model = fit(learner, splits)
    rows = splits.test
    several = np.tile(np.arange(len(rows)), 50)
    columns = rows.price_columns[several] if by_row else None
    many = Examples(rows.X[several], rows.y[several], price_columns=columns)
    if by_row:
        many = with_known_prices(many, splits.costs)
    judged(model, splits)  # loads kernels
    begun = time.process_time()
    path, _ = judged(model, replace(splits, test=many))
    whole = time.process_time() - begun
    predictor = served(model, splits, path.points[len(path.points) // 2], tmp_path)
    table = np.column_stack([rows.X, rows.price_columns]) if by_row else rows.X
    names = (*splits.names, *(splits.price_columns if by_row else ()))
    cells = [dict(zip(names, row, strict=True)) for row in table.tolist()]
    predictor.predict(cells[0])
    begun = time.process_time()
    for row in cells:
        predictor.predict(row)
    each = (time.process_time() - begun) / len(cells)
    points = f"{len(path.points)} points, prices by row: {by_row}"
    print(f"\n{learner.name}, {points}: {whole:.1f} s, {1e6 * each:.0f} us for a served row")
    assert whole < 30
    assert each < most
