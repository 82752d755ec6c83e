"""Exported models: one row beside lleaves and LightGBM, on demand, as C, loaded; and many rows.

lleaves needs an older llvmlite than this project, so it lives in an environment of its own, with
YDF: ``python -m venv peers && peers/bin/pip install "lleaves==1.3.0" "llvmlite<0.44" lightgbm
ydf``, then ``BENCH_SPEED_LLEAVES=peers/bin/python`` before the command. Without it LightGBM is the
only peer. Of many rows lleaves gets the float64 that it wants; a model that it does not compile in
ten minutes is compiled without inlining, if that ends in ten more. ``BENCH_SPEED_YDF=1`` adds YDF,
which cannot read LightGBM's models: it trains one of as many trees and leaves, for minutes, and its
time is that of its fastest engine (QuickScorer) in its own benchmark, without handing over columns.
Beyond 100 trees of 16 leaves it trains on 2000 rows, and beyond 100 trees on a tenth of the
features for each split, so that it ends.
Nothing here fails because it is slow.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from statistics import median
from struct import Struct
from typing import Any

import numpy as np
import pytest
from bench_models.boosting import chain, prefix_chain
from bench_trees.importers import from_lightgbm
from paired import alternate, compare, report, setting, value

from bench_core import Features, price_list
from bench_core.serving import Folder, Predictor, load, write_folder
from bench_core.serving.c_source import write_c

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


MANY = """
import sys, time
import lleaves, numpy
from pathlib import Path
folder, trees, leaves, code = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
X = numpy.load(folder / "many.npy")
act = {}
def timed(predict):
    start = time.perf_counter()
    predict()
    return time.perf_counter() - start
if code:
    model = lleaves.Model(str(folder / "model.txt"))
    model.compile(cache=str(folder / code))
    wide = X.astype(numpy.float64)
    act["lleaves"] = lambda: timed(lambda: model.predict(wide, n_jobs=1))
if sys.argv[5:]:
    import ydf
    ydf.verbose(0)
    if not (folder / "ydf").exists():
        rows, y = numpy.load(folder / "rows.npy"), numpy.load(folder / "y.npy")
        part = slice(2000 if trees * leaves > 1600 else None)
        learner = ydf.GradientBoostedTreesLearner(
            label="y", task=ydf.Task.REGRESSION, num_trees=trees, max_depth=-1,
            validation_ratio=0.0, growing_strategy="BEST_FIRST_GLOBAL", max_num_nodes=leaves,
            early_stopping="NONE", subsample=1.0, discretize_numerical_columns=True, num_threads=2,
            num_candidate_attributes_ratio=0.1 if trees > 100 else 1.0,
        )
        learner.train({"x": rows[part], "y": y[part]}).save(str(folder / "ydf"))
    quick, how = ydf.load_model(str(folder / "ydf")), dict(warmup_duration=0.1, num_threads=1)
    one = lambda: quick.benchmark({"x": X}, benchmark_duration=0.5, **how).duration_per_example
    act[sys.argv[5]] = lambda: len(X) * one()
print("ready", flush=True)
for side in sys.stdin:
    print(act[side.strip()](), flush=True)
"""
COMPILE = """
import sys
import lleaves
lleaves.Model(sys.argv[1]).compile(cache=sys.argv[2], finline=sys.argv[3] == "yes")
"""
MOST = 600  # seconds that lleaves may compile
YDF, FEW = "YDF", "YDF, trained on few rows"
BARS = {"lleaves": 0.3, YDF: 0.5, FEW: 0.5}


@pytest.fixture(scope="module")
def kept(request: pytest.FixtureRequest) -> Path:
    """A folder for what takes minutes to make: the trained model, and lleaves' code for it."""
    folder: Path = request.config.cache.mkdir(f"serving-{TREES}")
    return folder


@pytest.fixture(scope="module")
def trained(kept: Path) -> Any:
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    file = kept / "model.txt"
    if not file.exists():
        X = np.random.default_rng(0).standard_normal((3000, FEATURES), dtype=np.float32)
        y = np.log1p(np.abs(X[:, :100])) @ np.linspace(0.1, 1, 100) + X[:, 0]
        shape = {"num_leaves": LEAVES, "max_depth": 4, "verbose": -1, "num_threads": 1}
        data = lightgbm.Dataset(X, y, params={"max_bin": 63})
        lightgbm.train(shape, data, TREES).save_model(file)
    return lightgbm.Booster(model_file=file)


@pytest.fixture(scope="module")
def rows() -> Any:
    return np.random.default_rng(1).standard_normal((ROWS, FEATURES), dtype=np.float32)


def folder_of(booster: Any, points: bool = False) -> Folder:
    """At the last point of a path of one point, or of all that a chain has."""
    ensemble = from_lightgbm(booster.model_to_string()).ensemble
    model = chain(ensemble, COSTS, {}) if points else prefix_chain(ensemble, [TREES], COSTS, {})
    program = model.program(model.points[-1].values)
    return Folder(program, COSTS, NAMES, {"task": "regression"})


def compiled(folder: Folder) -> Predictor:
    model = Predictor(folder)
    assert model.compile()
    return model


def each(action: Callable[[Any], Any], X: Any) -> Callable[[], None]:
    parts = [X[i : i + 1] for i in range(len(X))]

    def run() -> None:
        for part in parts:
            action(part)

    return run


@pytest.fixture(scope="module")
def lleaves(trained: Any, rows: Any, kept: Path) -> Iterator[Callable[[], None] | None]:
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

        def run() -> None:
            print(file=child.stdin, flush=True)
            assert child.stdout
            assert child.stdout.readline() == "done\n"

        yield run
        child.stdin.close()


def in_c(folder: Folder, place: Path) -> Callable[[Any, bool], tuple[Any, Any]]:
    """Scores and costs of rows by the compiled C source."""
    write_c(place / "c", folder)
    (place / "loop.c").write_text(LOOP)
    words = [
        "-std=c99",
        "-O3",
        "-shared",
        "-fPIC",
        f"-I{place / 'c'}",
        "-o",
        str(place / "model.so"),
    ]
    files = [str(place / "c" / "bench_model.c"), str(place / "loop.c")]
    subprocess.run(["gcc", *words, *files, "-lm"], check=True)
    score = ctypes.CDLL(str(place / "model.so")).score_rows

    def run(X: Any, asking: bool) -> tuple[Any, Any]:
        scores, spent = np.empty(len(X)), np.empty(len(X))
        pointers = (ctypes.c_void_p(a.ctypes.data) for a in (scores, spent))
        score(ctypes.c_void_p(X.ctypes.data), ctypes.c_long(len(X)), int(asking), *pointers)
        return scores, spent

    return run


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
def test_one_row(trained: Any, rows: Any, lleaves: Any, tmp_path: Path, benchmark: Any) -> None:
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


def test_a_row_asked_for(trained: Any, rows: Any, benchmark: Any) -> None:
    """What the callbacks take by themselves is subtracted in each round. "Ours" asks by number.

    "Lists alone" is what no ``predict`` can do without: lists of the names, and values to float32.
    """
    model = compiled(folder_of(trained))
    cells = [dict(zip(NAMES, row.tolist(), strict=True)) for row in rows]
    names: list[list[list[str]]] = [[] for _ in cells]
    for row, calls in zip(cells, names, strict=True):
        model.predict(lambda n, row=row, calls=calls: calls.append(n) or [row[k] for k in n])
    place = {name: number for number, name in enumerate(NAMES)}
    numbers = [[np.array([place[n] for n in call]) for call in calls] for calls in names]
    given = [[np.empty(len(call), dtype=np.float32) for call in calls] for calls in names]
    values = [
        [[row[n] for n in call] for call in calls] for row, calls in zip(cells, names, strict=True)
    ]
    table = np.array(NAMES, dtype=object)
    floats = [Struct(f"{count}f") for count in range(FEATURES + 1)]

    def by_number() -> None:
        for row in rows:
            model.predict_into(lambda n, out, row=row: row.take(n, out=out))

    def by_name() -> None:
        for row in cells:
            model.predict(lambda n, row=row: [row[k] for k in n])

    def callbacks_by_number() -> None:
        for row, calls, room in zip(rows, numbers, given, strict=True):
            acquire = lambda n, out, row=row: row.take(n, out=out)  # noqa: E731
            for n, out in zip(calls, room, strict=True):
                acquire(n, out)

    def callbacks_by_name() -> None:
        for row, calls in zip(cells, names, strict=True):
            acquire = lambda n, row=row: [row[k] for k in n]  # noqa: E731
            for n in calls:
                acquire(n)

    def lists() -> None:
        for calls, returned in zip(numbers, values, strict=True):
            for n, found in zip(calls, returned, strict=True):
                table[n].tolist()
                floats[len(found)].pack(*found)

    at_hand = "the same at hand"
    sides = {"ours": by_number, "by name": by_name, at_hand: each(model.predict_rows, rows)}
    alone = {"ours": callbacks_by_number, "by name": callbacks_by_name}
    samples = alternate(
        benchmark,
        {**sides, **{f"{k}, callbacks": f for k, f in alone.items()}, "lists": lists},
        ROUNDS,
    )
    alone_lists = samples.pop("lists")
    spent = {k: samples.pop(f"{k}, callbacks") for k in alone}
    less = {k: [(a - b) / ROWS for a, b in zip(samples[k], spent[k], strict=True)] for k in alone}
    report(
        benchmark,
        samples,
        work=f"one row asked for by a callback, less its own time, {TREES} trees x {FEATURES}",
        peers=[at_hand],
        bars={(side, at_hand): 1.25 for side in alone},
        measured={**less, at_hand: [t / ROWS for t in samples[at_hand]]},
        per=ROWS,
        facts={
            "us, by number": 1e6 * median(less["ours"]),
            "us, by name": 1e6 * median(less["by name"]),
            "us, at hand": 1e6 * median(samples[at_hand]) / ROWS,
            "us, lists alone": 1e6 * median(alone_lists) / ROWS,
            "us, callbacks by number": 1e6 * median(spent["ours"]) / ROWS,
            "us, callbacks by name": 1e6 * median(spent["by name"]) / ROWS,
            "questions a row": float(np.mean([len(calls) for calls in names])),
            "features a row": float(np.mean([sum(map(len, calls)) for calls in names])),
        },
    )


def test_a_path_of_points(trained: Any, rows: Any, benchmark: Any) -> None:
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


def test_loading(trained: Any, tmp_path: Path, benchmark: Any) -> None:
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


def _many(folder: Path, leaves: int, trees: int, lightgbm: Any) -> tuple[Any, Any]:
    """Rows and a model, kept from run to run."""
    if not (folder / "model.txt").exists():
        rng = np.random.default_rng(0)
        rows = rng.standard_normal((10_000, FEATURES), dtype=np.float32)
        y = np.log1p(np.abs(rows[:, :100])) @ np.linspace(0.1, 1, 100) + rows[:, 0]
        shape = {"num_leaves": leaves, "max_depth": -1, "verbose": -1, "num_threads": 2}
        np.save(folder / "rows.npy", rows)
        np.save(folder / "y.npy", y)
        np.save(folder / "many.npy", rng.standard_normal((MANY_ROWS, FEATURES), dtype=np.float32))
        data = lightgbm.Dataset(rows, y, params={"max_bin": 63})
        lightgbm.train(shape, data, trees).save_model(folder / "model.txt")
    return np.load(folder / "many.npy"), lightgbm.Booster(model_file=folder / "model.txt")


def _compile(python: str, folder: Path) -> str:
    """The file of lleaves' code for the model, made once; its name says how. "" without one."""
    for name, inline in (("lleaves", "yes"), ("lleaves-not-inlined", "no")):
        failed = folder / f"{name}.failed"
        words = [python, "-c", COMPILE, str(folder / "model.txt"), str(folder / name), inline]
        if not (folder / name).exists() and not failed.exists():
            try:
                subprocess.run(words, check=True, timeout=MOST)
            except subprocess.TimeoutExpired:
                failed.touch()
        if (folder / name).exists():
            return name
    return ""


@pytest.mark.benchmark(group="batch")
@pytest.mark.parametrize("trees", [100, 1000, 5000])
@pytest.mark.parametrize("leaves", [16, 32, 64])
def test_many_rows(leaves: int, trees: int, request: pytest.FixtureRequest, benchmark: Any) -> None:
    """Scores, costs and purchases of rows, one point, one thread; the peers' are bare scores."""
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    folder: Path = request.config.cache.mkdir(f"batch-{leaves}-{trees}")
    X, booster = _many(folder, leaves, trees, lightgbm)
    ensemble = from_lightgbm(booster.model_to_string()).ensemble
    engine = prefix_chain(ensemble, [ensemble.trees], COSTS, {})
    served = compiled(Folder(engine.program(engine.points[-1].values), COSTS, NAMES, {}))

    def walked() -> Any:
        blocks = [Features(X[at : at + 8000]) for at in range(0, len(X), 8000)]
        return np.concatenate([p.scores for block in blocks for p in engine.predict_path(block)])

    sides = {
        "ours": walked,
        "exported": lambda: served.predict_rows(X),
        "LightGBM": lambda: booster.predict(X, num_threads=1),
    }
    peers, python = ["LightGBM"], os.environ.get("BENCH_SPEED_LLEAVES")
    code = _compile(python, folder) if python else ""
    theirs = [
        *(["lleaves"] if code else []),
        *([FEW if trees * leaves > 1600 else YDF] if os.environ.get("BENCH_SPEED_YDF") else []),
    ]
    words = [
        str(python),
        "-c",
        MANY,
        str(folder),
        str(trees),
        str(leaves),
        code,
        *theirs[bool(code) :],
    ]
    peer: Any = subprocess.Popen(words, stdin=-1, stdout=-1, text=True) if python else nullcontext()
    clocks: dict[str, list[float]] = {name: [] for name in theirs}

    def ask(side: str) -> None:
        print(side, file=child.stdin, flush=True)
        clocks[side].append(float(child.stdout.readline()))

    with peer as child:
        if child is not None:
            assert child.stdout.readline() == "ready\n"
            sides |= {name: partial(ask, name) for name in theirs}
            peers += theirs
        samples = alternate(benchmark, sides, rounds=5)
        if child is not None:
            child.stdin.close()
    how = {
        "lleaves": "",
        "lleaves-not-inlined": " (lleaves not inlined)",
        "": f" (lleaves: not compiled in {MOST // 60} minutes)" if python else "",
    }
    report(
        benchmark,
        samples | {name: times[-len(samples[name]) :] for name, times in clocks.items()},
        work=f"{len(X)} metered rows, {trees} trees of {leaves} leaves x {FEATURES}{how[code]}",
        peers=peers,
        bars={(side, p): b for side in ("ours", "exported") for p, b in BARS.items()},
        per=len(X),
    )
    assert np.allclose(walked(), served.predict_rows(X).scores, rtol=1e-9)
