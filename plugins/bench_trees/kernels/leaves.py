"""What is moved and counted of the rows of a growing tree's leaves.

One array of row numbers holds the rows of all leaves, a range of it for each. Their histograms are
sums of gradients per leaf, feature and bin. Sums are integers (``fixed_point``), so a leaf's
histogram is exactly that of its parent minus that of its sibling, and of two siblings only the
smaller one is counted::

    hist[slot, channel]   | feature 0 ...... NaN | feature 1 ...... NaN | feature 2 ...
                          first[0]               first[1]               first[2]

    channel 0   gradient and count of rows, packed in one integer
    channel 1   hessian; the channel is there only where hessians differ between rows

Rows of a small leaf lie far apart, so that neither the processor's own prefetching nor its
window of instructions hides the way to memory; a request ``AHEAD`` rows ahead hides that to the
second cache. What the next word's column has of these rows is asked for a whole pass before.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from bench_core.traversal.calling import inner
from bench_trees.arrays import Int64Array, UInt32Array, UInt64Array
from bench_trees.kernels.packed_codes import CODES_PER_WORD

AHEAD = 32  # rows whose words are requested: their adds take as long as the second cache to answer;
# of more, words drive out sums
IN_ORDER, DIVIDED = 64, 128  # the same where rows are in order, where they are divided
STRIDE = 264  # numbers per feature and channel: 256 and a cache line, lest equal bins of different
# features be 4096 bytes apart and be taken for one another

if TYPE_CHECKING or config.DISABLE_JIT:

    def prefetch(array: Any, index: Any) -> None:
        """Fetch array[index] towards the nearest cache; changes nothing that a program can see."""

    def prefetch_early(array: Any, index: Any) -> None:
        """As ``prefetch``, towards the second cache."""

    def add_pair(table: Any, at: Any, v: Any, h: Any) -> None:
        """Add v to table[at] and h to table[at + 1]."""
        table[at] += v
        table[at + np.uint64(1)] += h

else:
    from llvmlite import ir

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


@njit(cache=True, nogil=True)
def divide(
    words: UInt64Array,
    moves: Int64Array,
    rows: UInt32Array,
    spare: UInt32Array,
    packed: Int64Array,
    hessian: Int64Array,
    packed_out: Int64Array,
    hessian_out: Int64Array,
) -> None:
    """All of ``RowOrder.divide`` on one thread: a part per split, of which left rows move once."""
    parts = cut_up(moves, len(rows))
    partition(words, parts, rows, rows, spare)
    arrange(parts, moves)
    settle(parts, True, spare, rows, packed, hessian, packed_out, hessian_out)


@njit(cache=True, nogil=True)
def cut_up(moves: Int64Array, size: int) -> Int64Array:
    """The rows of splits in parts of at most ``size``. A row of ``moves`` is::

        node, begin, end             of the leaf to be split, rows by position
        feature, missing, code       NaN's code; rows of code <= ``code`` go left
        missing_left, scorable       1 where NaN goes left; where the children may be split
        middle                       begin of the right child's rows, found by ``arrange``

    and a row of the result begin, end, feature, missing, code, missing_left, the split's number,
    rows that go left, the place for these, that for the others, and the side that is gathered.
    """
    count = 0
    for move in moves:
        count += max(1, -(-(move[2] - move[1]) // size))
    parts = np.zeros((count, 11), np.int64)
    at = 0
    for m in range(len(moves)):
        begin, end = moves[m, 1], moves[m, 2]
        while begin < end:
            part = parts[at]
            part[0], part[1] = begin, min(begin + size, end)
            for column in range(2, 6):
                part[column] = moves[m, column + 1]
            part[6] = m
            begin += size
            at += 1
    return parts


@njit(cache=True, nogil=True)
def partition(
    words: UInt64Array,
    parts: Int64Array,
    rows: UInt32Array,
    lefts: UInt32Array,
    spare: UInt32Array,
) -> None:
    """Rows of every part that go left, in order from its begin on in ``lefts``, which is ``spare``
    or ``rows`` itself; the others in reverse order from its end on in ``spare``."""
    low, ahead = np.uint64(255), np.uint64(DIVIDED)
    for part in parts:
        begin, end, feature, missing, cut, missing_left = part[:6]
        column = words[feature // CODES_PER_WORD]
        by = np.uint64(8 * (feature % CODES_PER_WORD))
        # what goes right has codes from cut + 1 on, up to NaN's, the highest: counted from there,
        # modulo 256, they are below ``rights``
        behind = np.uint64(255 - cut)
        rights = np.uint64((missing if missing_left else 256) - cut - 1)
        # unsigned: never from the array's end
        left, last = np.uint64(begin), np.uint64(end - 1)
        for i in range(np.uint64(begin), np.uint64(end)):
            prefetch(column, rows[min(i + ahead, last)])
            r = rows[i]
            code = (((column[r] >> by) & low) + behind) & low
            lefts[left] = r
            spare[last - i + left] = r
            left += np.uint64(code >= rights)
        part[7] = np.int64(left) - begin


@njit(cache=True, nogil=True)
def arrange(parts: Int64Array, moves: Int64Array) -> None:
    """Where the rows of counted parts go."""
    for move in moves:
        move[8] = move[1]
    for part in parts:
        move = moves[part[6]]
        part[8] = move[8]
        move[8] += part[7]
    at = np.zeros(len(moves), np.int64)
    for part in parts:
        move = moves[part[6]]
        part[9] = move[8] + at[part[6]]
        at[part[6]] += part[1] - part[0] - part[7]
        if move[7]:
            part[10] = 2 if move[2] - move[8] < move[8] - move[1] else 1


@njit(cache=True, nogil=True)
def settle(
    parts: Int64Array,
    stay: bool,
    spare: UInt32Array,
    rows: UInt32Array,
    packed: Int64Array,
    hessian: Int64Array,
    packed_out: Int64Array,
    hessian_out: Int64Array,
) -> None:
    """Partitioned rows to their places, those that went left unless they ``stay``; the values of
    the side that is gathered."""
    for part in parts:
        begin, end, lefts = part[0], part[1], part[7]
        rights = end - begin - lefts
        for k in range(0 if stay else lefts):
            rows[part[8] + k] = spare[begin + k]
        own, last = spare[end - rights : end], np.uint64(rights - 1)
        place = rows[part[9] : part[9] + rights]
        for k in range(np.uint64(rights)):  # unsigned: never from the array's end
            place[k] = own[last - k]
        if part[10]:
            start = part[7 + part[10]]
            stop = start + (lefts if part[10] == 1 else rights)
            for k in range(start, stop):
                packed_out[k] = packed[rows[k]]
            if len(hessian):
                for k in range(start, stop):
                    hessian_out[k] = hessian[rows[k]]


@njit(cache=True, nogil=True)
def accumulate(
    words: UInt64Array,
    rows: UInt32Array,
    packed: Int64Array,
    hessian: Int64Array,
    pairs: Int64Array,
    groups: Int64Array,
    first: Int64Array,
    hist: Int64Array,
) -> None:
    """Histograms of pairs of siblings, for the eight features of each word in ``groups``.

    ``rows``, ``packed`` and ``hessian`` (or none) are in leaf order. A row of ``pairs`` is::

        begin, end   positions of the smaller sibling's rows
        small        slot for its histogram
        large        slot that holds the parent's and becomes the other sibling's; -1: no sibling
        gaps         0 where the rows are all of 0:end in order, 1 where memory is asked for ahead
    """
    channels = 1 if len(hessian) == 0 else 2
    step = channels * STRIDE
    # Eight features' bins, small enough for the nearest cache whatever the width of ``hist``
    table = np.zeros(8 * step, np.int64)
    for i in range(len(groups)):  # words outside: a word's column is read while it is near
        g = groups[i]
        column, following = words[g], words[groups[min(i + 1, len(groups) - 1)]]
        for pair in range(len(pairs)):
            begin, end = pairs[pair, 0], pairs[pair, 1]
            small, large = pairs[pair, 2], pairs[pair, 3]
            gaps = pairs[pair, 4] != 0
            own, g_own = rows[begin:end], packed[begin:end]
            if channels == 1:
                _add_packed(column, following, own, g_own, gaps, table)
            else:
                h_own = hessian[begin:end]
                _add_with_hessians(column, following, own, g_own, h_own, gaps, table)
            for j in range(8 * g, min(8 * g + 8, len(first) - 1)):
                at = (j - 8 * g) * step
                for channel in range(channels):
                    child = hist[small, channel, first[j] : first[j + 1]]
                    parent = hist[large, channel, first[j] : first[j + 1]]
                    sums = table[at + channel : at + channels * len(child)]
                    if channels == 1:  # literal strides, which the compiler must see
                        _take(sums, 1, child, parent, large >= 0)
                    else:
                        _take(sums, 2, child, parent, large >= 0)
                used = table[at : at + channels * (first[j + 1] - first[j])]
                for b in range(len(used)):  # from 0 on, of which the compiler makes vector code
                    used[b] = 0


@njit(inline="always")
def _take(
    sums: Int64Array, stride: int, child: Int64Array, parent: Int64Array, sibling: bool
) -> None:
    """A feature's sums, ``stride`` numbers apart, to the child's bins and, with a sibling, off the
    parent's."""
    if sibling:
        for b in range(len(child)):
            parent[b] -= sums[stride * b]
    for b in range(len(child)):
        child[b] = sums[stride * b]


@inner
def _add_packed(
    words: UInt64Array,
    following: UInt64Array,
    rows: UInt32Array,
    packed: Int64Array,
    gaps: bool,
    table: Int64Array,
) -> None:
    """One add for each of eight features, written out; rows with gaps ask for the words that are
    ``following``.

    The processor stores once a cycle, and that is what this loop takes. Adds to one and the same
    bin, each of which has to wait for the one before, have seven other features' in between.
    """
    low = np.uint64(255)
    last = len(rows) - 1
    for i in range(len(rows)):
        r = rows[i]
        if gaps:
            prefetch(words, rows[min(i + AHEAD, last)])
            prefetch_early(following, r)
        c = words[r]
        v = packed[i]
        table[c & low] += v
        table[np.uint64(STRIDE) + ((c >> np.uint64(8)) & low)] += v
        table[np.uint64(2 * STRIDE) + ((c >> np.uint64(16)) & low)] += v
        table[np.uint64(3 * STRIDE) + ((c >> np.uint64(24)) & low)] += v
        table[np.uint64(4 * STRIDE) + ((c >> np.uint64(32)) & low)] += v
        table[np.uint64(5 * STRIDE) + ((c >> np.uint64(40)) & low)] += v
        table[np.uint64(6 * STRIDE) + ((c >> np.uint64(48)) & low)] += v
        table[np.uint64(7 * STRIDE) + (c >> np.uint64(56))] += v


@inner
def _add_with_hessians(
    words: UInt64Array,
    following: UInt64Array,
    rows: UInt32Array,
    packed: Int64Array,
    hessian: Int64Array,
    gaps: bool,
    table: Int64Array,
) -> None:
    """As ``_add_packed``; gradient and hessian of a bin side by side, in one cache line.

    Instructions beside the stores take time too: rows in order are not looked up, and no request
    is checked for the end of the rows, of which the last ones are a loop of their own.
    """
    count, ahead = np.uint64(len(rows)), np.uint64(AHEAD)
    if not gaps:
        for i in range(count):
            prefetch(words, i + np.uint64(IN_ORDER))  # beyond the array's end it does nothing
            _add_pairs(words[i], packed[i], hessian[i], table)
        return
    asking = count - min(count, ahead)
    for i in range(asking):
        r = rows[i]
        prefetch(words, rows[i + ahead])
        prefetch_early(following, r)
        _add_pairs(words[r], packed[i], hessian[i], table)
    for i in range(asking, count):
        r = rows[i]
        prefetch_early(following, r)
        _add_pairs(words[r], packed[i], hessian[i], table)


@njit(inline="always")
def _add_pairs(c: int, v: int, h: int, table: Int64Array) -> None:
    """Add v and h to the bins of the eight codes of c."""
    low, one, stride = np.uint64(255), np.uint64(1), np.uint64(2 * STRIDE)
    for k in range(8):
        code = (c >> np.uint64(8 * k)) & low
        add_pair(table, np.uint64(k) * stride + (code << one), v, h)


@njit(cache=True, nogil=True)
def add_counts(
    hist: Int64Array,
    counted: Int64Array,
    begin: int,
    end: int,
    count_bits: int,
    target: int,
) -> None:
    """Add a step per copy counted in a slot to the gradients of bins begin:end of the slot
    ``target``, for each slot and step of ``counted``."""
    mask = (np.int64(1) << count_bits) - 1
    out = hist[target, 0, begin:end]
    for i in range(len(counted)):
        counts = hist[counted[i, 0], 0, begin:end]
        step = counted[i, 1]
        for b in range(len(out)):
            out[b] += ((counts[b] & mask) * step) << count_bits
