"""Asking for memory ahead of its use.

Rows of a small leaf lie far apart, so that neither the processor's own prefetching nor its
window of instructions hides the way to memory; a request some rows ahead does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

AHEAD = 128  # rows: about as many requests as memory answers while their adds are done

if TYPE_CHECKING or config.DISABLE_JIT:

    def prefetch(array: Any, index: Any) -> None:
        """Fetch array[index] towards the cache; changes nothing that a program can see."""

else:
    from llvmlite import ir

    @intrinsic
    def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
        """Fetch array[index] towards the cache; changes nothing that a program can see."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = signature.args[0]
            view = context.make_array(kind)(context, builder, arguments[0])
            place = cgutils.get_item_pointer(
                context, builder, kind, view, [arguments[1]], wraparound=False
            )
            byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
            call = cgutils.get_or_insert_function(
                builder.module,
                ir.FunctionType(ir.VoidType(), [byte, number, number, number]),
                "llvm.prefetch.p0i8",
            )
            # for reading, to be kept in every level, data
            builder.call(call, [builder.bitcast(place, byte), number(0), number(3), number(1)])
            return context.get_dummy_value()

        return types.void(array, index), generate
