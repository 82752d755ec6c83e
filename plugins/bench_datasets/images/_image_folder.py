"""Pictures in class folders, or in a zip of class folders.

The common path of all pictures is skipped, so class folders may lie at any depth. Hidden files and
files without a picture's suffix are skipped too.
"""

import hashlib
import io
import posixpath
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_core import InputError, Source, UsageError, check_memory
from bench_core.arrays import Float32Array, IntArray
from bench_core.datasets.cache import content_digest

Pixels = NDArray[np.uint8]

SUFFIXES = (".jpg", ".jpeg", ".png", ".ppm", ".pgm", ".bmp", ".tif", ".tiff", ".gif", ".webp")
THREADS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Album:
    """Pictures and their classes."""

    root: Path  # a folder or a zip
    paths: tuple[str, ...]  # below it, sorted
    classes: tuple[str, ...]
    label: IntArray  # (n,) the number of each picture's class
    state: str  # changes with any file

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, chosen: Sequence[int], side: int) -> Pixels:
        """Pictures (n, side, side, 3), resized to a square.

        Raises InputError for an unreadable picture.
        """
        need_skimage()

        def one(number: int) -> Pixels:
            name = self.paths[number]
            try:
                raw = archive.read(name) if archive else (self.root / name).read_bytes()
                return squeezed(decoded(raw), side)
            except Exception as error:  # decoders raise arbitrary exceptions
                check_memory(error, name)
                raise InputError(
                    f"{self.root}: {name} cannot be read as a picture ({error}); "
                    "remove or replace it"
                ) from error

        opened = nullcontext() if self.root.is_dir() else zipfile.ZipFile(self.root)
        with opened as archive, ThreadPoolExecutor(THREADS) as pool:
            return np.stack(list(pool.map(one, chosen)))


def open_album(path: str, source: Source) -> Album:
    """The pictures in a folder (see ``Source.find_folder``) or in a zip.

    Raises InputError without pictures, without class folders, or with only one class.
    """
    root = find_root(path, source)
    facts: dict[str, Any] = {}  # identity of each file's content
    if root.is_dir():
        for file in filter(Path.is_file, root.rglob("*")):
            facts[file.relative_to(root).as_posix()] = content_digest(file)
    else:
        try:
            with zipfile.ZipFile(root) as archive:
                facts = {i.filename: (i.file_size, i.CRC) for i in archive.infolist()}
        except (zipfile.BadZipFile, OSError) as error:
            raise InputError(
                f"{root}: not a zip that can be read ({error}); get it again"
            ) from error
    pictures = {name: fact for name, fact in sorted(facts.items()) if _is_picture(name)}
    if not pictures:
        raise InputError(f"{root}: no pictures ({', '.join(SUFFIXES)}) in it; name another")
    folders = [PurePosixPath(name).parent.parts for name in pictures]
    depth = min(map(len, folders))
    if depth == 0:
        loose = next(name for name, parts in zip(pictures, folders, strict=True) if not parts)
        raise InputError(f"{root}: {loose} lies in no class folder; make one sub-folder per class")
    shared = PurePosixPath(posixpath.commonpath(map(posixpath.dirname, pictures)))
    common = min(len(shared.parts), depth - 1)
    names = [parts[common] for parts in folders]
    classes = tuple(sorted(set(names)))
    if len(classes) < 2:
        raise InputError(
            f"{root}: all pictures lie in {classes[0]!r}; make one sub-folder for each of at least "
            "two classes"
        )
    label = np.array([classes.index(name) for name in names], dtype=np.int64)
    state = hashlib.sha256(repr((str(root), list(pictures.items()))).encode()).hexdigest()
    return Album(root, tuple(pictures), classes, label, state)


def find_root(path: str, source: Source) -> Path:
    """The folder or zip at that path. Raises InputError where there is none."""
    if path.lower().endswith(".zip"):
        return find_file(path, source).resolve()
    return source.find_folder(path)


def find_file(path: str, source: Source) -> Path:
    """The file at that path, or otherwise in the data folder."""
    with suppress(RuntimeError):  # ~USER with an unknown user
        here = Path(path).expanduser()
        if here.is_file():
            return here.resolve()
    return source.find(path)


def need_skimage() -> None:
    """Raise UsageError where scikit-image is missing."""
    from importlib.util import find_spec

    if find_spec("skimage") is None:
        raise UsageError("pictures need scikit-image: pip install 'budget-bench[images]'")


def _is_picture(name: str) -> bool:
    parts = PurePosixPath(name).parts
    hidden = any(p.startswith(".") or p == "__MACOSX" for p in parts)
    return not hidden and name.lower().endswith(SUFFIXES)


def decoded(raw: bytes) -> Float32Array:
    """The first frame of a picture as red, green and blue in 0..1 (height, width, 3); transparent
    parts are on white."""
    from PIL import Image

    with Image.open(io.BytesIO(raw)) as opened:
        picture: Image.Image = opened
        if picture.mode.startswith("I"):  # 16-bit grey, which Pillow cannot convert
            deep: IntArray = np.asarray(picture)
            if deep.min() < 0 or deep.max() > 65535:
                raise ValueError("its pixels have more than 16 bits")
            tones = np.multiply(deep, 1 / 65535, dtype=np.float32)
            return np.repeat(tones[..., None], 3, axis=2)
        if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
            white = Image.new("RGBA", picture.size, "white")
            picture = Image.alpha_composite(white, picture.convert("RGBA"))
        pixels: Pixels = np.asarray(picture.convert("RGB"))
        return np.asarray(np.multiply(pixels, 1 / 255, dtype=np.float32))


def squeezed(pixels: Float32Array, side: int) -> Pixels:
    """Resize to a square of bytes, smoothed first where it shrinks."""
    from skimage.transform import resize

    smooth = resize(pixels, (side, side), order=1, anti_aliasing=True)
    small: Pixels = np.rint(np.clip(smooth, 0, 1) * 255).astype(np.uint8)
    return small
