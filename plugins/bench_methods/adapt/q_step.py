"""Which training rows should go to f0: the step over q (OPT1), and f0's outputs and costs.

With l1 and l0 the losses of f1 and f0 on a row and g its gate score,

    A = l1 + log(1 + e^g),   B = l0 + log(1 + e^-g),   A - B = l1 - l0 + g,

so q = 1 / (1 + e^(B - A + b)) is the gate moved by f1's excess loss and by the bias b >= 0, the
smallest one that keeps the mean of q within ``p_full``. q is the probability of going to f0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from bench_models.calibration import Line
from bench_models.large_model import last_prediction
from bench_models.logistic import sigmoid, softplus_and_sigmoid

from bench_core import Acquired, Examples, Features, Prices
from bench_core.arrays import BitArray, FloatArray

CLIP = 1e-6  # p(y | f0) is kept within [CLIP, 1 - CLIP]
_NEVER = 1e-300  # stands for probability 0 in a logarithm
_BIAS = 1e-15  # how near the bias is to the root: descents amplify what is left
_NEAR = 0.02  # how far from the last bias the next one may usually be found
_DIGITS = 9  # of f0's scores behind the point
_BLOCK = 8000  # rows of one prediction of f0
_CONVEX = 10.0  # |p| sigma'' <= p / (6 sqrt 3) < 1: the squared distance has one minimum
_PARTS = 16  # where it may have several: so many equal steps are looked at


def softplus(z: FloatArray) -> FloatArray:
    """log(1 + e^z)."""
    return softplus_and_sigmoid(z)[0]


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRows:
    """The n training rows as the alternation sees them.

    ``sign`` +1 or -1; ``share`` multiplicities over their sum; ``loss0`` -log p(y | f0); ``bits0``
    (n, w) the sensors that f0 buys, ``evaluation0`` the price of its splits and trees. Where f0's
    scores are no log-odds, ``calibration`` makes them such.
    """

    sign: FloatArray
    share: FloatArray
    loss0: FloatArray
    bits0: BitArray
    evaluation0: FloatArray
    calibration: Line | None = None

    @classmethod
    def of(cls, train: Examples, f0: Any, prices: Prices, line: Line | None = None) -> TrainingRows:
        """Predict every training row by f0."""
        scores, evaluation, bits = [], [], []
        for output in f0_outputs(f0, train):
            n, bill = len(output.scores), output.bills["path"]
            scores.append(output.scores)
            evaluation.append(bill.evaluation_cost(prices, n))
            bits.append(bill.acquired.rows(n).bits)
        sign, found = np.where(train.y > 0, 1.0, -1.0), np.concatenate(scores)
        # p(y | f0) of the true label
        right = np.clip(sigmoid(sign * (line(found) if line else found)), CLIP, 1 - CLIP)
        share = train.weights / train.weights.sum()
        paid = np.concatenate(bits), np.concatenate(evaluation)
        return cls(sign, share, -np.log(right), *paid, line)

    def excess(self, f1: FloatArray) -> FloatArray:
        """l1 - l0 for the scores of f1."""
        return softplus(-self.sign * f1) - self.loss0

    def mean(self, values: FloatArray) -> float:
        """Over rows, copies counted."""
        return float(self.share @ values)

    def premium(
        self, gate: BitArray, kept: BitArray, cost1: FloatArray | float, prices: Prices, tau: float
    ) -> FloatArray:
        """``tau`` times what f0 costs more than f1, per row, where ``p_full`` is none.

        ``gate`` and ``kept`` (n or 1, w): the sensors bought by the gate, and by gate and f1;
        ``cost1`` the price of f1's splits and trees.
        """
        # the gate is paid in both cases
        sent = Acquired(self.bits0 | gate, prices.sensors).cost(prices.sensor) + self.evaluation0
        stay = Acquired(kept, prices.sensors).cost(prices.sensor) + cost1
        return tau * (sent - stay)


def f0_outputs(f0: Any, part: Examples) -> Iterator[Any]:
    """f0's last predictions of all rows, block by block. Their scores are rounded: descents end
    where the last bit of a score takes them, and that differs between processors and versions."""
    for start in range(0, len(part), _BLOCK):
        output = last_prediction(f0, Features(part.X[start : start + _BLOCK]))
        yield replace(output, scores=np.round(output.scores, _DIGITS))


class KullbackLeibler:
    """D(q, g), how far the gate is from q, of ADAPT-LIN and ADAPT-GBRT: KL(q || sigma(g))."""

    def q(self, excess: FloatArray, g: FloatArray, bias: FloatArray | float) -> FloatArray:
        """The q of least objective where sending a row costs ``bias``, in closed form."""
        return sigmoid(g + excess - bias)  # OPT1

    def gate_loss(self, q: FloatArray, g: FloatArray) -> tuple[FloatArray, FloatArray]:
        """D per row up to a term of q alone, and its derivative by g: logistic loss on the soft
        labels q."""
        value, slope = softplus_and_sigmoid(g)
        return value - q * g, slope - q

    def value(self, q: FloatArray, g: FloatArray) -> FloatArray:
        """D per row: the gate's loss minus the entropy of q."""
        inside, outside = np.maximum(q, _NEVER), np.maximum(1 - q, _NEVER)  # 0 log 0 counts as 0
        return self.gate_loss(q, g)[0] + q * np.log(inside) + (1 - q) * np.log(outside)


class SquaredLogOdds:
    """D = (log(q / (1 - q)) - g)^2 / 2, of ADAPT-LSTSQ [M]."""

    def q(self, excess: FloatArray, g: FloatArray, bias: FloatArray | float) -> FloatArray:
        """sigma(u) with u of least p sigma(u) + (u - g)^2 / 2, p = bias - excess.

        At a minimum g - u = p sigma'(u), which has the sign of p. For p > 0 it is at most p / 4,
        and at most g, 1 or g + log p, the last because sigma'(u) < e^u; likewise for p < 0. Where
        there may be several minima the best of evenly spaced points decides. Newton's method, kept
        in a bracket of the minimum, does the rest.
        """
        p = np.broadcast_to(bias - excess, g.shape)  # (n,), of either sign
        side, size = np.where(p >= 0, 1.0, -1.0), np.abs(p)
        far = np.maximum(side * g + np.log(np.maximum(size, 1.0)), 1.0)
        reach = -side * np.minimum(size / 4, far)
        u, low, high = g, np.minimum(g, g + reach), np.maximum(g, g + reach)
        if (some := np.flatnonzero(size > _CONVEX)).size:
            u, width = g.copy(), np.abs(reach[some]) / _PARTS
            grid = g[some] + reach[some] * np.linspace(0, 1, _PARTS + 1)[:, None]
            values = p[some] * sigmoid(grid) + (grid - g[some]) ** 2 / 2
            u[some] = best = grid[values.argmin(axis=0), np.arange(len(some))]
            low[some] = np.maximum(low[some], best - width)
            high[some] = np.minimum(high[some], best + width)
        for _ in range(60):
            s = sigmoid(u)
            slope, curve = p * s * (1 - s) + u - g, 1 + p * s * (1 - s) * (1 - 2 * s)
            low, high = np.where(slope > 0, low, u), np.where(slope > 0, u, high)
            new = u - slope / np.where(curve > 0.1, curve, np.inf)
            new = np.where((curve > 0.1) & (low <= new) & (new <= high), new, (low + high) / 2)
            moved, u = np.abs(new - u), new
            if np.all(moved <= 1e-6 * np.maximum(1.0, np.abs(u))):  # the next would be its square
                break
        return sigmoid(u)

    def gate_loss(self, q: FloatArray, g: FloatArray) -> tuple[FloatArray, FloatArray]:
        """D and its derivative by g, the log-odds of q kept within [1e-12, 1 - 1e-12]."""
        inside = np.clip(q, 1e-12, 1 - 1e-12)
        difference = g - (np.log(inside) - np.log(1 - inside))
        return difference**2 / 2, difference

    def value(self, q: FloatArray, g: FloatArray) -> FloatArray:
        """D per row."""
        return self.gate_loss(q, g)[0]


GateDistance = KullbackLeibler | SquaredLogOdds


def smallest_bias(
    q: Callable[[float], FloatArray], share: FloatArray, p_full: float, near: float = 0.0
) -> float:
    """The smallest b >= 0 at which the mean of q(b) is at most ``p_full`` > 0, by Brent's method.

    The value returned keeps the constraint. q must fall as b rises. The search begins at ``near``.
    """
    from scipy.optimize import brentq

    # brentq asks again at the ends that were found here
    above = cache(lambda b: float(share @ q(b)) - p_full)
    step = _NEAR if near else 1.0
    low, high = max(0.0, near - step), near + step
    while low > 0 and above(low) <= 0:
        low, high, step = max(0.0, low - 4 * step), low, 4 * step
    if low == 0 and above(0.0) <= 0:
        return 0.0
    while above(high) > 0:
        low, high, step = high, high + 4 * step, 4 * step
    # q may jump, so the mean need not meet the limit exactly
    bias, step = float(brentq(above, low, high, xtol=_BIAS, rtol=_BIAS)), _BIAS
    while above(bias) > 0:  # the root that was found may lie on the other side
        bias, step = bias + step * max(1.0, bias), 2 * step
    return bias


@dataclass(slots=True, eq=False)
class F0Limit:
    """``p_full`` bounds the mean of q, or each row pays ``price`` (n,) for f0.

    ``bias`` is the last one that was found, where the next search begins.
    """

    p_full: float | None
    price: FloatArray | None = None
    bias: float = 0.0

    def charge(
        self, D: GateDistance, excess: FloatArray, g: FloatArray, share: FloatArray
    ) -> FloatArray | float:
        """What sending each row costs at the best q."""
        if self.p_full is None:
            assert self.price is not None
            return self.price
        q = cache(lambda bias: D.q(excess, g, bias))
        self.bias = smallest_bias(q, share, self.p_full, self.bias)
        return self.bias

    def q(self, D: GateDistance, rows: TrainingRows, f1: FloatArray, g: FloatArray) -> FloatArray:
        """The step over q. With ``p_full`` 0 no row is sent."""
        if self.p_full == 0:
            return np.zeros(len(g))
        excess = rows.excess(f1)
        return D.q(excess, g, self.charge(D, excess, g, rows.share))

    def objective(
        self, D: GateDistance, rows: TrainingRows, f1: FloatArray, g: FloatArray, q: FloatArray
    ) -> float:
        """(OPT) without the price of features; q must come from ``q``, which keeps the limit."""
        loss = (1 - q) * softplus(-rows.sign * f1) + q * rows.loss0  # OPT
        if self.p_full != 0:
            loss = loss + D.value(q, g)
        if self.price is not None:
            loss = loss + self.price * q
        return rows.mean(loss)
