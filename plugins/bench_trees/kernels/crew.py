"""Parts of a task, taken by several threads that are inside compiled code.

One of them hands out tasks; the others wait in a loop, since a thread that sleeps takes longer to
wake up than most tasks. Nobody waits for a thread that has taken no part. ``crew``, of int64, is
(0,) where there is one thread, else (SIZE + 8 threads,)::

    TASK    kind of task, and how many of its parts nobody has taken; negative: there is no other
    READY   parts that are done
    PARTS   parts of the task
    LENGTH  whatever else the task needs
    ROUND   tasks so far
    SIZE    of each thread, the last task that it had a part of
"""

from bench_trees.arrays import Int64Array
from bench_trees.kernels.compiling import inner
from bench_trees.kernels.intrinsics import give_way, swap

TASK, READY, PARTS, LENGTH, ROUND, SIZE = range(0, 48, 8)  # each in its own cache line


@inner
def _hand_out(crew: Int64Array, kind: int, parts: int, length: int) -> None:
    """Begin a task. The last one is done."""
    crew[READY], crew[PARTS], crew[LENGTH] = 0, parts, length
    crew[ROUND] += 1
    swap(crew, TASK, crew[TASK], (kind << 32) + parts)


@inner
def _take_part(crew: Int64Array, me: int) -> tuple[int, int, bool]:
    """The kind and number of a part that nobody else has, and whether it is the first that this
    thread has of its task. The number is negative where there are no more: for thread 0 once all
    are done, for others once there will be no other task."""
    while True:
        task = swap(crew, TASK, 0, 0)
        left = task & 0xFFFFFFFF
        if task < 0:
            return 0, -1, False
        if left > 0:
            if swap(crew, TASK, task, task - 1) == task:
                new = crew[SIZE + 8 * me] != crew[ROUND]
                crew[SIZE + 8 * me] = crew[ROUND]
                return task >> 32, left - 1, new
        elif me == 0 and swap(crew, READY, 0, 0) == crew[PARTS]:
            return 0, -1, False
        else:
            give_way()


@inner
def _end_part(crew: Int64Array) -> None:
    """A part that was taken is done."""
    ready = crew[READY]
    while swap(crew, READY, ready, ready + 1) != ready:
        ready = crew[READY]
