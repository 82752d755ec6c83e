"""What splits owe and pay while a tree grows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bench_trees.growing_tree import Leaf
from bench_trees.kernels.penalty_kernels import count_unpaid, mark_paid
from bench_trees.penalties import Ledger
from bench_trees.settings import Settings
from bench_trees.threads import Workers

FloatArray = NDArray[np.float64]

SENSORS = 32  # that one thread counts at a time
SMALL = 200_000  # bits below which handing work to other threads costs more than it saves


class Charges:
    """Charges the splits of one tree after the other to a ledger.

    ``copies`` (n,) is the multiplicity, or (0,) where all are 1. ``coupled_owed`` (d,) is what
    each feature owes for all rows together, by what has been bought so far.
    """

    def __init__(
        self, ledger: Ledger, settings: Settings, copies: NDArray[np.int64], crew: Workers
    ) -> None:
        self.ledger = ledger
        self.per_node = settings.charge == "node"
        self.copies = copies
        self.crew = crew
        self.lazy = bool(ledger.penalty.lazy.any())
        self.begin()

    def begin(self) -> None:
        """A new tree."""
        self.coupled_owed = self.ledger.coupled_owed()
        self.deferred: list[int] = []

    def end(self) -> None:
        """Pay what is charged per node and was put off until the tree is done."""
        for feature in self.deferred:
            self.ledger.buy(feature)

    def unpaid_at_root(self) -> NDArray[np.int64] | None:
        """Multiplicity of rows that have not paid, per sensor; None where nothing is lazy."""
        return self.ledger.unpaid.copy() if self.lazy else None

    def owed(self, leaf: Leaf) -> FloatArray:
        """What a split of the leaf is charged, per feature: (coupled + lazy) + split."""
        owed = self.coupled_owed
        if leaf.unpaid is not None:
            owed = owed + self.ledger.lazy_owed(leaf.unpaid)
        return owed + self.ledger.penalty.split * leaf.count

    def pay(self, leaf: Leaf, feature: int, rows: NDArray[np.uint32]) -> bool:
        """Charge a split of the leaf with these rows; whether other leaves now owe less."""
        refunded = False
        if self.per_node:
            self.deferred.append(feature)
        elif self.ledger.buy(feature):
            self.coupled_owed = self.ledger.coupled_owed()
            refunded = True
        if leaf.unpaid is not None:
            sensors = self.ledger.penalty.of(feature)
            owing = sensors[(leaf.unpaid[sensors] > 0) & (self.ledger.penalty.lazy[sensors] > 0)]
            if len(owing):
                mark_paid(self.ledger.paid, owing.astype(np.int64), rows)
                self.ledger.unpaid[owing] -= leaf.unpaid[owing]
                leaf.unpaid[owing] = 0
        return refunded

    def divide(
        self, parent: Leaf, small: Leaf, large: Leaf, small_rows: NDArray[np.uint32]
    ) -> None:
        """Counters of both children from the parent's; only mixed sensors need a scan."""
        unpaid = parent.unpaid
        if unpaid is None:
            return
        own = np.where(unpaid == parent.count, small.count, 0)
        lazy = self.ledger.penalty.lazy > 0
        mixed = np.flatnonzero((unpaid > 0) & (unpaid < parent.count) & lazy)
        if len(mixed):

            def piece(start: int, stop: int) -> None:
                count_unpaid(self.ledger.paid, mixed[start:stop], small_rows, self.copies, own)

            cells = len(mixed) * len(small_rows)
            self.crew.run(piece, len(mixed), SENSORS if cells > SMALL else len(mixed))
        small.unpaid = own
        large.unpaid = unpaid - own
