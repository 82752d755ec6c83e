"""Prefixes, losses of constants and prices in loss units."""

import bench_trees
import numpy as np
import pandas as pd
import pytest
from bench_models.boosting import binned, loss_of, prefixes
from bench_models.tradeoff import LossPrices, constant_loss
from bench_trees import LambdaRank, boost
from helpers.boosted_cases import examples
from helpers.fakes import FakeContext
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import log_loss

import bench_core
from bench_core import Examples, Queries, Task, UsageError, price_list


@given(st.integers(0, 20000))
def test_at_most_a_hundred_rising_prefixes_end_with_the_whole(iterations):
    ends = prefixes(iterations)
    assert 1 <= len(ends) <= 100
    assert ends[-1] == iterations
    assert np.all(np.diff(ends) >= 1)
    assert ends[0] == min(1, iterations)


def test_up_to_a_hundred_iterations_are_all_reported_and_long_paths_are_dense_at_the_start():
    assert prefixes(100).tolist() == list(range(1, 101))
    steps = np.diff(prefixes(3000))
    assert steps[:3].max() <= 3
    assert np.all(np.diff(steps) >= -1)
    assert steps[-1] > 50


def of(task, y, copies=None):
    m = None if copies is None else np.array(copies)
    data = Examples(np.zeros((len(y), 1), dtype=np.float32), np.array(y), None, m)
    return constant_loss(*loss_of(task, "auto", 3), data)


def test_a_constants_squared_loss_is_half_the_variance():
    assert of(Task.REGRESSION, [1.0, 3.0]) == 0.5


def test_a_constants_log_loss_is_that_of_the_class_shares():
    y = [0.0, 1.0, 1.0, 1.0]
    assert of(Task.BINARY, y) == pytest.approx(log_loss(y, np.full(4, 0.75)), rel=1e-12)
    three = [0.0, 1.0, 1.0, 2.0]
    shares = np.tile([0.25, 0.5, 0.25], (4, 1))
    assert of(Task.MULTICLASS, three) == pytest.approx(log_loss(three, shares), rel=1e-12)


@pytest.mark.parametrize("task", [Task.REGRESSION, Task.BINARY, Task.MULTICLASS])
def test_copies_count_as_rows_in_the_constants_loss(task):
    copied = of(task, [0.0, 1.0], [1, 3])
    assert copied == pytest.approx(of(task, [0.0, 1.0, 1.0, 1.0]), rel=1e-12)


def test_lambdaranks_constant_loss_sums_its_pairs_at_equal_scores():
    grades = np.array([2.0, 0.0, 1.0])
    data = Examples(np.zeros((3, 1), np.float32), grades, Queries.from_sizes(np.array([3])))
    gain, discount = 2**grades, 1 / np.log2(np.arange(2, 5))
    ideal = float((np.sort(gain - 1)[::-1] * discount).sum())
    pairs = [(0, 1), (0, 2), (2, 1)]  # the better one first
    gaps = [(gain[i] - gain[j]) * abs(discount[i] - discount[j]) / ideal for i, j in pairs]
    cost = sum(gaps) * np.log(2)
    total = cost / np.log(2)  # of the gradients' sizes, whose logarithm a query counts as
    got = constant_loss("lambdarank", LambdaRank(), data)
    assert got == pytest.approx(cost / 3 * np.log2(1 + total) / total, rel=1e-9)


def test_buying_all_features_for_a_row_costs_tradeoff_times_the_constants_loss():
    row = LossPrices.of(price_list(np.array([1.0, 4.0]), split=0.5), tradeoff=0.2, loss=3.0)
    assert row.sensor.tolist() == pytest.approx([0.12, 0.48])
    assert row.split.tolist() == pytest.approx([0.06, 0.06])
    assert row.tau == pytest.approx(0.12)


def test_where_features_are_free_the_tradeoff_prices_splits_and_where_all_is_free_nothing():
    free = price_list(np.zeros(2), split=0.5, multiplier=np.array([1.0, 3.0]))
    row = LossPrices.of(free, tradeoff=0.2, loss=1.0)
    assert row.split.tolist() == pytest.approx([0.05, 0.15])
    row = LossPrices.of(price_list(np.zeros(2)), tradeoff=1e9, loss=1.0)
    assert row.sensor.tolist() == [0.0, 0.0]
    assert row.split.tolist() == [0.0, 0.0]


def test_a_loss_that_does_not_fit_the_task_names_those_that_do():
    with pytest.raises(UsageError, match="loss=logistic: a ranking task takes squared or lambd"):
        loss_of(Task.RANKING, "logistic", 0)


def test_rows_are_binned_once_for_all_learners_and_by_every_setting_apart():
    context = FakeContext(Task.REGRESSION)
    train = examples(Task.REGRESSION)
    _, codes = binned(train, 255, context)
    assert binned(train, 255, context)[1] is codes
    assert binned(train, 8, context)[1].max() <= 8  # 8 bins and the missing one
    assert len(context.arrays) == 2


PRICELESS = {
    "gbrt": ("gbrt.trees=12",),
    "miser": ("miser.trees=8", "miser.tradeoff=[0, 0.1]", 'miser.steps="newton"'),
    "cegb": ("cegb.trees=12", "cegb.depth=4", "cegb.tradeoff=[0, 0.1]"),
}
ORDER = ["learner", "params", "split", "point"]
MEASURED = ["fit_seconds", "predict_seconds", "peak_rss_mb", "created_at", "run"]


@pytest.mark.parametrize("data", [pytest.param("toy-rank", marks=pytest.mark.slow), "toy-binary"])
def test_boosters_without_prices_share_trees_that_equal_those_trained_apart(
    data, tmp_path, monkeypatch
):
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    boosters = []

    def counted(*args, **options):
        boosters.append(options["settings"])
        return boost(*args, **options)

    monkeypatch.setattr(bench_trees, "boost", counted)

    def rows(*learners):
        boosters.clear()
        frame = bench_core.run(
            data=data,
            learners=learners,
            settings=[setting for name in learners for setting in PRICELESS[name]],
            plugins="helpers.toys",
            executor="inline",
            store=tmp_path / f"{'-'.join(learners)}.db",
        ).frame()
        return frame.drop(columns=MEASURED).sort_values(ORDER, ignore_index=True), len(boosters)

    apart = [rows(name) for name in PRICELESS]
    together, fewer = rows(*PRICELESS)
    assert fewer == sum(count for _, count in apart) - 2
    wanted = pd.concat([frame for frame, _ in apart]).sort_values(ORDER, ignore_index=True)
    pd.testing.assert_frame_equal(together, wanted, check_exact=True)


@pytest.mark.parametrize(
    ("rows", "copies", "features", "bins"),
    [(300, 1, 301, 37), (100, 3, 301, 37), (300, 1, 300, 255), (100, 1, 101, 32), (20, 1, 30, 20)],
)
def test_wide_data_get_fewer_bins(rows, copies, features, bins):
    X = np.random.default_rng(0).random((rows, features), dtype=np.float32)
    train = Examples(X, np.zeros(rows), None, np.full(rows, copies))
    found, _ = binned(train, 255, FakeContext(Task.REGRESSION))
    assert found.counts.max() == bins
