"""Training time beside LightGBM's, in all its modes, by shape and loss.

    pytest -m speed tests/speed/test_training_shapes.py --benchmark-json speed.json   # half an hour
    pytest -m speed tests/speed/test_training_shapes.py -k small                      # a minute

Every ratio is to the best of LightGBM's modes in that round: by columns, with quantised gradients
and, on small tables, by rows. There two threads of ours are compared with one, too. Columns have
ties, zeros, continuous and missing values. Both sides start from binned rows and pay in every round
what a run costs apart from its trees. Processor seconds are reported besides, for machines that are
not idle: with ``BENCH_SPEED_THREADS=1`` other work hardly moves them. Never fails on a time.
"""

import time
from functools import cache, partial
from statistics import median

import numpy as np
import pytest
from bench_trees import Settings, boost, find_bins, warm_up
from paired import SCALE, alternate, report, setting

lightgbm = pytest.importorskip("lightgbm")

pytestmark = pytest.mark.speed

THREADS = setting("THREADS", 2) if SCALE == 1 else 2
PEER, ALONE = "LightGBM, the best of its modes", "ours, one thread"
MODES = {"plain": {}, "quantised": {"use_quantized_grad": True}}
BY_ROWS = {"by rows": {"force_col_wise": False, "force_row_wise": True}}
CLASSES, QUERY = 26, 25
SHAPES = [(n, d) for n in (1000, 10_000, 100_000, 1_000_000) for d in (10, 30, 100, 519)]
SQUARED = [("squared", n, d, 0.5 if d == 519 else 0.8) for n, d in SHAPES]
LOSSES = [
    (loss, n, d, bar)
    for loss in ("logistic", "softmax")
    for n, d, bar in ((473_134, 519, 0.5), (100_000, 519, 0.5), (100_000, 30, 0.8))
]
RANKING = [("lambdarank", 100_000, d, 0.4) for d in (519, 136)]
CASES = [*SQUARED, ("squared", 10_000, 5000, 0.8), *LOSSES, *RANKING]
SMALL = [
    pytest.param(loss, n, d, 0.8, id=f"small-{loss}-{n}-{d}")
    for loss in ("squared", "logistic", "softmax5", "softmax", "lambdarank")
    for n in (1000, 10_000)
    for d in (10, 30)
]
OBJECTIVES = {
    "squared": {"objective": "regression"},
    "logistic": {"objective": "binary"},
    "softmax5": {"objective": "multiclass", "num_class": 5},
    "softmax": {"objective": "multiclass", "num_class": CLASSES},
    "lambdarank": {"objective": "lambdarank"},
}
PARAMS = {
    "num_leaves": 16,
    "max_depth": 4,
    "max_bin": 255,
    "learning_rate": 0.1,
    "min_data_in_leaf": 20,
    "num_threads": THREADS,
    "force_col_wise": True,
    "verbosity": -1,
}


@cache
def rows(n, d):
    """A third of the columns with ties, a third half zeros, the last tenth with missing values."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), np.float32)
    third, missing = d // 3, max(1, d // 10)
    X[:, :third] = np.round(X[:, :third] * 3) / 3
    X[:, third : 2 * third] *= rng.random((n, third), np.float32) < 0.5
    y = X[:, :5] @ rng.normal(size=5) + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) + rng.normal(size=n)
    X[:, -missing:][rng.random((n, missing), np.float32) < 0.1] = np.nan
    return X, y.astype(np.float64)


def timed(seconds, action):
    start = time.process_time()
    action()
    seconds.append(time.process_time() - start)


@pytest.mark.benchmark(group="training shapes")
@pytest.mark.parametrize(("loss", "n", "d", "bar"), [*CASES, *SMALL], ids=lambda v: str(v))
def test_time_of_a_tree(loss, n, d, bar, benchmark):
    warm_up(print)
    n = max(1000, round(n * SCALE))
    X, y = rows(n, d)
    how = {"loss": loss.rstrip("5"), "threads": THREADS}
    outputs = OBJECTIVES[loss].get("num_class", 1)
    query = None
    if outputs > 1 or loss == "lambdarank":
        grades = outputs if outputs > 1 else 5
        y = np.searchsorted(np.quantile(y, np.arange(1, grades) / grades), y).astype(np.float64)
    elif loss != "squared":
        y = (y > 0).astype(np.float64)
    if loss == "lambdarank":
        how["queries"] = np.unique(np.append(np.arange(0, n, QUERY), n))
        query = np.diff(how["queries"])
    bins = find_bins(X, threads=THREADS)
    words = bins.words(X, threads=THREADS)
    iterations = max(2, (60 if n * d < 60_000_000 else 10) // outputs)
    settings = Settings(trees=iterations, max_depth=4, max_leaves=16, min_rows=20)
    params = {**PARAMS, **OBJECTIVES[loss]}
    data = lightgbm.Dataset(X, y, params=params, group=query).construct()
    how["settings"] = settings
    actions = {"ours": partial(boost, words, bins, y, **how)}
    small = n * d <= 300_000
    modes = MODES | BY_ROWS if small else MODES
    for mode, extra in modes.items():
        actions[mode] = partial(lightgbm.train, {**params, **extra}, data, iterations)
    if small and THREADS > 1:
        actions[ALONE] = partial(actions["ours"], threads=1)
    processor = {side: [] for side in actions}
    sides = {side: partial(timed, processor[side], action) for side, action in actions.items()}
    samples = alternate(benchmark, sides, 15 if small else 5 if n * d < 10_000_000 else 3)
    trees = iterations * outputs
    spent = {side: 1000 * median(seconds[-3:]) / trees for side, seconds in processor.items()}
    peers = {PEER: [min(times) for times in zip(*(samples[m] for m in modes), strict=True)]}
    peers |= {ALONE: samples[ALONE]} if ALONE in samples else {}
    many = "" if THREADS == 2 else f", threads {THREADS}"
    report(
        benchmark,
        {"ours": samples["ours"], **peers},
        work=f"{loss}, a tree, {n} x {d}{many}",
        peers=[*peers],
        bars={("ours", PEER): bar, ("ours", ALONE): 1.0},
        per=trees,
        facts={f"processor ms, {side}": each for side, each in spent.items()},
        seconds=samples,
        threads=THREADS,
    )
