"""Options that Yahoo's papers put on top of its grades: binarisation and copied negatives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bench_core import Examples, UsageError
from bench_core.data import IntArray

TRAIN, VALID, TEST = range(3)


def judged(
    examples: Examples, split: int, *, relevant: int, copies: int, copied: int, copied_in: str
) -> Examples:
    """Binarise grades and give irrelevant documents a multiplicity.

    ``relevant`` 0 keeps grades, g >= 1 makes the label 1 iff grade >= g. ``copies`` is the
    multiplicity of every document whose grade is at most ``copied``; -1 means the documents that
    are labelled 0 (grade 0, or below ``relevant``). ``copied_in`` is ``"all"`` or ``"test"``.
    Raises UsageError for options outside these.
    """
    if not 0 <= relevant <= 4:
        raise UsageError(f"relevant = {relevant}: give 0 (keep the grades) or a grade 1..4")
    if copies < 1 or not -1 <= copied <= 3:
        raise UsageError(f"copies = {copies}, copied = {copied}: give copies >= 1, copied -1..3")
    if copied_in not in ("all", "test"):
        raise UsageError(f"copied_in = {copied_in!r}: give 'all' or 'test'")
    grade = examples.y
    y = grade if relevant == 0 else (grade >= relevant).astype(np.float64)
    if copies == 1 or (copied_in == "test" and split != TEST):
        return replace(examples, y=y)
    highest = copied if copied >= 0 else max(relevant - 1, 0)
    multiplicity: IntArray = np.where(grade <= highest, copies, 1).astype(np.int64)
    return replace(examples, y=y, multiplicity=multiplicity)
