"""Work that one kernel shares with threads that wait beside it, without Python in between.

The kernel posts a task of so many pieces; it and its helpers take one after the other until all
are taken, and it goes on when all are done. A helper that is late, or not there, delays nothing but
the piece that it has taken. Whatever a task needs lies in arrays that both sides have, and all that
was written before it was posted is seen by who takes a piece of it::

    board[TASK]     number of the task, its pieces, and the next one to be taken: one integer, so
                    that a piece is never taken for one of another task
    board[DONE]     pieces that are done
    board[KIND]     what is to be done
"""

import numpy as np
from numba import njit

from bench_trees.arrays import Int64Array
from bench_trees.kernels.intrinsics import exchange, give_way, increment, load, pause, store

TASK, DONE, KIND = 0, 8, 16  # each in a cache line of its own
BOARD = 24  # numbers, 0 at first: nothing is posted
NO_MORE = -1  # as TASK: helpers return
PIECES = 20  # bits of their number
ONE = (1 << PIECES) - 1  # the most
NUMBERS = (1 << 23) - 1  # of tasks, after which they begin again: the sign is NO_MORE's
NONE, ENDED = -1, -2  # instead of a piece
AWAKE = 2000  # pauses, some tens of microseconds, before others may have the processor
PATIENCE = 1 << 22  # of a helper whose kernel is gone, a second or more


@njit(inline="always")
def _post(board: Int64Array, kind: int, pieces: int) -> None:
    """Let all take pieces of a task."""
    board[KIND] = kind
    board[DONE] = 0
    number = ((board[TASK] >> np.int64(2 * PIECES)) + 1) & NUMBERS
    store(board, TASK, (number << np.int64(2 * PIECES)) + (np.int64(pieces) << np.int64(PIECES)))


@njit(inline="always")
def _take(board: Int64Array) -> int:
    """The number of a piece to be done; NONE if all are taken, ENDED if no more will come."""
    while True:
        task = load(board, TASK)
        if task < 0:
            return ENDED
        if (task & ONE) >= ((task >> np.int64(PIECES)) & ONE):
            return NONE
        if exchange(board, TASK, task, task + 1):
            return int(task & ONE)


@njit(inline="always")
def _kind(board: Int64Array) -> int:
    """Of the task of which a piece was taken."""
    return int(board[KIND])


@njit(inline="always")
def _finished(board: Int64Array) -> None:
    """A piece that was taken is done."""
    increment(board, DONE)


@njit(inline="always")
def _all_done(board: Int64Array, pieces: int) -> bool:
    """Whether all of the task's pieces are."""
    return bool(load(board, DONE) >= pieces)


@njit(inline="always")
def _rest(rested: int) -> None:
    """Wait a moment, after so many others."""
    pause()
    if rested > AWAKE:
        give_way()
