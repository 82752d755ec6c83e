"""``multiscale``: pixels under an image pyramid, where evaluating splits is the cost.

S. Peter, F. Diego, F. Hamprecht, B. Nadler, "Cost efficient gradient boosting", NIPS 2017, section
5.2. Every pixel of a frame is a row: does it belong to an animal? Its features are fast filters on
the frame averaged over blocks of 1, 2, 4 and 8 pixels a side. Filters are computed for entire
frames and cost almost nothing, so features are free. A split costs alpha eps_m, alpha = 1. A coarse
feature has a small eps_m, since all pixels of a block share the result. Segmentations are judged by
the ``seg`` measure.

The paper's forty frames of flies are not public: generated frames or a user's own replace them
(``_frames``, ``docs/reference/generated-data.md``).

Departures
- eps_m is 1 / (pixels that share the value). The printed formula has their number itself, which
  makes coarse splits more expensive, against the aim: ``eps = "printed"``.
- The paper trains on twenty frames and tests on twenty. Here validation takes four of the first.
- In larger frames a part of the training pixels is drawn; ``pixels`` of each frame.
- The paper does not name its filters; ours are in ``_pyramid``.
- A coarse split is charged its share even where an earlier, finer split has divided the block.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from bench_core import (
    Examples,
    InputError,
    Metric,
    Queries,
    Source,
    Splits,
    Task,
    UsageError,
    hookimpl,
    param,
    provide_datasets,
)
from bench_core.datasets.cache import content_digest
from bench_datasets.multiscale._frames import Pair, Picture, draw, pairs, parted, read
from bench_datasets.multiscale._pyramid import feature_names, features, split_prices
from bench_datasets.multiscale.seg import Seg

SIDE = {"quick": 64, "standard": 256, "paper": 1024}
FRAMES = {"quick": (6, 3, 6), "standard": (6, 3, 6), "paper": (16, 4, 20)}
DRAWN = 3  # follows the numbers of the three splits
PIXELS = {"quick": 4096, "standard": 16384, "paper": 65536}


@dataclass(frozen=True)
class Multiscale:
    """Pixels of a frame that belong to an animal (label 1)."""

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
        None, "training pixels drawn per frame; none: 4096, 16384 or 65536 by profile", least=1
    )

    def __post_init__(self) -> None:
        if not self.scales or min(self.scales) < 1 or len({*self.scales}) < len(self.scales):
            raise ValueError(f"scales must be different integers of at least 1: {self.scales}")

    def stamp(self, source: Source) -> str:
        """Path and content of every file of the folder."""
        files = [path for pair in self._pairs(source) for path in pair]
        return repr([(str(path), content_digest(path)) for path in files])

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Draw or read the frames and filter them; ``fold`` is ignored."""
        if size not in SIDE:
            raise UsageError(f"size {size!r}: multiscale has quick, standard and paper")
        parts = self._parts(source, size, seed)
        for name, frames in zip(("training", "validation", "test"), parts, strict=True):
            if not any(picture.truth.any() for picture in frames):
                raise InputError(f"{self.folder or self.name}: no object in the {name} frames")
        train = _examples(parts[0], self.scales, self.pixels or PIXELS[size], seed)
        valid, test = (_examples(frames, self.scales) for frames in parts[1:])
        return Splits(
            train, valid, test,
            prices=split_prices(self.scales, self.eps),
            feature_names=feature_names(self.scales),
            stand_in=not self.folder,
            notes=self._notes(parts, train),
        )  # fmt: skip

    def _pairs(self, source: Source) -> tuple[Pair, ...]:
        return pairs(source.find_folder(self.folder)) if self.folder else ()

    def _parts(self, source: Source, size: str, seed: int) -> list[list[Picture]]:
        """Training, validation and test frames: generated, or the user's, limited to as many for
        the profiles quick and standard."""
        numbers = FRAMES[size]
        if not self.folder:
            drawn = enumerate(numbers)
            return [[draw(SIDE[size], seed, k, j) for j in range(number)] for k, number in drawn]
        limits = (None, None, None) if size == "paper" else numbers
        parts = zip(parted(self._pairs(source)), limits, strict=True)
        return [[read(pair) for pair in part[:limit]] for part, limit in parts]

    def _notes(self, parts: Sequence[Sequence[Picture]], train: Examples) -> tuple[str, ...]:
        numbers = ", ".join(str(len(part)) for part in parts)
        notes = [f"{numbers} frames to train, validate and test on"]
        if train.groups is not None and train.groups.tags is None:
            notes.append(f"{len(train)} training pixels, drawn by the seed")
        if not self.folder:
            notes.append("generated frames: use them to check the installation")
        return tuple(notes)


def _examples(
    pictures: Sequence[Picture], scales: tuple[int, ...], wanted: int | None = None, seed: int = 0
) -> Examples:
    """Every pixel of the frames, or up to ``wanted`` of each, drawn by the seed."""
    sizes = [p.truth.size for p in pictures]
    drawn = wanted is not None and max(sizes) > wanted
    counts = [min(n, wanted) for n in sizes] if wanted is not None else sizes
    boundaries = np.cumsum([0, *counts], dtype=np.int64)
    X = np.empty((boundaries[-1], len(feature_names(scales))), dtype=np.float32)
    y = np.empty(len(X))
    for j, (picture, start) in enumerate(zip(pictures, boundaries[:-1], strict=True)):
        chosen = None
        if drawn:
            rng = np.random.default_rng([seed, DRAWN, j])
            chosen = np.sort(rng.choice(sizes[j], counts[j], replace=False))
        rows = slice(start, boundaries[j + 1])
        X[rows] = features(picture.grey, scales, chosen)
        y[rows] = picture.truth.reshape(-1)[slice(None) if chosen is None else chosen]
    widths = None if drawn else np.array([p.truth.shape[1] for p in pictures])
    return Examples(X, y, groups=Queries(boundaries, widths))


bench_datasets = provide_datasets(Multiscale)


@hookimpl
def bench_metrics() -> Sequence[Metric]:
    """The ``seg`` measure of its segmentations."""
    return [Seg()]
