import os
import subprocess
import sys

import numpy as np
import pytest
from bench_trees.binning import find_bins
from bench_trees.boosting import boost
from bench_trees.grower import Grower
from bench_trees.losses import LambdaRank, Logistic, Softmax, Squared
from bench_trees.penalties import Ledger, Penalty
from bench_trees.settings import Settings
from helpers.grown import assert_same_bits, boosted, priced
from helpers.random_trees import scores_of

SMALL = Settings(trees=6, min_rows=2, max_leaves=6)


def rows(seed=0, n=120, d=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    X[rng.random((n, d)) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) * (X[:, 2] > 0) + rng.normal(size=n) / 10
    return X, y


def trained(X, y, **kwargs):
    return boosted(X, y, **{"settings": SMALL, **kwargs})


LOSSES = [
    (Squared(), lambda y: y),
    (Logistic(), lambda y: (y > 0).astype(float)),
    (Softmax(3), lambda y: np.digitize(y, [-0.5, 0.5]).astype(float)),
    (LambdaRank(), lambda y: np.digitize(y, [-0.5, 0.5, 1]).astype(float)),
]


@pytest.mark.parametrize(("loss", "label"), LOSSES)
@pytest.mark.parametrize("order", ["best", "level"])
def test_multiplicity_gives_the_trees_of_physical_copies(loss, label, order):
    X, y = rows()
    y = label(y)
    copies = np.random.default_rng(1).integers(1, 5, len(y))
    settings = Settings(trees=6, min_rows=3, order=order, second_order=order == "best")
    queries = np.arange(0, len(y) + 1, 12)
    how = {"loss": loss, "settings": settings, "penalty": priced(5, coupled=0.01, lazy=1e-5)}
    weighted = trained(X, y, multiplicity=copies, queries=queries, **how)
    many = np.concatenate([[0], np.cumsum(copies)])[queries]
    physical = trained(np.repeat(X, copies, axis=0), np.repeat(y, copies), queries=many, **how)
    assert weighted.trees == physical.trees > 0
    np.testing.assert_array_equal(weighted.feature, physical.feature)
    np.testing.assert_allclose(scores_of(weighted, X), scores_of(physical, X), atol=1e-6)


@pytest.mark.parametrize(("loss", "label"), LOSSES)
@pytest.mark.parametrize("prices", [{}, {"coupled": 0.1}, {"coupled": 0.1, "lazy": 0.001}])
@pytest.mark.parametrize(("n", "d", "worth"), [(1000, 20, 5000), (150, 300, 0)])
def test_threads_do_not_change_a_bit(loss, label, prices, n, d, worth, monkeypatch):
    """Small leaves are scored by one thread, or by all."""
    monkeypatch.setattr("bench_trees.losses.PIECE", 7)
    monkeypatch.setattr("bench_trees.losses.FEW_ROWS", 200)
    monkeypatch.setattr("bench_trees.grower.WORTH", worth)
    monkeypatch.setattr("bench_trees.grower.WORTH_TREES", 0)
    X, y = rows(n=n, d=d)
    queries = np.append(np.arange(0, n, 12), n)
    kwargs = {"loss": loss, "penalty": priced(d, **prices), "queries": queries}
    one = trained(X, label(y), threads=1, **kwargs)
    assert one.trees > 0
    for threads in (2, 5):
        assert_same_bits(one, trained(X, label(y), threads=threads, **kwargs))


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("copied", [False, True])
def test_trees_of_classes_grown_side_by_side_have_the_bits_of_one_thread(
    large, copied, monkeypatch
):
    monkeypatch.setattr("bench_trees.grower.WORTH_TREES", 0)
    monkeypatch.setattr("bench_trees.grower.WORTH", 0 if large else 10**9)
    calls = []
    grow = Grower._grow_outputs

    def counted(self, newton, start, stop):
        calls.append((start, stop))
        return grow(self, newton, start, stop)

    monkeypatch.setattr(Grower, "_grow_outputs", counted)
    X, y = rows(n=900, d=10)
    label = np.searchsorted(np.quantile(y, [0.2, 0.4, 0.6, 0.8]), y).astype(float)
    copies = np.arange(900) % 3 + 1 if copied else None
    fits = [
        trained(X, label, loss="softmax", multiplicity=copies, threads=threads)
        for threads in (1, 2, 3)
    ]
    parts = {(0, 3), (3, 5), (0, 2), (2, 4), (4, 5), (5, 5)}
    if large:
        parts = {*((k, k + 1) for k in range(4)), (4, 5), (3, 5)}
    assert set(calls) == parts
    assert fits[0].trees > 0
    for fit in fits[1:]:
        assert_same_bits(fits[0], fit)


WITHOUT_COMPILATION = """
import numpy as np
from bench_trees import Penalty, Settings, boost, find_bins

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4)).astype(np.float32)
X[rng.random(X.shape) < 0.1] = np.nan
y = np.nan_to_num(X[:, 0]) + rng.normal(size=60) / 10
bins = find_bins(X, max_bins=9)
penalty = Penalty.plain(4, coupled=np.full(4, 0.01), lazy=np.full(4, 0.001))
for loss in ("squared", "logistic"):
    label = y if loss == "squared" else (y > 0).astype(float)
    for price, copies in ((None, None), (penalty, rng.integers(1, 4, 60))):
        e = boost(bins.codes(X), bins, label, loss=loss, settings=Settings(3, min_rows=2),
                  penalty=price, multiplicity=copies)
        print(*e.feature.tolist(), *e.threshold.tolist(), *e.value.tolist())
"""


def test_kernels_as_plain_python_give_the_same_trees_and_no_warning():
    """Compiled code hides what numpy warns of: overflows above all. It sums in another order."""
    command = [sys.executable, "-W", "error", "-c", WITHOUT_COMPILATION]
    plain = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    found = [subprocess.check_output(command, text=True, env=env) for env in (None, plain)]
    compiled, python = (np.array(text.split(), float) for text in found)
    np.testing.assert_allclose(compiled, python, rtol=1e-12)
    assert found[0].count("\n") == 4


def test_a_shared_ledger_carries_purchases_to_the_next_call():
    X, y = rows()
    penalty = priced(5, coupled=10.0)
    ledger = Ledger(penalty, len(y))
    first = trained(X, y, penalty=penalty, ledger=ledger)
    used = sorted(set(first.feature) - {-1})
    assert np.flatnonzero(ledger.bought).tolist() == used
    small = 0.1 * y  # not worth 10 by itself
    assert trained(X, small, penalty=penalty).trees == 0
    assert trained(X, small, penalty=penalty, ledger=ledger).trees > 0


def test_progress_is_told_after_every_iteration():
    told = []
    X, y = rows()
    trained(X, y, progress=lambda done, total: told.append((done, total)))
    assert told == [(i, 6) for i in range(1, 7)]


@pytest.mark.parametrize("kind", ["codes", "words"])
def test_read_only_memory_maps_of_codes_and_words_are_trained_on(kind, tmp_path):
    X, y = rows(d=11)
    bins = find_bins(X)
    np.save(tmp_path / "codes.npy", getattr(bins, kind)(X))
    mapped = np.load(tmp_path / "codes.npy", mmap_mode="r")
    assert_same_bits(boost(mapped, bins, y, settings=SMALL), trained(X, y))


def test_a_table_of_constant_columns_gives_the_constant():
    e = trained(np.ones((50, 2), np.float32), np.arange(50.0))
    assert (e.trees, e.base.tolist()) == (0, [24.5])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y": np.array([0.0, np.nan])}, "labels hold NaN"),
        ({"y": np.zeros(3)}, "codes must be uint8"),
        ({"loss": "hinge"}, "loss must be one of"),
        ({"loss": "logistic", "y": np.array([0.0, 2])}, "labels 0 and 1"),
        ({"loss": "softmax", "y": np.array([0.0, 0.5])}, "needs labels 0"),
        ({"loss": "lambdarank"}, "query boundaries"),
        ({"multiplicity": np.array([1, 0])}, "multiplicity must be"),
        ({"penalty": Penalty.plain(2)}, "penalty has 2 features"),
        ({"ledger": Ledger(Penalty.plain(1), 7)}, "ledger was made for another"),
        ({"threads": 0}, "threads must be at least 1"),
    ],
)
def test_unusable_arguments_are_refused(changed, message):
    X = np.array([[0], [1]], np.float32)
    bins = find_bins(X)
    arguments = {"y": np.array([0.0, 1]), **changed}
    with pytest.raises(ValueError, match=message):
        boost(bins.codes(X), bins, arguments.pop("y"), **arguments)


@pytest.mark.parametrize(
    "wrong",
    [
        {"trees": -1},
        {"min_rows": 0},
        {"learning_rate": 0.0},
        {"l2": -1.0},
        {"order": "depth"},
        {"charge": "node"},
        {"max_depth": None, "max_leaves": None},
    ],
)
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Settings(**wrong)


@pytest.mark.parametrize("d", [12, 300])  # 300: more features than bins would pay for
def test_trees_on_some_features_are_those_of_their_columns_alone(d):
    X, y = rows(d=d)
    some = np.zeros(d, np.bool_)
    some[[1, 9, 11]] = True
    limited, columns = trained(X, y, features=some), np.flatnonzero(some)
    alone = trained(X[:, columns], y)
    numbers = np.where(limited.feature < 0, -1, np.searchsorted(columns, limited.feature))
    assert np.array_equal(numbers, alone.feature)
    assert np.array_equal(limited.value, alone.value)
    assert len(set(limited.feature)) == 4  # and -1, of leaves
