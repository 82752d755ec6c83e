"""Work that a copy of the process shares."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading

import pytest

from bench_core._io import second_process
from bench_core._io.second_process import in_order

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux")


@pytest.fixture(autouse=True)
def _no_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as the module can see: those of the test run hold no locks."""
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})


def slowly_squared(number: int) -> tuple[int, int]:
    pid = os.getpid()
    for _ in range(200_000):  # so that both processes get some
        pass
    return number * number, pid


def test_results_stand_in_order_and_come_from_both_processes() -> None:
    found = in_order(slowly_squared, range(100), large=True)
    assert [square for square, _ in found] == [k * k for k in range(100)]
    assert {os.getpid()} < {pid for _, pid in found}


def test_small_work_and_work_inside_of_shared_work_have_no_copy() -> None:
    assert {pid for _, pid in in_order(slowly_squared, range(20), large=False)} == {os.getpid()}

    def inner(number: int) -> bool:
        found = in_order(slowly_squared, range(5), large=True)
        return {pid for _, pid in found} == {os.getpid()}

    assert all(in_order(inner, range(10), large=True))


def test_there_is_no_copy_beside_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert {pid for _, pid in in_order(slowly_squared, range(20), large=True)} == {os.getpid()}


@pytest.mark.parametrize("end", ["raises", "is killed", "gives what cannot be handed over"])
def test_what_the_copy_fails_at_is_done_here(end: str) -> None:
    parent = os.getpid()

    def failing(number: int) -> object:
        square, pid = slowly_squared(number)
        if pid == parent:
            return square
        if end == "is killed":
            os.kill(pid, signal.SIGKILL)
        if end == "raises":
            raise ValueError(number)
        return lambda: number

    assert in_order(failing, range(50), large=True) == [k * k for k in range(50)]


def test_a_copy_that_cannot_begin_does_nothing() -> None:
    def begin() -> None:
        raise RuntimeError

    found = in_order(slowly_squared, range(50), large=True, begin=begin)
    assert {pid for _, pid in found} == {os.getpid()}


def test_an_error_is_raised_once_and_leaves_no_process() -> None:
    def failing(number: int) -> int:
        if number == 20:
            raise ValueError("twenty")
        return slowly_squared(number)[0]

    with pytest.raises(ValueError, match="twenty"):
        in_order(failing, range(40), large=True)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    assert not second_process._shared


def test_nothing_that_waited_to_be_written_is_written_twice(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with os.fdopen(os.dup(1), "w") as out:
        out.write("once")
        in_order(slowly_squared, range(30), large=True)
    assert capfd.readouterr().out == "once"


def test_no_garbage_is_collected_while_work_is_shared() -> None:
    assert gc.isenabled()
    assert not any(in_order(lambda _: gc.isenabled(), range(20), large=True))
    assert gc.isenabled()
