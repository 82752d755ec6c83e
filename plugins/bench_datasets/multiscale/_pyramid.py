"""Filters on a pyramid: a frame is averaged over blocks, filtered, and spread over its pixels.

At scale m each block of m x m pixels becomes one, so that m^2 pixels share a value. A frame whose
sides are not multiples of m is continued by its border. The filters have the width of one pixel
(standard deviation 1) at every scale:

    value    the average itself
    smooth   Gaussian
    edge     length of the gradient
    laplace  trace of the Hessian
    valley   its larger eigenvalue
    ridge    its smaller eigenvalue (far below zero on bright ridges)
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bench_core import Prices, price_list
from bench_core.arrays import Float32Array, FloatArray, IntArray

FILTERS = ("value", "smooth", "edge", "laplace", "valley", "ridge")


def feature_names(scales: tuple[int, ...]) -> tuple[str, ...]:
    """``edge@4`` is the filter edge at scale 4; scale by scale."""
    return tuple(f"{name}@{m}" for m in scales for name in FILTERS)


def split_prices(scales: tuple[int, ...], eps: str) -> Prices:
    """Free features; a split on a value that k pixels share costs 1/k, ``printed`` k."""
    shared = np.repeat([float(m * m) for m in scales], len(FILTERS))
    return price_list(
        np.zeros(len(shared)),
        split=1.0,
        multiplier=shared if eps == "printed" else 1 / shared,
        unit="splits at full resolution",
    )


def features(
    picture: NDArray[np.generic], scales: tuple[int, ...], pixels: IntArray | None = None
) -> Float32Array:
    """Filter responses (n, d) at all pixels of a picture, line by line, or at some ``pixels``."""
    n = picture.size if pixels is None else len(pixels)
    height, width = picture.shape
    out = np.empty((n, len(scales) * len(FILTERS)), dtype=np.float32)
    exact = picture.astype(np.float64)
    answers = ((scale, one) for scale in scales for one in _answers(averaged(exact, scale)))
    for j, (scale, answer) in enumerate(answers):
        spread = answer.repeat(scale, axis=0).repeat(scale, axis=1)
        values = spread[:height, :width].reshape(-1)
        out[:, j] = values if pixels is None else values[pixels]
    return out


def averaged(picture: FloatArray, scale: int) -> FloatArray:
    """Means of blocks of ``scale`` x ``scale`` pixels."""
    height, width = picture.shape
    padded = np.pad(picture, ((0, -height % scale), (0, -width % scale)), mode="edge")
    rows, columns = padded.shape[0] // scale, padded.shape[1] // scale
    means: FloatArray = padded.reshape(rows, scale, columns, scale).mean(axis=(1, 3))
    return means


def _answers(picture: FloatArray) -> Iterator[FloatArray]:
    """The responses of each filter, in the order of ``FILTERS``."""
    from scipy.ndimage import gaussian_filter

    def derived(*order: int) -> FloatArray:
        return np.asarray(gaussian_filter(picture, 1.0, order=order, mode="nearest"))

    yield picture
    yield derived(0, 0)
    yield np.hypot(derived(0, 1), derived(1, 0))
    across, down, mixed = derived(0, 2), derived(2, 0), derived(1, 1)
    half = (across + down) / 2  # half the trace of the Hessian
    swing = np.hypot((across - down) / 2, mixed)
    yield 2 * half
    yield half + swing
    yield half - swing
