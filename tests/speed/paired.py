"""Both sides of a comparison timed in turns, and both reported to pytest-benchmark.

pytest-benchmark times one function after another, so that whatever else the machine does falls on
one of them. Here the sides take turns (A B A B ...), each round gives one ratio, and the samples go
to the fixture as its own loop would have put them there: one entry of the JSON for each side, all
in one group. What pytest-benchmark has no field for stands in ``extra_info``:

``work``, ``side``  the key of a comparison, together with the peer
``ratios``     for each peer: median and quartiles of the ratios of the rounds, what was compared
               (``unit`` and the medians ``ours``, ``theirs``), the bar and whether it was ``met``
``values``     figures with a bar of their own, such as processor seconds
``facts``      figures without a bar that belong in the documentation
``details``    everything else
``command``, ``scale``, ``versions``, ``load``  how it was measured

``BENCH_SPEED_SCALE=0.05`` makes the data smaller; such figures never reach the documentation.
"""

import copy
import os
from importlib import metadata
from statistics import median, quantiles

SCALE = float(os.environ.get("BENCH_SPEED_SCALE", "1"))
REPORTED = []  # the extra_info of every side, for the table at the end


def setting(name, default, least=1):
    """``BENCH_SPEED_<name>``, or else the default at the scale that was asked for."""
    return int(os.environ.get(f"BENCH_SPEED_{name}", max(least, round(default * SCALE))))


def alternate(benchmark, sides, rounds, warm=True):
    """Seconds of each side in every round, in turns, by the fixture's timer; once, if disabled."""
    benchmark._mode = "paired"  # else pytest-benchmark warns that its fixture was not used
    if warm and benchmark.enabled:
        for action in sides.values():
            action()
    samples = {name: [] for name in sides}
    for _ in range(rounds if benchmark.enabled else 1):
        for name, action in sides.items():
            start = benchmark._timer()
            action()
            samples[name].append(benchmark._timer() - start)
    return samples


def ratio(ours, theirs, unit="s", bar=None):
    """Median and quartiles of the ratios of rounds; ``met`` is None where there is no bar."""
    each = [a / b for a, b in zip(ours, theirs, strict=True)]
    low, middle, high = quantiles(each, n=4, method="inclusive") if len(each) > 1 else each * 3
    return {
        "median": middle,
        "q1": low,
        "q3": high,
        "pairs": len(each),
        "unit": unit,
        "ours": median(ours),
        "theirs": median(theirs),
        "bar": bar,
        "met": None if bar is None else middle <= bar,
    }


def value(measured, unit, bar):
    """A figure with a bar of its own."""
    return {"value": measured, "unit": unit, "bar": bar, "met": measured <= bar}


def compare(benchmark, sides, *, work, rounds, warm=True, **options):
    """Time the sides in turns and report them; ``options`` are those of `report`."""
    samples = alternate(benchmark, sides, rounds, warm)
    report(benchmark, samples, work=work, **options)
    return samples


def report(
    benchmark,
    samples,
    *,
    work,
    peers=(),
    bars=None,
    measured=None,
    unit="s",
    per=1,
    facts=None,
    values=None,
    scale=SCALE,
    **details,
):
    """Give pytest-benchmark the seconds of every side.

    ``samples`` are seconds for ``per`` pieces of work; every side that is no peer is compared with
    every peer, by these or by ``measured`` (in ``unit``). ``bars`` are the highest ratios by side
    and peer. ``facts``, ``values`` and ``details`` go to the first side.
    """
    benchmark._mode = "paired"
    if benchmark.disabled:
        return
    shared = {"work": work, "scale": scale, **_how(benchmark, peers)}
    compared = measured or {s: [t / per for t in times] for s, times in samples.items()}
    own = {"facts": dict(facts or {}), "values": dict(values or {}), "details": details}
    for side, times in samples.items():
        ratios = {
            peer: ratio(compared[side], compared[peer], unit, (bars or {}).get((side, peer)))
            for peer in peers
            if side not in peers
        }
        _feed(benchmark, times, per, {**shared, "side": side, "ratios": ratios, **own})
        own = {}


def _feed(benchmark, times, per, info):
    """One entry of pytest-benchmark: the fixture under the side's name, with the side's seconds."""
    REPORTED.append(info)
    entry = copy.copy(benchmark)
    entry.name = f"{benchmark.name} {info['side']}"
    entry.group = f"{benchmark.group}: {info['work']}"
    entry.extra_info = info
    stats = entry._make_stats(per)
    for seconds in times:
        stats.update(seconds)


def _how(benchmark, peers):
    settings = {k: v for k, v in sorted(os.environ.items()) if k.startswith("BENCH_SPEED_")}
    names = {peer.split(",")[0] for peer in peers}
    return {
        "command": " ".join(
            [*(f"{k}={v}" for k, v in settings.items()), f"pytest -m speed '{benchmark.fullname}'"]
        ),
        "versions": {name: version for name in sorted(names) if (version := _version(name))},
        "load": os.getloadavg()[0],
    }


def _version(name):
    try:
        return metadata.version(name.lower())
    except metadata.PackageNotFoundError:
        return ""
