"""CIFAR-10 as the budget papers use it: 400 patch features, two classes.

The papers (BudgetPrune, ADAPT) have 19761 / 8468 / 10000 rows of 400 features and do not name
the two classes nor the rows: ours are the features of ``_coates_patches`` with 100 centroids, the
classes 0-4 (label 0) against 5-9 (label 1), rows drawn by the seed [recalled or derived, not
verified in a text at hand]. Every feature costs 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bench_core import (
    Dataset,
    Download,
    Examples,
    Facts,
    InputError,
    Prices,
    Source,
    Splits,
    Task,
    hookimpl,
)
from bench_core.datasets.readers import read_bytes
from bench_core.datasets.splitting import shuffled

BATCHES = tuple(f"data_batch_{k}.bin" for k in range(1, 6))
TEST = "test_batch.bin"
RECORD = 1 + 3 * 32 * 32
CENTROIDS = 100
ROWS = {"quick": (4000, 1500, 2000), "standard": (8000, 3000, 4000), "paper": (19761, 8468, 10000)}


@dataclass(frozen=True)
class Cifar10:
    """Are the things in small photographs of the second five kinds?"""

    name: ClassVar[str] = "cifar10"
    task: ClassVar[Task] = Task.BINARY
    title: ClassVar[str] = "CIFAR-10, two classes, 400 patch features"
    files: ClassVar[tuple[str, ...]] = (*BATCHES, TEST)
    downloads: ClassVar[tuple[Download, ...]] = (
        Download(
            "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            "cifar-10-binary.tar.gz",
            sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            bytes=170052171,
            members={f"cifar-10-batches-bin/{name}": name for name in (*BATCHES, TEST)},
        ),
    )
    homepage: ClassVar[str] = "https://www.cs.toronto.edu/~kriz/cifar.html"
    facts: ClassVar[Facts] = Facts(rows=ROWS["paper"], features=400, low=0)

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Learn the patches on training images and code the images that are drawn."""
        from bench_datasets.cifar10._coates_patches import Coder

        known = [_images(source.find(name)) for name in BATCHES]
        images = np.concatenate([pixels for pixels, _ in known])
        kinds = np.concatenate([kind for _, kind in known])
        tested, kinds_tested = _images(source.find(TEST))
        sizes = ROWS[size]
        order = shuffled(len(images), seed)
        train, valid = order[: sizes[0]], order[sizes[0] : sum(sizes[:2])]
        test = shuffled(len(tested), seed)[: sizes[2]]
        coder = Coder.learn(images[train], CENTROIDS, seed)

        def part(pixels: NDArray[np.uint8], kind: NDArray[np.uint8]) -> Examples:
            return Examples(coder.features(pixels), np.where(kind > 4, 1.0, 0.0))

        notes = () if size == "paper" else (f"{size}: {sum(sizes)} images drawn by the seed",)
        return Splits(
            part(images[train], kinds[train]),
            part(images[valid], kinds[valid]),
            part(tested[test], kinds_tested[test]),
            prices=Prices.additive(np.ones(4 * CENTROIDS)),
            task=Task.BINARY, classes=2, notes=notes,
            feature_names=tuple(
                f"{place}{k}" for place in ("ul", "ur", "ll", "lr") for k in range(CENTROIDS)
            ),
        )  # fmt: skip


def _images(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Pixels (n, 32, 32, 3) and kinds (n,) of one batch."""
    raw = np.frombuffer(read_bytes(path), dtype=np.uint8)
    if len(raw) % RECORD:
        raise InputError(
            f"{path}: {len(raw)} bytes are no whole number of images of {RECORD}; get it again"
        )
    records = raw.reshape(-1, RECORD)
    if int(records[:, 0].max()) > 9:
        row = int(np.argmax(records[:, 0] > 9))
        raise InputError(f"{path}, image {row + 1}: kind {records[row, 0]} is none; get it again")
    return records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), records[:, 0]


@hookimpl
def bench_datasets() -> Sequence[type[Dataset]]:
    """The data set of this plugin."""
    return [Cifar10]
