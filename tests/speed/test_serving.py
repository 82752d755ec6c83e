"""Exported models: one row beside lleaves and LightGBM, on demand, as C, loaded; and many rows.

lleaves needs an older llvmlite than this project, so it lives in an environment of its own:
``python -m venv peers && peers/bin/pip install "lleaves==1.3.0" "llvmlite<0.44" lightgbm``, then
``BENCH_SPEED_LLEAVES=peers/bin/python`` before the command. Without it LightGBM is the only peer.
Nothing here fails because it is slow.
"""

import ctypes
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from statistics import median

import numpy as np
import pytest
from bench_models.boosting import chain, prefix_chain
from bench_trees.importers import from_lightgbm
from helpers.compiled_c import write_c
from helpers.random_trees import random_ensemble
from paired import alternate, compare, report, setting, value

from bench_core import price_list
from bench_core.serving import Folder, PolicyProgram, Predictor, load, no_trees, write_folder

pytestmark = [pytest.mark.speed, pytest.mark.benchmark(group="serving")]

TREES, FEATURES, LEAVES = setting("TREES", 1000), 519, 16
ROWS, ROUNDS, MANY_ROWS = 200, 31, setting("ROWS", 8000, least=100)
NAMES = tuple(f"f{j}" for j in range(FEATURES))
COSTS = price_list(np.ones(FEATURES), split=0.25, tree=0.5)
LOOP = """
#include <stddef.h>
#include "bench_model.h"
static void acquire(void *context, int count, const int *features, float *values)
{
    const float *cells = context;
    for (int k = 0; k < count; k++)
        values[k] = cells[features[k]];
}
void score_rows(float *X, long rows, int asking, double *scores, double *spent)
{
    for (long i = 0; i < rows; i++) {
        struct bench_source source = {0};
        source.context = X + i * BENCH_FEATURES;
        source.acquire = asking ? acquire : NULL;
        source.cells = X + i * BENCH_FEATURES;
        scores[i] = bench_score(&source, spent + i);
    }
}
"""
PEER = """
import sys
import lleaves, numpy
model = lleaves.Model(sys.argv[1])
model.compile(cache=sys.argv[3])
X = numpy.load(sys.argv[2])
print("ready", flush=True)
for _ in sys.stdin:
    for i in range(len(X)):
        model.predict(X[i : i + 1], n_jobs=1)
    print("done", flush=True)
"""


@pytest.fixture(scope="module")
def kept(request):
    """A folder for what takes minutes to make: the trained model, and lleaves' code for it."""
    return request.config.cache.mkdir(f"serving-{TREES}")


@pytest.fixture(scope="module")
def trained(kept):
    """Trees of LightGBM on a made label."""
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    file = kept / "model.txt"
    if not file.exists():
        X = np.random.default_rng(0).standard_normal((3000, FEATURES), dtype=np.float32)
        y = np.log1p(np.abs(X[:, :100])) @ np.linspace(0.1, 1, 100) + X[:, 0]
        how = {"num_leaves": LEAVES, "max_depth": 4, "verbose": -1, "num_threads": 2}
        data = lightgbm.Dataset(X, y, params={"max_bin": 63})
        lightgbm.train(how, data, TREES).save_model(file)
    return lightgbm.Booster(model_file=file)


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(1).standard_normal((ROWS, FEATURES), dtype=np.float32)


def folder_of(booster, points=False):
    """At the last point of a path of one point, or of all that a chain has."""
    ensemble = from_lightgbm(booster.model_to_string()).ensemble
    model = chain(ensemble, COSTS, {}) if points else prefix_chain(ensemble, [TREES], COSTS, {})
    program = model.program(model.points[-1].values)
    return Folder(program, COSTS, NAMES, {"task": "regression"})


def compiled(folder):
    model = Predictor(folder)
    model.compile()
    return model


def each(action, X):
    parts = [X[i : i + 1] for i in range(len(X))]

    def run():
        for part in parts:
            action(part)

    return run


@pytest.fixture(scope="module")
def lleaves(trained, rows, kept):
    python = os.environ.get("BENCH_SPEED_LLEAVES")
    if python is None:
        yield None
        return
    np.save(kept / "X.npy", rows.astype(np.float64))
    words = [python, "-c", PEER, *(str(kept / n) for n in ("model.txt", "X.npy", "lleaves"))]
    with subprocess.Popen(words, stdin=-1, stdout=-1, text=True) as child:
        assert child.stdin
        assert child.stdout
        assert child.stdout.readline() == "ready\n"

        def run():
            print(file=child.stdin, flush=True)
            assert child.stdout
            assert child.stdout.readline() == "done\n"

        yield run
        child.stdin.close()


def in_c(folder, place):
    """Scores and costs of rows by the compiled C source."""
    write_c(place / "c", folder)
    (place / "loop.c").write_text(LOOP)
    files = "c/bench_model.c", "loop.c", "-o", "model.so", "-lm"
    words = ["gcc", "-std=c99", "-O3", "-shared", "-fPIC", "-Ic", *files]
    subprocess.run(words, cwd=place, check=True)
    score = ctypes.CDLL(str(place / "model.so")).score_rows

    def run(X, asking):
        scores, spent = np.empty(len(X)), np.empty(len(X))
        pointers = (ctypes.c_void_p(a.ctypes.data) for a in (scores, spent))
        score(ctypes.c_void_p(X.ctypes.data), ctypes.c_long(len(X)), int(asking), *pointers)
        return scores, spent

    return run


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
def test_one_row(trained, rows, lleaves, tmp_path, benchmark):
    folder = folder_of(trained)
    model, c = compiled(folder), in_c(folder, tmp_path)
    sides = {
        "ours": each(model.predict_rows, rows),
        "C": lambda: c(rows, False),
        "C, asked for": lambda: c(rows, True),
        "LightGBM": each(lambda x: trained.predict(x, num_threads=1), rows.astype(np.float64)),
    }
    peers = ["LightGBM"]
    if lleaves is not None:
        sides["lleaves"] = lleaves
        peers.append("lleaves")
    compare(
        benchmark,
        sides,
        work=f"one metered row, {TREES} trees of {LEAVES} leaves x {FEATURES}",
        peers=peers,
        bars={("C", "lleaves"): 0.3},
        rounds=ROUNDS,
        per=ROWS,
    )
    answers = model.predict_rows(rows)
    for asking in (False, True):
        scores, spent = c(rows, asking)
        assert np.allclose(scores, answers.scores, rtol=1e-9)
        assert np.allclose(spent, answers.spent, rtol=1e-9)


def test_a_row_asked_for(trained, rows, benchmark):
    """What the callbacks take by themselves is subtracted in each round."""
    model = compiled(folder_of(trained))
    cells = [dict(zip(NAMES, row.tolist(), strict=True)) for row in rows]
    names = [[] for _ in cells]
    for row, calls in zip(cells, names, strict=True):
        model.predict(lambda n, row=row, calls=calls: calls.append(n) or [row[k] for k in n])

    def by_name():
        for row in cells:
            model.predict(lambda n, row=row: [row[k] for k in n])

    def callbacks():
        for row, calls in zip(cells, names, strict=True):
            for n in calls:
                [row[k] for k in n]

    at_hand = "the same at hand"
    sides = {"ours": by_name, at_hand: each(model.predict_rows, rows), "callbacks": callbacks}
    samples = alternate(benchmark, sides, ROUNDS)
    alone = samples.pop("callbacks")
    less = [(a - b) / ROWS for a, b in zip(samples["ours"], alone, strict=True)]
    report(
        benchmark,
        samples,
        work=f"one row asked for by a callback, less its own time, {TREES} trees x {FEATURES}",
        peers=[at_hand],
        bars={("ours", at_hand): 1.25},
        measured={"ours": less, at_hand: [t / ROWS for t in samples[at_hand]]},
        per=ROWS,
        facts={"us, ours": 1e6 * median(less)},
    )


def test_a_path_of_points(trained, rows, benchmark):
    """A model exported with all points of its path, at which a cap may stop it, and with one."""
    whole, one = (compiled(folder_of(trained, points)) for points in (True, False))
    compare(
        benchmark,
        {"ours": each(whole.predict_rows, rows), "one point": each(one.predict_rows, rows)},
        work=f"one row, a path of {len(whole.program.stops)} points, {TREES} trees",
        peers=["one point"],
        bars={("ours", "one point"): 2.0},
        rounds=ROUNDS,
        per=ROWS,
    )


def test_loading(trained, tmp_path, benchmark):
    """In a process that has numpy and bench_core.serving; without what importing them takes."""
    write_folder(tmp_path / "model", folder_of(trained))
    code = (
        "import sys, time; from bench_core.serving import load; t = time.perf_counter(); "
        f"load({str(tmp_path / 'model')!r}); print(time.perf_counter() - t); "
        "assert 'numba' not in sys.modules"
    )
    found = [
        float(subprocess.check_output([sys.executable, "-c", code], text=True)) for _ in range(5)
    ]
    compare(
        benchmark,
        {"ours": lambda: load(tmp_path / "model")},
        work=f"loading an exported model of {TREES} trees",
        rounds=ROUNDS,
        values={"in a fresh process": value(1e3 * median(found), "ms", 20)},
    )


SENSORS = 50


def policy_of(trees):
    """Buys by falling values, of which ``trees`` vary; as many trees answer."""
    rng, start = np.random.default_rng(3), np.linspace(2.0, 1.0, SENSORS)
    values, answer = replace(no_trees(SENSORS, 0), base=start), no_trees(1, 0)
    if trees:
        size = {"trees": trees, "features": SENSORS, "leaves": 32, "shape": "even"}
        values, answer = (random_ensemble(rng, **size) for _ in range(2))
        leaf = values.feature < 0
        number = np.where(leaf, np.cumsum(leaf) - 1.0, 0.0)
        vectors = 0.1 * rng.normal(size=(int(leaf.sum()), SENSORS))
        values = replace(values, value=number, base=start).with_vectors(vectors)
    prices = price_list(np.ones(SENSORS))
    program = PolicyProgram.of([values], answer, prices, np.zeros(0, int), "rate", skip=True)
    return Folder(program, prices, NAMES[:SENSORS], {"task": "regression"})


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
@pytest.mark.parametrize("trees", [0, 100])
def test_a_step_of_a_policy(trees, tmp_path, benchmark):
    """A row makes all of its purchases: the time of one of them, with trees and without."""
    folder, X = policy_of(trees), np.random.default_rng(1).normal(size=(MANY_ROWS, SENSORS))
    X = X.astype(np.float32)
    model, c = compiled(folder), in_c(folder, tmp_path)
    expected = model.predict_rows(X)
    assert expected.bought.all()
    scores, spent = c(X, True)
    assert np.allclose(scores, expected.scores, rtol=1e-9)
    assert np.allclose(spent, expected.spent, rtol=1e-9)
    sides = {"C, asked for": lambda: c(X, True), "ours": lambda: model.predict_rows(X)}
    samples = alternate(benchmark, sides, 5)
    steps = len(X) * SENSORS
    each = {name: 1e6 * median(times) / steps for name, times in samples.items()}
    bars = {"C, asked for": 2.0, "ours": 1.0}
    report(
        benchmark,
        samples,
        work=f"a purchase of a policy, {SENSORS} sensors, {trees} trees value and {trees} answer",
        peers=["C, asked for"],
        per=steps,
        values={name: value(each[name], "us", bars[name]) for name in bars} if not trees else {},
    )
