"""Training time and loss beside LightGBM's at equal settings, one run, alternating.

    pytest -m speed tests/speed/test_training.py --benchmark-json speed.json   # eight minutes
    pytest -m speed tests/speed/test_training.py -k lazy                       # one comparison

On the training rows of yahoo-sim with its own prices. Training losses are reported with the
times. Never fails on a time, only on an objective above LightGBM's: the training loss, with what
was bought where there is a penalty (LightGBM's refunds are wrong where it is coupled, so it buys
more and fits closer).
BENCH_SPEED_ROWS changes the number of rows (default: the paper's), BENCH_SPEED_TREES that of trees,
BENCH_SPEED_THREADS that of threads (2).

Both sides start from binned rows and pay in every round what a run costs apart from its trees:
buffers, the residuals' scale and the first root's histogram. Only compiling is done beforehand.
"""

import numpy as np
import pytest
from bench_datasets.yahoo import ROWS
from bench_datasets.yahoo.sim import features, generate
from bench_models.boosting import chain
from bench_trees import Penalty, Settings, boost, find_bins, warm_up
from bench_trees.importers import from_lightgbm
from helpers.random_trees import scores_of
from paired import SCALE, alternate, report, setting

from bench_core import Features, price_list
from bench_core.execution.predict import BLOCK_ROWS

lightgbm = pytest.importorskip("lightgbm")

pytestmark = pytest.mark.speed

THREADS = setting("THREADS", 2) if SCALE == 1 else 2
BARS = {"coupled": 0.30, "lazy": 0.11}
TREES, ROUNDS = setting("TREES", 60, least=10), 3
PEER = "LightGBM"
TRADEOFF = 0.3  # from the middle of suites/yahoo.toml

PARAMS = {
    "objective": "regression",
    "num_leaves": 16,
    "max_depth": 4,
    "max_bin": 255,
    "learning_rate": 0.1,
    "min_data_in_leaf": 20,
    "num_threads": THREADS,
    "force_col_wise": True,  # else it times both ways in every run; this is the faster one
    "verbosity": -1,
}


class Case:
    """The rows, both sides' binned form of them, and what was measured."""

    def __init__(self):
        warm_up(print)
        rows = setting("ROWS", ROWS["paper"][0], least=5000)
        made = generate(0, 0, rows, THREADS)
        self.X, self.y = np.asarray(made.X), np.asarray(made.y, np.float64)
        self.price = features()["price"].to_numpy(np.float64)

    def work(self, what):
        """What is compared, with the shape of the rows."""
        rows, columns = self.X.shape
        return f"{what}, {rows} x {columns}"

    def bin(self):
        self.bins = find_bins(self.X, threads=THREADS)
        self.words = self.bins.words(self.X, threads=THREADS)

    def construct(self):
        self.dataset = lightgbm.Dataset(self.X, self.y, params=PARAMS).construct()

    def ours(self, trees, penalty):
        settings = Settings(trees=trees, max_depth=4, max_leaves=16, min_rows=20)
        return boost(
            self.words, self.bins, self.y, settings=settings, penalty=penalty, threads=THREADS
        )

    def theirs(self, trees, params):
        return lightgbm.train({**PARAMS, **params}, self.dataset, trees)

    def mode(self, name, tradeoff):
        """The same penalty for both: LightGBM's gain is twice ours, and its prices are raw."""
        if name == "plain":
            return None, {}
        tau = tradeoff * float(np.var(self.y)) / 2 / float(self.price.sum())
        raw = self.price * (len(self.y) if name == "coupled" else 1)
        params = {"cegb_tradeoff": 2 * tau, f"cegb_penalty_feature_{name}": raw.tolist()}
        return Penalty.plain(len(raw), **{name: tau * raw}), params

    def losses(self, ours, theirs):
        """Mean squared error on the training rows."""
        pair = scores_of(ours, self.X)[0], theirs.predict(self.X, num_threads=THREADS)
        a, b = (float(np.mean((self.y - f) ** 2)) for f in pair)
        return a, b


def bought(case, mode, ensemble):
    """What has been paid for, as a share of all prices: of features used anywhere, or where the
    penalty is lazy of those on each row's paths, the mean over rows."""
    if mode != "lazy":
        used = np.unique(ensemble.feature[ensemble.feature >= 0])
        return float(case.price[used].sum() / case.price.sum())
    prices = price_list(case.price)
    model = chain(ensemble, prices, {})
    cost = 0.0
    for start in range(0, len(case.X), BLOCK_ROWS):
        block = Features(case.X[start : start + BLOCK_ROWS])
        *_, last = model.predict_path(block)
        cost += float(last.bills["path"].feature_cost(prices, len(block)).sum())
    return cost / len(case.X) / float(case.price.sum())


@pytest.fixture(scope="module")
def case():
    made = Case()
    made.bin()
    made.construct()
    return made


@pytest.mark.benchmark(group="training")
@pytest.mark.parametrize("mode", ["plain", "coupled", "lazy"])
def test_training_time(mode, case, benchmark):
    penalty, params = case.mode(mode, TRADEOFF)
    models = {}

    def ours():
        models["ours"] = case.ours(TREES, penalty)

    def theirs():
        models["peer"] = case.theirs(TREES, params)

    samples = alternate(benchmark, {"ours": ours, PEER: theirs}, ROUNDS, warm=False)
    assert models["ours"].trees == models["peer"].num_trees() == TREES  # equal work
    a, b = case.losses(models["ours"], models["peer"])
    peer = from_lightgbm(models["peer"].model_to_string()).ensemble
    spent, spent_peer = bought(case, mode, models["ours"]), bought(case, mode, peer)
    name = "no penalty" if penalty is None else f"{mode} penalty"
    many = "" if THREADS == 2 else f", threads {THREADS}"
    report(
        benchmark,
        samples,
        work=case.work(f"{name}, a tree of {TREES}") + many,
        peers=[PEER],
        bars={("ours", PEER): BARS[mode]} if mode in BARS else None,
        per=TREES,
        facts={
            "training loss, ours": a,
            "training loss, LightGBM": b,
            "paid for, ours": spent,
            "paid for, LightGBM": spent_peer,
        },
        tradeoff=TRADEOFF if penalty else None,
        threads=THREADS,
    )
    if penalty:  # the loss is twice the objective's, a price half the labels' variance
        a += TRADEOFF * float(np.var(case.y)) * spent
        b += TRADEOFF * float(np.var(case.y)) * spent_peer
    if SCALE == 1:  # on few rows the two forms of penalty differ by more
        assert a <= b * (1 + 1e-3)
