"""How time and memory grow with rows, features and trees: a picture and exponents for the docs.

    python tests/speed/growth.py [--sizes 6] [-o docs/growth.svg]   # two minutes, idle

Each figure is the median of up to three runs, in seconds of processor time of one thread, in a
process of its own; memory is the most that the process held, about 200 MB of Python and libraries
included. An exponent is the slope on logarithmic axes over the last tenfold step: 1 is in
proportion, less is better. Needs matplotlib (extra ``plot``).
"""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

BASE = {"rows": 10_000, "features": 30, "trees": 100}
LEAST = {"rows": 1_000, "features": 10, "trees": 10}
STEPS = (1, 3, 10, 30, 100, 300)
WORK = ("training", "prediction", "metering", "reading")
ROUNDS, ENOUGH = 3, 2.0  # runs at most; none begins after so many seconds
BLOCK = 1_000  # rows that are written out; a longer file repeats them


def data(rows: int, features: int) -> tuple[Any, Any]:
    """Normal columns, of which ten matter."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, features), dtype=np.float32)
    return X, X[:, :10] @ rng.normal(size=10) + rng.normal(size=rows)


def trained(X: Any, y: Any, trees: int) -> Callable[[], Any]:
    """Boosting of so many trees of 16 leaves, binning included."""
    from bench_trees import Settings, Squared, boost, find_bins

    def work() -> Any:
        bins = find_bins(X, max_bins=255)
        settings = Settings(trees=trees, max_leaves=16, max_depth=4)
        return boost(bins.codes(X, 1), bins, y, loss=Squared(), settings=settings, threads=1)

    return work


def action(work: str, rows: int, features: int, trees: int) -> Callable[[], Any]:
    """What is timed; all that it needs is made here."""
    X, y = data(rows, features)
    if work == "reading":
        from sklearn.datasets import dump_svmlight_file

        from bench_core.datasets.readers.svmlight import read_svmlight

        file = Path(f"growth-{os.getpid()}.svm")
        buffer = io.BytesIO()
        dump_svmlight_file(X[:BLOCK], np.round(y[:BLOCK], 3), buffer, zero_based=False)
        with file.open("wb") as out:
            for _ in range(rows // BLOCK):
                out.write(buffer.getvalue())
        return lambda: read_svmlight(file)
    if work == "training":
        return trained(X, y, trees)
    from bench_models.boosting import chain, prefix_chain

    from bench_core import Examples, Features, price_list
    from bench_core.execution.predict import predict_split

    few = slice(0, 2_000)  # trees of as many leaves, soon made
    ensemble, prices = trained(X[few], y[few], trees)(), price_list(np.ones(features))
    if work == "metering":
        path = chain(ensemble, prices, {})
        return lambda: predict_split(path, Examples(X, y), prices, 2, threads=1)
    whole = prefix_chain(ensemble, [ensemble.trees], prices, {})
    return lambda: list(whole.predict_path(Features(X)))


def measured(work: str, **size: int) -> dict[str, float]:
    """Seconds and MB of one size, in a child process."""
    read, write = os.pipe()
    if not os.fork():
        run = action(work, **size)
        run()  # pages touched
        seconds: list[float] = []
        while len(seconds) < ROUNDS and sum(seconds) < ENOUGH:
            start = time.process_time()
            run()
            seconds.append(time.process_time() - start)
        held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for file in Path().glob(f"growth-{os.getpid()}.svm"):
            file.unlink()
        with os.fdopen(write, "w") as out:
            json.dump({"seconds": median(seconds), "mb": held / 1024}, out)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        found: dict[str, float] = json.load(answer)
    os.wait()
    return found


def loaded() -> None:
    """All that is imported and compiled, for processes to come."""
    for work in WORK:
        run = action(work, BLOCK, 10, 2)
        run()
    next(Path().glob(f"growth-{os.getpid()}.svm")).unlink()


def exponent(sizes: list[int], values: list[float]) -> float:
    """The slope over the last three sizes, a tenfold step, on logarithmic axes."""
    if len(sizes) < 3:
        return float("nan")
    return float(np.polyfit(np.log(sizes[-3:]), np.log(values[-3:]), 1)[0])


def drawn(found: dict[str, dict[str, list[tuple[int, dict[str, float]]]]], file: Path) -> None:
    """Panels of seconds and of memory for rows, features and trees."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "growth"
    import matplotlib.pyplot as plt

    shape: dict[str, Any] = {"figsize": (11, 6.4), "sharex": "col", "sharey": "row"}
    figure, axes = plt.subplots(2, 3, layout="constrained", **shape)
    for column, (by, works) in zip(axes.T, found.items(), strict=True):
        for (work, points), marker in zip(works.items(), "os^D", strict=False):
            for axis, name in zip(column, ("seconds", "mb"), strict=True):
                values = [each[name] for _, each in points]
                axis.loglog([size for size, _ in points], values, f"{marker}-", label=work)
                axis.grid(alpha=0.3)
        column[1].set_xlabel(by)
    axes[0, 0].set_ylabel("seconds of processor time")
    axes[1, 0].set_ylabel("MB at most")
    axes[0, 0].legend()
    figure.savefig(file, metadata={"Date": None})


def row(work: str, by: str, points: list[tuple[int, dict[str, float]]]) -> str:
    """A line of the table."""
    sizes = [size for size, _ in points]
    seconds, memory = ([each[name] for _, each in points] for name in ("seconds", "mb"))
    cells = [f"{s:.3g}" for s in seconds] + [f"{exponent(sizes, seconds):.2f}"]
    cells += [f"{memory[0]:.0f}", f"{memory[-1]:.0f}", f"{exponent(sizes, memory):.2f}"]
    return f"| {work}, {by} {sizes[0]} to {sizes[-1]} | {' | '.join(cells)} |"


def main() -> None:
    """Measure, print the table, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, default=6, help="how many of each, from the least")
    parser.add_argument("-o", type=Path, default=Path("docs/growth.svg"))
    options = parser.parse_args()
    loaded()
    found: dict[str, dict[str, Any]] = {}
    for by, least in LEAST.items():
        found[by] = {}
        for work in WORK:
            if (work, by) == ("reading", "trees"):
                continue
            sizes = [least * step for step in STEPS[: options.sizes]]
            points = [(size, measured(work, **{**BASE, by: size})) for size in sizes]
            found[by][work] = points
            print(row(work, by, points), flush=True)
    print(f"base {BASE}, load {os.getloadavg()[0]:.1f}")
    drawn(found, options.o)


if __name__ == "__main__":
    main()
