"""Frames and their object pixels: generated frames and a user's own.

Each patch of 64 x 64 pixels of a generated frame has three bodies, the objects (bent strokes,
thinner at the tips). It also has two ghosts (round bumps out of focus), two scratches and four
specks. The ground has two textures, uneven light, blur and noise. Ghosts resemble bodies at coarse
scales, scratches and specks at fine ones, and uneven light spoils thresholds of ``value``. All
lengths are in pixels and do not grow with the frame: a larger frame shows more of the same scene.

A user's frames are a folder with ``frames/`` and ``labels/``, one file each of the same name.
Arrays (``.npy``) are read by numpy, every other format by Pillow (the extra ``images``). Frames are
grey, or colours whose mean is taken; a label pixel that is not 0 belongs to an object.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench_core import InputError, UsageError, check_memory
from bench_core.arrays import BoolArray, FloatArray

Window = tuple[slice, slice]
Pair = tuple[Path, Path]

SUFFIXES = (".npy", ".png", ".tif", ".tiff", ".pgm", ".bmp", ".jpg", ".jpeg")
PATCH = 64 * 64  # pixels; numbers of shapes are per patch of this size
BODIES, GHOSTS, SCRATCHES, SPECKS = 3, 2, 2, 4  # per patch
TRIES = 10  # for each body to find a free place
GAP = 4  # between bodies

LENGTH, RADIUS, BEND = (6.0, 10.0), (3.0, 4.5), 4.0  # of a body: half its length
CONTRAST = (25.0, 55.0)
GHOST_WIDTH, GHOST_CONTRAST = (4.0, 8.0), (25.0, 55.0)
SCRATCH_LENGTH, SCRATCH_RADIUS, SCRATCH_CONTRAST = (8.0, 20.0), (0.6, 1.0), (40.0, 90.0)
SPECK_RADIUS, SPECK_CONTRAST = (0.6, 1.5), (50.0, 100.0)

GROUND = 60.0
TEXTURES = ((1.5, 4.0), (8.0, 6.0))  # width and standard deviation
SLOPE, SPOT = 0.35, 0.25  # of the light: its fall over the frame, its bright spot
BLUR = 0.8
NOISE, SHOT = 4.0, 0.3  # standard deviation; variance per grey level


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """Grey levels (height, width), and True for pixels of an object."""

    grey: NDArray[np.generic]  # (height, width)
    truth: BoolArray  # (height, width)


@dataclass(frozen=True, slots=True)
class Stroke:
    """A bent line with round ends: ``radius`` in the middle and less towards its tips."""

    row: float
    column: float
    angle: float
    length: float  # half of it
    radius: float
    bend: float = 0.0

    def mask(self, side: int, wider: float = 0.0) -> tuple[Window, BoolArray]:
        """Its window in a frame, and its pixels there."""
        along = np.linspace(-1.0, 1.0, 65)
        ahead = self.length * along
        aside = self.bend * (along**2 - 1 / 3)  # mean 0: the middle stays
        rows = self.row + ahead * np.sin(self.angle) + aside * np.cos(self.angle)
        columns = self.column + ahead * np.cos(self.angle) - aside * np.sin(self.angle)
        radius = self.radius * np.sqrt(1 - 0.7 * along**2) + wider
        window = (_window(rows, radius, side), _window(columns, radius, side))
        down = np.arange(window[0].start, window[0].stop)[:, None, None] - rows
        across = np.arange(window[1].start, window[1].stop)[None, :, None] - columns
        return window, (down**2 + across**2 <= radius**2).any(axis=2)


def _window(centres: FloatArray, radius: FloatArray, side: int) -> slice:
    first, last = np.floor((centres - radius).min()), np.ceil((centres + radius).max())
    return slice(int(np.clip(first, 0, side)), int(np.clip(last + 1, 0, side)))


def draw(side: int, *key: int) -> Picture:
    """The square frame drawn from the numbers of ``key``."""
    from scipy.ndimage import gaussian_filter

    rng = np.random.default_rng(key)
    scene = np.full((side, side), GROUND)
    for width, spread in TEXTURES:
        smooth = gaussian_filter(rng.normal(size=scene.shape), width, mode="wrap")
        scene += spread * (smooth * (2 * width * np.sqrt(np.pi)))
    truth = _bodies(rng, scene)
    _clutter(rng, scene)
    scene *= _light(rng, side)
    scene = gaussian_filter(scene, BLUR, mode="nearest")
    scene += rng.normal(size=scene.shape) * np.sqrt(NOISE**2 + SHOT * np.maximum(scene, 0))
    return Picture(np.clip(np.round(scene), 0, 255).astype(np.uint8), truth)


def _light(rng: np.random.Generator, side: int) -> FloatArray:
    place = (np.arange(side) + 0.5) / side - 0.5
    down, across = place[:, None], place[None, :]
    angle = rng.uniform(0, 2 * np.pi)
    row, column = rng.uniform(-0.5, 0.5, 2)
    spot = np.exp(-((down - row) ** 2 + (across - column) ** 2) / (2 * 0.3**2))
    light: FloatArray = 1 + SLOPE * (down * np.sin(angle) + across * np.cos(angle)) + SPOT * spot
    return light


def _bodies(rng: np.random.Generator, scene: FloatArray) -> BoolArray:
    """Add bodies that do not touch to the scene; return their pixels."""
    side = len(scene)
    truth, taken = np.zeros(scene.shape, dtype=bool), np.zeros(scene.shape, dtype=bool)
    left = _number(side, BODIES)
    for _ in range(TRIES * left):
        if left == 0:
            break
        row, column, angle = *rng.uniform(0, side, 2), rng.uniform(0, np.pi)
        shape = rng.uniform(*LENGTH), rng.uniform(*RADIUS), rng.uniform(-BEND, BEND)
        body = Stroke(row, column, angle, *shape)
        contrast = rng.uniform(*CONTRAST)
        window, mask = body.mask(side)
        if (taken[window] & mask).any():
            continue
        truth[window] |= mask
        scene[window] += contrast * mask
        around, wide = body.mask(side, GAP)
        taken[around] |= wide
        left -= 1
    return truth


def _clutter(rng: np.random.Generator, scene: FloatArray) -> None:
    """Add clutter: blurred ghosts, thin scratches, small specks."""
    side = len(scene)
    for _ in range(_number(side, GHOSTS)):
        row, column, width = *rng.uniform(0, side, 2), rng.uniform(*GHOST_WIDTH)
        window, ghost = _ghost(row, column, width, side)
        scene[window] += rng.uniform(*GHOST_CONTRAST) * ghost
    for _ in range(_number(side, SCRATCHES)):
        row, column, angle = *rng.uniform(0, side, 2), rng.uniform(0, np.pi)
        length, radius = rng.uniform(*SCRATCH_LENGTH), rng.uniform(*SCRATCH_RADIUS)
        window, mask = Stroke(row, column, angle, length, radius).mask(side)
        scene[window] += rng.uniform(*SCRATCH_CONTRAST) * mask
    for _ in range(_number(side, SPECKS)):
        row, column, radius = *rng.uniform(0, side, 2), rng.uniform(*SPECK_RADIUS)
        window, mask = Stroke(row, column, 0.0, 0.0, radius).mask(side)
        scene[window] += rng.uniform(*SPECK_CONTRAST) * mask


def _ghost(row: float, column: float, width: float, side: int) -> tuple[Window, FloatArray]:
    """A round bump of height 1 within its visible range."""
    reach = np.array([4 * width])
    window = (_window(np.array([row]), reach, side), _window(np.array([column]), reach, side))
    down = np.arange(window[0].start, window[0].stop) - row
    across = np.arange(window[1].start, window[1].stop) - column
    return window, np.exp(-(down[:, None] ** 2 + across**2) / (2 * width**2))


def _number(side: int, per_patch: int) -> int:
    return max(1, round(per_patch * side * side / PATCH))


def pairs(home: Path) -> tuple[Pair, ...]:
    """The frames of a folder in the order of their names, each with its labels."""
    folders: dict[str, dict[str, Path]] = {"frames": {}, "labels": {}}
    for folder, by_name in folders.items():
        if not (home / folder).is_dir():
            raise InputError(
                f"{home / folder}: no such folder; put images there ({', '.join(SUFFIXES)})"
            )
        for path in sorted((home / folder).iterdir()):
            if path.suffix.lower() not in SUFFIXES or path.name.startswith("."):
                continue
            if path.stem in by_name:
                raise InputError(f"{path}: {by_name[path.stem].name} has the same name; keep one")
            by_name[path.stem] = path
    frames, labels = folders.values()
    for name in frames.keys() ^ labels.keys():
        path = frames.get(name) or labels[name]
        lacking = "labels" if name in frames else "frames"
        raise InputError(f"{path}: no {name}.* in {home / lacking}; put it there")
    if len(frames) < 3:
        raise InputError(f"{home / 'frames'}: {len(frames)} images; at least 3 are needed")
    return tuple((frames[name], labels[name]) for name in sorted(frames))


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
        if path.suffix.lower() == ".npy":
            image = np.load(path, allow_pickle=False)
        else:
            from PIL import Image

            with Image.open(path) as opened:
                if (pages := getattr(opened, "n_frames", 1)) > 1:
                    raise ValueError(f"{pages} pictures in one file")
                image = np.asarray(opened.convert("RGB") if opened.mode == "P" else opened)
    except ImportError:
        raise UsageError(
            f"{path}: reading {path.suffix} needs Pillow; "
            "pip install 'budget-bench[images]', or save the frames as .npy"
        ) from None
    except (OSError, ValueError, SyntaxError) as error:
        check_memory(error, path)
        raise InputError(f"{path}: not a readable image ({error}); save it again") from error
    if image.ndim == 3 and image.shape[2] in (2, 3, 4):
        colours = 1 if image.shape[2] == 2 else 3  # a last channel of transparency
        image = image[:, :, :colours].mean(axis=2)
    numbers = image.dtype.kind in "buif"
    if image.ndim != 2 or image.size == 0 or not numbers or not np.isfinite(image).all():
        raise InputError(
            f"{path}: {image.dtype} of shape {image.shape} is not a grey or colour picture of "
            "finite numbers; save one frame per file"
        )
    return np.asarray(image, dtype=np.float64)
