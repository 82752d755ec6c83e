"""A user's own frames: a folder with ``frames/`` and ``labels/``, one file each of the same name.

Arrays (``.npy``) are read by numpy, every other format by Pillow (the extra ``images``). Frames are
grey, or colours whose mean is taken; a label pixel that is not 0 belongs to an object.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_core import InputError, UsageError
from bench_datasets.multiscale._drawn import Picture

SUFFIXES = (".npy", ".png", ".tif", ".tiff", ".pgm", ".bmp", ".jpg", ".jpeg")
Pair = tuple[Path, Path]


def pairs(home: Path) -> tuple[Pair, ...]:
    """The frames of a folder in the order of their names, each with its labels."""
    frames, labels = (_by_name(home / part) for part in ("frames", "labels"))
    for one, other, lacking in ((frames, labels, "labels"), (labels, frames, "frames")):
        for name, path in one.items():
            if name not in other:
                raise InputError(f"{path}: no {name}.* in {home / lacking}; put it there")
    if len(frames) < 3:
        raise InputError(f"{home / 'frames'}: {len(frames)} images; at least 3 are needed")
    return tuple((frames[name], labels[name]) for name in sorted(frames))


def _by_name(folder: Path) -> dict[str, Path]:
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; put images there ({', '.join(SUFFIXES)})")
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in SUFFIXES or path.name.startswith("."):
            continue
        if path.stem in found:
            raise InputError(f"{path}: {found[path.stem].name} has the same name; keep one")
        found[path.stem] = path
    return found


def read(pair: Pair) -> Picture:
    """One frame with its labels."""
    grey, marks = _grey(pair[0]), _grey(pair[1])
    if grey.shape != marks.shape:
        raise InputError(
            f"{pair[1]}: {marks.shape[0]} x {marks.shape[1]} pixels, its frame has "
            f"{grey.shape[0]} x {grey.shape[1]}; make them equal"
        )
    return Picture(grey, marks != 0)


def parted(pictures: tuple[Pair, ...]) -> tuple[tuple[Pair, ...], ...]:
    """Training, validation and test frames: the first 2/5, the next 1/10, the other half."""
    test = len(pictures) // 2
    valid = max(1, round(len(pictures) / 10))
    first = len(pictures) - test - valid
    return pictures[:first], pictures[first : first + valid], pictures[first + valid :]


def _grey(path: Path) -> NDArray[np.float64]:
    try:
        image = np.asarray(_pixels(path))
    except (OSError, ValueError, SyntaxError) as error:
        raise InputError(f"{path}: no readable image ({error}); save it anew") from error
    if image.ndim == 3 and image.shape[2] in (2, 3, 4):
        colours = 1 if image.shape[2] == 2 else 3  # what follows is transparency
        image = image[:, :, :colours].mean(axis=2)
    if image.ndim != 2 or image.size == 0 or image.dtype.kind not in "buif":
        raise InputError(
            f"{path}: {image.dtype} of shape {image.shape} is no grey or colour picture; "
            "save one frame a file"
        )
    if not bool(np.isfinite(image).all()):
        raise InputError(f"{path}: a pixel is not a finite number; replace it")
    return image.astype(np.float64)


def _pixels(path: Path) -> Any:
    if path.suffix.lower() == ".npy":
        return np.load(path, allow_pickle=False)
    try:
        from PIL import Image
    except ImportError:
        raise UsageError(
            f"{path}: reading {path.suffix} needs Pillow; "
            "pip install 'budget-bench[images]', or save the frames as .npy"
        ) from None
    with Image.open(path) as image:
        if (pages := getattr(image, "n_frames", 1)) > 1:
            raise ValueError(f"{pages} pictures in one file")
        return np.asarray(image.convert("RGB") if image.mode == "P" else image)
