"""Measure the CPU time of extractors on this machine, as prices.

Each extractor is called several times on every item. Its price is the median of all timings, its
spread their quartiles. The order of extractors is random for every item and repetition, so that
warming up or slowing down does not favour any of them. Short calls are repeated until a timing
lasts ``LEAST`` seconds. (``timeit.Timer.autorange`` repeats up to 0.2 s and discards the return
value, which is needed here.) Native libraries use one thread, as CPU time adds up over threads.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count, repeat
from typing import Any, Literal

import numpy as np

from bench_core._io.machine import machine
from bench_core.errors import InputError

Clock = Literal["cpu", "wall"]
Progress = Callable[[int, int], None]
Call = Callable[[Any], Any]
UNITS = {"cpu": "CPU ms", "wall": "ms"}
# Minimum seconds of one timing: CPU time has a resolution of 15.6 ms on Windows, far finer here.
LEAST = 0.3 if os.name == "nt" else 2e-4
MOST_CALLS = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Extractor:
    """One measurement of an item, and the features it yields.

    ``extract(item)`` returns a number, a vector, or a mapping of feature names to numbers; one call
    yields all of them. With ``outputs`` it may return any object. Feature ``name`` is then
    ``outputs[name](returned object)``, a number with its own cost.
    """

    name: str
    extract: Callable[[Any], Any]
    outputs: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds of one call: quartiles and mean over ``count`` timings."""

    median: float
    low: float
    high: float
    mean: float
    count: int

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Timing:
        """Summarise timings in seconds."""
        low, median, high = (1e3 * np.quantile(seconds, (0.25, 0.5, 0.75))).tolist()
        return cls(median, low, high, 1e3 * float(np.mean(seconds)), len(seconds))


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Result of ``measure``.

    ``extract`` has one timing per extractor, ``features`` its features, ``outputs`` one timing per
    feature computed from the extractor's return value.
    """

    features: Mapping[str, tuple[str, ...]]
    extract: Mapping[str, Timing]  # by extractor
    outputs: Mapping[str, Timing]  # by feature
    items: int
    repeats: int
    clock: Clock = "cpu"


def measure(
    extractors: Sequence[Extractor],
    items: Sequence[Any],
    *,
    load: Call = lambda item: item,
    repeats: int = 5,
    clock: Clock = "cpu",
    progress: Progress = lambda done, total: None,
) -> Measured:
    """Time all extractors on all items.

    ``load`` converts an item to the extractors' input and is not timed. ``progress`` receives the
    number of finished and of all timings, between timings. Raises InputError, with extractor and
    item, if an extractor fails, returns no numbers, or its features differ between items.
    """
    if not extractors or not items or repeats < 1:
        raise ValueError("measuring needs extractors, items and at least one repetition")
    timer = time.process_time if clock == "cpu" else time.perf_counter
    watch = partial(_Stopwatch, timer)
    first = _loaded(items[0], load)
    features: dict[str, tuple[str, ...]] = {}
    extractions: dict[str, _Stopwatch] = {}  # by extractor
    outputs: dict[str, _Stopwatch] = {}
    for e in extractors:
        with _blamed(e, items[0]):
            result = e.extract(first)
            features[e.name] = _features(e, result)
            extractions[e.name] = watch(e.extract, first)
            outputs |= {name: watch(call, result) for name, call in e.outputs.items()}
    names = [name for group in features.values() for name in group]
    for name in names:
        if names.count(name) > 1:
            owners = " and ".join(repr(e) for e, group in features.items() if name in group)
            raise InputError(
                f"feature {name!r} comes from the extractors {owners}; give it two names"
            )
    total, done = repeats * len(items) * len(extractors), count(1)
    orders = np.random.default_rng(0)  # random order of extractors for each item
    with _undisturbed():
        for item in chain.from_iterable(repeat(items, repeats)):
            value = _loaded(item, load)
            for k in orders.permutation(len(extractors)):
                e = extractors[k]
                with _blamed(e, item):
                    result = extractions[e.name](value)
                    for name in e.outputs:
                        _size(f"output {name!r}", outputs[name](result), single=True)
                    if not e.outputs and (current := _features(e, result)) != features[e.name]:
                        raise InputError(
                            f"extractor {e.name!r} returned {len(features[e.name])} features for "
                            f"the first item and {len(current)} (or others) for {_name(item)}; "
                            "return the same for all"
                        )
                progress(next(done), total)
    extract, more = (
        {name: Timing.of(watch.seconds) for name, watch in watches.items()}
        for watches in (extractions, outputs)
    )
    return Measured(features, extract, more, len(items), repeats, clock)


class _Stopwatch:
    """Times a function, with enough calls to last ``LEAST`` seconds; these calls warm it up."""

    def __init__(self, timer: Callable[[], float], call: Call, value: Any) -> None:
        self.timer, self.call, self.calls = timer, call, 1
        self.seconds: list[float] = []
        call(value)
        while self.calls < MOST_CALLS and self._timed(value)[0] * self.calls < LEAST:
            self.calls *= 2

    def __call__(self, value: Any) -> Any:
        seconds, result = self._timed(value)
        self.seconds.append(seconds)
        return result

    def _timed(self, value: Any) -> tuple[float, Any]:
        """Return seconds per call, and the last return value."""
        timer, call, times, result = self.timer, self.call, range(self.calls), None
        begun = timer()
        for _ in times:
            result = call(value)
        return (timer() - begun) / self.calls, result


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Disable garbage collection and additional threads of native libraries."""
    from threadpoolctl import threadpool_limits

    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        with threadpool_limits(1):
            yield
    finally:
        if collecting:
            gc.enable()


def _loaded(item: Any, load: Call) -> Any:
    try:
        return load(item)
    except (Exception, SystemExit) as error:
        raise InputError(
            f"{_name(item)}: loading it failed ({type(error).__name__}: {error}); remove it from "
            "the input, or correct the function that loads"
        ) from error


def _name(item: Any) -> str:
    return str(item) if isinstance(item, str) or hasattr(item, "__fspath__") else "an item"


@contextmanager
def _blamed(extractor: Extractor, item: Any) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except (Exception, SystemExit) as error:  # a script may call sys.exit
        what = f"{type(error).__name__}: {error}"
        raise InputError(
            f"extractor {extractor.name!r} failed on {_name(item)} ({what}); correct it"
        ) from error


def _features(extractor: Extractor, result: Any) -> tuple[str, ...]:
    """Names of the extractor's features; InputError if it returned no numbers."""
    name = extractor.name
    if result is None:
        raise InputError(f"extractor {name!r} returned nothing; return a number or a vector")
    if extractor.outputs:
        for output, call in extractor.outputs.items():
            _size(f"output {output!r}", call(result), single=True)
        return tuple(extractor.outputs)
    named = isinstance(result, Mapping)
    size = _size(f"extractor {name!r}", list(result.values()) if named else result)
    if named:
        return tuple(map(str, result))
    return (name,) if size == 1 else tuple(f"{name}_{k}" for k in range(1, size + 1))


def _size(what: str, result: Any, single: bool = False) -> int:
    """Count the numbers returned by an extractor or output. Raises InputError for other values."""
    try:
        size = np.asarray(result, dtype=np.float64).size
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{what} returned {type(result).__name__}, not numbers; return a number, "
            "a vector or a mapping of names to numbers"
        ) from error
    if not size or (single and size > 1):
        raise InputError(f"{what} returned {size} numbers; return {'one' if single else 'some'}")
    return size


def cost_document(measured: Measured, *, numbered: bool = False) -> dict[str, Any]:
    """Return a cost file (its full JSON form) with spread and machine added to the prices.

    Features of one extractor share one price, paid once. Features computed from its return value
    form a discounted group: the first pays extraction and its own output, later ones only their
    output. ``numbered`` calls the features 1, 2, ... in their order.
    """
    names = [f for features in measured.features.values() for f in features]
    called = {n: str(k) if numbered else n for k, n in enumerate(names, start=1)}
    later = {f: _rounded(timing.median) for f, timing in measured.outputs.items()}
    costs: dict[str, float] = {}
    shared, discounted = [], []
    for name, features in measured.features.items():
        price = _rounded(measured.extract[name].median)
        costs |= {called[f]: price + later.get(f, 0.0) for f in features}
        members = [called[f] for f in features]
        if len(members) > 1 and later.keys() & features:
            discounted.append({"members": members, "later": [later.get(f, 0.0) for f in features]})
        elif len(members) > 1:
            shared.append(members)
    return {
        "costs": costs,
        "shared": shared,
        "discounted": discounted,
        "unit": UNITS[measured.clock],
        "measured": _how(measured),
    }


def _rounded(milliseconds: float) -> float:
    return float(f"{milliseconds:.6g}")


def _how(measured: Measured) -> dict[str, Any]:
    """Description of the measurement, for human readers."""
    extractors, outputs = (
        {
            name: {
                "median": _rounded(t.median),
                "quartiles": [_rounded(t.low), _rounded(t.high)],
                "mean": _rounded(t.mean),
            }
            for name, t in timings.items()
        }
        for timings in (measured.extract, measured.outputs)
    )
    return {
        "clock": "CPU time" if measured.clock == "cpu" else "wall-clock time",
        "machine": machine(),
        "on": time.strftime("%Y-%m-%d", time.gmtime()),
        "items": measured.items,
        "repeats": measured.repeats,
        "extractors": extractors,
        "outputs": outputs,
    }
