"""Which sensors rows bought, packed into bits, and the sum of their prices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bench_core.arrays import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Acquired:
    """Which sensors each row bought: bit ``s % 64`` of word ``s // 64`` of its row.

    ``bits`` is uint64 (n, w), or (1, w) when every row pays alike.
    """

    bits: NDArray[np.uint64]  # (n, w) or (1, w)
    sensors: int

    def __post_init__(self) -> None:
        if self.bits.ndim != 2 or self.bits.shape[1] != words(self.sensors):
            raise ValueError(
                f"{self.sensors} sensors need uint64 (n, {words(self.sensors)}), "
                f"got {self.bits.dtype} {self.bits.shape}"
            )

    @classmethod
    def pack(cls, mask: NDArray[np.bool_]) -> Acquired:
        """From a boolean mask (n, s)."""
        n, s = mask.shape
        padded = np.zeros((n, words(s) * 64), dtype=bool)
        padded[:, :s] = mask
        packed = np.packbits(padded, axis=1, bitorder="little")  # sensor 0 is bit 0
        return cls(packed.view("<u8").astype(np.uint64, copy=False), s)

    @classmethod
    def nothing(cls, sensors: int) -> Acquired:
        """No row bought anything."""
        return cls(np.zeros((1, words(sensors)), dtype=np.uint64), sensors)

    def rows(self, n: int) -> Acquired:
        """The same for ``n`` rows, also where one row of bits stands for all."""
        return Acquired(np.broadcast_to(self.bits, (n, self.bits.shape[1])), self.sensors)

    def unpack(self) -> NDArray[np.bool_]:
        """As a boolean mask (n, s) or (1, s)."""
        unpacked = np.unpackbits(self._bytes(), axis=1, bitorder="little")
        return unpacked[:, : self.sensors].astype(bool)

    def cost(self, price: FloatArray) -> FloatArray:
        """Sum of the prices (s,) of the bought sensors, shape (n,) or (1,).

        Bytes are looked up in tables of sums and added in order, so a row's cost does not depend on
        the block it stands in.
        """
        raw = self._bytes()
        total = np.zeros(len(raw))
        for byte, sums in zip(raw.T, _byte_sums(np.asarray(price, float).tobytes()), strict=False):
            total += sums[byte]
        return total

    def _bytes(self) -> NDArray[np.uint8]:
        """The bits as bytes (n, 8 w), the first sensor's first."""
        return np.ascontiguousarray(self.bits).astype("<u8", copy=False).view(np.uint8)


def words(sensors: int) -> int:
    """Number of 64-bit words that hold one bit per sensor (at least 1)."""
    return max(1, -(-sensors // 64))


@lru_cache(maxsize=16)
def _byte_sums(price: bytes) -> FloatArray:
    """The price of each value of each byte of a row, (bytes, 256)."""
    each = np.frombuffer(price)
    padded = np.zeros(64 * words(len(each)))  # bits beyond the last sensor cost nothing
    padded[: len(each)] = each
    sums = np.zeros((len(padded) // 8, 256))
    for bit, value in enumerate(padded.reshape(-1, 8).T):
        sums[:, 1 << bit : 2 << bit] = sums[:, : 1 << bit] + value[:, None]
    return sums
