"""Parts of hand-written LLVM: types, and vectors read from arrays and written to them."""

import os
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import config
from numba.core import cgutils as _cgutils
from numba.extending import intrinsic as _intrinsic

_config: Any = config  # whose types lack what is used
cgutils: Any = _cgutils
intrinsic: Any = _intrinsic
PLAIN = bool(_config.DISABLE_JIT or os.environ.get("BENCH_PLAIN_KERNELS"))
"""Whether plain loops are to run instead."""
BIT, BYTE, HALF, INT, WORD = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
FLOAT, DOUBLE = ir.FloatType(), ir.DoubleType()


def has(context: Any, feature: str) -> bool:
    """Whether code is made for a processor with this feature."""
    return f"+{feature}" in str(context.codegen().magic_tuple()[2]).split(",")


def data(context: Any, builder: Any, sig: Any, args: Any, which: int) -> Any:
    """A pointer to the elements of the array that is an intrinsic's argument."""
    return context.make_array(sig.args[which])(context, builder, args[which]).data


def at(builder: Any, data: Any, place: Any, kind: Any) -> Any:
    """A pointer to a vector that begins at ``data[place]``."""
    return builder.bitcast(builder.gep(data, [place]), ir.PointerType(kind))


def load(builder: Any, data: Any, place: Any, kind: Any, align: int) -> Any:
    """A vector of this kind that begins at ``data[place]``."""
    found = builder.load(at(builder, data, place, kind))
    found.align = align
    return found


def store(builder: Any, value: Any, data: Any, place: Any, align: int) -> None:
    """Write a vector from ``data[place]`` on."""
    builder.store(value, at(builder, data, place, value.type)).align = align


def spread(builder: Any, value: Any, count: int) -> Any:
    """``count`` times the same."""
    unset = ir.Constant(ir.VectorType(value.type, count), ir.Undefined)
    single = builder.insert_element(unset, value, INT(0))
    return builder.shuffle_vector(single, unset, places([0] * count))


def places(numbers: list[int]) -> Any:
    """Which elements a vector is shuffled from."""
    return ir.Constant(ir.VectorType(INT, len(numbers)), numbers)
