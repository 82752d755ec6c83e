"""Options that Yahoo's papers put on top of its grades: binarisation and copied negatives."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bench_core import Examples

TRAIN, VALID, TEST = range(3)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Binarises grades and gives irrelevant documents a multiplicity.

    ``relevant`` 0 keeps grades, g >= 1 makes the label 1 iff grade >= g. ``copies`` is the
    multiplicity of every document whose grade is at most ``copied``; -1 means the documents that
    are labelled 0 (grade 0, or below ``relevant``). ``copied_in`` is ``"all"`` or ``"test"``.
    Raises ValueError for options outside these.
    """

    relevant: int = 0
    copies: int = 1
    copied: int = -1
    copied_in: str = "all"

    def __post_init__(self) -> None:
        if not 0 <= self.relevant <= 4:
            raise ValueError(f"relevant = {self.relevant}: give 0 or a grade 1..4")
        if self.copies < 1:
            raise ValueError(f"copies = {self.copies}: give 1 or more")
        if not -1 <= self.copied <= 3:
            raise ValueError(f"copied = {self.copied}: give a grade 0..3, or -1")
        if self.copied_in not in ("all", "test"):
            raise ValueError(f"copied_in = {self.copied_in!r}: give 'all' or 'test'")

    def __call__(self, examples: Examples, split: int) -> Examples:
        """Examples with grades 0..4 as labels -> what a run sees; ``split`` 0, 1 or 2."""
        grade = examples.y
        if self.relevant:
            examples = replace(examples, y=(grade >= self.relevant).astype(np.float64))
        if self.copies == 1 or (self.copied_in == "test" and split != TEST):
            return examples
        highest = self.copied if self.copied >= 0 else max(self.relevant - 1, 0)
        multiplicity = np.where(grade <= highest, self.copies, 1).astype(np.int64)
        return replace(examples, multiplicity=multiplicity)
