"""Compiled code gives the bits of the plain walk: rows at hand, rows on demand, queries, caps."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.program_cases import PROGRAMS, D, X, folder_of

from bench_core import Queries
from bench_core.serving import Answer, Folder, Predictor, kernels

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
    parts = [(a.spent, a.bought, a.step, a.stopped) for a in (one, other)]
    return (
        parts[0] == parts[1]
        and np.asarray(one.score).tobytes() == np.asarray(other.score).tobytes()
    )


@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("name", KNOWN)
def test_rows_at_hand(name: str, cap: float | None) -> None:
    plain, fast = pair(folder_of(programs()[name]))
    part = X if cap is None else FEW  # the plain walk asks the cost model at every split
    a, b = plain.predict_rows(part, cap=cap), fast.predict_rows(part, cap=cap)
    for name in ("scores", "spent", "bought", "step", "capped"):
        assert getattr(a, name).tobytes() == getattr(b, name).tobytes(), name


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
    assert len(kernels.walk_rows.signatures) == 1


@pytest.mark.parametrize("name", ["support", "vectors"])
def test_what_the_kernels_do_not_know_is_walked_in_python(name: str) -> None:
    model = Predictor(folder_of(PROGRAMS[name]))
    assert not model.compile()
    assert len(model.predict_rows(np.zeros((2, D))).spent) == 2


def test_an_error_of_the_callers_function_passes() -> None:
    _, fast = pair(folder_of(PROGRAMS["chain"]))

    def acquire(names: list[str]) -> list[float]:
        raise StopIteration

    with pytest.raises(StopIteration):
        fast.predict(acquire)
