"""Parts of a task, claimed by several threads that are inside compiled code.

One thread hands out tasks; the others wait in a loop, since waking a sleeping thread takes as long
as a small task. No thread waits for one that has claimed no part. ``queue``, of int64, is (0,) for
one thread, else (SIZE,)::

    LEFT        parts not claimed; claims that find none take it below zero
    FINISHED    parts that are done
    PARTS       parts of the task
    KIND        of task

Without these threads, which score a level in Python's pool instead, two take 1.36 to 1.41 times as
long (10000 x 100).
"""

from bench_trees.arrays import Int64Array
from bench_trees.kernels.compiling import inner
from bench_trees.kernels.intrinsics import add_at_once, give_way, write_at_once

LEFT, FINISHED, PARTS, KIND, SIZE = range(0, 40, 8)  # each in its own cache line
CLOSED = -(1 << 62)
"""Of LEFT: there will be no other task."""


@inner
def _hand_out(queue: Int64Array, kind: int, parts: int) -> None:
    """Begin a task after the last one is done."""
    queue[FINISHED], queue[PARTS], queue[KIND] = 0, parts, kind
    write_at_once(queue, LEFT, parts)


@inner
def _claim(queue: Int64Array, helper: bool) -> int:
    """Claim a part and return its number, counted down to 1. 0 if there are no more: for a helper
    once the queue is closed, for the thread that hands out once all parts are done."""
    while True:
        left: int = add_at_once(queue, LEFT, -1)
        if left > 0:
            return left
        ended = left < CLOSED // 2 if helper else add_at_once(queue, FINISHED, 0) == queue[PARTS]
        if ended:
            return 0
        give_way()
