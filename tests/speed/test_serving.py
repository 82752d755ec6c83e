"""Exported models: one row beside lleaves and LightGBM, on demand, as C, loaded; and many rows.

lleaves needs an older llvmlite than this project, so it lives in an environment of its own, with
YDF: ``python -m venv peers && peers/bin/pip install "lleaves==1.3.0" "llvmlite<0.44" lightgbm
ydf``, then ``BENCH_SPEED_LLEAVES=peers/bin/python`` before the command. Without it LightGBM is the
only peer. ``BENCH_SPEED_YDF=1`` adds YDF, which cannot read LightGBM's models: it trains one of as
many trees and leaves, for minutes, and its time has the handing over of all columns in it, so that
it is shown without a bar.
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
from typing import Any

import numpy as np
import pytest
from bench_models.boosting import chain, prefix_chain
from bench_trees.importers import from_lightgbm
from paired import compare, setting, value

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
import sys
import lleaves, numpy
from pathlib import Path
folder, trees, leaves = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
X = numpy.load(folder / "many.npy")
model = lleaves.Model(str(folder / "model.txt"))
model.compile(cache=str(folder / "lleaves"))
act = {"lleaves": lambda: model.predict(X, n_jobs=1)}
if sys.argv[4:]:
    import ydf
    ydf.verbose(0)
if sys.argv[4:] and not (folder / "ydf").exists():
    rows, y = numpy.load(folder / "rows.npy"), numpy.load(folder / "y.npy")
    learner = ydf.GradientBoostedTreesLearner(
        label="y", task=ydf.Task.REGRESSION, num_trees=trees, max_depth=-1, validation_ratio=0.0,
        growing_strategy="BEST_FIRST_GLOBAL", max_num_nodes=leaves, early_stopping="NONE",
        subsample=1.0, discretize_numerical_columns=True, num_threads=2,
    )
    learner.train({"x": rows, "y": y}).save(str(folder / "ydf"))
if sys.argv[4:]:
    quick = ydf.load_model(str(folder / "ydf"))
    act["YDF"] = lambda: quick.predict({"x": X}, num_threads=1)
print("ready", flush=True)
for side in sys.stdin:
    act[side.strip()]()
    print("done", flush=True)
"""


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
        bars={("ours", "lleaves"): 0.6, ("C", "lleaves"): 0.3},
        rounds=ROUNDS,
        per=ROWS,
    )
    answers = model.predict_rows(rows)
    for asking in (False, True):
        scores, spent = c(rows, asking)
        assert scores.tobytes() == answers.scores.tobytes()
        assert spent.tobytes() == answers.spent.tobytes()


def test_a_row_asked_for(trained: Any, rows: Any, benchmark: Any) -> None:
    """The peer is the same row at hand; what the callback itself takes is the work of both. The
    second peer calls it once for each feature, not once for all that are needed at a time."""
    model = compiled(folder_of(trained))
    cells = [dict(zip(NAMES, row.tolist(), strict=True)) for row in rows]
    asked: list[list[list[str]]] = []
    for row in cells:
        calls: list[list[str]] = []
        model.predict(
            lambda names, row=row, calls=calls: calls.append(names) or [row[n] for n in names]
        )
        asked.append(calls)

    def on_demand() -> None:
        for row in cells:
            model.predict(lambda names, row=row: [row[n] for n in names])

    def at_hand(asked: list[list[list[str]]]) -> None:
        for i, (row, calls) in enumerate(zip(cells, asked, strict=True)):
            acquire = lambda names, row=row: [row[n] for n in names]  # noqa: E731
            for names in calls:
                acquire(names)
            model.predict_rows(rows[i : i + 1])

    single = [[[name] for names in calls for name in names] for calls in asked]
    each_by_itself = "the same at hand and a callback for each feature"

    compare(
        benchmark,
        {
            "ours": on_demand,
            "the same at hand and its callbacks": partial(at_hand, asked),
            each_by_itself: partial(at_hand, single),
        },
        work=f"one row asked for by a Python callback, {TREES} trees x {FEATURES}",
        peers=["the same at hand and its callbacks", each_by_itself],
        bars={("ours", "the same at hand and its callbacks"): 1.25},
        rounds=ROUNDS,
        per=ROWS,
        callbacks=median(len(calls) for calls in asked),
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


def _ask(child: Any, side: str) -> None:
    print(side, file=child.stdin, flush=True)
    assert child.stdout.readline() == "done\n"


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
    quick = ["YDF"] if os.environ.get("BENCH_SPEED_YDF") else []
    words = [str(python), "-c", MANY, str(folder), str(trees), str(leaves), *quick]
    peer: Any = subprocess.Popen(words, stdin=-1, stdout=-1, text=True) if python else nullcontext()
    with peer as child:
        if child is not None:
            assert child.stdout.readline() == "ready\n"
            sides |= {name: partial(_ask, child, name) for name in ("lleaves", *quick)}
            peers += ["lleaves", *quick]
        compare(
            benchmark,
            sides,
            work=f"{len(X)} metered rows, {trees} trees of {leaves} leaves x {FEATURES}",
            peers=peers,
            bars={(side, "lleaves"): 0.3 for side in ("ours", "exported")},
            rounds=5,
            per=len(X),
        )
        if child is not None:
            child.stdin.close()
    assert walked().tobytes() == served.predict_rows(X).scores.tobytes()
