"""CIFAR-10 as the budget papers use it: 400 patch features, two classes.

The papers (BudgetPrune, ADAPT) have 19761 / 8468 / 10000 rows of 400 features and do not name the
classes or the rows. Ours are the features below with 100 centroids, the classes 0-4 (label 0)
against 5-9 (label 1). Rows are drawn by the seed [recalled or derived, not verified in a text].
Every feature costs 1.

Features follow A. Coates, H. Lee, A. Ng, "An analysis of single-layer networks in unsupervised
feature learning", AISTATS 2011: patches of 6 x 6 pixels at every place, brightness and contrast
normalised, whitened (ZCA). The code is max(0, mean distance - distance) to each of k centroids,
summed over quadrants: 4 k features.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bench_core import (
    Examples,
    InputError,
    Prices,
    Source,
    Splits,
    Task,
    provide_datasets,
)
from bench_core.arrays import Float32Array
from bench_core.datasets.publishers import Download
from bench_core.datasets.readers import read_bytes
from bench_core.datasets.splitting import drawn

BATCHES = tuple(f"data_batch_{k}.bin" for k in range(1, 6))
TEST = "test_batch.bin"
RECORD = 1 + 3 * 32 * 32  # bytes: kind, red, green, blue
CENTROIDS = 100
ROWS = {"quick": (4000, 1500, 2000), "standard": (8000, 3000, 4000), "paper": (19761, 8468, 10000)}

SIDE = 6
CONTRAST = 10.0  # added to a patch's variance, of grey levels 0..255
RIDGE = 0.1  # added to the eigenvalues that whitening divides by
SAMPLE = 100_000  # patches used to learn whitening and centroids
BATCH = 100  # images; bounds memory


class Cifar10:
    """Two groups of object kinds in small photographs: kinds 5-9 are labelled 1."""

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

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Learn the patches on training images and encode the drawn images."""
        known = [_images(source.find(name)) for name in BATCHES]
        images = np.concatenate([pixels for pixels, _ in known])
        kinds = np.concatenate([kind for _, kind in known])
        tested, kinds_tested = _images(source.find(TEST))
        sizes = ROWS[size]
        train, valid = drawn(len(images), sizes[:2], seed)
        [test] = drawn(len(tested), sizes[2:], seed)
        coder = Coder.learn(images[train], CENTROIDS, seed)

        def part(pixels: NDArray[np.uint8], kind: NDArray[np.uint8]) -> Examples:
            return Examples(coder.features(pixels), np.where(kind > 4, 1.0, 0.0))

        notes = () if size == "paper" else (f"{size}: {sum(sizes)} images drawn by the seed",)
        names = tuple(f"{at}{k}" for at in ("ul", "ur", "ll", "lr") for k in range(CENTROIDS))
        return Splits(
            part(images[train], kinds[train]),
            part(images[valid], kinds[valid]),
            part(tested[test], kinds_tested[test]),
            Prices.additive(np.ones(4 * CENTROIDS)),
            feature_names=names,
            notes=notes,
        )


def _images(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Pixels (n, 32, 32, 3) and kinds (n,) of one batch."""
    raw = np.frombuffer(read_bytes(path), dtype=np.uint8)
    if len(raw) % RECORD:
        raise InputError(f"{path}: {len(raw)} bytes are not a multiple of {RECORD}; get it again")
    records = raw.reshape(-1, RECORD)
    if int(records[:, 0].max()) > 9:
        row = int(np.argmax(records[:, 0] > 9))
        raise InputError(
            f"{path}, image {row + 1}: kind {records[row, 0]} is above 9; get it again"
        )
    return records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), records[:, 0]


@dataclass(frozen=True, slots=True, eq=False)
class Coder:
    """``mean`` (p,), ``whiten`` (p, p) and ``centroids`` (k, p), p = 6 * 6 * channels."""

    mean: Float32Array  # (p,)
    whiten: Float32Array  # (p, p)
    centroids: Float32Array  # (k, p)

    @classmethod
    def learn(cls, images: NDArray[np.uint8], k: int, seed: int) -> Coder:
        """Learn from random patches of images (n, height, width, channels)."""
        from sklearn.cluster import KMeans

        rng = np.random.default_rng(seed)
        n, height, width = images.shape[:3]
        which = rng.integers(n, size=SAMPLE)
        rows = rng.integers(height - SIDE + 1, size=SAMPLE)
        columns = rng.integers(width - SIDE + 1, size=SAMPLE)
        views = _patches(images)  # (n, rows, columns, p) without a copy
        patches = _normalised(views[which, rows, columns].reshape(SAMPLE, -1))
        mean = patches.mean(axis=0)
        values, vectors = np.linalg.eigh(np.cov(patches, rowvar=False))
        whiten = (vectors / np.sqrt(np.maximum(values, 0) + RIDGE)) @ vectors.T
        white = (patches - mean) @ whiten
        model = KMeans(k, n_init=1, max_iter=50, random_state=seed).fit(white)
        return cls(
            mean.astype(np.float32),
            whiten.astype(np.float32),
            model.cluster_centers_.astype(np.float32),
        )

    def features(self, images: NDArray[np.uint8]) -> Float32Array:
        """(n, 4 k), quadrants upper left, upper right, lower left, lower right."""
        out = np.empty((len(images), 4 * len(self.centroids)), dtype=np.float32)
        for start in range(0, len(images), BATCH):
            part = images[start : start + BATCH]
            out[start : start + len(part)] = self._pooled(part)
        return out

    def _pooled(self, images: NDArray[np.uint8]) -> Float32Array:
        views = _patches(images)
        n, height, width = views.shape[:3]
        white = (_normalised(views.reshape(n * height * width, -1)) - self.mean) @ self.whiten
        squared = (white**2).sum(axis=1)[:, None] + (self.centroids**2).sum(axis=1)
        distance = np.sqrt(np.maximum(squared - 2 * white @ self.centroids.T, 0))
        code = np.maximum(distance.mean(axis=1, keepdims=True) - distance, 0)
        code = code.reshape(n, height, width, -1)  # (n, rows, columns, k)
        halves = (round(height / 2), round(width / 2))
        quadrants = [
            code[:, rows, columns].sum(axis=(1, 2))
            for rows in (slice(None, halves[0]), slice(halves[0], None))
            for columns in (slice(None, halves[1]), slice(halves[1], None))
        ]
        pooled: Float32Array = np.concatenate(quadrants, axis=1).astype(np.float32)
        return pooled


def _patches(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """All patches (n, rows, columns, channels, 6, 6) as views."""
    return np.lib.stride_tricks.sliding_window_view(images, (SIDE, SIDE), axis=(1, 2))


def _normalised(patches: NDArray[np.uint8]) -> Float32Array:
    """Rows (m, p), centred and divided by their spread."""
    rows = patches.astype(np.float32)
    rows -= rows.mean(axis=1, keepdims=True)
    rows /= np.sqrt(rows.var(axis=1, keepdims=True) + np.float32(CONTRAST))
    return rows


bench_datasets = provide_datasets(Cifar10)
