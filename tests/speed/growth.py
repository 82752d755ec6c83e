"""How time and memory grow with rows, features and trees: a picture and exponents for the docs.

    python tests/speed/growth.py [--sizes 4] [-o docs/growth.svg]

Each figure is the median of three, in seconds of processor time of one thread, in a process of its
own; memory is the most that the process held. An exponent is the slope between the last two points
on logarithmic axes: 1 is in proportion, less is better. Needs matplotlib (extra ``plot``).
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import resource
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

BASE = {"rows": 10_000, "features": 30, "trees": 100}
SIZES = {
    "rows": [1_000, 10_000, 100_000, 1_000_000],
    "features": [10, 100, 1_000, 10_000],
    "trees": [10, 100, 1_000, 10_000],
}
WORK = ("training", "prediction", "metering", "reading")
ROUNDS = 3


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
        dump_svmlight_file(X, np.round(y, 3), buffer, zero_based=False)
        file.write_bytes(buffer.getvalue())
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
        run()  # kernels loaded, pages touched
        seconds = []
        for _ in range(ROUNDS):
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


def exponent(sizes: list[int], values: list[float]) -> float:
    """The slope between the last two points on logarithmic axes."""
    if len(sizes) < 2:
        return float("nan")
    return float(np.log(values[-1] / values[-2]) / np.log(sizes[-1] / sizes[-2]))


def drawn(found: dict[str, dict[str, list[tuple[int, dict[str, float]]]]], file: Path) -> None:
    """A panel of seconds for rows, features and trees."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "growth"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharey="row", layout="constrained")
    for axis, (by, works) in zip(axes, found.items(), strict=True):
        for (work, points), marker in zip(works.items(), "os^D", strict=False):
            sizes, seconds = [size for size, _ in points], [p["seconds"] for _, p in points]
            axis.loglog(sizes, seconds, f"{marker}-", label=work)
        axis.set_xlabel(by)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("seconds of processor time")
    axes[0].legend()
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    """Measure, print the table, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, default=4, help="how many of each, from the least")
    parser.add_argument("-o", type=Path, default=Path("docs/growth.svg"))
    options = parser.parse_args()
    found: dict[str, dict[str, Any]] = {by: {work: [] for work in WORK} for by in SIZES}
    for by, sizes in SIZES.items():
        for work in WORK:
            if work == "reading" and by == "trees":
                del found[by][work]
                continue
            for size in sizes[: options.sizes]:
                found[by][work].append((size, measured(work, **{**BASE, by: size})))
            sizes_done = [s for s, _ in found[by][work]]
            seconds, memory = ([p[name] for _, p in found[by][work]] for name in ("seconds", "mb"))
            cells = [f"{s:.3g}" for s in seconds]
            cells += [f"{exponent(sizes_done, seconds):.2f}", f"{memory[-1]:.0f}"]
            print(
                f"| {work}, {by} {sizes_done[0]} to {sizes_done[-1]} | {' | '.join(cells)} |",
                flush=True,
            )
    print(
        f"base {BASE}, {platform.processor() or platform.machine()}, load {os.getloadavg()[0]:.1f}"
    )
    drawn(found, options.o)


if __name__ == "__main__":
    main()
