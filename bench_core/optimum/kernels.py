"""Compiled pass over all states of a problem."""

from typing import Any

import numpy as np
from numba import njit

TIED = 1e-12  # relative to the mass of a state


@njit(cache=True, nogil=True)
def solve(
    masses: Any, radix: Any, strides: Any, prices: Any, spent: Any, price: float, cap: float
) -> Any:
    """Return the best action by state (states,), and the first state's value and mean cost.

    ``masses`` are p(s) and max_y p(s, y), (states,) each: values are multiplied by p(s).
    """
    mass, best_class = masses
    count, digits = len(mass), len(radix)
    value, cost = np.zeros(count), np.zeros(count)
    action = np.full(count, -1, np.int8)
    digit = radix - 1  # digits of the last state, with all purchases
    mask = (1 << digits) - 1
    for s in range(count - 1, -1, -1):
        value[s] = best_class[s]
        if mass[s] > 0.0:
            tied = TIED * mass[s]
            for t in range(digits):
                extra = prices[mask, t]
                if digit[t] > 0 or spent[mask] + extra > cap or (extra > 0.0 and price == np.inf):
                    continue
                worth = 0.0 if extra == 0.0 else -price * extra * mass[s]
                for v in range(1, radix[t]):
                    worth += value[s + v * strides[t]]
                if worth < value[s] - tied:
                    continue
                paid = extra * mass[s]
                for v in range(1, radix[t]):
                    paid += cost[s + v * strides[t]]
                if worth > value[s] + tied or paid < cost[s] - tied:
                    value[s], cost[s], action[s] = worth, paid, t
        t = digits - 1
        while t >= 0 and digit[t] == 0:
            digit[t] = radix[t] - 1
            mask |= 1 << t
            t -= 1
        if t >= 0:
            digit[t] -= 1
            if digit[t] == 0:
                mask &= ~(1 << t)
    return action, value[0], cost[0]
