"""Compiled code gives the bits of the plain walk: rows at hand, rows on demand, queries, caps."""

from __future__ import annotations

import asyncio
import math
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any

import numpy as np
import pytest
from helpers.program_cases import PROGRAMS, D, X, folder_of, trees

from bench_core import Queries, SensorPrices, UsageError
from bench_core.costs.acquired import Acquired
from bench_core.serving import Answer, Answers, Folder, Predictor, kernels, tiles
from bench_core.serving.answers import Purchases
from bench_core.serving.engine import MANY

KNOWN = ("chain", "outputs", "gated", "rejected")
CAPS = (None, 5.0, 60.0)
FEW = X[:20]


def pair(folder: Folder) -> tuple[Predictor, Predictor]:
    """The plain walk, and compiled code."""
    fast = Predictor(folder)
    assert fast.compile()
    return Predictor(folder), fast


def programs() -> dict[str, Any]:
    """What the kernels know: no ``and``."""
    found = {name: PROGRAMS[name] for name in KNOWN}
    for name in ("gated", "rejected"):
        steps = [
            replace(s, combine="add" if s.combine == "and" else s.combine)
            for s in found[name].steps
        ]
        found[name] = replace(found[name], steps=steps)
    return found


def same(one: Answer, other: Answer) -> bool:
    parts = [(a.spent, list(a.bought), a.step, a.stopped) for a in (one, other)]
    return (
        parts[0] == parts[1]
        and np.asarray(one.score).tobytes() == np.asarray(other.score).tobytes()
    )


@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("name", KNOWN)
def test_rows_at_hand(name: str, cap: float | None) -> None:
    plain, fast = pair(folder_of(programs()[name]))
    part = X if cap is None else FEW  # the plain walk asks the cost model at every split
    assert len(FEW) < MANY < len(X)
    for rows in (FEW, part):  # one after the other; many by tiles
        equal(plain.predict_rows(rows, cap=cap), fast.predict_rows(rows, cap=cap))


def test_many_rows_through_trees_of_many_leaves() -> None:
    """Their numbers take two bytes, and subtrees that no row comes to are left out."""
    plain, fast = pair(folder_of(trees(count=2, leaves=2000)))
    equal(plain.predict_rows(X), fast.predict_rows(X))


@pytest.mark.parametrize("name", KNOWN)
def test_rows_taken_over_before(name: str) -> None:
    """They are no longer read; where some have left, the rest are, one by one."""
    folder = folder_of(programs()[name])
    plain, fast = pair(folder)
    assert fast._compiled is not None
    scores, spent, paid, step, _ = fast._compiled.rows(X, math.inf, fast._compiled.taken(X))
    expected = plain.predict_rows(X)
    assert scores.reshape(expected.scores.shape).tobytes() == expected.scores.tobytes()
    assert spent.tobytes() == expected.spent.tobytes()
    assert paid.unpack().tobytes() == expected.bought.tobytes()
    assert step.tobytes() == expected.step.tobytes()


def test_bills_over_several_words_of_sensors() -> None:
    """Features far apart, some of which share sensors; prices whose sum depends on its order."""
    rng = np.random.default_rng(3)
    folder = folder_of(PROGRAMS["chain"])
    needs = [np.sort(rng.permutation(200)[: 2 + j]).astype(np.int32) for j in range(D)]
    start = np.cumsum([0, *map(len, needs)]).astype(np.int32)
    sensor, ones = 10 ** rng.uniform(-8, 8, 200), np.ones(D)
    prices = SensorPrices(start, np.concatenate(needs), sensor, ones, split=0.37, tree=0.11)
    plain, fast = pair(replace(folder, costs=prices))
    equal(plain.predict_rows(X), fast.predict_rows(X))


@pytest.mark.parametrize("payable", [0, 1, 63, 64, 65, 200])
@pytest.mark.parametrize("rows", [MANY, 64, 65, 200])
def test_purchases_are_bits_of_the_payable_sensors(payable: int, rows: int) -> None:
    """Unpacked they stand where the sensors do; no sensor needs no bit."""
    rng = np.random.default_rng(payable + rows)
    sensors = np.sort(rng.permutation(300)[:payable])
    paid, whole = rng.random((rows, payable)) < 0.5, np.zeros((rows, 300), dtype=bool)
    whole[:, sensors] = paid
    bits = np.asfortranarray(Acquired.pack(paid).bits)
    assert Purchases(bits, sensors, 300).unpack().tolist() == whole.tolist()


@pytest.mark.parametrize("free", [False, True])
def test_a_row_of_many_has_bits_for_what_it_can_pay_alone(free: bool) -> None:
    """Eight features of 200 sensors, or none that costs anything."""
    folder, none = folder_of(PROGRAMS["chain"]), np.zeros(0, dtype=np.int32)
    start, sensor = np.arange(D + 1, dtype=np.int32), np.arange(200.0)
    needs = np.array([3, 50, 64, 65, 127, 128, 190, 199], dtype=np.int32)
    if free:
        start, needs = np.zeros(D + 1, dtype=np.int32), none
    prices = SensorPrices(start, needs, sensor, np.ones(D), split=0.5, tree=0.25)
    plain, fast = pair(replace(folder, costs=prices))
    answers = fast.predict_rows(X)
    assert isinstance(answers._paid, Purchases)
    assert answers._paid.bits.shape == (len(X), 1)
    equal(plain.predict_rows(X), answers)


@pytest.mark.parametrize("name", KNOWN)
def test_splits_that_count_whole_numbers(name: str) -> None:
    """Their sums are looked up as bytes."""
    whole = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 1.0, 4.0, 1.0])
    folder = folder_of(replace(programs()[name], multiplier=whole))
    plain, fast = pair(folder)
    equal(plain.predict_rows(X), fast.predict_rows(X))
    model = fast._compiled._model if fast._compiled else None
    assert model is not None
    assert len(model.splits.short) > 0


def equal(one: Answers, other: Answers) -> None:
    for name in ("scores", "spent", "bought", "step", "capped"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name


def asking(row: Any, place: dict[str, int], asked: list[list[str]]) -> Callable[..., list[Any]]:
    """Notes what it is asked for; None where a cell is missing."""

    def acquire(names: list[str]) -> list[Any]:
        asked.append(list(names))
        values = [float(row[place[n]]) for n in names]
        names.clear()  # it is the caller's
        return [None if math.isnan(v) else v for v in values]

    return acquire


@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("name", KNOWN)
def test_rows_on_demand(name: str, cap: float | None) -> None:
    plain, fast = pair(folder_of(programs()[name]))
    place = {n: j for j, n in enumerate(plain.names)}
    for row in FEW[:5]:
        asked: list[list[str]] = []
        expected = plain.predict(asking(row, place, asked), cap=cap)
        again: list[list[str]] = []
        assert same(expected, fast.predict(asking(row, place, again), cap=cap))
        assert asked == again


@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("name", KNOWN)
def test_rows_on_demand_by_number(name: str, cap: float | None) -> None:
    """The same answers; a value that is not written is missing."""
    for model in pair(folder_of(programs()[name])):
        place = {n: j for j, n in enumerate(model.names)}
        for row in FEW[:5]:
            asked: list[list[str]] = []
            expected = model.predict(asking(row, place, asked), cap=cap)
            again: list[list[int]] = []

            def fill(numbers: Any, values: Any, row: Any = row, again: Any = again) -> None:
                again.append(numbers.tolist())
                known = ~np.isnan(row[numbers])
                assert np.isnan(values).all()
                values[known] = row[numbers[known]]

            found = model.predict_into(fill, cap=cap)
            assert [[model.names[j] for j in numbers] for numbers in again] == asked
            bought = [model.names[j] for j in found.bought]
            assert same(
                expected, Answer(found.score, found.spent, bought, found.step, found.stopped)
            )


def test_rows_with_and_without_a_cap_by_turns() -> None:
    """They are walked in the same room; two kinds of questions compile one kind of walk."""
    plain, fast = pair(folder_of(programs()["gated"]))
    place = {n: j for j, n in enumerate(plain.names)}
    for row, cap in zip(FEW, (None, 5.0, None, 60.0, 0.0, None), strict=False):
        expected = plain.predict(asking(row, place, []), cap=cap)
        assert same(expected, fast.predict(asking(row, place, []), cap=cap))
    assert len(kernels.ways.signatures) == 1


def test_two_threads_ask_by_turns() -> None:
    """Each waits in its first question for that of the other, and gets its own row's answer."""
    plain, fast = pair(folder_of(programs()["chain"]))
    both = Barrier(2)

    def walk(row: Any) -> Answer:
        def acquire(numbers: Any, values: Any) -> None:
            kept = numbers.copy()
            with suppress(BrokenBarrierError):  # the other has come to its end
                both.wait(1)
            assert numbers.tolist() == kept.tolist()
            values[:] = row[numbers]

        try:
            return fast.predict_into(acquire)
        finally:
            both.abort()

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(walk, FEW[:2]))
    for row, answer in zip(FEW[:2], found, strict=True):

        def fill(numbers: Any, values: Any, row: Any = row) -> None:
            values[:] = row[numbers]

        assert same(plain.predict_into(fill), answer)


def test_names_bought_are_looked_up_when_they_are_looked_at() -> None:
    """Twice, by two threads, as text or in a copy they are the plain walk's tuple."""
    plain, fast = pair(folder_of(programs()["chain"]))
    place = {n: j for j, n in enumerate(plain.names)}
    expected = plain.predict(asking(X[0], place, []))
    found = [fast.predict(asking(X[0], place, [])) for _ in range(3)]
    fast.predict(asking(X[1], place, []))  # in the same room
    kept = pickle.dumps(found[0])
    assert kept == pickle.dumps(expected)
    assert same(expected, pickle.loads(kept))
    assert repr(expected) == repr(found[1])
    assert f"bought={expected.bought}" in repr(expected)
    assert found[2].bought == found[2].bought == expected.bought


KINDS: dict[str, Callable[[Any], Any]] = {
    "tuple": lambda values: tuple(values.tolist()),
    "iterator": lambda values: iter(values.tolist()),
    "float64": lambda values: values.astype(float),
    "too large": lambda values: np.where(values > 0, 1e300, values.astype(float)),
    "float32": lambda values: values,
    "strided": lambda values: np.repeat(values, 2)[::2],
    "whole": lambda values: np.nan_to_num(values, posinf=9, neginf=-9).astype(np.int16),
    "with None": lambda values: [None if math.isnan(v) else v for v in values.tolist()],
    "objects": lambda values: np.array([None if math.isnan(v) else v for v in values.tolist()]),
    "masked": lambda values: np.ma.MaskedArray(values, mask=False),
}


def test_values_of_any_kind() -> None:
    plain, fast = pair(folder_of(programs()["gated"]))
    place = {n: j for j, n in enumerate(plain.names)}
    for row, (kind, made) in product(FEW[:5], KINDS.items()):
        acquire = lambda names, row=row, made=made: made(row[[place[n] for n in names]])  # noqa: E731
        assert same(plain.predict(acquire), fast.predict(acquire)), kind


def test_as_many_values_as_features() -> None:
    """Also where one would do for all, and where the caller changed the list that is his."""
    models = pair(folder_of(programs()["chain"]))
    kinds: list[Callable[[Any], Any]] = [list, np.array]
    for model, kind, number in product(models, kinds, (0, 1, 9)):
        asked: list[str] = []
        given: Any = kind([1.0] * number)

        def acquire(names: list[str], asked: list[str] = asked, given: Any = given) -> Any:
            asked += names
            names.clear()
            return given

        with pytest.raises(UsageError) as raised:
            model.predict(acquire)
        assert len(asked) > 1
        words = f"returned {number} values for {len(asked)} features ({', '.join(asked[:3])})"
        assert words in str(raised.value)


def test_documents_of_a_query_and_coroutines() -> None:
    plain, fast = pair(folder_of(programs()["gated"]))
    place = {n: j for j, n in enumerate(plain.names)}

    def acquire(i: int, names: list[str]) -> Any:
        return np.array([X[i, place[n]] for n in names])

    async def later(i: int, names: list[str]) -> Any:
        await asyncio.sleep(0)
        return acquire(i, names)

    expected = plain.predict_query(acquire, 20)
    for found in (
        fast.predict_query(acquire, 20),
        asyncio.run(fast.predict_query_async(later, 20)),
    ):
        assert all(map(same, expected, found))
    one = asyncio.run(fast.predict_async(lambda names: later(3, names)))
    assert same(expected[3], one)
    queries = Queries(np.array([0, 10, 20]))
    a, b = plain.predict_rows(FEW, queries), fast.predict_rows(FEW, queries)
    assert a.scores.tobytes() == b.scores.tobytes()
    assert a.spent.tobytes() == b.spent.tobytes()


def test_compiled_code_begins_when_enough_was_walked() -> None:
    model = Predictor(folder_of(PROGRAMS["chain"]))
    model.predict_rows(FEW)
    assert model._compiled is None
    model.predict_rows(np.repeat(X, 80, axis=0))
    assert model._compiled is not None


def test_rows_of_any_kind_of_array() -> None:
    _, fast = pair(folder_of(PROGRAMS["chain"]))
    expected = fast.predict_rows(X).scores
    frozen = X.copy()
    frozen.flags.writeable = False
    for rows in (frozen, np.asfortranarray(X), X.astype(np.float64), X.tolist()):
        assert np.array_equal(fast.predict_rows(rows).scores, expected)
        assert np.array_equal(fast.predict_rows(rows[:20]).scores, expected[:20])
    assert len(kernels.walk_rows.signatures) == len(tiles.walk_segment.signatures) == 1


@pytest.mark.parametrize("name", ["support", "vectors"])
def test_what_the_kernels_do_not_know_is_walked_in_python(name: str) -> None:
    model = Predictor(folder_of(PROGRAMS[name]))
    assert not model.compile()
    assert len(model.predict_rows(np.zeros((2, D))).spent) == 2


def test_an_error_of_the_callers_function_passes() -> None:
    _, fast = pair(folder_of(PROGRAMS["chain"]))

    def acquire(names: list[str]) -> list[float]:
        raise StopIteration

    def acquire_into(numbers: Any, values: Any) -> None:
        raise StopIteration

    with pytest.raises(StopIteration):
        fast.predict(acquire)
    with pytest.raises(StopIteration):
        fast.predict_into(acquire_into)


def test_a_row_that_is_given_up_leaves_others_alone() -> None:
    _, fast = pair(folder_of(PROGRAMS["chain"]))
    place = {n: j for j, n in enumerate(fast.names)}

    def broken(numbers: Any, values: Any) -> None:
        values[:] = 1.0
        raise KeyError

    def within(names: list[str]) -> list[Any]:
        with pytest.raises(KeyError):
            fast.predict_into(broken)
        with pytest.raises(UsageError):
            fast.predict(lambda names: [1.0] * (len(names) + 1))
        inner = fast.predict(asking(X[1], place, []))
        assert same(inner, fast.predict(asking(X[1], place, [])))
        return asking(X[0], place, [])(names)

    assert same(fast.predict(within), fast.predict(asking(X[0], place, [])))


@pytest.mark.slow
@pytest.mark.parametrize("own", [{"BENCH_PLAIN_KERNELS": "1"}, {"NUMBA_CPU_NAME": "generic"}])
def test_tiles_are_the_same_without_hand_written_llvm_and_on_old_processors(
    own: dict[str, str], tmp_path: Path
) -> None:
    own = {**own, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    found = subprocess.run(
        [*command, "-k", "rows_at_hand"],
        env={**os.environ, **own},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout


@pytest.mark.slow
def test_links_of_very_large_models_are_followed_alike(tmp_path: Path) -> None:
    """In a process where no model is small enough for links of 32 bits."""
    code = (
        "import sys, pytest\n"
        "class Wide:\n"
        "    def pytest_sessionstart(self):\n"
        "        from bench_core.serving import compiled\n"
        "        compiled.NARROW = 0\n"
        "sys.exit(pytest.main(sys.argv[1:], plugins=[Wide()]))"
    )
    some = "rows_at_hand or on_demand or cap or queries"
    command = [sys.executable, "-c", code, "-q", "-p", "no:cacheprovider", __file__, "-k", some]
    found = subprocess.run(
        command,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout
