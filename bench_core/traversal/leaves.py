"""What the leaves say that 64 rows came to, as LLVM's vectors; see ``vectors``.

Of ``add_leaves`` there is a way with tables in registers, for AVX-512; of ``add_bytes`` one for
AVX2 and one for processors that look up 64 bytes at once.
"""

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types

from bench_core.traversal import llvm, vectors

TABLE = 64
"""The most leaves of a tree that is looked up."""


@llvm.intrinsic
def add_leaves(
    typingctx: Any, sums: Any, place: Any, leaf: Any, count: Any, table: Any, at: Any, weight: Any
) -> Any:
    """Add ``table[at + leaf[r]] * weight`` to ``sums[place + r]``: float64, uint8 (64,), float64. A
    leaf is below ``count``, which is at most 64."""
    integer = types.int64
    signature = types.void(sums, integer, leaf, integer, table, integer, types.float64)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        into, leaves, table = (llvm.data(context, builder, sig, args, k) for k in (0, 2, 4))
        weight, eight = llvm.spread(builder, args[6], 8), ir.VectorType(llvm.DOUBLE, 8)
        enough = [builder.icmp_signed("<=", args[3], llvm.WORD(n)) for n in (16, 32)]

        def one_by_one() -> None:
            with llvm.cgutils.for_range(builder, llvm.WORD(vectors.ROWS)) as loop:
                which = builder.zext(builder.load(builder.gep(leaves, [loop.index])), llvm.WORD)
                found = builder.load(builder.gep(table, [builder.add(args[5], which)]))
                own = builder.gep(into, [builder.add(args[1], loop.index)])
                found = builder.fmul(found, args[6])
                builder.store(builder.fadd(builder.load(own), found), own)

        def look_up(parts: int) -> None:
            tables = []
            for part in range(2 * parts):
                some = _load_few(builder, table, args[5], args[3], 8 * part)
                tables.append(builder.fmul(some, weight))
            with llvm.cgutils.for_range(builder, llvm.WORD(8)) as loop:
                first = builder.shl(loop.index, llvm.WORD(3))
                which = llvm.load(builder, leaves, first, ir.VectorType(llvm.BYTE, 8), 1)
                which = builder.zext(which, ir.VectorType(llvm.WORD, 8))
                found = _permute(builder, tables[0], which, tables[1])
                for part in range(1, parts):
                    beyond = builder.icmp_unsigned(
                        ">=", which, llvm.spread(builder, llvm.WORD(16 * part), 8)
                    )
                    other = _permute(builder, tables[2 * part], which, tables[2 * part + 1])
                    found = builder.select(beyond, other, found)
                own = builder.add(args[1], first)
                before = llvm.load(builder, into, own, eight, 8)
                llvm.store(builder, builder.fadd(before, found), into, own, 8)

        if not llvm.has(context, "avx512f"):
            one_by_one()
            return context.get_dummy_value()
        with builder.if_else(enough[0]) as (few, more):
            with few:
                look_up(1)
            with more, builder.if_else(enough[1]) as (some, many):
                with some:
                    look_up(2)
                with many:
                    look_up(4)
        return context.get_dummy_value()

    return signature, generate


def _load_few(builder: Any, table: Any, at: Any, count: Any, first: int) -> Any:
    """``table[at + first : at + first + 8]``, where it has no more than ``count`` from ``at``."""
    eight, numbers = ir.VectorType(llvm.DOUBLE, 8), ir.VectorType(llvm.WORD, 8)
    there = ir.Constant(numbers, list(range(first, first + 8)))
    there = builder.icmp_unsigned("<", there, llvm.spread(builder, count, 8))
    pointer = llvm.at(builder, table, builder.add(at, llvm.WORD(first)), eight)
    kind = ir.FunctionType(eight, [pointer.type, llvm.INT, there.type, eight])
    call = llvm.cgutils.get_or_insert_function(
        builder.module, kind, "llvm.masked.load.v8f64.p0v8f64"
    )
    return builder.call(call, [pointer, llvm.INT(8), there, ir.Constant(eight, [0.0] * 8)])


def _permute(builder: Any, low: Any, which: Any, high: Any) -> Any:
    """Of sixteen doubles in two registers those whose numbers are given."""
    kind = ir.FunctionType(low.type, [low.type, which.type, high.type])
    name = "llvm.x86.avx512.vpermi2var.pd.512"
    return builder.call(
        llvm.cgutils.get_or_insert_function(builder.module, kind, name), [low, which, high]
    )


@llvm.intrinsic
def add_bytes(typingctx: Any, sums: Any, leaf: Any, count: Any, table: Any, at: Any) -> Any:
    """Add ``table[at + leaf[r]]`` to ``sums[r]``: uint16 (64,), uint8 (64,) and uint8, 64 of which
    are there from ``at`` on. A leaf is below ``count``, which is at most 64."""
    signature = types.void(sums, leaf, types.int64, table, types.int64)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        into, leaves, table = (llvm.data(context, builder, sig, args, k) for k in (0, 1, 3))

        def one_by_one() -> None:
            with llvm.cgutils.for_range(builder, llvm.WORD(vectors.ROWS)) as loop:
                which = builder.load(builder.gep(leaves, [loop.index]))
                which = builder.add(args[4], builder.zext(which, llvm.WORD))
                value = builder.zext(builder.load(builder.gep(table, [which])), llvm.HALF)
                own = builder.gep(into, [loop.index])
                builder.store(builder.add(builder.load(own), value), own)

        def add(value: Any, r: int) -> None:
            value = builder.zext(value, ir.VectorType(llvm.HALF, value.type.count))
            before = llvm.load(builder, into, llvm.WORD(r), value.type, 2)
            llvm.store(builder, builder.add(before, value), into, llvm.WORD(r), 2)

        def in_one_register() -> None:
            whole = ir.VectorType(llvm.BYTE, 64)
            own = llvm.load(builder, table, args[4], whole, 1)
            which = llvm.load(builder, leaves, llvm.WORD(0), whole, 1)
            kind = ir.FunctionType(whole, [whole, whole])
            name = "llvm.x86.avx512.permvar.qi.512"
            call = llvm.cgutils.get_or_insert_function(builder.module, kind, name)
            add(builder.call(call, [own, which]), 0)

        def in_registers(parts: int) -> None:
            half = ir.VectorType(llvm.BYTE, 32)
            for r in (0, 32):
                which = llvm.load(builder, leaves, llvm.WORD(r), half, 1)
                value = ir.Constant(half, [0] * 32)
                for part in range(parts):
                    own = _sixteen(builder, table, builder.add(args[4], llvm.WORD(16 * part)))
                    value = builder.or_(value, _looked_up(builder, own, which, 16 * part))
                add(value, r)

        if llvm.has(context, "avx512vbmi"):
            in_one_register()
            return context.get_dummy_value()
        if not llvm.has(context, "avx2"):
            one_by_one()
            return context.get_dummy_value()
        few = builder.icmp_signed("<=", args[2], llvm.WORD(16))
        with builder.if_else(few) as (then, other):
            with then:
                in_registers(1)
            with other:
                in_registers(4)
        return context.get_dummy_value()

    return signature, generate


def _sixteen(builder: Any, table: Any, at: Any) -> Any:
    """Sixteen bytes from ``at`` on, twice."""
    own = llvm.load(builder, table, at, ir.VectorType(llvm.BYTE, 16), 1)
    return builder.shuffle_vector(own, own, llvm.places([*range(16)] * 2))


def _looked_up(builder: Any, table: Any, which: Any, first: int) -> Any:
    """Of sixteen bytes those whose numbers are ``first`` or more; 0 for numbers of others, which
    are below 64: the processor looks no number up whose highest bit is set."""
    kind = table.type
    own = builder.xor(which, ir.Constant(kind, [first] * 32))
    others = builder.icmp_unsigned(">", own, ir.Constant(kind, [15] * 32))
    own = builder.or_(own, builder.sext(others, kind))
    name, function = "llvm.x86.avx2.pshuf.b", ir.FunctionType(kind, [kind, kind])
    call = llvm.cgutils.get_or_insert_function(builder.module, function, name)
    return builder.call(call, [table, own])


def _plainly_add_leaves(
    sums: Any, place: int, leaf: Any, count: int, table: Any, at: int, weight: float
) -> None:
    for r in range(vectors.ROWS):
        sums[place + r] += table[at + leaf[r]] * weight


def _plainly_add_bytes(sums: Any, leaf: Any, count: int, table: Any, at: int) -> None:
    for r in range(vectors.ROWS):
        total = np.uint32(sums[r]) + np.uint32(table[at + leaf[r]])
        sums[r] = np.uint16(total & np.uint32(0xFFFF))  # as vectors add: 65535 is followed by 0


if llvm.PLAIN:
    add_leaves, add_bytes = njit(_plainly_add_leaves), njit(_plainly_add_bytes)
