"""What a model must keep to: its predictions read once into plain arrays, and checked.

What a model yields may be of any class: ``plain`` asks each of its members once, so that nothing
answers the meter otherwise than the audit. ``predictions`` checks only what was read.
"""

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
MOST_SETTINGS = 20
LARGEST = 1 << 53
MOST_COST = 1e15
"""What a row cannot cost: sums and squares of more are no numbers in the statistics of a board, and
one learner's would take it from all."""
VERDICTS = {"declared", "sampled", "verified", "failed"}
_BARRED = ", ".join(sorted(VERDICTS))
_SETTING = re.compile(r"[A-Za-z0-9_.-]{1,60}")
_MARK = re.compile("[a-z][a-z0-9 -]{0,23}")


class ContractError(Exception):
    """A model broke the contract; the message says how, in one line."""


def predictions(
    model: Any, features: Features, costs: CostModel, classes: int, *, finite: bool = True
) -> Iterator[Prediction]:
    """The predictions of one block as they come, plain and checked: at most 100 points, shapes,
    bills, and with ``finite`` that scores are finite."""
    found = 0
    for prediction in plain_path(model, features):
        if found == MAX_POINTS:
            raise ContractError(f"its path has more than {MAX_POINTS} points")
        _check(prediction, len(features), costs, classes, finite)
        yield prediction
        found += 1
    if found == 0:
        raise ContractError("its path is empty")


def plain_path(model: Any, features: Features) -> Iterator[Prediction]:
    """What a model yields for a block, each prediction read once."""
    path = model.predict_path(features)
    if not isinstance(path, Iterable):
        raise ContractError(f"predict_path gives {path!r:.40}: yield predictions")
    yield from map(plain, path)


def plain_marks(marks: Iterable[Any]) -> tuple[str, ...]:
    """A model's marks, which reach boards, pages and tables as they are: at most 5, each of up to
    24 lower-case letters, digits, spaces and hyphens, none of them a word for verdicts."""
    found = [str(mark) for mark, _ in zip(marks, range(MOST_MARKS + 1), strict=False)]
    for mark in found:
        if not _MARK.fullmatch(mark) or VERDICTS & {*re.split("[ -]", mark)}:
            how = f"up to 24 lower-case letters, digits, spaces and hyphens, without {_BARRED}"
            raise ContractError(one_line(f"its mark {mark!r:.40} is not plain: {how}", 300))
    if len(found) > MOST_MARKS:
        raise ContractError(f"it has more than {MOST_MARKS} marks")
    return tuple(found)


def plain(given: Any) -> Prediction:
    """The same prediction in numpy's own arrays and our own classes. Raises ContractError."""
    try:
        point, scores, bills = given.point, given.scores, given.bills
    except AttributeError:
        raise ContractError(f"predict_path yields {given!r:.40}: yield Prediction") from None
    if not isinstance(point, Mapping) or not isinstance(bills, Mapping):
        raise ContractError("point and bills of a prediction must be mappings")
    named = {str(name): _number(value, name) for name, value in point.items()}
    if len(named) > MOST_SETTINGS or not all(map(_SETTING.fullmatch, named)):
        few = f"at most {MOST_SETTINGS} names of up to 60 letters, digits, '-', '_' and '.' (ASCII)"
        raise ContractError(one_line(f"a point has {few}, not {[*named]!a:.80}", 300))
    at = f"at {named}"
    scores = _real(scores, f"{at}: scores")
    billed = {str(name): _plain_bill(bill, f"{at}: bill {name!r}") for name, bill in bills.items()}
    return Prediction(named, scores, billed, _whole(getattr(given, "stage", None), at))


def _number(value: Any, name: Any) -> int | float:
    """A plain number, the setting of that name; of a subclass what it is worth."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(number := int.__index__(value)) <= LARGEST:
        return number
    if not isinstance(value, float):
        fault = "a point holds plain numbers, whole ones up to 2**53"
        raise ContractError(one_line(f"{name!r:.80}: {fault}", 300))
    if not math.isfinite(value):
        raise ContractError(one_line(f"{name!r:.80}: a point holds finite numbers", 300))
    return float.__float__(value)


def _plain_bill(bill: Any, at: str) -> Bill:
    try:
        acquired, splits, trees = bill.acquired, bill.splits, bill.trees
        bits, sensors = acquired.bits, acquired.sensors
    except AttributeError:
        raise ContractError(f"{at} is {bill!r:.40}: it must be a Bill") from None
    bits = bits if type(bits) is np.ndarray else np.asarray(bits)
    if not isinstance(sensors, int) or bits.dtype != np.uint64 or bits.ndim != 2:
        raise ContractError(f"{at}: acquired is {bits.dtype} {bits.shape}, not uint64 (n or 1, w)")
    if bits.shape[1] != words(sensors):
        raise ContractError(f"{at}: {sensors} sensors need {words(sensors)} words of bits a row")
    counts = _real(splits, f"{at}: splits"), _real(trees, f"{at}: trees")
    return Bill(Acquired(bits, int(sensors)), *counts)


def _real(values: Any, what: str) -> FloatArray:
    """Real numbers as float64. Raises ContractError for complex, masked, text and object ones."""
    if isinstance(values, np.ma.MaskedArray):
        raise ContractError(f"{what} are masked: fill them with numbers")
    try:
        array: NDArray[Any] = np.asarray(values)
    except ValueError as error:
        raise ContractError(one_line(f"{what} are no array ({error})", 300)) from error
    if array.dtype.kind not in "biuf":
        raise ContractError(f"{what} are {array.dtype}: they must be real numbers")
    return array.astype(np.float64, copy=False)


def _whole(values: Any, at: str) -> IntArray | None:
    """Which stage each row saw last, where a model says so."""
    if values is None:
        return None
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise ContractError(f"{at}: stage is {array.dtype}: it must be whole numbers")
    return array.astype(np.int64, copy=False)


def check_accounting(prediction: Prediction, accounting: str) -> None:
    """Refuse a bill that leaves out what ``path`` bought, which alone is audited. Raises
    ContractError."""
    bought, billed = (prediction.bills[name].acquired.bits for name in ("path", accounting))
    if billed is not bought and bool((bought & ~billed).any()):
        fault = f"bill {accounting!r} leaves out sensors that bill 'path' has"
        raise ContractError(f"at {dict(prediction.point)}: {fault}")


def check_costs(cost: FloatArray, costs: CostModel, point: Mapping[str, Any]) -> None:
    """Refuse what no row can be charged. Raises ContractError."""
    least, most = cost.min(initial=0.0), cost.max(initial=0.0)  # NaN where there is one
    if not (least >= 0 and most < MOST_COST):
        bad = cost[~((cost >= 0) & (cost < MOST_COST))][0]
        limits = f"costs are >= 0 and below {MOST_COST:g}"
        fault = f"cost model {costs.name!r} charges a row {bad:g}: {limits}"
        raise ContractError(f"at {dict(point)}: {fault}")


def _check(prediction: Prediction, n: int, costs: CostModel, classes: int, finite: bool) -> None:
    at = f"at {dict(prediction.point)}"
    if CAP in prediction.point:
        raise ContractError(f"{at}: the name {CAP!r} is the benchmark's own; take another")
    wanted = (n, classes) if classes > 2 else (n,)
    scores = prediction.scores
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
        if values.shape not in ((), (n,)) or not (least >= 0 and most < np.inf):
            raise ContractError(f"{at}: {name} must be finite, >= 0 and one number or ({n},)")
