"""Every part of every task is done once, by whichever thread."""

from itertools import count
from threading import Event

import numpy as np
import pytest
from bench_trees.kernels.intrinsics import add_at_once
from bench_trees.kernels.task_queue import (
    CLOSED,
    FINISHED,
    KIND,
    LEFT,
    PARTS,
    SIZE,
    _claim,
    _hand_out,
)
from bench_trees.threads import workers
from numba import njit


@njit(nogil=True)
def work(queue, thread, done):
    """Tasks of 1, 2, 3, ... parts, whose numbers are kinds; who did the part, counted from 1."""
    for task in range(len(done) if thread == 0 else 1):
        if thread == 0:
            _hand_out(queue, task, task + 1)
        while True:
            part = _claim(queue, thread > 0)
            if part == 0:
                break
            if queue[PARTS] == queue[KIND] + 1:
                done[queue[KIND], part - 1] += 100 + thread
            add_at_once(queue, FINISHED, 1)
        for part in range(task + 1 if thread == 0 else 0):
            if done[task, part] == 0:  # the next task begins when this one is done
                done[task] = -1


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_part_is_done_once(threads):
    tasks = 200
    done = np.zeros((tasks, tasks), np.int64)
    queue = np.zeros(SIZE, np.int64)
    number = count(1)
    with workers(threads) as pool, pool.beside(lambda: work(queue, next(number), done)):
        work(queue, 0, done)
        queue[LEFT] = CLOSED
    triangle = np.tri(tasks, dtype=bool)
    assert (done[~triangle] == 0).all()
    assert set(np.unique(done[triangle])) <= {100 + thread for thread in range(threads)}


def test_helpers_that_have_not_begun_are_not_waited_for():
    called, gate = [], Event()
    with workers(2) as pool:
        busy = pool._pool.submit(gate.wait)
        with pool.beside(lambda: called.append(1)):
            pass
        gate.set()
        assert busy.result()
    assert called == []
