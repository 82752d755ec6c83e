"""Progress of long work as a line now and then."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS = 5.0


def every_few_seconds(say: Callable[[str], None], what: str) -> Callable[[int, int], None]:
    """A function of done and total that may be called often and calls ``say`` seldom."""
    last = time.monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last > SECONDS:
            last = time.monotonic()
            say(f"{what}, {100 * done // total}%")

    return progress
