"""UCI Forest Covertype: 54 cartographic features; class 2 (lodgepole pine) against the rest.

The papers (BudgetPrune, ADAPT) use 36603 / 15688 / 58101 rows of 581012 and do not name the
positive class; class 2, the largest, makes a balanced task [D]. Their rows are unknown: ours are
drawn by the seed. Every feature costs 1. From a sample of the publisher's file all rows are used in
the papers' proportions.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bench_core import SAMPLE, Note, Prices, Source, Splits, Task, param, provide_datasets
from bench_core.arrays import Float32Array, FloatArray
from bench_core.datasets.publishers import Download, from_uci
from bench_core.datasets.readers.tables import read_matrix, read_table
from bench_core.datasets.splitting import drawn, in_proportion, take

FULL_FILE, SAMPLE_FILE = "covtype.data", "covtype-100k.csv"
FULL_ROWS = 581012
PAPER = (36603, 15688, 58101)
QUICK = (12000, 4000, 8000)
LABEL = "Cover_Type"
NAMES = (
    "Elevation", "Aspect", "Slope", "Horizontal_Distance_To_Hydrology",
    "Vertical_Distance_To_Hydrology", "Horizontal_Distance_To_Roadways", "Hillshade_9am",
    "Hillshade_Noon", "Hillshade_3pm", "Horizontal_Distance_To_Fire_Points",
    *(f"Wilderness_Area{j}" for j in range(1, 5)), *(f"Soil_Type{j}" for j in range(1, 41)),
)  # fmt: skip


@dataclass(frozen=True)
class Forest:
    """Forest cover type, one class against the rest."""

    name: ClassVar[str] = "forest"
    task: ClassVar[Task] = Task.BINARY
    title: ClassVar[str] = "UCI Forest Covertype, one class against the rest"
    files: ClassVar[tuple[str, ...]] = (f"{FULL_FILE}.gz", f"{SAMPLE_FILE}.gz")
    downloads: ClassVar[tuple[Download, ...]] = from_uci(31, "covertype.zip", f"{FULL_FILE}.gz")
    homepage: ClassVar[str] = "https://archive.ics.uci.edu/dataset/31"

    positive: int = param(2, "the cover type that is labelled 1", least=1, most=7)

    def complete(self, source: Source) -> bool:
        """True for the full file or the sample."""
        return source.has(FULL_FILE, SAMPLE_FILE)

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Draw the three splits by ``seed``; ``quick`` takes fewer rows."""
        X, kind, sample = _read(source)
        sizes: tuple[int, ...] = PAPER
        notes: list[str | Note] = []
        if sample:
            sizes = in_proportion(len(X), PAPER)
            part = f"sample: {len(X)} of {FULL_ROWS} rows, in the papers' proportions"
            notes.append(Note(SAMPLE, part))
        if size == "quick" and sum(sizes) > sum(QUICK):
            sizes = QUICK
            notes.append(f"quick: {sum(QUICK)} rows drawn by the seed")
        y = (kind == self.positive).astype(np.float64)
        return Splits(
            *take(X, y, drawn(len(X), sizes, seed)),
            Prices.additive(np.ones(len(NAMES))),
            feature_names=NAMES,
            notes=tuple(notes),
        )


def _read(source: Source) -> tuple[Float32Array, FloatArray, bool]:
    """Features (n, 54), cover types (n,), and True for the sample."""
    path = source.find(FULL_FILE, SAMPLE_FILE)
    if path.name.removesuffix(".gz").endswith(".csv"):
        table = read_table(path)
        X = table.matrix((*NAMES, LABEL))
        return X[:, :-1], X[:, -1].astype(np.float64), True
    table = read_matrix(path, len(NAMES) + 1, rows=FULL_ROWS)
    return table.matrix(table.names[:-1]), table.codes(table.names[-1], range(1, 8)), False


bench_datasets = provide_datasets(Forest)
