"""Five processor instructions and a system call that numba lacks.

Slowdowns of a tree on one thread without them (100000 rows of 136 and of 519 columns, AMD EPYC):
1.2 to 2.0 times as long without any ``prefetch``, 1.1 to 1.3 times without ``prefetch_early``, and
with hessians 1.2 times with two adds in place of ``add_pair``.
"""

import sys
import time
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

if TYPE_CHECKING or config.DISABLE_JIT:

    def prefetch(array: Any, index: Any) -> None:
        """Fetch array[index] towards the nearest cache; no visible effect."""

    def prefetch_early(array: Any, index: Any) -> None:
        """Like ``prefetch``, towards the second cache."""

    def add_pair(table: Any, at: Any, v: Any, h: Any) -> None:
        """Add v to table[at] and h to table[at + 1]."""
        table[at] += v
        table[at + np.uint64(1)] += h

    _lock = Lock()

    def add_at_once(array: Any, index: Any, value: Any) -> Any:
        """Add to array[index] and return the previous value. Atomic."""
        with _lock:
            array[index] += value
            return array[index] - value

    def write_at_once(array: Any, index: Any, value: Any) -> None:
        """Write to array[index]. Atomic."""
        with _lock:
            array[index] = value

    def give_way() -> None:
        """Yield the processor to another thread."""
        time.sleep(0)

else:
    from llvmlite import ir

    def _place(context: Any, builder: Any, signature: Any, arguments: Any, kind: Any) -> Any:
        """A pointer of that kind to the item of the first argument numbered by the second."""
        array = signature.args[0]
        view = context.make_array(array)(context, builder, arguments[0])
        item = cgutils.get_item_pointer(
            context, builder, array, view, [arguments[1]], wraparound=False
        )
        return builder.bitcast(item, kind.as_pointer())

    def _fetching(kept: int) -> Any:
        """A request for array[index], kept in every cache (3), or all but the nearest."""

        def generate(context: Any, builder: Any, *call: Any) -> Any:
            byte, number = ir.IntType(8), ir.IntType(32)
            wanted = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), number, number, number])
            fetch = cgutils.get_or_insert_function(builder.module, wanted, "llvm.prefetch.p0i8")
            place = _place(context, builder, *call, byte)
            # for reading, and of data
            builder.call(fetch, [place, number(0), number(kept), number(1)])
            return context.get_dummy_value()

        return generate

    @intrinsic
    def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
        """Fetch array[index] towards the nearest cache; no visible effect."""
        return types.void(array, index), _fetching(3)

    @intrinsic
    def prefetch_early(typing_context: Any, array: Any, index: Any) -> Any:
        """Like ``prefetch``, towards the second cache."""
        return types.void(array, index), _fetching(2)

    @intrinsic
    def add_pair(typing_context: Any, table: Any, at: Any, v: Any, h: Any) -> Any:
        """Add v to table[at] and h to table[at + 1] with one load and one store; the compiler does
        not do so, as pairs might overlap."""

        def generate(context: Any, builder: Any, *call: Any) -> Any:
            pair = ir.VectorType(ir.IntType(64), 2)
            place = _place(context, builder, *call, pair)
            both = ir.Constant(pair, ir.Undefined)
            for lane, value in enumerate(call[1][2:]):
                both = builder.insert_element(both, value, ir.IntType(32)(lane))
            sums = builder.load(place, align=8)
            builder.store(builder.add(sums, both), place, align=8)
            return context.get_dummy_value()

        return types.void(table, at, v, h), generate

    def _updating(operation: str) -> Any:
        """An atomic change of array[index], after which all threads see earlier writes."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            place = _place(context, builder, signature, arguments, ir.IntType(64))
            value = context.cast(builder, arguments[2], signature.args[2], types.int64)
            return builder.atomic_rmw(operation, place, value, "seq_cst")

        return generate

    @intrinsic
    def add_at_once(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
        """Add to array[index] and return the previous value. Atomic."""
        return types.int64(array, index, value), _updating("add")

    @intrinsic
    def write_at_once(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
        """Write to array[index] and return the previous value. Atomic."""
        return types.int64(array, index, value), _updating("xchg")

    @intrinsic
    def give_way(typing_context: Any) -> Any:
        """Yield the processor to another thread, if the system has a call for it."""

        def generate(context: Any, builder: Any, *call: Any) -> Any:
            if sys.platform != "win32":
                kind = ir.FunctionType(ir.IntType(32), [])
                builder.call(
                    cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), []
                )
            return context.get_dummy_value()

        return types.void(), generate
