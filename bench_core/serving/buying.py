"""What a row buys, compiled: purchases under a cap and without one, prices, the bill."""

from typing import Any

import numpy as np

from bench_core.serving.layout import (
    ALONE,
    CAP,
    CAPPED,
    PRICE,
    PRICES,
    RULES,
    SENSORS,
    SENSORS_OF,
    SPLITS,
    STOPPED,
    TREES,
    U,
    bare,
)


@bare
def evaluated(ints: Any, floats: Any, splits: float, trees: int) -> Any:
    """What so many splits and trees cost."""
    return floats[ints[RULES]] * splits + floats[ints[RULES] + 1] * np.float64(trees)


@bare
def buy(ints: Any, floats: Any, row: Any, count: int, splits: float, trees: int) -> int:
    """Buy the sensors of ``count`` features; how many features are asked for: those that can be
    read from then on and could not before. 0, and the row stops, where a cap forbids it."""
    asked, have, capped, alone, free = row.asked, row.cells.have, row.sums[CAP] < np.inf, 1, False
    for k in range(count):
        alone &= ints[U(ints[ALONE]) + U(asked[U(k)])]
    if capped or not alone:  # else it is billed at the end
        for c in asked[:count]:
            first, stop = ints[ints[SENSORS_OF] + c], ints[ints[SENSORS_OF] + c + 1]
            free |= first == stop
            for i in range(first, stop):
                row.bought[ints[ints[SENSORS] + i]] |= 2
    if count == 0 or (capped and not _afford(ints, floats, row, splits, trees)):
        return 0
    if not alone:
        return _readable(ints, row, free)
    for k in range(count):
        have[U(asked[U(k)])] = 1
    return count


@bare
def _afford(ints: Any, floats: Any, row: Any, splits: float, trees: int) -> Any:
    """Pay for the sensors marked 2, if that is within the cap; else the row stops."""
    sums, bought = row.sums, row.bought
    before, sums[PRICE] = sums[PRICE], _price(ints, floats, bought)
    affords = sums[PRICE] + evaluated(ints, floats, splits, trees) <= sums[CAP]
    if not affords:
        sums[PRICE], row.place[STOPPED] = before, CAPPED
    for s in range(len(bought)):
        bought[s] = (bought[s] != 0) if affords else bought[s] & 1
    return affords


@bare
def _readable(ints: Any, row: Any, free: bool) -> int:
    """How many features can be read and could not before; those of no sensor if ``free``."""
    asked, bought, have, count = row.asked, row.bought, row.cells.have, 0
    for c in range(len(have)):
        first, stop = ints[ints[SENSORS_OF] + c], ints[ints[SENSORS_OF] + c + 1]
        readable = have[c] == 0 and (first < stop or free)
        for i in range(first, stop):
            readable &= bought[ints[ints[SENSORS] + i]] != 0
        if readable:
            have[c] = 1
            asked[count] = c
            count += 1
    return count


@bare
def _price(ints: Any, floats: Any, bought: Any) -> float:
    """The prices of what is bought, added as ``Acquired.cost`` adds them."""
    total, sensors, prices = 0.0, len(bought), floats[ints[PRICES] :]
    for w in range(0, sensors, 64):
        word = 0.0
        for b in range(w, min(w + 64, sensors), 8):
            part = 0.0
            for s in range(b, min(b + 8, sensors)):
                part += prices[U(s)] if bought[U(s)] else 0.0
            word += part
        total += word
    return total


@bare
def bill(ints: Any, floats: Any, row: Any) -> None:
    """Make PRICE the whole bill; without a cap, what the row came to is bought."""
    place, sums, bought, need = row.place, row.sums, row.bought, row.cells.need
    if sums[CAP] == np.inf:
        sensors_of, sensors, k = ints[ints[SENSORS_OF] :], ints[ints[SENSORS] :], np.int32(0)
        for c in range(len(need) // 2):
            used, stop = need[U(2 * c)] | need[U(2 * c + 1)], sensors_of[U(c + 1)]
            while k < stop:
                bought[U(sensors[U(k)])] |= used
                k += np.int32(1)
    walked = evaluated(ints, floats, sums[SPLITS], place[TREES])
    sums[PRICE] = _price(ints, floats, row.bought) + walked
