"""The data set: frames to rows, one pixel each, with the prices of the pyramid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bench_core import Examples, Frames, InputError, Source, Splits, Task, UsageError, param
from bench_datasets.multiscale import _folder as own
from bench_datasets.multiscale._drawn import Picture, draw
from bench_datasets.multiscale._pyramid import feature_names, features, split_prices

SIDE = {"quick": 64, "standard": 256, "paper": 1024}
FRAMES = {"quick": (6, 3, 6), "standard": (6, 3, 6), "paper": (16, 4, 20)}
DRAWN = 3  # beside the numbers of the three splits
PIXELS = {"quick": 4096, "standard": 16384, "paper": 65536}


@dataclass(frozen=True)
class Multiscale:
    """Which pixels of a frame belong to an animal?"""

    name: ClassVar[str] = "multiscale"
    task: ClassVar[Task] = Task.BINARY
    title: ClassVar[str] = "Pixels under an image pyramid (generated frames, or your own)"
    stand_in_for: ClassVar[str] = "fly frames (CEGB, section 5.2)"
    depends_on: ClassVar[tuple[str, ...]] = ("size", "seed")

    folder: str = param(
        "", "own frames: a folder with frames/ and labels/ (absolute, in the current folder or in "
        "the data folder); empty: generated ones"
    )  # fmt: skip
    scales: tuple[int, ...] = param((1, 2, 4, 8), "sides of the blocks that are averaged")
    eps: Literal["shared", "printed"] = param(
        "shared", "a split on a value that m pixels share costs 1/m, or, as printed, m"
    )
    pixels: int | None = param(
        None, "training pixels drawn per frame; none: 4096, 16384 or 65536 by profile"
    )

    def __post_init__(self) -> None:
        if not self.scales or min(self.scales) < 1 or len({*self.scales}) < len(self.scales):
            raise ValueError(f"scales must be different whole numbers from 1 up: {self.scales}")
        if self.pixels is not None and self.pixels < 1:
            raise ValueError(f"pixels must be at least 1, got {self.pixels}")

    def stamp(self, source: Source) -> str:
        """The identity of every file of the folder."""
        return repr([own.identity(p) for pair in self._pairs(source) for p in pair])

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Draw or read the frames and filter them; ``fold`` is ignored."""
        if size not in SIDE:
            raise UsageError(f"size {size!r}: multiscale has quick, standard and paper")
        parts = self._own(source, size) if self.folder else _generated(size, seed)
        for name, part in zip(("training", "validation", "test"), parts, strict=True):
            if not any(picture.truth.any() for picture in part):
                raise InputError(f"{self.folder or self.name}: no object in the {name} frames")
        wanted = self.pixels or PIXELS[size]
        known, valid, test = parts
        train = _some(known, self.scales, wanted, seed) or _all(known, self.scales)
        return Splits(
            train, _all(valid, self.scales), _all(test, self.scales),
            prices=split_prices(self.scales, self.eps),
            task=Task.BINARY,
            classes=2,
            feature_names=feature_names(self.scales),
            stand_in=not self.folder,
            notes=self._notes(parts, train),
        )  # fmt: skip

    def _pairs(self, source: Source) -> tuple[own.Pair, ...]:
        """The user's frames with their labels."""
        return own.pairs(source.find_folder(self.folder)) if self.folder else ()

    def _own(self, source: Source, size: str) -> list[list[Picture]]:
        """The user's frames; in the profiles quick and standard not more than are generated."""
        parts = own.parted(self._pairs(source))
        most = FRAMES[size] if size != "paper" else (len(parts[0]), len(parts[1]), len(parts[2]))
        return [
            [own.read(pair) for pair in part[:limit]]
            for part, limit in zip(parts, most, strict=True)
        ]

    def _notes(self, parts: Sequence[Sequence[Picture]], train: Examples) -> tuple[str, ...]:
        numbers = ", ".join(str(len(part)) for part in parts)
        notes = [f"{numbers} frames to train, validate and test on"]
        if train.frames is not None and train.frames.widths is None:
            notes.append(f"{len(train)} training pixels, drawn by the seed")
        if not self.folder:
            notes.append("generated frames: they prove that the chain works, not a method")
        return tuple(notes)


def _generated(size: str, seed: int) -> list[list[Picture]]:
    return [
        [draw(SIDE[size], seed, split, j) for j in range(number)]
        for split, number in enumerate(FRAMES[size])
    ]


def _all(pictures: Sequence[Picture], scales: tuple[int, ...]) -> Examples:
    """Every pixel of the frames."""
    boundaries = _boundaries([p.truth.size for p in pictures])
    X = np.empty((boundaries[-1], len(feature_names(scales))), dtype=np.float32)
    for picture, start, stop in zip(pictures, boundaries[:-1], boundaries[1:], strict=True):
        X[start:stop] = features(picture.grey, scales)
    y = np.concatenate([p.truth.reshape(-1) for p in pictures]).astype(np.float64)
    widths = np.array([p.truth.shape[1] for p in pictures])
    return Examples(X, y, frames=Frames(boundaries, widths))


def _some(
    pictures: Sequence[Picture], scales: tuple[int, ...], wanted: int, seed: int
) -> Examples | None:
    """``wanted`` pixels of each frame, drawn by the seed; None where no frame has more."""
    if max(p.truth.size for p in pictures) <= wanted:
        return None
    X, y = [], []
    for j, picture in enumerate(pictures):
        n = picture.truth.size
        rng = np.random.default_rng([seed, DRAWN, j])
        chosen = np.sort(rng.choice(n, min(n, wanted), replace=False))
        X.append(features(picture.grey, scales, chosen))
        y.append(picture.truth.reshape(-1)[chosen].astype(np.float64))
    frames = Frames(_boundaries([len(part) for part in y]))
    return Examples(np.concatenate(X), np.concatenate(y), frames=frames)


def _boundaries(sizes: Sequence[int]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
