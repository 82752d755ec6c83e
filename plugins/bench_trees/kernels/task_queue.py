"""Parts of a task, taken by several threads that are inside compiled code.

One thread hands out tasks; the others wait in a loop, since a sleeping thread takes longer to wake
up than most tasks. No thread waits for one that has taken no part. ``queue``, of int64, is (0,) for
one thread, else (SIZE + 8 threads,)::

    TASK    kind of task, and the number of its parts not taken; negative: there is no other
    READY   parts that are done
    PARTS   parts of the task
    LENGTH  any other number that the task needs
    ROUND   tasks so far
    SIZE    of each thread, the last task that it had a part of
"""

from bench_trees.arrays import Int64Array
from bench_trees.kernels.compiling import inner
from bench_trees.kernels.intrinsics import give_way, swap

TASK, READY, PARTS, LENGTH, ROUND, SIZE = range(0, 48, 8)  # each in its own cache line


@inner
def _hand_out(queue: Int64Array, kind: int, parts: int, length: int) -> None:
    """Begin a task after the last one is done."""
    queue[READY], queue[PARTS], queue[LENGTH] = 0, parts, length
    queue[ROUND] += 1
    swap(queue, TASK, queue[TASK], (kind << 32) + parts)


@inner
def _take_part(queue: Int64Array, me: int) -> tuple[int, int, bool]:
    """The kind and number of a free part, and True if it is this thread's first of its task. The
    number is negative if there are no more: for thread 0 once all parts are done, for others once
    there will be no other task."""
    while True:
        task = swap(queue, TASK, 0, 0)
        left = task & 0xFFFFFFFF
        if task < 0:
            return 0, -1, False
        if left > 0:
            if swap(queue, TASK, task, task - 1) == task:
                new = queue[SIZE + 8 * me] != queue[ROUND]
                queue[SIZE + 8 * me] = queue[ROUND]
                return task >> 32, left - 1, new
        elif me == 0 and swap(queue, READY, 0, 0) == queue[PARTS]:
            return 0, -1, False
        else:
            give_way()


@inner
def _end_part(queue: Int64Array) -> None:
    """Mark a taken part as done."""
    ready = queue[READY]
    while swap(queue, READY, ready, ready + 1) != ready:
        ready = queue[READY]
