"""Errors that a user can mend: one line saying what, where and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class BenchError(Exception):
    """Base of every error the command line shows as one line, with exit status 2."""


class InputError(BenchError):
    """Unusable input: the message names the file (and line), the fault and the remedy."""


class UsageError(BenchError):
    """An unknown name, a wrong parameter or a contradiction between options."""


@contextmanager
def blaming(place: str) -> Iterator[None]:
    """Begin the messages of errors with a place."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from error
