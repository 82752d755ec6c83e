"""Pictures in class folders, seen through descriptors whose CPU time is measured here.

Z. Xu, K. Weinberger, O. Chapelle, "The greedy miser", ICML 2012, section 6, for Scene-15: each
feature is the output of one of the one-vs-all SVMs on one visual descriptor. The first output of a
descriptor that a row buys costs extraction, kernel row and SVM, each later one its SVM alone: a
discounted group per descriptor. 100 pictures of each class train, 20 validate, the rest tests; 30
percent of the training pictures build kernels and SVMs, the others are the training rows. Ten such
draws are ten folds; a seed draws ten others.

Departures

- The paper's 184 descriptors (GIST, HOG, LBP, self-similarity, textons, geometric ones, 177 object
  detectors) are not published as code. Ours are the 23 of ``_descriptors`` in the eight regions of
  ``regions``: 184 views of a picture too, but weaker ones, and of other times.
- Pictures are squeezed to a square of ``side`` pixels first. Reading and squeezing is not priced:
  every row needs it.
- The paper does not name its kernel; ours is in ``_machines``. SVMs weigh classes by size.
- Prices are medians of CPU time over some pictures, measured when the data set is first prepared
  and kept for all folds (``costs`` takes a file instead). They are this machine's: another one, or
  an emptied cache, gives other prices, and results on them are other results.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product, starmap
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from bench_core import (
    Download,
    Examples,
    InputError,
    Prices,
    Source,
    Splits,
    Task,
    param,
    provide_datasets,
    read_costs,
)
from bench_core.arrays import Array, Float32Array, IntArray
from bench_core.datasets.cache import kept_arrays, kept_text
from bench_core.datasets.splitting import shuffled
from bench_datasets.images._descriptors import DESCRIPTORS, regions
from bench_datasets.images._image_folder import (
    THREADS,
    Album,
    Pixels,
    find_file,
    find_root,
    need_skimage,
    open_album,
)
from bench_datasets.images._machines import Machines, View, every_few_seconds, measured_costs

SUPPORT = 0.3
LIMITS = {"quick": (40, 10, 20), "standard": (100, 20, 40)}
MODULES = tuple(
    f"bench_datasets.images.{name}" for name in ("_image_folder", "_descriptors", "_machines")
)
DEFAULT, ARCHIVE = "images.zip", "scene_categories.zip"
SCENES = {
    "bedroom": 216, "CALsuburb": 241, "industrial": 311, "kitchen": 210, "livingroom": 289,
    "MITcoast": 360, "MITforest": 328, "MIThighway": 260, "MITinsidecity": 308, "MITmountain": 374,
    "MITopencountry": 410, "MITstreet": 292, "MITtallbuilding": 356, "PARoffice": 215, "store": 315,
}  # fmt: skip


@dataclass(frozen=True)
class ImageFolder:
    """A folder with one sub-folder of pictures per class, or a zip of such a folder.

    Choose it by --set image-folder.path=FOLDER. Features are outputs of one-vs-all SVMs on visual
    descriptors, their prices the CPU time measured on this machine: a discounted group per
    descriptor. Needs scikit-image: pip install 'budget-bench[images]'.
    """

    name: ClassVar[str] = "image-folder"
    task: ClassVar[Task] = Task.MULTICLASS
    title: ClassVar[str] = "Pictures in class folders, priced by CPU time measured on this machine"
    folds: ClassVar[int] = 10
    files: ClassVar[tuple[str, ...]] = (DEFAULT,)
    counts: ClassVar[Mapping[str, int]] = {}

    path: str = param(DEFAULT, "a folder of class folders (absolute, here or in the data "
                      "folder), or a zip of it")  # fmt: skip
    train: int = param(100, "pictures of each class for training; 30% of them build the SVMs")
    valid: int = param(20, "pictures of each class for validation; the rest tests")
    side: int = param(128, "pictures are squeezed to so many pixels in each direction")
    descriptors: tuple[str, ...] = param((), "names of descriptors; none means all 23")
    views: Literal["pyramid", "whole"] = param("pyramid", "eight regions or the whole picture")
    costs: str = param("", "a cost file of these features, to take in place of measuring")

    def __post_init__(self) -> None:
        if not self.path:
            raise ValueError("path is empty: name a folder of class folders, or a zip of it")
        if self.train < 2 or self.valid < 1:
            raise ValueError("train must be at least 2 and valid at least 1 picture of each class")
        if not 64 <= self.side <= 1024:
            raise ValueError(f"side is {self.side}; it must be in 64..1024")
        unknown = [d for d in self.descriptors if d not in DESCRIPTORS]
        if unknown:
            raise ValueError(f"no descriptor {unknown[0]!r}; known: {', '.join(DESCRIPTORS)}")

    def complete(self, source: Source) -> bool:
        """Whether there is such a folder or zip."""
        try:
            return find_root(self.path, source).exists()
        except InputError:
            return False

    def faults(self, source: Source) -> list[str]:
        """The first fault of the pictures, after reading all: for ``bench data verify``."""
        try:
            album = open_album(self.path, source)
            self._refuse_other(album)
            album.read(range(len(album)), 64)
        except InputError as error:
            return [str(error)]
        return []

    def stamp(self, source: Source) -> str:
        """State of the folder or zip, the cost file, and versions of the descriptors' libraries."""
        need_skimage()
        album = self._album(source)
        costs = _cost_file(self.costs, source)
        content = hashlib.sha256(costs.read_bytes()).hexdigest() if costs else ""
        return repr((album.state, content, _versions()))

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Describe the pictures, train the machines of this draw, measure prices unless kept."""
        from threadpoolctl import threadpool_limits

        need_skimage()
        album = self._album(source)
        self._refuse_other(album)
        used, (support, *splits) = self._draw(album, size, fold + self.folds * seed)
        cache = _DescriptorCache(self.name, album, used, self.side, source)
        parts = regions(self.side) if self.views == "pyramid" else ("whole",)
        chosen = list(starmap(View, product(self.descriptors or DESCRIPTORS, parts)))
        classes = len(album.classes)
        X = np.empty((len(used), len(chosen) * classes), dtype=np.float32)
        machines: dict[View, Machines] = {}
        progress = every_few_seconds(source.say, f"{self.name}: training machines")
        with threadpool_limits(1):  # sums keep their order
            for k, view in enumerate(chosen):
                described = cache.described(view)
                progress(k, len(chosen))
                made = Machines.learn(described[support], album.label[used[support]], classes)
                X[:, k * classes : (k + 1) * classes] = made.outputs(made.kernel(described))
                machines[view] = made
        prices, note = self._prices(cache, machines, source)
        y = album.label[used].astype(np.float64)
        train, valid, test = (Examples(X[rows], y[rows]) for rows in splits)
        limit = f"{size}: {len(used)} of {len(album)} pictures"
        return Splits(
            train, valid, test,
            prices=prices, task=Task.MULTICLASS, classes=classes,
            feature_names=_names(machines, album.classes),
            notes=(note,) if len(used) == len(album) else (limit, note),
        )  # fmt: skip

    def _album(self, source: Source) -> Album:
        if self.path == DEFAULT and not self.complete(source):
            raise InputError(
                f"{self.name}: say which pictures by --set {self.name}.path=FOLDER, a folder "
                "with a sub-folder for each class (or a zip of it)"
            )
        return open_album(self.path, source)

    def _refuse_other(self, album: Album) -> None:
        found = Counter(album.label.tolist())
        if self.counts and sorted(found.values()) != sorted(self.counts.values()):
            raise InputError(
                f"{album.root}: {len(album)} pictures of {len(found)} classes, not the "
                f"{sum(self.counts.values())} of {len(self.counts)} of {self.name}; get the "
                f"publisher's, or say --data image-folder --set image-folder.path={album.root}"
            )

    def _draw(self, album: Album, size: str, number: int) -> tuple[IntArray, list[IntArray]]:
        """The pictures that this size uses, and places among them: of those that build the
        machines, and of the rows for training, validation and test."""
        most = LIMITS.get(size, (self.train, self.valid, len(album)))
        train, valid, test = min(self.train, most[0]), min(self.valid, most[1]), most[2]
        support = max(1, round(SUPPORT * train))
        ends = (support, train, train + valid, train + valid + test)
        parts: list[list[IntArray]] = [[] for _ in ends]
        for k, kind in enumerate(album.classes):
            numbers = np.flatnonzero(album.label == k)
            if len(numbers) <= train + valid:
                raise InputError(
                    f"{album.root}: class {kind!r} has {len(numbers)} pictures and needs "
                    f"{train + valid + 1} ({train} to train, {valid} to validate, 1 to test); add "
                    f"some, or say --set {self.name}.train=N and {self.name}.valid=N"
                )
            pool = np.sort(numbers[shuffled(len(numbers), 0)[: ends[-1]]])
            order = pool[shuffled(len(pool), number)]
            for part, rows in zip(parts, np.split(order, ends)[:-1], strict=True):
                part.append(rows)
        whole = [np.sort(np.concatenate(part)) for part in parts]
        used = np.sort(np.concatenate(whole))
        return used, [np.searchsorted(used, part) for part in whole]

    def _prices(
        self, cache: _DescriptorCache, machines: dict[View, Machines], source: Source
    ) -> tuple[Prices, str]:
        classes = cache.album.classes
        names = _names(machines, classes)
        given = _cost_file(self.costs, source)
        if given is not None:
            return read_costs(given, names), f"prices: from {given}"
        path = kept_text(
            f"{self.name}-costs.json",
            [cache.depends, [v.name for v in machines], len(next(iter(machines.values())).known)],
            MODULES,
            lambda: measured_costs(cache.pictures(), machines, classes, source.say),
        )
        how = json.loads(path.read_text(encoding="utf-8"))["measured"]
        apart = [
            (t["quartiles"][1] - t["quartiles"][0]) / t["median"]
            for t in how["extractors"].values()
        ]
        return read_costs(path, names), (
            f"prices: CPU time measured on {how['machine']} (quartiles {np.median(apart):.0%} of "
            f"the price apart), kept in {path}; a copy, given as --set {self.name}.costs=FILE, "
            "makes them the same elsewhere"
        )


@dataclass(frozen=True)
class Scene15(ImageFolder):
    """Fifteen kinds of scenes, indoors and outdoors.

    S. Lazebnik, C. Schmid, J. Ponce, "Beyond bags of features", CVPR 2006. A folder of the pictures
    does as well, whatever its class folders are called: --set scene15.path=FOLDER.
    """

    name: ClassVar[str] = "scene15"
    title: ClassVar[str] = "Scene-15, 184 descriptors priced by CPU time measured on this machine"
    files: ClassVar[tuple[str, ...]] = (ARCHIVE,)
    downloads: ClassVar[tuple[Download, ...]] = (
        Download(
            "http://www-cvr.ai.uiuc.edu/ponce_grp/data/scene_categories/scene_categories.zip",
            ARCHIVE,
        ),
    )
    homepage: ClassVar[str] = "http://www-cvr.ai.uiuc.edu/ponce_grp/data"
    counts: ClassVar[Mapping[str, int]] = SCENES
    places: ClassVar[tuple[str, ...]] = ("path",)

    path: str = param(
        ARCHIVE, "the publisher's zip in the data folder, or a folder of its pictures"
    )


class _DescriptorCache:
    """Squeezed pictures and their descriptors, kept once for all folds."""

    def __init__(self, name: str, album: Album, used: IntArray, side: int, source: Source) -> None:
        self.album = album
        self._name, self._used, self._side, self._say = name, used, side, source.say
        chosen = hashlib.sha256(used.astype("<i8").tobytes()).hexdigest()
        self.depends = [album.state, chosen, side, _versions()]

    def pictures(self) -> Pixels:
        """(n, side, side, 3)."""

        def build() -> Mapping[str, Array]:
            self._say(f"{self._name}: reading {len(self._used)} pictures")
            return {"pictures": self.album.read(self._used.tolist(), self._side)}

        return kept_arrays(f"{self._name}-pictures", self.depends, MODULES[:1], build)["pictures"]

    def described(self, view: View) -> Float32Array:
        """One view of all of them, (n, p)."""
        name = f"{self._name}-{view.descriptor}"

        describe, parts = DESCRIPTORS[view.descriptor], regions(self._side)

        def one(picture: Pixels) -> list[Float32Array]:
            return [describe(picture[part]) for part in parts.values()]

        def build() -> Mapping[str, Array]:
            self._say(f"{self._name}: {view.descriptor} of {len(self._used)} pictures")
            with ThreadPoolExecutor(THREADS) as pool:
                found = zip(*pool.map(one, self.pictures()), strict=True)
            return {region: np.stack(rows) for region, rows in zip(parts, found, strict=True)}

        return kept_arrays(name, self.depends, MODULES[:2], build)[view.region]


def _names(machines: Mapping[View, Machines], classes: Sequence[str]) -> tuple[str, ...]:
    return tuple(view.feature(kind) for view in machines for kind in classes)


def _versions() -> list[str]:
    from importlib.metadata import version

    readers = ("scikit-image", "scipy", "numpy", "pillow", "imageio")
    return [f"{name} {version(name)}" for name in readers]


def _cost_file(name: str, source: Source) -> Path | None:
    return find_file(name, source) if name else None


bench_datasets = provide_datasets(ImageFolder, Scene15)
