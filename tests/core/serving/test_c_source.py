"""Programs as C99: compiled by what is there, they serve as the predictor does, bit by bit."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import helpers
import numpy as np
import pytest
from bench_models.boosting import chain
from helpers.random_trees import random_ensemble, random_rows

from bench_core import CostModel, DiscountGroup, UsageError, price_list
from bench_core.costs.shipped import ParallelPrices
from bench_core.serving import REJECT, Columns, Finish, Folder, Kernel, Predictor, Program
from bench_core.serving.c_source import write_c

D, ROWS = 8, 300
MAIN = Path(helpers.__file__).parent / "serve_rows.c"
COMPILERS = [c for c in ("gcc", "clang") if shutil.which(c)]
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")
SAFE = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")

pytestmark = pytest.mark.skipif(not COMPILERS, reason="no gcc or clang")
rng = np.random.default_rng(5)
X = random_rows(rng, ROWS, D)


def prices(**more: Any) -> CostModel:
    """Two features of one sensor, two at a discount, one derived from two others, one free."""
    return price_list(
        np.array([1.3, 2.7, 2.7, 5.0, 6.0, 0.0, 0.0, 9.1]),
        shared=[[1, 2]],
        discounted=[DiscountGroup((3, 4), (2.0, 3.0))],
        derived={6: (0, 3)},
        split=0.37,
        tree=0.11,
        multiplier=np.array([1.0, 1.25, 1.1, 3.0, 0.7, 1.0, 2.0, 1.0]),
        **more,
    )


def trees(outputs: int = 1, count: int = 40) -> Program:
    """A chain of prefixes."""
    ensemble = random_ensemble(rng, trees=count, features=D, leaves=12, outputs=outputs)
    model = chain(ensemble, prices(), {})
    return model.program(model.points[-1].values)


def gated() -> Program:
    """Stages with gates, columns raw and scaled, a running minimum and sums."""
    program = trees()
    columns = Columns(
        np.array([1, 7]),
        np.zeros(2, np.int64),
        np.array([0.3, -0.7]),
        np.array([False, True]),
        np.array([0.0, 0.2]),
        np.array([1.0, 1.7]),
    )
    steps = list(program.steps)
    for k, how in enumerate(("last", "min", "add", "and")):
        steps[k] = replace(
            steps[k], combine=how, gate="score", value=-0.4 - 2 * k, otherwise=REJECT, carry=k == 2
        )
    steps[1] = replace(steps[1], columns=columns, otherwise=5)
    return replace(program, steps=steps)


def vectors() -> Program:
    """Leaves that are rows of a table, averaged."""
    program = trees(count=12)
    leaf = program.trees.feature < 0
    number = np.where(leaf, np.cumsum(leaf) - 1.0, 0.0)
    whole = replace(program.trees, value=number, output=np.full_like(program.trees.output, -1))
    step = replace(
        program.steps[0],
        trees=np.arange(12),
        weights=np.ones(12),
        fresh=np.ones(12, bool),
        bias=np.zeros(3),
        then=-1,
        finish=Finish((0.1, 0.2, 0.3), rounds=12.0, slope=2.0, intercept=-1.0),
    )
    table = rng.normal(size=(int(leaf.sum()), 3))
    return Program(3, [step], whole, program.multiplier, vectors=table)


def support() -> Program:
    """Two groups of Gaussian kernels for three outputs."""
    kernel = Kernel(
        features=np.array([0, 3, 4]),
        mean=rng.normal(size=3),
        factor=np.ones(3),
        start=np.array([0, 1, 3]),
        gamma=np.array([0.3, 0.1]),
        vectors=rng.normal(size=(3, 21)),
        coefficients=rng.normal(size=(3, 21)),
        tile=8,
    )
    none = np.zeros(0, np.int64)
    base = trees(count=1)
    step = replace(
        base.steps[0],
        trees=none,
        weights=np.zeros(0),
        fresh=none > 0,
        bias=rng.normal(size=3),
        kernel=kernel,
        then=-1,
    )
    return Program(3, [step], base.trees, base.multiplier)


PROGRAMS = {
    "chain": trees(),
    "outputs": trees(outputs=3),
    "gated": gated(),
    "rejected": replace(gated(), rejected=-7.5),
    "vectors": vectors(),
    "support": support(),
}


def served(
    folder: Folder, place: Path, flags: Sequence[str], compiler: str, cap: float = 0.0
) -> Any:
    """What the compiled model makes of the rows: (n, K + 3)."""
    write_c(place / "c", folder)
    files = [str(place / "c" / "bench_model.c"), str(MAIN)]
    words = [compiler, *STRICT, *flags, f"-I{place / 'c'}", *files, "-o", str(place / "run"), "-lm"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    X.tofile(place / "rows")
    run = [str(place / name) for name in ("run", "rows", "out")]
    done = subprocess.run([*run, repr(cap)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return np.fromfile(place / "out").reshape(ROWS, -1)


def folder_of(program: Program, costs: CostModel | None = None, **about: Any) -> Folder:
    names = tuple(f'feature "{j}"?\\é' for j in range(D))
    return Folder(program, costs or prices(), names, {"task": "regression", **about})


def assert_same(folder: Folder, found: Any, cap: float | None = None) -> None:
    answers = Predictor(folder).predict_rows(X, cap=cap)
    scores = answers.scores.reshape(ROWS, -1)
    assert np.ascontiguousarray(found[:, :-3]).tobytes() == scores.tobytes()
    assert found[:, -3].tobytes() == answers.spent.tobytes()
    assert np.array_equal(found[:, -2] == 2, answers.capped)


@pytest.mark.parametrize("name", PROGRAMS)
def test_c_serves_as_the_predictor_does(name: str, tmp_path: Path) -> None:
    folder = folder_of(PROGRAMS[name])
    assert_same(folder, served(folder, tmp_path, SAFE, COMPILERS[0]))


def test_a_cap_is_kept_by_the_caller_or_by_the_export(tmp_path: Path) -> None:
    program = PROGRAMS["chain"]
    cap = float(np.median(Predictor(folder_of(program)).predict_rows(X).spent))
    asked = served(folder_of(program), tmp_path, SAFE, COMPILERS[0], cap)
    assert 0.2 < (asked[:, -2] == 2).mean() < 0.8
    assert_same(folder_of(program), asked, cap)
    own = folder_of(program, budget={"kind": "cap", "amount": cap})
    assert served(own, tmp_path, ("-O2",), COMPILERS[0]).tobytes() == asked.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_compiler_gives_the_same(name: str, compiler: str, tmp_path: Path) -> None:
    folder = folder_of(PROGRAMS[name])
    for flags in (("-O0",), ("-O3",)):
        assert_same(folder, served(folder, tmp_path, flags, compiler))


def test_links_and_gates_of_probabilities_agree_to_the_last_but_one_bit(tmp_path: Path) -> None:
    """Their exp and log are the C library's."""
    program = PROGRAMS["outputs"]
    finish = Finish((0.4, 0.3, 0.3), rounds=40.0, link="probability")
    steps = [replace(s, gate="class", value=0.9, finish=finish) for s in program.steps]
    folder = folder_of(replace(program, steps=steps, stops=[]))
    found = served(folder, tmp_path, SAFE, COMPILERS[0])
    answers = Predictor(folder).predict_rows(X)
    assert len(np.unique(answers.step)) > 1
    assert np.allclose(found[:, :3], answers.scores, rtol=1e-14)
    assert np.array_equal(found[:, 3], answers.spent)


def test_what_compares_documents_or_shares_prices_is_refused(tmp_path: Path) -> None:
    program = PROGRAMS["chain"]
    ranked = [replace(program.steps[0], gate="rank", value=3.0), *program.steps[1:]]
    with pytest.raises(UsageError, match="compares the documents of a query"):
        write_c(tmp_path / "c", folder_of(replace(program, steps=ranked)))
    base: Any = prices()
    together = ParallelPrices(base, np.zeros(base.sensors, np.int64))
    with pytest.raises(UsageError, match="'parallel' are no sum of prices"):
        write_c(tmp_path / "c", folder_of(program, together))
