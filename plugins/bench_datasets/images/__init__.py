"""Pictures in class folders, described by visual descriptors with CPU times measured here.

Z. Xu, K. Weinberger, O. Chapelle, "The greedy miser", ICML 2012, section 6, for Scene-15: each
feature is the output of one of the one-vs-all SVMs on one visual descriptor. The first output of a
descriptor that a row buys costs extraction, kernel row and SVM. Each later one costs only its SVM:
a discounted group per descriptor. 100 pictures of each class train, 20 validate, the rest tests. 30
percent of the training pictures build kernels and SVMs, the others are the training rows. Ten such
draws are ten folds; a seed draws ten others.

Departures

- The paper's 184 descriptors (GIST, HOG, LBP, self-similarity, textons, geometric ones, 177 object
  detectors) are not published as code. Ours are the 23 of ``_descriptors`` in the eight regions of
  ``regions``: also 184 views of a picture, but weaker ones with other CPU times.
- ``features = "raw"`` has the descriptors in place of their SVMs' outputs, for the paper's
  baselines on the original features. All values of a view are one sensor, and the pictures for the
  SVMs are training rows. Unless ``descriptors`` names others there is one of each family
  (``FAMILIES``), 803 values of the complete picture: baselines do not converge with many times more
  columns than rows.
- Pictures are first resized to a square of ``side`` pixels. Reading and resizing are not priced:
  every row needs them.
- The paper does not name its kernel; ours is in ``_machines``. SVMs weigh classes by size.
- Prices are medians of CPU time over some pictures. They are measured at the first preparation and
  kept for all folds (``costs`` takes a file instead). Another machine, or an emptied cache, gives
  other prices, whose results are not comparable.
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
from typing import Any, ClassVar, Literal

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
from bench_datasets.images._machines import (
    Machines,
    View,
    every_few_seconds,
    measured_costs,
)

SUPPORT = 0.3  # share of the training pictures that build the SVMs
LIMITS = {"quick": (40, 10, 20), "standard": (100, 20, 40)}  # train, valid, test per class
MODULES = tuple(
    f"bench_datasets.images.{name}" for name in ("_image_folder", "_descriptors", "_machines")
)
FAMILIES = ("tiny-8", "grey-32", "rgb-4", "lbp-16-2", "hog-4", "gabor-2-4", "texton-2", "daisy-1")
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
    descriptors (features=raw: the descriptors). Prices are CPU times measured on this machine, a
    discounted group per descriptor. Needs scikit-image: pip install 'budget-bench[images]'.
    """

    name: ClassVar[str] = "image-folder"
    task: ClassVar[Task] = Task.MULTICLASS
    title: ClassVar[str] = "Pictures in class folders, priced by CPU time measured on this machine"
    folds: ClassVar[int] = 10
    files: ClassVar[tuple[str, ...]] = (DEFAULT,)
    counts: ClassVar[Mapping[str, int]] = {}

    path: str = param(DEFAULT, "a folder of class folders (absolute, here or in the data "
                      "folder), or a zip of it")  # fmt: skip
    train: int = param(
        100, "pictures of each class for training; 30% of them build the SVMs", least=2
    )
    valid: int = param(20, "pictures of each class for validation; the rest tests", least=1)
    side: int = param(
        128, "side of the square that pictures are resized to, in pixels", least=64, most=1024
    )
    descriptors: tuple[str, ...] = param(
        (), "names of descriptors; none: all 23, or one of each family if raw"
    )
    views: Literal["pyramid", "whole"] = param("pyramid", "eight regions, or the full picture")
    features: Literal["outputs", "raw"] = param(
        "outputs", "outputs of SVMs on the descriptors, or the descriptors themselves"
    )
    costs: str = param("", "a cost file of these features, used instead of measuring")

    def __post_init__(self) -> None:
        unknown = [d for d in self.descriptors if d not in DESCRIPTORS]
        if unknown:
            raise ValueError(f"no descriptor {unknown[0]!r}; known: {', '.join(DESCRIPTORS)}")

    def complete(self, source: Source) -> bool:
        """True if there is such a folder or zip."""
        try:
            return find_root(self.path, source).exists()
        except InputError:
            return False

    def stamp(self, source: Source) -> str:
        """State of the folder or zip, the cost file, and versions of the descriptors' libraries."""
        need_skimage()
        album = self._album(source)
        costs = _cost_file(self.costs, source)
        content = hashlib.sha256(costs.read_bytes()).hexdigest() if costs else ""
        return repr((album.state, content, _versions()))

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Describe the pictures, train this draw's SVMs, and measure prices unless kept."""
        from threadpoolctl import threadpool_limits

        need_skimage()
        album = self._album(source)
        used, (support, *splits) = self._draw(album, size, fold + self.folds * seed)
        cache = _DescriptorCache(self.name, album, used, self.side, source)
        raw, label = self.features == "raw", album.label[used]
        parts = regions(self.side) if self.views == "pyramid" else ("whole",)
        every = FAMILIES if raw else DESCRIPTORS
        chosen = list(starmap(View, product(self.descriptors or every, parts)))
        machines: dict[View, Machines | None] = dict.fromkeys(chosen)
        blocks: list[Float32Array] = []
        names: list[str] = []
        progress = every_few_seconds(source.say, f"{self.name}: training machines")
        with threadpool_limits(1):  # keeps the order of sums
            for k, view in enumerate(chosen):
                block = cache.described(view)
                if raw:
                    names += [f"{view.name}_{j}" for j in range(1, block.shape[1] + 1)]
                else:
                    progress(k, len(chosen))
                    svms = Machines.learn(block[support], label[support], len(album.classes))
                    block = svms.outputs(svms.kernel(block)).astype(np.float32)
                    machines[view] = svms
                    names += [view.feature(kind) for kind in album.classes]
                blocks.append(block)
        if raw:  # nothing was learned from these
            splits[0] = np.sort(np.concatenate([support, splits[0]]))
        depends = ["raw"] if raw else [len(support), *album.classes]
        prices, note = self._prices(cache, machines, names, depends, source)
        X, y = np.hstack(blocks), label.astype(np.float64)
        train, valid, test = (Examples(X[rows], y[rows]) for rows in splits)
        limit = f"{size}: {len(used)} of {len(album)} pictures"
        notes = (note,) if len(used) == len(album) else (limit, note)
        return Splits(train, valid, test, prices, feature_names=tuple(names), notes=notes)

    def _album(self, source: Source) -> Album:
        if self.path == DEFAULT and not self.complete(source):
            raise InputError(
                f"{self.name}: choose pictures by --set {self.name}.path=FOLDER, a folder "
                "with a sub-folder for each class (or a zip of it)"
            )
        album = open_album(self.path, source)
        found = Counter(album.label.tolist())
        if self.counts and sorted(found.values()) != sorted(self.counts.values()):
            raise InputError(
                f"{album.root}: {len(album)} pictures of {len(found)} classes, not the "
                f"{sum(self.counts.values())} of {len(self.counts)} of {self.name}; get the "
                f"publisher's, or use --data image-folder --set image-folder.path={album.root}"
            )
        return album

    def _draw(self, album: Album, size: str, number: int) -> tuple[IntArray, list[IntArray]]:
        """The pictures used at this size, and places among them: of the pictures for the SVMs, and
        of the rows for training, validation and test."""
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
                    f"some, or use --set {self.name}.train=N and {self.name}.valid=N"
                )
            pool = np.sort(numbers[shuffled(len(numbers), 0)[: ends[-1]]])
            order = pool[shuffled(len(pool), number)]
            for split, rows in zip(parts, np.split(order, ends)[:-1], strict=True):
                split.append(rows)
        whole = [np.sort(np.concatenate(split)) for split in parts]
        used = np.sort(np.concatenate(whole))
        return used, [np.searchsorted(used, split) for split in whole]

    def _prices(
        self,
        cache: _DescriptorCache,
        machines: Mapping[View, Machines | None],
        names: Sequence[str],
        depends: Sequence[Any],
        source: Source,
    ) -> tuple[Prices, str]:
        """The prices of the features, and a note on their origin."""
        given = _cost_file(self.costs, source)
        if given is not None:
            return read_costs(given, names), f"prices: from {given}"
        kinds = () if depends == ["raw"] else cache.album.classes
        path = kept_text(
            f"{self.name}-costs.json",
            [cache.depends, [view.name for view in machines], *depends],
            MODULES,
            lambda: measured_costs(cache.pictures(), source.say, views=machines, classes=kinds),
        )
        how = json.loads(path.read_text(encoding="utf-8"))["measured"]
        spread = [
            (t["quartiles"][1] - t["quartiles"][0]) / t["median"]
            for t in how["extractors"].values()
        ]
        return read_costs(path, names), (
            f"prices: CPU time measured on {how['machine']} (quartiles {np.median(spread):.0%} of "
            f"the price apart), kept in {path}; for the same prices elsewhere, copy it and use "
            f"--set {self.name}.costs=FILE"
        )


@dataclass(frozen=True)
class Scene15(ImageFolder):
    """Fifteen kinds of scenes, indoors and outdoors.

    S. Lazebnik, C. Schmid, J. Ponce, "Beyond bags of features", CVPR 2006. A folder of the pictures
    works too, with any names of class folders: --set scene15.path=FOLDER.
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
    """Resized pictures and their descriptors, kept once for all folds."""

    def __init__(self, name: str, album: Album, used: IntArray, side: int, source: Source) -> None:
        self.album, self.name, self.label = album, name, album.label[used]
        self._used, self._side, self._say = used, side, source.say
        chosen = hashlib.sha256(used.astype("<i8").tobytes()).hexdigest()
        self.depends = [album.state, chosen, side, _versions()]

    def pictures(self) -> Pixels:
        """Pictures, (n, side, side, 3)."""

        def build() -> Mapping[str, Array]:
            self._say(f"{self.name}: reading {len(self._used)} pictures")
            return {"pictures": self.album.read(self._used.tolist(), self._side)}

        return kept_arrays(f"{self.name}-pictures", self.depends, MODULES[:1], build)["pictures"]

    def described(self, view: View) -> Float32Array:
        """One view of all pictures, (n, p)."""
        name = f"{self.name}-{view.descriptor}"

        describe, parts = DESCRIPTORS[view.descriptor], regions(self._side)

        def one(picture: Pixels) -> list[Float32Array]:
            return [describe(picture[part]) for part in parts.values()]

        def build() -> Mapping[str, Array]:
            self._say(f"{self.name}: {view.descriptor} of {len(self._used)} pictures")
            with ThreadPoolExecutor(THREADS) as pool:
                found = zip(*pool.map(one, self.pictures()), strict=True)
            return {region: np.stack(rows) for region, rows in zip(parts, found, strict=True)}

        return kept_arrays(name, self.depends, MODULES[:2], build)[view.region]


def _versions() -> list[str]:
    from importlib.metadata import version

    readers = ("scikit-image", "scipy", "numpy", "pillow")
    return [f"{name} {version(name)}" for name in readers]


def _cost_file(name: str, source: Source) -> Path | None:
    return find_file(name, source) if name else None


bench_datasets = provide_datasets(ImageFolder, Scene15)
