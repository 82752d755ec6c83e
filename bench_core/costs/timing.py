"""What extractors cost: their CPU time on this machine, as prices.

Every extractor is called on every item several times. Its price is the median of all timings, its
spread their quartiles. The order of the extractors is drawn anew for every item and repetition, so
that a machine that slows down or warms up favours none. Short calls are repeated until the clock
can tell (``LEAST``). Native libraries are held to one thread: CPU time adds up over threads.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from bench_core.errors import InputError

Clock = Literal["cpu", "wall"]
Progress = Callable[[int, int], None]
UNITS = {"cpu": "CPU ms", "wall": "ms"}
LEAST = 2e-4
"""Seconds that one timing lasts at least."""
STEPS = 20
"""Steps of the clock that one timing lasts at least: it is wrong by at most one of them."""
WATCH = 0.25
"""Seconds that a clock is watched for its steps, at most."""
MOST_CALLS = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Extractor:
    """One measurement of an item, and the features it gives.

    ``extract(item)`` returns a number, a vector, or a mapping of feature names to numbers: all of
    them are there once it has run. Where ``outputs`` has entries it may return anything, and
    feature ``name`` is ``outputs[name](what extract returned)``, a number that costs its own time.
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
        """From timings in seconds."""
        low, median, high = (1e3 * np.quantile(seconds, (0.25, 0.5, 0.75))).tolist()
        return cls(median, low, high, 1e3 * float(np.mean(seconds)), len(seconds))

    @property
    def spread(self) -> float:
        """The distance of the quartiles."""
        return self.high - self.low


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What ``measure`` found.

    ``extract`` has a timing per extractor, ``features`` its features, ``outputs`` a timing for each
    feature that is computed from what its extractor returned. ``step`` is by how many seconds the
    clock moves.
    """

    features: Mapping[str, tuple[str, ...]]
    extract: Mapping[str, Timing]
    outputs: Mapping[str, Timing]
    items: int
    repeats: int
    clock: Clock = "cpu"
    step: float = 0.0


def measure(
    extractors: Sequence[Extractor],
    items: Sequence[Any],
    *,
    load: Callable[[Any], Any] = lambda item: item,
    repeats: int = 5,
    clock: Clock = "cpu",
    progress: Progress = lambda done, total: None,
) -> Measured:
    """Time all extractors on all items.

    ``load`` turns an item into what extractors take and is not timed. ``progress`` hears how many
    of all calls are done, between timings. Raises InputError, naming extractor and item, where one
    raises, returns nothing or no numbers, or not the same features for every item.
    """
    if not extractors or not items or repeats < 1:
        raise ValueError("measuring needs extractors, items and at least one repetition")
    stopwatch = _Stopwatch(clock)
    first = _Item(items[0], load)
    probes = [_Probe.ready(extractor, first, stopwatch) for extractor in extractors]
    _refuse_doubles(probes)
    total = repeats * len(items) * len(probes)
    orders = np.random.default_rng(0)
    done = 0
    with _undisturbed():
        for _ in range(repeats):
            for item in items:
                loaded = _Item(item, load)
                for k in orders.permutation(len(probes)):
                    probes[k].time(loaded, stopwatch)
                    done += 1
                    progress(done, total)
    return Measured(
        {p.extractor.name: p.features for p in probes},
        {p.extractor.name: Timing.of(p.spent) for p in probes},
        {name: Timing.of(spent) for p in probes for name, spent in p.spent_on.items()},
        len(items),
        repeats,
        clock,
        stopwatch.step,
    )


@contextmanager
def _undisturbed() -> Iterator[None]:
    """No garbage collection and no second thread of native libraries."""
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


class _Item:
    """An item as extractors take it; its name is for messages."""

    def __init__(self, item: Any, load: Callable[[Any], Any]) -> None:
        self.name = str(item) if isinstance(item, str) or hasattr(item, "__fspath__") else "an item"
        try:
            self.value = load(item)
        except InputError:
            raise
        except (Exception, SystemExit) as error:
            raise InputError(
                f"{self.name}: loading it failed ({_what(error)}); remove it from the input, "
                "or mend the function that loads"
            ) from error


def _what(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


class _Stopwatch:
    """Seconds of one call."""

    def __init__(self, clock: Clock) -> None:
        self._clock = time.process_time if clock == "cpu" else time.perf_counter
        self.step = _step(self._clock)
        self._least = max(LEAST, STEPS * self.step)

    def calls(self, call: Callable[[Any], Any], value: Any) -> int:
        """How many calls one timing takes; they warm the function up."""
        calls = 1
        call(value)
        while calls < MOST_CALLS and self.timed(call, value, calls)[0] * calls < self._least:
            calls *= 2
        return calls

    def timed(self, call: Callable[[Any], Any], value: Any, calls: int) -> tuple[float, Any]:
        """Seconds per call, and what the last one returned."""
        clock, times, given = self._clock, range(calls), None
        begun = clock()
        for _ in times:
            given = call(value)
        return (clock() - begun) / calls, given


def _step(clock: Callable[[], float]) -> float:
    """By how much a clock moves, seen by watching it: CPU time moves by 15.6 ms on Windows, which
    reports 100 ns."""
    steps: list[float] = []
    last, until = clock(), time.perf_counter() + WATCH
    while len(steps) < 5 and time.perf_counter() < until:
        if (now := clock()) > last:
            steps.append(now - last)
            last = now
    return min(steps, default=0.0)


@dataclass(slots=True, eq=False)
class _Probe:
    """An extractor with its timings so far."""

    extractor: Extractor
    features: tuple[str, ...]
    calls: int
    calls_of: Mapping[str, int]
    spent: list[float] = field(default_factory=list)
    spent_on: dict[str, list[float]] = field(default_factory=dict)

    @classmethod
    def ready(cls, extractor: Extractor, item: _Item, stopwatch: _Stopwatch) -> _Probe:
        """Warmed up, its features known."""
        with _blamed(extractor.name, item):
            given = extractor.extract(item.value)
            features = _features(extractor, given)
            calls = stopwatch.calls(extractor.extract, item.value)
            calls_of = {n: stopwatch.calls(f, given) for n, f in extractor.outputs.items()}
        return cls(extractor, features, calls, calls_of, [], {n: [] for n in calls_of})

    def time(self, item: _Item, stopwatch: _Stopwatch) -> None:
        with _blamed(self.extractor.name, item):
            seconds, given = stopwatch.timed(self.extractor.extract, item.value, self.calls)
            self.spent.append(seconds)
            found = self.features if self.calls_of else _features(self.extractor, given)
            for name, call in self.extractor.outputs.items():
                seconds, value = stopwatch.timed(call, given, self.calls_of[name])
                self.spent_on[name].append(seconds)
                _refuse_many(self.extractor.name, name, value)
        if found != self.features:
            raise InputError(
                f"extractor {self.extractor.name!r} returned {len(self.features)} features for the "
                f"first item and {len(found)} (or others) for {item.name}; return the same for all"
            )


@contextmanager
def _blamed(name: str, item: _Item) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except (Exception, SystemExit) as error:  # a script that ends itself
        raise InputError(
            f"extractor {name!r} failed on {item.name} ({_what(error)}); mend it"
        ) from error


def _features(extractor: Extractor, given: Any) -> tuple[str, ...]:
    """The names of its features; refuses what holds no numbers."""
    name = extractor.name
    if given is None:
        raise InputError(f"extractor {name!r} returned nothing; return a number or a vector")
    if extractor.outputs:
        for output, call in extractor.outputs.items():
            _refuse_many(name, output, call(given))
        return tuple(extractor.outputs)
    if isinstance(given, Mapping):
        _numbers(name, list(given.values()))
        return tuple(str(key) for key in given)
    vector = _numbers(name, given)
    if vector.size == 1:
        return (name,)
    return tuple(f"{name}_{k}" for k in range(1, vector.size + 1))


def _refuse_many(name: str, output: str, value: Any) -> None:
    if _numbers(output, value).size != 1:
        raise InputError(f"output {output!r} of {name!r} is not one number; return one")


def _numbers(name: str, given: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    try:
        vector = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"extractor {name!r} returned {type(given).__name__}, not numbers; return a number, "
            "a vector or a mapping of names to numbers"
        ) from error
    if not vector.size:
        raise InputError(f"extractor {name!r} returned no number at all; return at least one")
    return vector


def _refuse_doubles(probes: Sequence[_Probe]) -> None:
    owner: dict[str, str] = {}
    for probe in probes:
        for name in probe.features:
            if name in owner:
                raise InputError(
                    f"feature {name!r} comes from the extractors {owner[name]!r} and "
                    f"{probe.extractor.name!r}; give it two names"
                )
            owner[name] = probe.extractor.name


def cost_document(measured: Measured, *, numbered: bool = False) -> dict[str, Any]:
    """A cost file (its full JSON form) with the spread and the machine beside the prices.

    Features of one extractor share one price, paid once; those computed from what it returned form
    a discounted group: the first pays extraction and its own output, later ones their output alone.
    ``numbered`` calls the features 1, 2, ... in their order.
    """
    names = [f for features in measured.features.values() for f in features]
    called = (
        {n: str(k) for k, n in enumerate(names, start=1)}
        if numbered
        else dict(zip(names, names, strict=True))
    )
    costs: dict[str, float] = {}
    shared, discounted = [], []
    for name, features in measured.features.items():
        price = _rounded(measured.extract[name].median)
        later = [
            _rounded(measured.outputs[f].median) if f in measured.outputs else 0.0 for f in features
        ]
        members = [called[f] for f in features]
        costs |= {m: price + extra for m, extra in zip(members, later, strict=True)}
        if len(members) == 1:
            continue
        if any(f in measured.outputs for f in features):
            discounted.append({"members": members, "later": later})
        else:
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
    def rows(timings: Mapping[str, Timing]) -> dict[str, dict[str, Any]]:
        return {
            name: {
                "median": _rounded(t.median),
                "quartiles": [_rounded(t.low), _rounded(t.high)],
                "mean": _rounded(t.mean),
            }
            for name, t in timings.items()
        }

    return {
        "clock": "CPU time" if measured.clock == "cpu" else "wall-clock time",
        "clock_step": _rounded(1e3 * measured.step),
        "machine": machine(),
        "on": time.strftime("%Y-%m-%d", time.gmtime()),
        "items": measured.items,
        "repeats": measured.repeats,
        "extractors": rows(measured.extract),
        "outputs": rows(measured.outputs),
    }


def machine() -> str:
    """What timings depend on, without names of people or hosts."""
    import os
    import platform

    return (
        f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, numpy {np.__version__}"
    )


def _processor() -> str:
    """The processor's name where the system tells."""
    import platform
    from pathlib import Path

    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown processor"
