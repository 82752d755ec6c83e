"""Instructions of the processor that numba has no name for."""

import os
import platform
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

if TYPE_CHECKING or config.DISABLE_JIT:
    SHARED: bool = False
    """Whether what follows is safe among threads; as plain Python it is not."""

    def prefetch(array: Any, index: Any) -> None:
        """Fetch array[index] towards the nearest cache; changes nothing that a program can see."""

    def prefetch_early(array: Any, index: Any) -> None:
        """As ``prefetch``, towards the second cache."""

    def add_pair(table: Any, at: Any, v: Any, h: Any) -> None:
        """Add v to table[at] and h to table[at + 1]."""
        table[at] += v
        table[at + np.uint64(1)] += h

    def load(array: Any, index: Any) -> Any:
        """array[index], and all that was written before it was stored."""
        return array[index]

    def store(array: Any, index: Any, value: Any) -> None:
        """Set array[index] for other threads, after all that was written before."""
        array[index] = value

    def exchange(array: Any, index: Any, old: Any, new: Any) -> bool:
        """Set array[index] to the new value if it has the old one; whether it had."""
        same = array[index] == old
        if same:
            array[index] = new
        return bool(same)

    def increment(array: Any, index: Any) -> None:
        """Add 1 to array[index], whoever else does."""
        array[index] += 1

    def pause() -> None:
        """Wait a moment, for which the processor need not hurry."""

    def give_way() -> None:
        """Let other threads run, where the system knows such a call."""

else:
    from llvmlite import ir

    SHARED = True

    def _place(context: Any, builder: Any, signature: Any, arguments: Any, kind: Any) -> Any:
        """A pointer of that kind to the item of the first argument that the second one numbers."""
        array = signature.args[0]
        view = context.make_array(array)(context, builder, arguments[0])
        item = cgutils.get_item_pointer(
            context, builder, array, view, [arguments[1]], wraparound=False
        )
        return builder.bitcast(item, kind.as_pointer())

    def _fetching(kept: int) -> Any:
        """A request for array[index] that is kept in every cache (3), or all but the nearest."""

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
        """Fetch array[index] towards the nearest cache; changes nothing that a program can see."""
        return types.void(array, index), _fetching(3)

    @intrinsic
    def prefetch_early(typing_context: Any, array: Any, index: Any) -> Any:
        """As ``prefetch``, towards the second cache."""
        return types.void(array, index), _fetching(2)

    @intrinsic
    def add_pair(typing_context: Any, table: Any, at: Any, v: Any, h: Any) -> Any:
        """Add v to table[at] and h to table[at + 1] with one load and one store, which the compiler
        does not do by itself: pairs might overlap."""

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

    def _number(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """A pointer to the 64-bit integer of the first argument that the second one numbers."""
        return _place(context, builder, signature, arguments, ir.IntType(64))

    @intrinsic
    def load(typing_context: Any, array: Any, index: Any) -> Any:
        """array[index], and all that was written before it was stored."""

        def generate(context: Any, builder: Any, *call: Any) -> Any:
            return builder.load_atomic(_number(context, builder, *call), "acquire", 8)

        return types.int64(array, index), generate

    @intrinsic
    def store(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
        """Set array[index] for other threads, after all that was written before."""

        def generate(context: Any, builder: Any, *call: Any) -> Any:
            builder.store_atomic(call[1][2], _number(context, builder, *call), "release", 8)
            return context.get_dummy_value()

        return types.void(array, index, types.int64), generate

    @intrinsic
    def exchange(typing_context: Any, array: Any, index: Any, old: Any, new: Any) -> Any:
        """Set array[index] to the new value if it has the old one; whether it had."""

        def generate(context: Any, builder: Any, *call: Any) -> Any:
            place = _number(context, builder, *call)
            done = builder.cmpxchg(place, *call[1][2:], "acq_rel", "acquire")
            return builder.extract_value(done, 1)

        return types.boolean(array, index, types.int64, types.int64), generate

    @intrinsic
    def increment(typing_context: Any, array: Any, index: Any) -> Any:
        """Add 1 to array[index], whoever else does."""

        def generate(context: Any, builder: Any, *call: Any) -> Any:
            place = _number(context, builder, *call)
            builder.atomic_rmw("add", place, ir.IntType(64)(1), "acq_rel")
            return context.get_dummy_value()

        return types.void(array, index), generate

    @intrinsic
    def pause(typing_context: Any) -> Any:
        """Wait a moment, for which the processor need not hurry."""

        def generate(context: Any, builder: Any, *call: Any) -> Any:
            if platform.machine() in ("x86_64", "AMD64"):
                known = ir.FunctionType(ir.VoidType(), [])
                name = "llvm.x86.sse2.pause"
                builder.call(cgutils.get_or_insert_function(builder.module, known, name), [])
            return context.get_dummy_value()

        return types.void(), generate

    @intrinsic
    def give_way(typing_context: Any) -> Any:
        """Let other threads run, where the system knows such a call."""

        def generate(context: Any, builder: Any, *call: Any) -> Any:
            if os.name == "posix":
                known = ir.FunctionType(ir.IntType(32), [])
                builder.call(
                    cgutils.get_or_insert_function(builder.module, known, "sched_yield"), []
                )
            return context.get_dummy_value()

        return types.void(), generate
