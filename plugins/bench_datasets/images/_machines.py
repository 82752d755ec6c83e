"""One-vs-rest support vector machines on one descriptor, and the CPU time of both for a picture.

The kernel is exp(-gamma |a - b|^2) of square roots of descriptors that sum to 1, a smooth
similarity of histograms. 1 / gamma is the mean of |a - b|^2 over the training pictures.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from bench_measure.timing import Extractor, cost_document, measure

from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_datasets.images._descriptors import DESCRIPTORS, regions
from bench_datasets.images._image_folder import Pixels

COST = 10.0  # penalty of a picture on the wrong side
ITEMS, REPEATS = 12, 5  # pictures, timings of each
SECONDS = 5.0  # between two lines of progress


@dataclass(frozen=True, slots=True, eq=False)
class Machines:
    """``known`` (m, p) are the roots of the training pictures. Class k's output for a picture with
    kernel row (m,) is ``dual[k]`` (m,) times the row plus ``bias[k]``."""

    known: Float32Array  # (m, p)
    squared: Float32Array  # (m,)
    gamma: float
    dual: FloatArray  # (classes, m)
    bias: FloatArray  # (classes,)

    @classmethod
    def learn(cls, descriptors: Float32Array, label: IntArray, classes: int) -> Machines:
        """Learn from descriptors (m, p) >= 0 and class numbers (m,), each class present."""
        from sklearn.svm import SVC

        pictures = roots(descriptors)
        squared = (pictures**2).sum(axis=1)
        near = _distances(pictures, squared, pictures)
        mean = float(near.mean())
        gamma = 1 / mean if mean > 0 else 1.0
        kernel = np.exp(-gamma * near.astype(np.float64))
        dual, bias = np.zeros((classes, len(pictures))), np.zeros(classes)
        for k in range(classes):
            machine = SVC(C=COST, kernel="precomputed", class_weight="balanced")
            machine.fit(kernel, label == k)
            dual[k, machine.support_] = machine.dual_coef_[0]
            bias[k] = machine.intercept_[0]
        return cls(pictures, squared, gamma, dual, bias)

    def kernel(self, descriptors: Float32Array) -> FloatArray:
        """Rows (n, m) for descriptors (n, p)."""
        near = _distances(self.known, self.squared, roots(descriptors))
        return np.exp(-self.gamma * near.astype(np.float64))

    def outputs(self, kernel: FloatArray) -> FloatArray:
        """(n, classes), above 0 where a machine accepts."""
        return kernel @ self.dual.T + self.bias

    def output(self, row: FloatArray, k: int) -> float:
        """The output of machine ``k`` for one row (m,)."""
        return float(self.dual[k] @ row + self.bias[k])


def roots(descriptors: Float32Array) -> Float32Array:
    """Square roots of rows scaled to sum to 1; rows of zeros stay."""
    total = descriptors.sum(axis=1, keepdims=True)
    root: Float32Array = np.sqrt(descriptors / np.where(total > 0, total, np.float32(1)))
    return root


def _distances(known: Float32Array, squared: Float32Array, rows: Float32Array) -> Float32Array:
    near: Float32Array = (rows**2).sum(axis=1)[:, None] + squared - 2 * (rows @ known.T)
    np.maximum(near, np.float32(0), out=near)
    return near


@dataclass(frozen=True, slots=True)
class View:
    """One descriptor of one region."""

    descriptor: str
    region: str

    @property
    def name(self) -> str:
        """The name in its features' names."""
        return f"{self.descriptor}@{self.region}"

    def feature(self, kind: str) -> str:
        """The feature name of its machine for one class."""
        return f"{self.name}:{kind}"


def measured_costs(
    pictures: Pixels,
    say: Callable[[str], None],
    *,
    views: Mapping[View, Machines | None],
    classes: Sequence[str] = (),
) -> str:
    """A cost file in JSON, from CPU times on some of the pictures.

    With machines, extraction and kernel are paid once per view, each machine separately. Machines
    of one view do the same sums, so one of them is timed for all. Without machines, the values of a
    view are one purchase.
    """
    chosen = np.linspace(0, len(pictures) - 1, min(ITEMS, len(pictures))).astype(int)
    measured = measure(
        [_extractor(view, known, classes, pictures.shape[1]) for view, known in views.items()],
        [pictures[k] for k in chosen],
        repeats=REPEATS,
        progress=every_few_seconds(say, "measuring CPU times"),
    )
    if classes:
        timing = {view: measured.outputs[view.feature(classes[0])] for view in views}
        measured = replace(
            measured,
            features={view.name: tuple(map(view.feature, classes)) for view in views},
            outputs={view.feature(kind): timing[view] for view in views for kind in classes},
        )
    return json.dumps(cost_document(measured), indent=1, ensure_ascii=False) + "\n"


def _extractor(
    view: View, machines: Machines | None, classes: Sequence[str], side: int
) -> Extractor:
    describe, region = DESCRIPTORS[view.descriptor], regions(side)[view.region]
    if machines is None:
        return Extractor(view.name, lambda picture: describe(picture[region]))
    return Extractor(
        view.name,
        lambda picture: machines.kernel(describe(picture[region])[None])[0],
        {view.feature(classes[0]): lambda row: machines.output(row, 0)},
    )


def every_few_seconds(say: Callable[[str], None], what: str) -> Callable[[int, int], None]:
    """A function of done and total that calls ``say`` at most every ``SECONDS``."""
    last = time.monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last > SECONDS:
            last = time.monotonic()
            say(f"{what}, {100 * done // total}%")

    return progress
