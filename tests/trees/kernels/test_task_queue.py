"""Every part of every task is done once, by whichever thread."""

from threading import Event

import numpy as np
import pytest
from bench_trees.kernels import task_queue
from bench_trees.kernels.task_queue import LENGTH, SIZE, TASK, _end_part, _hand_out, _take_part
from bench_trees.threads import workers
from numba import njit


@njit(nogil=True)
def work(queue, me, done):
    """Tasks of 1, 2, 3, ... parts, whose numbers are kinds; who did the part, counted from 1."""
    for task in range(len(done) if me == 0 else 1):
        if me == 0:
            _hand_out(queue, task, task + 1, 7 * task)
        while True:
            kind, part, new = _take_part(queue, me)
            if part < 0:
                break
            if queue[LENGTH] == 7 * kind:
                done[kind, part] += 10 + me if new else 1000 + me
            _end_part(queue)
        for part in range(task + 1 if me == 0 else 0):
            if done[task, part] == 0:  # the next task begins when this one is done
                done[task] = -1


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_part_is_done_once(threads):
    tasks = 200
    done = np.zeros((tasks, tasks), np.int64)
    queue = np.zeros(SIZE + 8 * threads, np.int64)
    with workers(threads) as pool, pool.beside(lambda me: work(queue, me, done)):
        work(queue, 0, done)
        queue[TASK] = -1
    assert queue[task_queue.ROUND] == tasks
    own = done % 10
    assert ((done > 0) == np.tri(tasks, dtype=bool)).all()
    assert set(np.unique(own)) <= set(range(threads))
    for task in range(tasks):  # the first part that a thread has of a task is told
        who = own[task, : task + 1]
        told = done[task, : task + 1] < 1000
        assert sorted(who[told]) == sorted(set(who))


def test_helpers_that_have_not_begun_are_not_waited_for():
    called, gate = [], Event()
    with workers(2) as pool:
        busy = pool._pool.submit(gate.wait)
        with pool.beside(called.append):
            pass
        gate.set()
        assert busy.result()
    assert called == []
