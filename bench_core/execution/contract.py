"""Checks of a model's predictions against the protocol, and errors of plugins in one line."""

from __future__ import annotations

import math
import re
import sysconfig
import traceback
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from traceback import FrameSummary, walk_tb
from typing import Any

import numpy as np

from bench_core._io.digests import plugin_packages
from bench_core.arrays import FloatArray, IntArray
from bench_core.costs.bill import Acquired, Bill, Prediction, words
from bench_core.costs.model import CostModel
from bench_core.data import Features
from bench_core.errors import BenchError, lacks_memory, one_line
from bench_core.results.budgets import CAP, CONSTANT
from bench_core.results.records import Status

MAX_POINTS = 100
MOST_MARKS = 5
MOST_COST = 1e15
"""Upper limit of a row's cost: squares of larger costs would spoil a board's statistics."""
VERDICTS = {"declared", "sampled", "verified", "failed"}
_MARK = re.compile("[a-z][a-z0-9 -]{0,23}")


class ContractError(Exception):
    """A model violates the protocol; the message is one line."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message, 300))


def predictions(
    model: Any, features: Features, costs: CostModel, classes: int, *, finite: bool = True
) -> Iterator[Prediction]:
    """Yield the predictions of one block, checked: at most 100 points, shapes, bills, and with
    ``finite`` finite scores."""
    path, count = model.predict_path(features), 0
    if not isinstance(path, Iterable):
        raise ContractError(f"predict_path gives {path!r:.40}: yield predictions")
    for prediction in path:
        if count == MAX_POINTS:
            more = f"its path has more than {MAX_POINTS} points: yield fewer, evenly spread in cost"
            raise ContractError(more)
        if not all(hasattr(prediction, name) for name in ("point", "scores", "bills")):
            raise ContractError(f"predict_path yields {prediction!r:.40}: yield Prediction")
        yield plain(prediction, len(features), costs, classes, finite)
        count += 1
    if count == 0:
        raise ContractError("its path is empty")


def plain(raw: Any, n: int, costs: CostModel, classes: int, finite: bool = True) -> Prediction:
    """Convert a prediction for n rows to arrays of the required types and shapes."""
    if not isinstance(raw.point, Mapping) or not isinstance(raw.bills, Mapping):
        raise ContractError("point and bills of a prediction must be mappings")
    point = {str(name): _number(value, str(name)) for name, value in raw.point.items()}
    at = f"at {point}"
    for name in {CAP, CONSTANT} & {*point}:
        raise ContractError(f"{at}: the name {name!r} is reserved; choose another")
    scores = _real(raw.scores, f"{at}: scores")
    wanted = (n, classes) if classes > 2 else (n,)
    if scores.shape != wanted:
        raise ContractError(f"{at}: scores have shape {scores.shape} instead of {wanted}")
    if finite and not bool(np.isfinite(scores).all()):
        raise ContractError(f"{at}: {int((~np.isfinite(scores)).sum())} scores are not finite")
    if "path" not in raw.bills:
        raise ContractError(f"{at}: there is no bill 'path'")
    bills = {
        str(name): _plain_bill(bill, n, costs, f"{at}: bill {name!r}")
        for name, bill in raw.bills.items()
    }
    return Prediction(point, scores, bills)


def _plain_bill(bill: Bill, n: int, costs: CostModel, at: str) -> Bill:
    bits, sensors = np.asarray(bill.acquired.bits), bill.acquired.sensors
    if sensors != costs.sensors:
        raise ContractError(f"{at} has {sensors} sensors, the prices have {costs.sensors}")
    if bits.dtype != np.uint64 or bits.shape not in ((1, words(sensors)), (n, words(sensors))):
        raise ContractError(f"{at}: acquired is {bits.dtype} {bits.shape}, not uint64 (n or 1, w)")
    spare = words(sensors) * 64 - sensors  # unused bits of the last word
    if spare and len(bits) and int(bits[:, -1].max()) >> (64 - spare):
        raise ContractError(f"{at}: bits beyond the last sensor are set")
    counts: dict[str, FloatArray] = {}
    for name in ("splits", "trees"):
        values = _real(getattr(bill, name), f"{at}: {name}")
        least, most = values.min(initial=0.0), values.max(initial=0.0)  # NaN if there is one
        if values.shape not in ((), (n,)) or not (least >= 0 and most < math.inf):
            raise ContractError(f"{at}: {name} must be finite, >= 0 and one number or ({n},)")
        counts[name] = values
    order = _whole(bill.order, f"{at}: order")
    plain = Bill(Acquired(bits, sensors), counts["splits"], counts["trees"], order)
    if plain.order is not None:
        if plain.order.shape not in ((1, sensors), (n, sensors)):
            raise ContractError(f"{at}: order is {plain.order.shape}, not ({n} or 1, {sensors})")
        if ((plain.order >= 0) != plain.acquired.unpack()).any():
            raise ContractError(f"{at}: order must be >= 0 for the sensors bought, -1 for others")
    return plain


def plain_marks(marks: Iterable[Any]) -> tuple[str, ...]:
    """Check a model's marks, which reports show unchanged: at most 5, each of up to 24 lower-case
    letters, digits, spaces and hyphens, without words for verdicts."""
    texts = tuple(map(str, marks))
    for mark in texts:
        if not _MARK.fullmatch(mark) or VERDICTS & {*re.split("[ -]", mark)}:
            how = "up to 24 lower-case letters, digits, spaces and hyphens"
            barred = ", ".join(sorted(VERDICTS))
            raise ContractError(f"its mark {mark!r:.40} is not plain: {how}, without {barred}")
    if len(texts) > MOST_MARKS:
        raise ContractError(f"it has more than {MOST_MARKS} marks")
    return texts


def _number(value: Any, name: str) -> int | float:
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, int | float) or not -(2**53) <= value <= 2**53:  # inf and NaN too
        raise ContractError(f"{name!r:.80}: a point holds finite numbers of at most 2**53")
    return value


def _real(values: Any, what: str) -> FloatArray:
    """Convert to real numbers in float64."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf" or isinstance(values, np.ma.MaskedArray):
        raise ContractError(f"{what} are {array.dtype} or masked: they must be real numbers")
    return array.astype(np.float64, copy=False)


def _whole(values: Any, what: str) -> IntArray | None:
    """Convert to integers, or None."""
    if values is None:
        return None
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise ContractError(f"{what} is {array.dtype}: it must be whole numbers")
    return array.astype(np.int64, copy=False)


def billed(prediction: Prediction, accounting: str) -> Bill:
    """Return the bill of an accounting. Refuse a bill that omits purchases of ``path``, as only
    ``path`` is audited."""
    at, bill = f"at {dict(prediction.point)}", prediction.bills.get(accounting)
    if bill is None:
        has = ", ".join(sorted(prediction.bills))
        raise ContractError(f"{at}: no bill {accounting!r} (its accountings: {has})")
    bought = prediction.bills["path"].acquired.bits
    if bill.acquired.bits is not bought and bool((bought & ~bill.acquired.bits).any()):
        raise ContractError(f"{at}: bill {accounting!r} leaves out sensors that bill 'path' has")
    return bill


def check_costs(cost: FloatArray, costs: CostModel, point: Mapping[str, Any]) -> None:
    """Refuse invalid costs of rows."""
    good = (cost >= 0) & (cost < MOST_COST)  # NaN is neither
    if not good.all():
        fault = f"cost model {costs.name!r} charges a row {cost[~good][0]:g}"
        raise ContractError(f"at {dict(point)}: {fault}: costs are >= 0 and below {MOST_COST:g}")


LONGEST_LINE = 500
LONGEST_TEXT = 20_000
"""Maximum characters of an error's line, of a traceback and of a job's output."""

CUT = "-- above: frames of the plugin; below: the whole traceback, with bench_core and libraries --"


def failure(error: BaseException) -> tuple[Status, str, str]:
    """Status, one line and traceback of a job's exception."""
    from bench_core.execution.contract import ContractError

    status, frames = Status.FAILED, traceback.extract_tb(error.__traceback__)
    try:
        line = f"{type(error).__name__}: {error}" + (f" ({_place(frames[-1])})" if frames else "")
        if lacks_memory(error):
            status, line = Status.OUT_OF_MEMORY, f"out of memory: {error}".rstrip(": ")
        elif isinstance(error, ContractError):
            line = f"breaks the contract: {error}"
        elif isinstance(error, BenchError):  # the message has location, cause and remedy
            line = str(error)
        return status, one_line(line, LONGEST_LINE), trace(error)
    except Exception:  # str() of a plugin's exception may fail
        return Status.FAILED, f"{type(error).__name__}, whose message cannot be read", ""


def trace(error: BaseException) -> str:
    """Traceback: the plugin's frames, a separator line, then all frames."""
    frames = [frame for frame, _ in plugin_frames(error)]
    head = [*traceback.format_list(frames), *traceback.format_exception_only(error)]
    whole = traceback.format_exception(error)
    parts = [shortened("".join(part), LONGEST_TEXT // 2) for part in (head, whole)]
    return f"{parts[0]}{CUT}\n{parts[1]}" if frames else parts[1]


def plugin_frames(error: BaseException) -> list[tuple[FrameSummary, str]]:
    """Plugins' frames of an exception or its cause, outermost first, with module names."""
    at: BaseException | None = error
    while at is not None:
        modules = [raw.f_globals.get("__name__", "") for raw, _ in walk_tb(at.__traceback__)]
        named = zip(traceback.extract_tb(at.__traceback__), modules, strict=False)
        if frames := [pair for pair in named if _in_plugin(*pair)]:
            return frames
        at = at.__cause__ or at.__context__
    return []


def fault_of(error: BaseException) -> str:
    """``plugin mine failed (TypeError: ..., mine.py:12)``, or "" if no plugin was involved."""
    frames = plugin_frames(error)
    if not frames:
        return ""
    frame, name = frames[-1]
    return f"plugin {name} failed ({type(error).__name__}: {error}, {_place(frame)})"


def shortened(text: str, most: int = LONGEST_TEXT) -> str:
    """Cut text to ``most`` characters: its beginning and end, with a line for the omitted part."""
    if len(text) <= most:
        return text
    half, left_out = most // 2, len(text) - most
    return f"{text[:half]}\n... {left_out} characters left out ...\n{text[-half:]}"


def _in_plugin(frame: FrameSummary, module: str) -> bool:
    """True for shipped plugins, registered modules and modules outside installed libraries."""
    package = module.partition(".")[0]
    if package == "bench_core" or not Path(frame.filename).is_absolute():  # as in Cython, "<"
        return False
    library = frame.filename.startswith(sysconfig.get_path("stdlib"))
    return not (library or "site-packages" in frame.filename) or package in plugin_packages()


def _place(frame: FrameSummary) -> str:
    return f"{Path(frame.filename).name}:{frame.lineno}"
