"""Saying how far long work is, in a line now and then."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS = 5.0


def told(say: Callable[[str], None], what: str) -> Callable[[int, int], None]:
    """Takes done and total, often; ``say`` hears of it every few seconds."""
    last = time.monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last > SECONDS:
            last = time.monotonic()
            say(f"{what}, {100 * done // total}%")

    return progress
