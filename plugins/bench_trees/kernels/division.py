"""Rows of leaves that are split: which go left, and to their places.

One array of row numbers holds the rows of all leaves, a range of it for each.
"""

import numpy as np

from bench_trees.arrays import Int64Array, UInt32Array, UInt64Array
from bench_trees.kernels.compiling import inner
from bench_trees.kernels.intrinsics import prefetch
from bench_trees.kernels.packed_codes import CODES_PER_WORD

AHEAD = 128  # rows whose words are requested: to move them takes less time than to count them


@inner
def _cut_up(moves: Int64Array, size: int, parts: Int64Array) -> int:
    """The rows of splits in parts of at most ``size``, whose number is returned. A row of ``moves``
    is::

        node, begin, end             of the leaf to be split, rows by position
        feature, missing, code       NaN's code; rows of code <= ``code`` go left
        missing_left, scorable       1 where NaN goes left; where the children may be split
        middle                       begin of the right child's rows, found by ``_arrange``

    and a row of ``parts`` begin, end, feature, missing, code, missing_left, the split's number,
    rows that go left, the place for these, that for the others, and the side that is gathered.
    """
    at = 0
    for m in range(len(moves)):
        begin, end = moves[m, 1], moves[m, 2]
        while begin < end:
            part = parts[at]
            part[0], part[1] = begin, min(begin + size, end)
            for column in range(2, 6):
                part[column] = moves[m, column + 1]
            part[6], part[10] = m, 0
            begin += size
            at += 1
    return at


@inner
def _partition(
    words: UInt64Array,
    parts: Int64Array,
    rows: UInt32Array,
    lefts: UInt32Array,
    spare: UInt32Array,
) -> None:
    """Rows of every part that go left, in order from its begin on in ``lefts``, which is ``spare``
    or ``rows`` itself; the others in reverse order from its end on in ``spare``."""
    low, ahead = np.uint64(255), np.uint64(AHEAD)
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


@inner
def _arrange(parts: Int64Array, moves: Int64Array) -> None:
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


@inner
def _settle(
    parts: Int64Array,
    stay: bool,
    spare: UInt32Array,
    rows: UInt32Array,
    values: Int64Array,
    values_out: Int64Array,
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
            last = values.shape[1] - 1  # of one channel the first is the last
            for k in range(start, stop):
                r = rows[k]
                values_out[k, 0] = values[r, 0]
                values_out[k, last] = values[r, last]
