"""Shared parts of models that send some rows to a large model: gate thresholds and bills."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core import Acquired, Bill, Features, Prediction, UsageError
from bench_core.arrays import BoolArray, FloatArray

if TYPE_CHECKING:
    from bench_core.serving import Program


def thresholds(g: FloatArray, share: FloatArray, count: int) -> list[tuple[float, float]]:
    """(threshold, share of rows with a higher g) by rising share, for gate scores ``g`` (n,).

    Threshold 0 is among them. ``count`` others send as near as possible to 1, 2, ... of ``count +
    1`` equal shares, each halfway between two neighbouring scores. Equal cuts are listed once. A
    cut that sends all rows is left out.
    """
    values, place = np.unique(g, return_inverse=True)  # rows with equal scores stay together
    mass = np.bincount(place, share, minlength=len(values))
    above = np.append(np.cumsum(mass[::-1])[::-1], 0.0)  # share of rows from value k on
    by_cut: dict[int, tuple[float, float]] = {}
    for k in range(count):
        # equal shares between none and all
        wanted = (k + 1) / (count + 1)
        cut = int(np.argmin(np.abs(above - wanted)))
        if 0 < cut < len(values):
            low, high = map(float, values[cut - 1 : cut + 1])
            middle = low + (high - low) / 2
            by_cut[cut] = (middle if low <= middle < high else low, round(float(above[cut]), 6))
    cut = int(np.searchsorted(values, 0.0, side="right"))
    by_cut[cut] = (0.0, round(float(above[cut]), 6))
    # cut 0 sends all rows, as the last point of the path does
    by_cut.pop(0, None)
    by_share = {sent: (threshold, sent) for threshold, sent in by_cut.values()}
    return [by_share[sent] for sent in sorted(by_share)]


def both(one: Bill, other: Bill) -> Bill:
    """The union of two bills of n rows each: a sensor is paid once, evaluations add."""
    acquired = Acquired(one.acquired.bits | other.acquired.bits, one.acquired.sensors)
    return Bill(acquired, one.splits + other.splits, one.trees + other.trees)


def where(chosen: BoolArray, first: Bill, second: Bill) -> Bill:
    """The first bill's rows where ``chosen`` (n,), otherwise the second's."""
    bits = np.where(chosen[:, None], first.acquired.bits, second.acquired.bits)
    splits = np.where(chosen, first.splits, second.splits)
    trees = np.where(chosen, first.trees, second.trees)
    return Bill(Acquired(bits, first.acquired.sensors), splits, trees)


def bill_of(output: Prediction, name: str = "path") -> Bill:
    """The bill with that name, or the path's, with purchases (n, w)."""
    bill = output.bills.get(name, output.bills["path"])
    return replace(bill, acquired=bill.acquired.rows(len(output.scores)))


def last_prediction(model: Any, features: Features) -> Prediction:
    """The last point of a model's path. Raises ValueError where its path is empty."""
    last = deque[Prediction](model.predict_path(features), maxlen=1)
    if not last:
        raise ValueError(f"the path of {type(model).__name__} is empty")
    return replace(last[0], scores=np.asarray(last[0].scores, dtype=np.float64))


def whole_program(model: Any, features: int, name: str) -> Program:
    """A model at the last point of its path, for serving behind a gate.

    Raises UsageError, beginning with ``name``, where it cannot be served there.
    """
    from bench_core.serving import Exportable, Program

    if not isinstance(model, Exportable):
        raise UsageError(f"{name}, a {type(model).__name__}, cannot be exported")
    # an empty table suffices to learn the name of the last point
    nobody = Features(np.zeros((0, features), dtype=np.float32))
    program = model.program(last_prediction(model, nobody).point)
    if not isinstance(program, Program):
        raise UsageError(f"{name} is a policy and cannot be served behind a gate")
    rejected = "score" if program.rejected == "below" else program.rejected  # a row is alone
    program = replace(program, rejected=rejected)
    if program.in_queries:
        raise UsageError(f"{name} compares the documents of a query; choose another")
    return program
