"""Features of small images from learned patches: whitened, coded by k-means, pooled by quadrant.

A. Coates, H. Lee, A. Ng, "An analysis of single-layer networks in unsupervised feature learning",
AISTATS 2011: patches of 6 x 6 pixels at every place, brightness and contrast normalised, whitened
(ZCA), coded by max(0, mean distance - distance) to each of k centroids, summed over quadrants: 4 k
features.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench_core.arrays import Float32Array

SIDE = 6
CONTRAST = 10.0  # added to a patch's variance, of grey levels 0..255
RIDGE = 0.1  # added to the eigenvalues that whitening divides by
SAMPLE = 100_000  # patches that whitening and centroids are learned from
BATCH = 100  # images; bounds memory


@dataclass(frozen=True, slots=True, eq=False)
class Coder:
    """``mean`` (p,), ``whiten`` (p, p) and ``centroids`` (k, p), p = 6 * 6 * channels."""

    mean: Float32Array
    whiten: Float32Array
    centroids: Float32Array

    @classmethod
    def learn(cls, images: NDArray[np.uint8], k: int, seed: int) -> Coder:
        """From random patches of images (n, height, width, channels)."""
        from sklearn.cluster import KMeans

        rng = np.random.default_rng(seed)
        n, height, width = images.shape[:3]
        which = rng.integers(n, size=SAMPLE)
        rows = rng.integers(height - SIDE + 1, size=SAMPLE)
        columns = rng.integers(width - SIDE + 1, size=SAMPLE)
        views = _patches(images)  # (n, rows, columns, p) without a copy
        found = _normalised(views[which, rows, columns].reshape(SAMPLE, -1))
        mean = found.mean(axis=0)
        values, vectors = np.linalg.eigh(np.cov(found, rowvar=False))
        whiten = (vectors / np.sqrt(np.maximum(values, 0) + RIDGE)) @ vectors.T
        white = (found - mean) @ whiten
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
        code = code.reshape(n, height, width, -1)
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
    """Rows (m, p) without their mean, divided by their spread."""
    rows = patches.astype(np.float32)
    rows -= rows.mean(axis=1, keepdims=True)
    rows /= np.sqrt(rows.var(axis=1, keepdims=True) + np.float32(CONTRAST))
    return rows
