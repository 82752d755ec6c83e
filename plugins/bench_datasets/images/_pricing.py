"""The CPU time of descriptors and machines for one picture, measured, as a cost file."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench_core import Extractor, cost_document, measure
from bench_core.arrays import FloatArray
from bench_datasets.images._descriptors import DESCRIPTORS, Pixels, regions
from bench_datasets.images._one_vs_rest_svm import Machines

ITEMS, REPEATS = 12, 5
SECONDS = 5.0  # between two lines of progress


@dataclass(frozen=True, slots=True)
class View:
    """One descriptor of one region."""

    descriptor: str
    region: str

    @property
    def name(self) -> str:
        """As in the names of its features."""
        return f"{self.descriptor}@{self.region}"

    def feature(self, kind: str) -> str:
        """The name of its machine for one class."""
        return f"{self.name}:{kind}"


def measured_costs(
    pictures: Pixels,
    machines: dict[View, Machines],
    classes: Sequence[str],
    say: Callable[[str], None],
) -> str:
    """A cost file in JSON: extraction and kernel are paid once per view, each machine by itself.

    Machines of one view do the same sums, so one of them is timed for all.
    """
    chosen = np.linspace(0, len(pictures) - 1, min(ITEMS, len(pictures))).astype(int)
    side = pictures.shape[1]
    extractors = [_extractor(view, known, classes[0], side) for view, known in machines.items()]
    measured = measure(
        extractors,
        [pictures[k] for k in chosen],
        repeats=REPEATS,
        progress=every_few_seconds(say, "measuring CPU times"),
    )
    features = {view.name: tuple(map(view.feature, classes)) for view in machines}
    outputs = {
        view.feature(kind): measured.outputs[view.feature(classes[0])]
        for view in machines
        for kind in classes
    }
    document = cost_document(replace(measured, features=features, outputs=outputs))
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _extractor(view: View, machines: Machines, kind: str, side: int) -> Extractor:
    describe, (rows, columns) = DESCRIPTORS[view.descriptor], regions(side)[view.region]

    def extract(picture: Pixels) -> FloatArray:
        row: FloatArray = machines.kernel(describe(picture[rows, columns])[None])[0]
        return row

    def first(row: FloatArray) -> float:
        return machines.output(row, 0)

    return Extractor(view.name, extract, {view.feature(kind): first})


def every_few_seconds(say: Callable[[str], None], what: str) -> Callable[[int, int], None]:
    """A function of done and total that may be called often and calls ``say`` seldom."""
    last = time.monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last > SECONDS:
            last = time.monotonic()
            say(f"{what}, {100 * done // total}%")

    return progress
