"""Operations on 64 rows side by side that numba cannot say, as LLVM's vectors.

A set of 64 rows is a ``uint64``, a column of 64 cells lies together. LLVM picks the instructions
that the machine has. The plain loops beside them compute the same. They are what runs without
compilation and with ``BENCH_PLAIN_KERNELS=1``, should a newer numba not take the hand-written LLVM
any more (numba keeps what it compiled, so with an empty ``NUMBA_CACHE_DIR``).
"""

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types

from bench_core.traversal import llvm

ROWS = 64
SQUARE = 16
"""Columns, and rows, of cells that are transposed at a time."""
_ONE, _I = np.uint64(1), np.uint64


@llvm.intrinsic
def above(typingctx: Any, rows: Any, k: Any, cells: Any, at: Any, threshold: Any) -> Any:
    """Set ``rows[k]`` to the rows r whose ``cells[at + r]`` is above the threshold."""
    signature = types.void(rows, types.int64, cells, types.int64, types.float32)
    return signature, _comparing(False)


@llvm.intrinsic
def above_or_missing(typingctx: Any, rows: Any, k: Any, cells: Any, at: Any, threshold: Any) -> Any:
    """Set ``rows[k]`` to the rows r whose ``cells[at + r]`` is above the threshold or missing."""
    signature = types.void(rows, types.int64, cells, types.int64, types.float32)
    return signature, _comparing(True)


def _comparing(missing: bool) -> Any:
    """In four parts, which one register holds each; their bits go to memory together with AVX-512,
    else by themselves."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        word = builder.gep(llvm.data(context, builder, sig, args, 0), [args[1]])
        parts = builder.bitcast(word, ir.PointerType(llvm.HALF))
        cells = llvm.data(context, builder, sig, args, 2)
        compare = builder.fcmp_unordered if missing else builder.fcmp_ordered
        if llvm.has(context, "avx512bw"):
            limit = llvm.spread(builder, args[4], ROWS)
            some = llvm.load(builder, cells, args[3], limit.type, 4)
            builder.store(builder.bitcast(compare(">", some, limit), llvm.WORD), word)
            return context.get_dummy_value()
        limit = llvm.spread(builder, args[4], 16)
        for part in range(4):
            place = builder.add(args[3], llvm.WORD(16 * part))
            some = llvm.load(builder, cells, place, limit.type, 4)
            bits = builder.bitcast(compare(">", some, limit), llvm.HALF)
            builder.store(bits, builder.gep(parts, [llvm.WORD(part)]))
        return context.get_dummy_value()

    return generate


@llvm.intrinsic
def number(typingctx: Any, leaf: Any, sets: Any, marks: Any, at: Any, count: Any) -> Any:
    """Set ``leaf[r]`` to ``marks[at + 4 * i]`` of the last of ``count`` splits i at which row r
    turns right, which ``sets[2 * i + 1]`` says, else 0: uint8 (64,), uint64 and uint8.

    The marks of 64 rows stay in a register, which a store for every split would take longer.
    """
    return types.void(leaf, sets, marks, types.int64, types.int64), _numbering(1)


@llvm.intrinsic
def number_few(typingctx: Any, leaf: Any, sets: Any, marks: Any, at: Any, count: Any) -> Any:
    """``number`` of a tree whose marks are below 256: on a row's way they rise, so the last is the
    largest. Four registers, since each waits for the split before."""
    return types.void(leaf, sets, marks, types.int64, types.int64), _numbering(4)


def _numbering(chains: int) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        into, turns, first = (llvm.data(context, builder, sig, args, k) for k in range(3))
        flags, none = ir.VectorType(llvm.BIT, ROWS), llvm.spread(builder, llvm.BYTE(0), ROWS)
        last = [llvm.cgutils.alloca_once_value(builder, none) for _ in range(chains)]

        def pass_split(split: Any, own: Any) -> None:
            turn = builder.gep(turns, [builder.add(builder.shl(split, llvm.WORD(1)), llvm.WORD(1))])
            rows = builder.bitcast(builder.load(turn), flags)
            mark = builder.gep(first, [builder.add(args[3], builder.shl(split, llvm.WORD(2)))])
            spread = llvm.spread(builder, builder.load(mark), ROWS)
            builder.store(builder.select(rows, spread, builder.load(own)), own)

        rounds = builder.sdiv(args[4], llvm.WORD(chains))
        with llvm.cgutils.for_range(builder, rounds) as loop:
            for chain, own in enumerate(last):
                split = builder.mul(loop.index, llvm.WORD(chains))
                pass_split(builder.add(split, llvm.WORD(chain)), own)
        done = builder.mul(rounds, llvm.WORD(chains))
        with llvm.cgutils.for_range(builder, builder.sub(args[4], done)) as loop:
            pass_split(builder.add(done, loop.index), last[0])
        found = builder.load(last[0])
        for other in map(builder.load, last[1:]):
            found = builder.select(builder.icmp_unsigned(">", other, found), other, found)
        llvm.store(builder, found, into, llvm.WORD(0), 1)
        return context.get_dummy_value()

    return generate


@llvm.intrinsic
def turn_cells(
    typingctx: Any, cells: Any, r: Any, X: Any, picked: Any, column: Any, places: Any, at: Any
) -> Any:
    """Copy 16 columns from ``column`` of the rows ``picked[r : r + 16]`` of ``X`` (n, d):
    column j to ``cells[64 * places[at + j] + r :]``."""
    integer = types.int64
    signature = types.void(cells, integer, X, picked, integer, places, integer)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        into, rows, places = (llvm.data(context, builder, sig, args, k) for k in (0, 3, 5))
        X = context.make_array(sig.args[2])(context, builder, args[2])
        width = builder.extract_value(X.shape, 1)
        lines = []
        for i in range(SQUARE):
            row = builder.load(builder.gep(rows, [builder.add(args[1], llvm.WORD(i))]))
            place = builder.add(builder.mul(row, width), args[4])
            lines.append(llvm.load(builder, X.data, place, ir.VectorType(llvm.FLOAT, SQUARE), 4))
        for j, column in enumerate(_turned(builder, lines)):
            place = builder.load(builder.gep(places, [builder.add(args[6], llvm.WORD(j))]))
            place = builder.shl(builder.zext(place, llvm.WORD), llvm.WORD(6))
            llvm.store(builder, column, into, builder.add(place, args[1]), 4)
        return context.get_dummy_value()

    return signature, generate


def _turned(builder: Any, lines: list[Any]) -> list[Any]:
    """The columns of a square of cells: halves of ever smaller blocks change places."""
    for apart in (8, 4, 2, 1):
        own = [k if not k & apart else 16 + k - apart for k in range(SQUARE)]
        other = [k + apart if not k & apart else 16 + k for k in range(SQUARE)]
        for k in range(SQUARE):
            if not k & apart:
                pair = lines[k], lines[k + apart]
                lines[k] = builder.shuffle_vector(*pair, llvm.places(own))
                lines[k + apart] = builder.shuffle_vector(*pair, llvm.places(other))
    return lines


@llvm.intrinsic
def transpose(typingctx: Any, squares: Any, at: Any) -> Any:
    """Turn ``squares[at : at + 64]``, a square of bits, about its diagonal: bit j of word i to
    bit i of word j.

    Ever smaller off-diagonal blocks change places: those of 32, 16 and 8 rows between vectors of
    eight words; the eight by eight bits of each last block are brought into one word and back.
    """
    signature = types.void(squares, types.int64)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        eight, data = ir.VectorType(llvm.WORD, 8), llvm.data(context, builder, sig, args, 0)
        first = llvm.at(builder, data, args[1], eight)
        places = [builder.gep(first, [llvm.INT(k)]) for k in range(8)]
        parts = [builder.load(place) for place in places]
        for part in parts:
            part.align = 8
        for apart, shift, low in ((4, 32, 0xFFFFFFFF), (2, 16, 0xFFFF0000FFFF), (1, 8, _EIGHTS)):
            for k in range(8):
                if not k & apart:
                    pair = parts[k], parts[k + apart]
                    parts[k], parts[k + apart] = _swapped(builder, *pair, shift, low)
        for place, part in zip(places, parts, strict=True):
            builder.store(_turned_blocks(builder, part), place).align = 8
        return context.get_dummy_value()

    return signature, generate


_EIGHTS = 0x00FF00FF00FF00FF


def _all_eight(value: int) -> Any:
    return ir.Constant(ir.VectorType(llvm.WORD, 8), [value] * 8)


def _swapped(builder: Any, one: Any, other: Any, shift: int, low: int) -> tuple[Any, Any]:
    """The high bits of ``one`` change places with the ``low`` bits of ``other``."""
    moved = builder.xor(builder.lshr(one, _all_eight(shift)), other)
    moved = builder.and_(moved, _all_eight(low))
    return builder.xor(one, builder.shl(moved, _all_eight(shift))), builder.xor(other, moved)


def _turned_blocks(builder: Any, words: Any) -> Any:
    """Eight words by eight bytes are eight blocks of eight by eight bits; each is turned."""
    words = _turned_bytes(builder, words)
    for shift, low in ((28, 0xF0F0F0F0), (14, 0xCCCC0000CCCC), (7, 0x00AA00AA00AA00AA)):
        moved = builder.xor(words, builder.lshr(words, _all_eight(shift)))
        moved = builder.and_(moved, _all_eight(low))
        words = builder.xor(builder.xor(words, moved), builder.shl(moved, _all_eight(shift)))
    return _turned_bytes(builder, words)


def _turned_bytes(builder: Any, words: Any) -> Any:
    """Byte j of word i to byte i of word j."""
    order = [8 * (b % 8) + b // 8 for b in range(64)]
    flat = builder.bitcast(words, ir.VectorType(llvm.BYTE, 64))
    flat = builder.shuffle_vector(flat, flat, llvm.places(order))
    return builder.bitcast(flat, words.type)


@llvm.intrinsic
def add_prices(typingctx: Any, total: Any, paid: Any, prices: Any, groups: Any) -> Any:
    """Set ``total[r]`` to the sum of the ``prices[k]`` that row r has paid, which ``paid[k]`` says:
    float64 (64,), uint64 and float64. Summed by themselves are the k from ``groups[g, 0]`` to
    ``groups[g, 1]``, and the sums of the groups to the next whose ``groups[g, 2]`` is not 0: int64.

    Sums of 32 rows stay in registers.
    """
    signature = types.void(total, paid, prices, groups)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        into, paid, prices, groups = (llvm.data(context, builder, sig, args, k) for k in range(4))
        count = builder.extract_value(
            context.make_array(sig.args[3])(context, builder, args[3]).shape, 0
        )
        eight, flags = ir.VectorType(llvm.DOUBLE, 8), ir.VectorType(llvm.BIT, 8)
        zero, none = (ir.Constant(eight, [value] * 8) for value in (0.0, -0.0))
        sums, words, parts = (
            [llvm.cgutils.alloca_once_value(builder, zero) for _ in range(4)] for _ in range(3)
        )

        def clear(those: Any) -> None:
            for one in those:
                builder.store(zero, one)

        def add(those: Any, to: Any) -> None:
            for one, other in zip(those, to, strict=True):
                builder.store(builder.fadd(builder.load(other), builder.load(one)), other)
            clear(those)

        with llvm.cgutils.for_range(builder, llvm.WORD(2)) as half:
            clear(sums)
            with llvm.cgutils.for_range(builder, count) as group:
                at = builder.mul(group.index, llvm.WORD(3))
                first, stop, ends = (
                    builder.load(builder.gep(groups, [builder.add(at, llvm.WORD(k))]))
                    for k in range(3)
                )
                with llvm.cgutils.for_range(builder, stop, start=first) as loop:
                    rows = builder.load(builder.gep(paid, [loop.index]))
                    rows = builder.lshr(rows, builder.shl(half.index, llvm.WORD(5)))
                    price = builder.load(builder.gep(prices, [loop.index]))
                    price = llvm.spread(builder, price, 8)
                    for k, part in enumerate(parts):
                        some = builder.trunc(builder.lshr(rows, llvm.WORD(8 * k)), llvm.BYTE)
                        found = builder.select(builder.bitcast(some, flags), price, none)
                        builder.store(builder.fadd(builder.load(part), found), part)
                add(parts, words)
                with builder.if_then(builder.icmp_signed("!=", ends, llvm.WORD(0))):
                    add(words, sums)
            for k, own in enumerate(sums):
                place = builder.add(builder.shl(half.index, llvm.WORD(5)), llvm.WORD(8 * k))
                llvm.store(builder, builder.load(own), into, place, 8)
        return context.get_dummy_value()

    return signature, generate


def _plainly_above(rows: Any, k: int, cells: Any, at: int, threshold: float) -> None:
    rows[k] = 0
    for r in range(ROWS):
        rows[k] |= _I(cells[np.int64(at) + r] > threshold) << _I(r)


def _plainly_above_or_missing(rows: Any, k: int, cells: Any, at: int, threshold: float) -> None:
    rows[k] = 0
    for r in range(ROWS):
        rows[k] |= _I(not cells[np.int64(at) + r] <= threshold) << _I(r)


def _plainly_number(leaf: Any, sets: Any, marks: Any, at: int, count: int) -> None:
    leaf[:] = 0
    for i in range(count):
        for r in range(ROWS):
            if sets[2 * i + 1] >> _I(r) & _ONE:
                leaf[r] = marks[at + 4 * i]


def _plainly_turn_cells(
    cells: Any, r: int, X: Any, picked: Any, column: int, places: Any, at: int
) -> None:
    for i in range(r, r + SQUARE):
        for j in range(SQUARE):
            cells[ROWS * places[at + j] + i] = X[picked[i], column + j]


def _plainly_transpose(squares: Any, at: int) -> None:
    before = squares[at : at + ROWS].copy()
    squares[at : at + ROWS] = 0
    for i in range(ROWS):
        for j in range(ROWS):
            squares[at + j] |= (before[i] >> _I(j) & _ONE) << _I(i)


def _plainly_add_prices(total: Any, paid: Any, prices: Any, groups: Any) -> None:
    for r in range(ROWS):
        total[r] = word = 0.0
        for g in range(len(groups)):
            part = 0.0
            for k in range(groups[g, 0], groups[g, 1]):
                part += prices[k] if paid[k] >> _I(r) & _ONE else 0.0
            word += part
            if groups[g, 2]:
                total[r] += word
                word = 0.0


if llvm.PLAIN:
    above, above_or_missing = njit(_plainly_above), njit(_plainly_above_or_missing)
    number = number_few = njit(_plainly_number)
    turn_cells, transpose = njit(_plainly_turn_cells), njit(_plainly_transpose)
    add_prices = njit(_plainly_add_prices)
