"""A model's predictions as plain arrays, checked: the contract that a model must keep to."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_core.arrays import FloatArray, IntArray
from bench_core.costs.bill import Acquired, Bill, Prediction, words
from bench_core.costs.model import CostModel
from bench_core.data import Features
from bench_core.errors import one_line
from bench_core.results.budgets import CAP

MAX_POINTS = 100
MOST_MARKS = 5
MOST_COST = 1e15
"""More than any row can cost: sums of squares of more would be useless in a board's statistics."""
VERDICTS = {"declared", "sampled", "verified", "failed"}
_MARK = re.compile("[a-z][a-z0-9 -]{0,23}")


class ContractError(Exception):
    """A model broke the contract; the message says how, in one line."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message, 300))


def predictions(
    model: Any, features: Features, costs: CostModel, classes: int, *, finite: bool = True
) -> Iterator[Prediction]:
    """The predictions of one block as they come, plain and checked: at most 100 points, shapes,
    bills, and with ``finite`` that scores are finite."""
    path, found = model.predict_path(features), 0
    if not isinstance(path, Iterable):
        raise ContractError(f"predict_path gives {path!r:.40}: yield predictions")
    for given in path:
        if found == MAX_POINTS:
            raise ContractError(f"its path has more than {MAX_POINTS} points")
        prediction = plain(given)
        _check(prediction, len(features), costs, classes, finite)
        yield prediction
        found += 1
    if found == 0:
        raise ContractError("its path is empty")


def plain(given: Any) -> Prediction:
    """A prediction with arrays of the contract's types. Raises ContractError."""
    try:
        point, scores, bills = given.point, given.scores, given.bills
    except AttributeError:
        raise ContractError(f"predict_path yields {given!r:.40}: yield Prediction") from None
    if not isinstance(point, Mapping) or not isinstance(bills, Mapping):
        raise ContractError("point and bills of a prediction must be mappings")
    named = {str(name): _number(value, str(name)) for name, value in point.items()}
    at = f"at {named}"
    if CAP in named:
        raise ContractError(f"{at}: the name {CAP!r} is the benchmark's own; take another")
    scores = _real(scores, f"{at}: scores")
    billed = {str(name): _plain_bill(bill, f"{at}: bill {name!r}") for name, bill in bills.items()}
    stage = getattr(given, "stage", None)
    return Prediction(named, scores, billed, _whole(stage, f"{at}: stage"))


def plain_marks(marks: Iterable[Any]) -> tuple[str, ...]:
    """A model's marks, which reach boards, pages and tables as they are: at most 5, each of up to
    24 lower-case letters, digits, spaces and hyphens, none of them a word for verdicts."""
    found = [str(mark) for mark, _ in zip(marks, range(MOST_MARKS + 1), strict=False)]
    for mark in found:
        if not _MARK.fullmatch(mark) or VERDICTS & {*re.split("[ -]", mark)}:
            how = "up to 24 lower-case letters, digits, spaces and hyphens"
            barred = ", ".join(sorted(VERDICTS))
            raise ContractError(f"its mark {mark!r:.40} is not plain: {how}, without {barred}")
    if len(found) > MOST_MARKS:
        raise ContractError(f"it has more than {MOST_MARKS} marks")
    return tuple(found)


def _number(value: Any, name: str) -> int | float:
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, int | float):
        raise ContractError(f"{name!r:.80}: a point holds plain numbers, not {value!r:.40}")
    if not -(2**53) <= value <= 2**53:  # inf and NaN too
        raise ContractError(f"{name!r:.80}: a point holds finite numbers of at most 2**53")
    return value


def _plain_bill(bill: Any, at: str) -> Bill:
    try:
        acquired, splits, trees = bill.acquired, bill.splits, bill.trees
        bits, sensors = np.asarray(acquired.bits), acquired.sensors
    except AttributeError:
        raise ContractError(f"{at} is {bill!r:.40}: it must be a Bill") from None
    if bits.dtype != np.uint64 or bits.ndim != 2 or bits.shape[1] != words(sensors):
        raise ContractError(f"{at}: acquired is {bits.dtype} {bits.shape}, not uint64 (n or 1, w)")
    counts = _real(splits, f"{at}: splits"), _real(trees, f"{at}: trees")
    order = _whole(getattr(bill, "order", None), f"{at}: order")
    return Bill(Acquired(bits, sensors), *counts, order)


def _real(values: Any, what: str) -> FloatArray:
    """Real numbers as float64. Raises ContractError for complex, masked, text and object ones."""
    if isinstance(values, np.ma.MaskedArray):
        raise ContractError(f"{what} are masked: fill them with numbers")
    try:
        array: NDArray[Any] = np.asarray(values)
    except ValueError as error:
        raise ContractError(f"{what} are no array ({error})") from error
    if array.dtype.kind not in "biuf":
        raise ContractError(f"{what} are {array.dtype}: they must be real numbers")
    return array.astype(np.float64, copy=False)


def _whole(values: Any, what: str) -> IntArray | None:
    """Whole numbers, where a model gives them."""
    if values is None:
        return None
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise ContractError(f"{what} is {array.dtype}: it must be whole numbers")
    return array.astype(np.int64, copy=False)


def _check(prediction: Prediction, n: int, costs: CostModel, classes: int, finite: bool) -> None:
    at, scores = f"at {dict(prediction.point)}", prediction.scores
    wanted = (n, classes) if classes > 2 else (n,)
    if scores.shape != wanted:
        raise ContractError(f"{at}: scores have shape {scores.shape} instead of {wanted}")
    if finite and not bool(np.isfinite(scores).all()):
        raise ContractError(f"{at}: {int((~np.isfinite(scores)).sum())} scores are not finite")
    if "path" not in prediction.bills:
        raise ContractError(f"{at}: there is no bill 'path'")
    for name, bill in prediction.bills.items():
        _check_bill(bill, n, costs, f"{at}: bill {name!r}")


def _check_bill(bill: Bill, n: int, costs: CostModel, at: str) -> None:
    bits, sensors = bill.acquired.bits, bill.acquired.sensors
    if sensors != costs.sensors:
        raise ContractError(f"{at} has {sensors} sensors, the prices have {costs.sensors}")
    if len(bits) not in (1, n):
        raise ContractError(f"{at}: acquired is {bits.dtype} {bits.shape}, not uint64 (n or 1, w)")
    spare = words(sensors) * 64 - sensors
    if spare and len(bits) and int(bits[:, -1].max()) >> (64 - spare):
        raise ContractError(f"{at}: bits beyond the last sensor are set")
    for name, counts in (("splits", bill.splits), ("trees", bill.trees)):
        values = np.asarray(counts)
        least, most = values.min(initial=0.0), values.max(initial=0.0)  # NaN where there is one
        if values.shape not in ((), (n,)) or not (least >= 0 and most < math.inf):
            raise ContractError(f"{at}: {name} must be finite, >= 0 and one number or ({n},)")
    if bill.order is not None:
        if bill.order.shape not in ((1, sensors), (n, sensors)):
            raise ContractError(f"{at}: order is {bill.order.shape}, not ({n} or 1, {sensors})")
        if ((bill.order >= 0) != bill.acquired.unpack()).any():
            raise ContractError(f"{at}: order must be >= 0 for the sensors bought, -1 for others")


def check_accounting(prediction: Prediction, accounting: str) -> None:
    """Refuse a bill that leaves out what ``path`` bought, which alone is audited."""
    bought, billed = (prediction.bills[name].acquired.bits for name in ("path", accounting))
    if billed is not bought and bool((bought & ~billed).any()):
        fault = f"bill {accounting!r} leaves out sensors that bill 'path' has"
        raise ContractError(f"at {dict(prediction.point)}: {fault}")


def check_costs(cost: FloatArray, costs: CostModel, point: Mapping[str, Any]) -> None:
    """Refuse what no row can be charged."""
    least, most = cost.min(initial=0.0), cost.max(initial=0.0)  # NaN where there is one
    if not (least >= 0 and most < MOST_COST):
        bad = cost[~((cost >= 0) & (cost < MOST_COST))][0]
        fault = f"cost model {costs.name!r} charges a row {bad:g}"
        raise ContractError(f"at {dict(point)}: {fault}: costs are >= 0 and below {MOST_COST:g}")
