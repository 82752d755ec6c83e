"""What stands where in the arrays of ``kernels``.

ints     where the parts begin, number of outputs | trees of each segment, deepest first: levels
         | uses in order: place among those, output, whether billed
         | steps: FIRST_USE ... | columns: feature, output, whether scaled | features: number in
         the data, whether its sensors yield it alone, first of its sensors | sensors
nodes    uint32 or uint64 (2 N + T,)   of each node: its link, whose ``BITS`` low bits are the
         place of the cell, and the threshold of its parent | links of the trees' roots
floats   nodes: value, multipliers on the path | weights of uses | steps: value of the gate,
         bias (K) | columns: weight, mean, factor | prices of sensors | of a split, of a tree
place    int64 (PLACES,): STEP ...   sums float64 (SUMS + 3 K,): SPLITS ..., then the step's own
         sums, the score, and the score at the last stop
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit

OUTPUTS, LEVELS, RANKS, TREE_OUTPUTS, BILLED, STEPS, COLUMNS = range(7)
FEATURES, ALONE, SENSORS_OF, SENSORS, LEAVES, WEIGHTS, GATES, FACTORS, PRICES, RULES = range(7, 17)
FIRST_USE, LAST_USE, FIRST_COLUMN, LAST_COLUMN, CARRY, COMBINE, GATED, THEN, ELSE = range(9)
STOP_THEN, STOP_ELSE, SEGMENT, STEP_WIDTH = range(9, 13)
(LAST, MIN, AND, ADD), COUNTED, BITS = range(4), 17, 18
STEP, USE, TREES, LEVEL, WALKED, LAST_STEP, STOPPED, STOP_AT, AT_HAND, LEFT = range(10)
INNER, COUNT, TOTAL, PLACES = range(10, 14)
(SPLITS, PRICE, CAP, SUMS), (END, GATE, REJECTED, CAPPED) = range(4), range(4)

U: Any = np.uint64  # unsigned places are never counted from the end
F = TypeVar("F")
# without counts of references to arrays, which take time: who calls keeps the arrays
bare: Callable[[F], F] = njit(cache=True, nogil=True, _nrt=False)  # type: ignore[call-overload]
