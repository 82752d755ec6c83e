"""The error of all checks, and how several are run."""

from __future__ import annotations

from collections.abc import Callable, Iterable


class ConformanceError(AssertionError):
    """A plugin breaks a promise; the message says which and how."""


def run_all(checks: Iterable[tuple[str, Callable[[], None]]]) -> None:
    """Run named checks; ConformanceError with a line for each that fails."""
    broken = []
    for name, check in checks:
        try:
            check()
        except Exception as error:
            kind = "" if isinstance(error, ConformanceError) else f"{type(error).__name__}: "
            broken.append(f"{name}: {kind}{error}")
    if broken:
        raise ConformanceError("\n".join(broken))
