"""Threads over disjoint pieces of work whose kernels release the GIL."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count

PIECE = 1 << 15  # rows that one thread takes at a time
Piece = Callable[[int, int], None]
"""Process items ``start:stop`` and write nowhere else."""


class Workers:
    """Runs pieces on a fixed number of threads; the calling thread is one of them.

    Pieces are handed out as threads become free. Each writes to its own place, so the result does
    not depend on their assignment.
    """

    def __init__(self, threads: int, pool: ThreadPoolExecutor | None = None) -> None:
        self.threads = threads
        self._pool = pool

    def run(self, piece: Piece, items: int, chunk: int) -> None:
        """Call ``piece(start, stop)`` until ``range(items)`` is covered in steps of ``chunk``, or
        once with a single thread."""
        helpers = min(self.threads, -(-items // chunk)) - 1
        if self._pool is None or helpers < 1:
            piece(0, items)
            return
        ticket = count(0, chunk)

        def work() -> None:
            while (start := next(ticket)) < items:  # one C call under the GIL: no two get the same
                piece(start, min(start + chunk, items))

        others = [self._pool.submit(work) for _ in range(helpers)]
        work()
        for other in others:
            other.result()

    @contextmanager
    def beside(self, action: Callable[[], None]) -> Iterator[None]:
        """Call ``action`` on every other thread during the ``with`` block, which must end these
        calls. A call that has not begun by then is cancelled."""
        others = [self._pool.submit(action) for _ in range(self.threads - 1)] if self._pool else []
        try:
            yield
        finally:
            for other in others:
                if not other.cancel():
                    other.result()


@contextmanager
def workers(threads: int) -> Iterator[Workers]:
    """Threads that end with the ``with`` block. Raises ValueError for fewer than one."""
    if threads < 1:
        raise ValueError(f"threads must be at least 1, got {threads}")
    if threads == 1:
        yield Workers(1)
        return
    with ThreadPoolExecutor(threads - 1, thread_name_prefix="bench-trees") as pool:
        yield Workers(threads, pool)
