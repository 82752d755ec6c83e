"""Sixty-four rows in one machine word.

A set of rows of a tile of 64 is a ``uint64``: bit r stands for row r. Comparing a whole column
of the tile with a threshold is a handful of vector instructions when it is written as one
vector comparison (LLVM picks what the machine has); the same loop in plain numba is 10 to 15
times slower, because its result would have to be packed bit by bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

LANES = 64
_intrinsic: Any = intrinsic


@_intrinsic
def above(typingctx: Any, tile: Any, at: Any, threshold: Any, missing_left: Any) -> Any:
    """The rows r whose ``tile[at + r]`` goes right: above the threshold, or missing if so told."""
    signature = types.uint64(tile, types.int64, types.float32, types.boolean)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        vector = ir.VectorType(ir.FloatType(), LANES)
        place = builder.bitcast(builder.gep(data, [args[1]]), ir.PointerType(vector))
        column = builder.load(place)
        column.align = 4
        unset = ir.Constant(vector, ir.Undefined)
        index = ir.IntType(32)
        single = builder.insert_element(unset, args[2], ir.Constant(index, 0))
        spread = ir.Constant(ir.VectorType(index, LANES), [0] * LANES)
        limit = builder.shuffle_vector(single, unset, spread)
        word = ir.IntType(LANES)
        ordered = builder.bitcast(builder.fcmp_ordered(">", column, limit), word)
        unordered = builder.bitcast(builder.fcmp_unordered(">", column, limit), word)
        return builder.select(args[3], ordered, unordered)

    return signature, generate


@_intrinsic
def lowest(typingctx: Any, rows: Any) -> Any:
    """The smallest member of a set of rows that is not empty."""
    signature = types.int64(types.uint64)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return signature, generate


@njit(cache=True, nogil=True)
def transpose(square: Any) -> None:
    """Turn uint64 (64,), a square of bits, about its diagonal: bit j of word i to bit i of word j.

    Swaps ever smaller off-diagonal blocks; sizes are constants so that each round is unrolled.
    """
    _swap(square, 32, np.uint64(0x00000000FFFFFFFF))
    _swap(square, 16, np.uint64(0x0000FFFF0000FFFF))
    _swap(square, 8, np.uint64(0x00FF00FF00FF00FF))
    _swap(square, 4, np.uint64(0x0F0F0F0F0F0F0F0F))
    _swap(square, 2, np.uint64(0x3333333333333333))
    _swap(square, 1, np.uint64(0x5555555555555555))


@njit(cache=True, nogil=True)
def _swap(square: Any, size: int, low: Any) -> None:
    shift = np.uint64(size)
    for start in range(0, LANES, 2 * size):
        for i in range(start, start + size):
            swap = ((square[i] >> shift) ^ square[i + size]) & low
            square[i] ^= swap << shift
            square[i + size] ^= swap
