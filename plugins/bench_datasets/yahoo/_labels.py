"""Options that Yahoo's papers put on top of its grades: binarisation and copied negatives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from bench_core import Examples, param

TRAIN, VALID, TEST = range(3)


@dataclass(frozen=True)
class Judgement:
    """Binarises grades and gives irrelevant documents a multiplicity.

    Those documents are labelled 0 (grade 0, or below ``relevant``), unless ``copied`` is a grade.
    Raises ValueError for options outside their ranges.
    """

    relevant: int = param(0, "0 keeps the grades; g labels a document 1 iff its grade is >= g")
    copies: int = param(1, "how many copies each irrelevant document stands for (papers: 10)")
    copied: int = param(-1, "highest grade that is copied; -1: the documents labelled 0")
    copied_in: Literal["all", "test"] = param("all", "splits in which negatives are copied")
    split: float = param(0.25, "price of evaluating one split")

    def __post_init__(self) -> None:
        if not 0 <= self.relevant <= 4:
            raise ValueError(f"relevant = {self.relevant}: give 0 or a grade 1..4")
        if self.copies < 1:
            raise ValueError(f"copies = {self.copies}: give 1 or more")
        if not -1 <= self.copied <= 3:
            raise ValueError(f"copied = {self.copied}: give a grade 0..3, or -1")
        if self.copied_in not in ("all", "test"):
            raise ValueError(f"copied_in = {self.copied_in!r}: give 'all' or 'test'")

    def judged(self, examples: Examples, part: int) -> Examples:
        """Examples with grades 0..4 as labels in, with these options out; ``part`` 0, 1 or 2."""
        grade = examples.y
        if self.relevant:
            examples = replace(examples, y=(grade >= self.relevant).astype(np.float64))
        if self.copies == 1 or (self.copied_in == "test" and part != TEST):
            return examples
        highest = self.copied if self.copied >= 0 else max(self.relevant - 1, 0)
        multiplicity = np.where(grade <= highest, self.copies, 1).astype(np.int64)
        return replace(examples, multiplicity=multiplicity)
