"""23 descriptors of a square picture and the eight regions for each of them.

Thumbnails, histograms of grey, colour and hue, local binary patterns, histograms of oriented
gradients, Gabor energies on a grid (as in GIST), textons, DAISY. Each is a function of the pixels
(height, width, 3) of one region and shares nothing with the others; all their values are >= 0.
Nothing is learned, so descriptors are the same for all splits. Textons are therefore not clusters:
a pixel's texton is the filter of a bank with the strongest response, or none.
"""

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from bench_core.arrays import Array, Float32Array
from bench_datasets.images._image_folder import Pixels

Describe = Callable[[Pixels], Float32Array]

GREY = np.array([0.2125, 0.7154, 0.0721], dtype=np.float32)
GRID = 4  # cells in each direction over which Gabor energies are averaged
FLAT = 0.02  # of the grey range: below this response of every filter there is no texton
ANGLES = 8  # of edges


def regions(side: int) -> dict[str, tuple[slice, slice]]:
    """Rows and columns of the full picture, four quadrants and three bands."""
    half, low, high = side // 2, side // 3, side - side // 3
    every, first, second = slice(0, side), slice(0, half), slice(half, side)
    return {
        "whole": (every, every),
        "ul": (first, first),
        "ur": (first, second),
        "ll": (second, first),
        "lr": (second, second),
        "top": (slice(0, low), every),
        "middle": (slice(low, high), every),
        "bottom": (slice(high, side), every),
    }


def grey(pixels: Pixels) -> Float32Array:
    """Brightness in 0..1."""
    brightness: Float32Array = (pixels.astype(np.float32) @ GREY) / np.float32(255)
    return brightness


def _grey_bytes(pixels: Pixels) -> Pixels:
    return np.rint(grey(pixels) * 255).astype(np.uint8)


def cell_means(maps: Array, cells: int) -> Array:
    """Means of maps (height, width, ...) in cells x cells parts."""
    height, width = maps.shape[:2]
    rows = np.arange(cells) * height // cells
    columns = np.arange(cells) * width // cells
    sums = np.add.reduceat(np.add.reduceat(maps, rows, axis=0), columns, axis=1)
    counts = np.outer(np.diff([*rows, height]), np.diff([*columns, width]))
    means: Array = sums / counts.reshape(cells, cells, *([1] * (maps.ndim - 2)))
    return means


def thumbnail(pixels: Pixels, cells: int) -> Float32Array:
    """Brightness in cells x cells parts."""
    return cell_means(grey(pixels), cells).ravel().astype(np.float32)


def grey_histogram(pixels: Pixels, bins: int) -> Float32Array:
    level = _grey_bytes(pixels).ravel().astype(np.intp) * bins // 256
    return np.bincount(level, minlength=bins).astype(np.float32)


def colour_histogram(pixels: Pixels, bins: int) -> Float32Array:
    """Histogram of bins^3 colours."""
    level = pixels.reshape(-1, 3).astype(np.intp) * bins // 256
    colour = (level[:, 0] * bins + level[:, 1]) * bins + level[:, 2]
    return np.bincount(colour, minlength=bins**3).astype(np.float32)


def hue_histogram(pixels: Pixels, hues: int, levels: int) -> Float32Array:
    """Histogram of hue in each level of saturation and brightness."""
    from skimage.color import rgb2hsv

    bins = np.array([hues, levels, levels])
    level = np.minimum((rgb2hsv(pixels).reshape(-1, 3) * bins).astype(np.intp), bins - 1)
    kind = (level[:, 0] * levels + level[:, 1]) * levels + level[:, 2]
    return np.bincount(kind, minlength=hues * levels**2).astype(np.float32)


def binary_patterns(pixels: Pixels, points: int, radius: int, method: str) -> Float32Array:
    from skimage.feature import local_binary_pattern

    found = local_binary_pattern(_grey_bytes(pixels), points, radius, method)
    bins = points + 2 if method == "uniform" else 2**points
    return np.bincount(found.ravel().astype(np.intp), minlength=bins).astype(np.float32)


def oriented_gradients(pixels: Pixels, cells: int, block: int) -> Float32Array:
    """Histograms of gradients in nine directions in about cells x cells parts."""
    from skimage.feature import hog

    image = grey(pixels)
    cell = (image.shape[0] // cells, image.shape[1] // cells)
    found = hog(image, 9, cell, (block, block), block_norm="L2-Hys")
    return np.asarray(found, dtype=np.float32)


def gabor_energies(pixels: Pixels, scales: int, directions: int) -> Float32Array:
    """Strength of waves of each scale and direction in 4 x 4 parts."""
    from scipy import fft

    image = grey(pixels)
    spectrum = fft.fft2(image - image.mean())
    bank = _waves(image.shape, scales, directions)
    energies = [cell_means(np.abs(fft.ifft2(spectrum * wave)), GRID).ravel() for wave in bank]
    return np.concatenate(energies).astype(np.float32)


@lru_cache(maxsize=64)
def _waves(shape: tuple[int, int], scales: int, directions: int) -> tuple[Float32Array, ...]:
    """Log-Gabor filters in the frequency plane: scales an octave apart, one half plane each."""
    y, x = np.meshgrid(np.fft.fftfreq(shape[0]), np.fft.fftfreq(shape[1]), indexing="ij")
    radius = np.hypot(x, y)
    radius[0, 0] = 1.0
    angle = np.arctan2(y, x)
    filters = []
    for scale in range(scales):
        ring = np.exp(-(np.log(radius / (0.25 / 2**scale)) ** 2) / (2 * 0.55**2))
        ring[0, 0] = 0.0
        for d in range(directions):
            away = np.angle(np.exp(1j * (angle - np.pi * d / directions)))
            fan = np.exp(-(away**2) / (2 * (np.pi / directions / 1.3) ** 2))
            filters.append((ring * fan).astype(np.float32))
    return tuple(filters)


def textons(pixels: Pixels, scales: int) -> Float32Array:
    """Counts of the filter with the strongest response: edges in 8 directions, bright and dark bars
    in 4, at scales an octave apart; the last bin counts pixels without response."""
    from scipy.ndimage import gaussian_filter

    image = grey(pixels)
    strongest = np.full(image.shape, FLAT, dtype=np.float32)
    label = np.full(image.shape, 2 * ANGLES * scales, dtype=np.intp)
    turns = 2 * np.pi * np.arange(ANGLES) / ANGLES
    lean = np.pi * (np.arange(ANGLES) // 2) / (ANGLES // 2)
    for scale in range(scales):
        sigma = 2.0**scale

        def derived(y: int, x: int, sigma: float = sigma) -> Float32Array:
            smooth = gaussian_filter(image, sigma, order=(y, x), mode="nearest")
            return np.asarray(smooth * np.float32(sigma ** (x + y)), dtype=np.float32)

        dx, dy = derived(0, 1), derived(1, 0)
        xx, yy, xy = derived(0, 2), derived(2, 0), derived(1, 1)
        for k in range(ANGLES):
            edge = np.float32(np.cos(turns[k])) * dx + np.float32(np.sin(turns[k])) * dy
            c, s = np.float32(np.cos(lean[k])), np.float32(np.sin(lean[k]))
            bar = (c * c * xx + s * s * yy + 2 * c * s * xy) * np.float32(1 if k % 2 else -1)
            for kind, answer in enumerate((edge, bar)):
                more = answer > strongest
                strongest[more] = answer[more]
                label[more] = 2 * (ANGLES * scale + k) + kind
    return np.bincount(label.ravel(), minlength=2 * ANGLES * scales + 1).astype(np.float32)


def daisy_grid(pixels: Pixels, radius: int, rings: int, directions: int) -> Float32Array:
    from skimage.feature import daisy

    image = grey(pixels)
    radius = min(radius, (min(image.shape) - 1) // 2 - 1)
    step = max(1, (max(image.shape) - 2 * radius) // 3)
    found = daisy(image, step, radius, rings, directions, directions, normalization="l1")
    return np.asarray(found, dtype=np.float32).ravel()


# Cheap to expensive within each family.
DESCRIPTORS: dict[str, Describe] = {
    "tiny-4": partial(thumbnail, cells=4),
    "tiny-8": partial(thumbnail, cells=8),
    "tiny-16": partial(thumbnail, cells=16),
    "grey-32": partial(grey_histogram, bins=32),
    "rgb-4": partial(colour_histogram, bins=4),
    "hsv-8-3": partial(hue_histogram, hues=8, levels=3),
    "lbp-8-1": partial(binary_patterns, points=8, radius=1, method="uniform"),
    "lbp-16-2": partial(binary_patterns, points=16, radius=2, method="uniform"),
    "lbp-24-3": partial(binary_patterns, points=24, radius=3, method="uniform"),
    "lbp-256": partial(binary_patterns, points=8, radius=1, method="default"),
    "hog-2": partial(oriented_gradients, cells=2, block=1),
    "hog-4": partial(oriented_gradients, cells=4, block=1),
    "hog-8": partial(oriented_gradients, cells=8, block=1),
    "hog-8-blocks": partial(oriented_gradients, cells=8, block=2),
    "gabor-2-4": partial(gabor_energies, scales=2, directions=4),
    "gabor-3-6": partial(gabor_energies, scales=3, directions=6),
    "gabor-4-8": partial(gabor_energies, scales=4, directions=8),
    "texton-1": partial(textons, scales=1),
    "texton-2": partial(textons, scales=2),
    "texton-3": partial(textons, scales=3),
    "daisy-1": partial(daisy_grid, radius=8, rings=1, directions=4),
    "daisy-2": partial(daisy_grid, radius=12, rings=2, directions=6),
    "daisy-3": partial(daisy_grid, radius=15, rings=3, directions=8),
}
