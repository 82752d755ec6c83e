"""Fashion-MNIST by 20 of its pixels: 10 kinds of clothes. Every pixel costs 1.

The pixels, 0 (white) to 1, were published by A. Norcliffe et al. (ICML 2025), who chose them with
stochastic gates on training and validation images. Of the 60000 training images 50000, drawn by the
seed, are for training and 10000 for validation; the paper's choice is unknown. Smaller sizes take
fewer. Files are the publisher's (idx); Debian's package dataset-fashion-mnist has them.
"""

from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bench_core import Examples, InputError, Prices, Source, Splits, Task, provide_datasets
from bench_core.arrays import Float32Array
from bench_core.datasets.readers import read_bytes
from bench_core.datasets.splitting import drawn

PIXELS = (
    *(10, 38, 121, 146, 202, 246, 248, 341, 343, 362),
    *(406, 434, 454, 490, 546, 574, 580, 602, 742, 770),
)
SIDE = 28
FILES = (
    *("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
    *("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
)
ROWS = {"quick": (4000, 2000, 4000), "standard": (20000, 5000, 10000)}
PAPER = (50000, 10000, 10000)
BYTES = 8  # code of unsigned bytes in an idx file
KINDS = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)

Bytes = NDArray[np.uint8]


class Fashion20:
    """Kinds of clothes by 20 pixels."""

    name: ClassVar[str] = "fashion-20"
    task: ClassVar[Task] = Task.MULTICLASS
    title: ClassVar[str] = "Fashion-MNIST by 20 pixels"
    files: ClassVar[tuple[str, ...]] = FILES
    depends_on: ClassVar[tuple[str, ...]] = ("size", "seed")
    homepage: ClassVar[str] = "https://github.com/zalandoresearch/fashion-mnist"

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Draw training and validation images by ``seed``, and test images if not all are used."""
        pool, tested = (
            (_idx(source.find(images), (SIDE, SIDE)), _idx(source.find(labels), ()))
            for images, labels in (FILES[:2], FILES[2:])
        )
        sizes = ROWS.get(size, PAPER)
        rows = [*drawn(len(pool[1]), sizes[:2], seed), *drawn(len(tested[1]), sizes[2:], seed)]
        train, valid, test = (
            Examples(_pixels(images[index]), labels[index].astype(np.float64))
            for (images, labels), index in zip((pool, pool, tested), rows, strict=True)
        )
        names = tuple(f"pixel_{pixel}" for pixel in PIXELS)
        prices = Prices.additive(np.ones(len(PIXELS)))
        return Splits(train, valid, test, prices, feature_names=names, class_names=KINDS)


def _pixels(images: Bytes) -> Float32Array:
    """The chosen pixels (n, 20)."""
    chosen = images.reshape(-1, SIDE * SIDE)[:, PIXELS]
    return np.asarray(chosen / np.float32(255), dtype=np.float32)


def _idx(path: Path, shape: tuple[int, ...]) -> Bytes:
    """The array (n, *shape) of an idx file of bytes: two zeros, the type's code, the number of
    dimensions, each dimension as four bytes, the values."""
    raw = np.frombuffer(read_bytes(path), dtype=np.uint8)
    start = 4 + 4 * (1 + len(shape))
    head = raw[:start]
    right = len(head) == start and head[:4].tolist() == [0, 0, BYTES, 1 + len(shape)]
    sizes = tuple(head[4:].view(">u4").tolist()) if right else (0,)
    if not right or sizes[1:] != shape or len(raw) != start + int(np.prod(sizes)):
        wanted = " x ".join(["n", *map(str, shape)])
        raise InputError(f"{path}: not an idx file of {wanted} bytes; get the file again")
    return raw[start:].reshape(sizes)


bench_datasets = provide_datasets(Fashion20)
