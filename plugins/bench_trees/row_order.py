"""The rows of a growing tree's leaves, one leaf after the other."""

import numpy as np

from bench_trees.arrays import Int64Array, UInt64Array
from bench_trees.kernels.division import arrange, cut_up, divide, partition, settle
from bench_trees.threads import PIECE, Workers


class RowOrder:
    """Row numbers in leaf order, rising within every leaf."""

    def __init__(self, words: UInt64Array, crew: Workers) -> None:
        self.words = words
        self.crew = crew
        self.rows = np.empty(words.shape[1], np.uint32)
        self.spare = np.empty(words.shape[1], np.uint32)  # room to work in

    def reset(self) -> None:
        """All rows in one leaf."""
        self.rows[:] = np.arange(len(self.rows), dtype=np.uint32)

    def divide(self, moves: Int64Array, values: Int64Array, gathered: Int64Array) -> None:
        """Move the rows of every split's left child before those of its right child; the border to
        the last column of ``moves``. Gradients and hessians of the smaller child, where it may be
        split, go from ``values`` to its positions in ``gathered``."""
        few = self.crew.threads == 1 or int((moves[:, 2] - moves[:, 1]).sum()) <= PIECE
        if few:
            divide(self.words, moves, self.rows, self.spare, values, gathered)
            return
        parts = cut_up(moves, PIECE)

        def count(start: int, stop: int) -> None:
            partition(self.words, parts[start:stop], self.rows, self.spare, self.spare)

        def move(start: int, stop: int) -> None:
            settle(parts[start:stop], False, self.spare, self.rows, values, gathered)

        self.crew.run(count, len(parts), 1)
        arrange(parts, moves)
        self.crew.run(move, len(parts), 1)
