"""Operations on 64 rows side by side that numba cannot say, as LLVM's vectors.

A set of 64 rows is a ``uint64``, a column of 64 cells lies together. LLVM picks the instructions
that the machine has; of ``add_leaves`` there is a way with tables in registers, for AVX-512. The
plain loops beside them compute the same. They are what runs without compilation and with
``BENCH_PLAIN_KERNELS=1``, should a newer numba not take the hand-written LLVM any more (numba keeps
what it compiled, so with an empty ``NUMBA_CACHE_DIR``).
"""

import os
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

ROWS = 64
SQUARE = 16
"""Columns, and rows, of cells that are transposed at a time."""
TABLE = 64
"""The most leaves of a tree that ``add_leaves`` takes."""
_ONE, _I = np.uint64(1), np.uint64
_intrinsic: Any = intrinsic
_config: Any = config
_cgutils: Any = cgutils
PLAIN = bool(_config.DISABLE_JIT or os.environ.get("BENCH_PLAIN_KERNELS"))
_BIT, _BYTE, _HALF, _INT, _WORD = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
_FLOAT, _DOUBLE = ir.FloatType(), ir.DoubleType()


def _data(context: Any, builder: Any, sig: Any, args: Any, which: int) -> Any:
    return context.make_array(sig.args[which])(context, builder, args[which]).data


def _at(builder: Any, data: Any, place: Any, kind: Any) -> Any:
    """A pointer to a vector that begins at ``data[place]``."""
    return builder.bitcast(builder.gep(data, [place]), ir.PointerType(kind))


def _load(builder: Any, data: Any, place: Any, kind: Any, align: int) -> Any:
    found = builder.load(_at(builder, data, place, kind))
    found.align = align
    return found


def _store(builder: Any, value: Any, data: Any, place: Any, align: int) -> None:
    builder.store(value, _at(builder, data, place, value.type)).align = align


def _spread(builder: Any, value: Any, count: int) -> Any:
    """``count`` times the same."""
    unset = ir.Constant(ir.VectorType(value.type, count), ir.Undefined)
    single = builder.insert_element(unset, value, _INT(0))
    return builder.shuffle_vector(single, unset, _places([0] * count))


def _places(numbers: list[int]) -> Any:
    return ir.Constant(ir.VectorType(_INT, len(numbers)), numbers)


@_intrinsic
def above(typingctx: Any, rows: Any, k: Any, cells: Any, at: Any, threshold: Any) -> Any:
    """Set ``rows[k]`` to the rows r whose ``cells[at + r]`` is above the threshold."""
    signature = types.void(rows, types.int64, cells, types.int64, types.float32)
    return signature, _comparing(False)


@_intrinsic
def above_or_missing(typingctx: Any, rows: Any, k: Any, cells: Any, at: Any, threshold: Any) -> Any:
    """Set ``rows[k]`` to the rows r whose ``cells[at + r]`` is above the threshold or missing."""
    signature = types.void(rows, types.int64, cells, types.int64, types.float32)
    return signature, _comparing(True)


def _comparing(missing: bool) -> Any:
    """In four parts, which one register holds each; their bits go to memory by themselves."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        word = builder.gep(_data(context, builder, sig, args, 0), [args[1]])
        parts = builder.bitcast(word, ir.PointerType(_HALF))
        cells = _data(context, builder, sig, args, 2)
        limit = _spread(builder, args[4], 16)
        compare = builder.fcmp_unordered if missing else builder.fcmp_ordered
        for part in range(4):
            place = builder.add(args[3], _WORD(16 * part))
            some = _load(builder, cells, place, limit.type, 4)
            bits = builder.bitcast(compare(">", some, limit), _HALF)
            builder.store(bits, builder.gep(parts, [_WORD(part)]))
        return context.get_dummy_value()

    return generate


@_intrinsic
def number(typingctx: Any, leaf: Any, sets: Any, marks: Any, at: Any, count: Any) -> Any:
    """Set ``leaf[r]`` to ``marks[at + 4 * i]`` of the last of ``count`` splits i at which row r
    turns right, which ``sets[2 * i + 1]`` says, else 0: uint8 (64,), uint64 and uint8.

    The marks of 64 rows stay in a register, which a store for every split would take longer.
    """
    return types.void(leaf, sets, marks, types.int64, types.int64), _numbering(1)


@_intrinsic
def number_few(typingctx: Any, leaf: Any, sets: Any, marks: Any, at: Any, count: Any) -> Any:
    """``number`` of a tree whose marks are below 256: on a row's way they rise, so the last is the
    largest. Four registers, since each waits for the split before."""
    return types.void(leaf, sets, marks, types.int64, types.int64), _numbering(4)


def _numbering(chains: int) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        into, turns, first = (_data(context, builder, sig, args, k) for k in range(3))
        flags, none = ir.VectorType(_BIT, ROWS), _spread(builder, _BYTE(0), ROWS)
        last = [_cgutils.alloca_once_value(builder, none) for _ in range(chains)]

        def pass_split(split: Any, own: Any) -> None:
            turn = builder.gep(turns, [builder.add(builder.shl(split, _WORD(1)), _WORD(1))])
            rows = builder.bitcast(builder.load(turn), flags)
            mark = builder.gep(first, [builder.add(args[3], builder.shl(split, _WORD(2)))])
            spread = _spread(builder, builder.load(mark), ROWS)
            builder.store(builder.select(rows, spread, builder.load(own)), own)

        rounds = builder.sdiv(args[4], _WORD(chains))
        with _cgutils.for_range(builder, rounds) as loop:
            for chain, own in enumerate(last):
                split = builder.mul(loop.index, _WORD(chains))
                pass_split(builder.add(split, _WORD(chain)), own)
        done = builder.mul(rounds, _WORD(chains))
        with _cgutils.for_range(builder, builder.sub(args[4], done)) as loop:
            pass_split(builder.add(done, loop.index), last[0])
        found = builder.load(last[0])
        for other in map(builder.load, last[1:]):
            found = builder.select(builder.icmp_unsigned(">", other, found), other, found)
        _store(builder, found, into, _WORD(0), 1)
        return context.get_dummy_value()

    return generate


@_intrinsic
def add_leaves(
    typingctx: Any, sums: Any, place: Any, leaf: Any, count: Any, table: Any, at: Any, weight: Any
) -> Any:
    """Add ``table[at + leaf[r]] * weight`` to ``sums[place + r]``: float64, uint8 (64,), float64. A
    leaf is below ``count``, which is at most 64."""
    integer = types.int64
    signature = types.void(sums, integer, leaf, integer, table, integer, types.float64)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        into, leaves, table = (_data(context, builder, sig, args, k) for k in (0, 2, 4))
        weight, eight = _spread(builder, args[6], 8), ir.VectorType(_DOUBLE, 8)
        enough = [builder.icmp_signed("<=", args[3], _WORD(n)) for n in (16, 32)]

        def one_by_one() -> None:
            with _cgutils.for_range(builder, _WORD(ROWS)) as loop:
                which = builder.zext(builder.load(builder.gep(leaves, [loop.index])), _WORD)
                found = builder.load(builder.gep(table, [builder.add(args[5], which)]))
                own = builder.gep(into, [builder.add(args[1], loop.index)])
                found = builder.fmul(found, args[6])
                builder.store(builder.fadd(builder.load(own), found), own)

        def look_up(parts: int) -> None:
            tables = []
            for part in range(2 * parts):
                some = _load_few(builder, table, args[5], args[3], 8 * part)
                tables.append(builder.fmul(some, weight))
            with _cgutils.for_range(builder, _WORD(8)) as loop:
                first = builder.shl(loop.index, _WORD(3))
                which = _load(builder, leaves, first, ir.VectorType(_BYTE, 8), 1)
                which = builder.zext(which, ir.VectorType(_WORD, 8))
                found = _permute(builder, tables[0], which, tables[1])
                for part in range(1, parts):
                    beyond = builder.icmp_unsigned(
                        ">=", which, _spread(builder, _WORD(16 * part), 8)
                    )
                    other = _permute(builder, tables[2 * part], which, tables[2 * part + 1])
                    found = builder.select(beyond, other, found)
                own = builder.add(args[1], first)
                before = _load(builder, into, own, eight, 8)
                _store(builder, builder.fadd(before, found), into, own, 8)

        if "+avx512f" not in context.codegen().magic_tuple()[2]:
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
    eight, numbers = ir.VectorType(_DOUBLE, 8), ir.VectorType(_WORD, 8)
    there = ir.Constant(numbers, list(range(first, first + 8)))
    there = builder.icmp_unsigned("<", there, _spread(builder, count, 8))
    pointer = _at(builder, table, builder.add(at, _WORD(first)), eight)
    kind = ir.FunctionType(eight, [pointer.type, _INT, there.type, eight])
    call = _cgutils.get_or_insert_function(builder.module, kind, "llvm.masked.load.v8f64.p0v8f64")
    return builder.call(call, [pointer, _INT(8), there, ir.Constant(eight, [0.0] * 8)])


def _permute(builder: Any, low: Any, which: Any, high: Any) -> Any:
    """Of sixteen doubles in two registers those whose numbers are given."""
    kind = ir.FunctionType(low.type, [low.type, which.type, high.type])
    name = "llvm.x86.avx512.vpermi2var.pd.512"
    return builder.call(
        _cgutils.get_or_insert_function(builder.module, kind, name), [low, which, high]
    )


@_intrinsic
def turn_cells(
    typingctx: Any, cells: Any, r: Any, X: Any, picked: Any, column: Any, places: Any, at: Any
) -> Any:
    """Copy 16 columns from ``column`` of the rows ``picked[r : r + 16]`` of ``X`` (n, d):
    column j to ``cells[64 * places[at + j] + r :]``."""
    integer = types.int64
    signature = types.void(cells, integer, X, picked, integer, places, integer)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        into, rows, places = (_data(context, builder, sig, args, k) for k in (0, 3, 5))
        X = context.make_array(sig.args[2])(context, builder, args[2])
        width = builder.extract_value(X.shape, 1)
        lines = []
        for i in range(SQUARE):
            row = builder.load(builder.gep(rows, [builder.add(args[1], _WORD(i))]))
            place = builder.add(builder.mul(row, width), args[4])
            lines.append(_load(builder, X.data, place, ir.VectorType(_FLOAT, SQUARE), 4))
        for j, column in enumerate(_turned(builder, lines)):
            place = builder.load(builder.gep(places, [builder.add(args[6], _WORD(j))]))
            place = builder.shl(builder.zext(place, _WORD), _WORD(6))
            _store(builder, column, into, builder.add(place, args[1]), 4)
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
                lines[k] = builder.shuffle_vector(*pair, _places(own))
                lines[k + apart] = builder.shuffle_vector(*pair, _places(other))
    return lines


@_intrinsic
def transpose(typingctx: Any, squares: Any, at: Any) -> Any:
    """Turn ``squares[at : at + 64]``, a square of bits, about its diagonal: bit j of word i to
    bit i of word j.

    Ever smaller off-diagonal blocks change places: those of 32, 16 and 8 rows between vectors of
    eight words; the eight by eight bits of each last block are brought into one word and back.
    """
    signature = types.void(squares, types.int64)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        eight, data = ir.VectorType(_WORD, 8), _data(context, builder, sig, args, 0)
        first = _at(builder, data, args[1], eight)
        places = [builder.gep(first, [_INT(k)]) for k in range(8)]
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
    return ir.Constant(ir.VectorType(_WORD, 8), [value] * 8)


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
    flat = builder.bitcast(words, ir.VectorType(_BYTE, 64))
    flat = builder.shuffle_vector(flat, flat, _places(order))
    return builder.bitcast(flat, words.type)


@_intrinsic
def unpack(typingctx: Any, flags: Any, at: Any, word: Any, count: Any) -> Any:
    """Set ``flags[at + j]``, uint8, to bit j of a word, for its first ``count`` bits."""
    signature = types.void(flags, types.int64, types.uint64, types.int64)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        bytes_ = ir.VectorType(_BYTE, ROWS)
        numbers = ir.Constant(bytes_, list(range(ROWS)))
        bits = builder.bitcast(args[2], ir.VectorType(_BIT, ROWS))
        limit = _spread(builder, builder.trunc(args[3], _BYTE), ROWS)
        there = builder.icmp_unsigned("<", numbers, limit)
        place = _at(builder, _data(context, builder, sig, args, 0), args[1], bytes_)
        kind = ir.FunctionType(ir.VoidType(), [bytes_, place.type, _INT, there.type])
        name = "llvm.masked.store.v64i8.p0v64i8"
        call = _cgutils.get_or_insert_function(builder.module, kind, name)
        builder.call(call, [builder.zext(bits, bytes_), place, _INT(1), there])
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


def _plainly_add_leaves(
    sums: Any, place: int, leaf: Any, count: int, table: Any, at: int, weight: float
) -> None:
    for r in range(ROWS):
        sums[place + r] += table[at + leaf[r]] * weight


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


def _plainly_unpack(flags: Any, at: int, word: Any, count: int) -> None:
    for j in range(count):
        flags[at + j] = word >> _I(j) & _ONE


if PLAIN:
    above, above_or_missing = njit(_plainly_above), njit(_plainly_above_or_missing)
    number = number_few = njit(_plainly_number)
    add_leaves, turn_cells = njit(_plainly_add_leaves), njit(_plainly_turn_cells)
    transpose, unpack = njit(_plainly_transpose), njit(_plainly_unpack)
