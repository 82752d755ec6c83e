"""Moves rows of split leaves to their children.

One array of row numbers holds the rows of all leaves, a range of it for each. A split moves the
rows within its leaf's range::

    rows    | begin ............................ end |
    after   | begin ... left | middle ... right  end |      both in rising order
"""

import numpy as np

from bench_trees.arrays import Int64Array, UInt32Array, UInt64Array
from bench_trees.kernels.compiling import inner
from bench_trees.kernels.intrinsics import prefetch
from bench_trees.kernels.packed_codes import CODES_PER_WORD

AHEAD = 128  # rows whose words are requested: moving them takes less time than counting them

# Columns of ``moves``, one row for every split to be made
NODE, FIRST_ROW, LAST_ROW = 0, 1, 2  # the leaf; its rows by position
COLUMN, MISSING, CODE = 3, 4, 5  # the feature; NaN's code; rows up to CODE go left
MISSING_LEFT = 6  # 1 where NaN goes left
SCORABLE = 7  # 1 where the children may be split
MIDDLE = 8  # the first row of the right child, written here
MOVE = 9


@inner
def _partition(words: UInt64Array, move: Int64Array, rows: UInt32Array, spare: UInt32Array) -> None:
    """Put the rows of one split that go left first, and find MIDDLE; ``spare`` is working space."""
    low, ahead = np.uint64(255), np.uint64(AHEAD)
    column = words[move[COLUMN] // CODES_PER_WORD]
    by = np.uint64(8 * (move[COLUMN] % CODES_PER_WORD))
    # Rows going right have codes from CODE + 1 on, up to NaN's, the highest: counted from there,
    # modulo 256, they are below ``rights``
    behind = np.uint64(255 - move[CODE])
    rights = np.uint64((move[MISSING] if move[MISSING_LEFT] else 256) - move[CODE] - 1)
    # unsigned, so that no index is checked for negative values
    begin, end = np.uint64(move[FIRST_ROW]), np.uint64(move[LAST_ROW])
    left, last = begin, end - np.uint64(1)
    for i in range(begin, end):  # without branches: each row is written to both sides
        prefetch(column, rows[min(i + ahead, last)])
        r = rows[i]
        code = (((column[r] >> by) & low) + behind) & low
        rows[left] = r
        spare[last - i + left] = r  # in reverse order from the end on
        left += np.uint64(code >= rights)
    move[MIDDLE] = np.int64(left)
    for k in range(end - left):
        rows[left + k] = spare[last - k]


@inner
def _gather(
    move: Int64Array, rows: UInt32Array, values: Int64Array, values_out: Int64Array
) -> None:
    """Copy the values of the smaller child's rows, whose histogram is counted, in leaf order."""
    start, stop = move[FIRST_ROW], move[MIDDLE]
    if move[LAST_ROW] - move[MIDDLE] < stop - start:
        start, stop = move[MIDDLE], move[LAST_ROW]
    last = values.shape[1] - 1  # with one channel the first is the last
    for k in range(start, stop):
        r = rows[k]
        values_out[k, 0] = values[r, 0]
        values_out[k, last] = values[r, last]
