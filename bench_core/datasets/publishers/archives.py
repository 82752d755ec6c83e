"""Taking named files out of a publisher's archive, and nothing else.

Where a file is written is decided here, never by the archive: paths in it are compared, not
followed. Links, devices and folders are refused, and so is a member that grows beyond all reason.
"""

from __future__ import annotations

import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from bench_core._io.text import FLOOR, RATIO
from bench_core.errors import InputError

BLOCK = 1 << 20


def unpack(archive: Path, members: Mapping[str, str], folder: Path) -> list[Path]:
    """Write each member (path in the archive, with or without leading folders) to ``folder``.

    Raises InputError for what is no archive, damaged, encrypted, lacks a member or holds it twice,
    or holds a link in its place.
    """
    limit = RATIO * archive.stat().st_size + FLOOR
    written = []
    with _readable(archive):
        for path, source in _members(archive, tuple(members)):
            to = folder / members[path]
            to.parent.mkdir(parents=True, exist_ok=True)
            limit -= _copy(source, to, limit, archive)
            written.append(to)
    return written


@contextmanager
def _readable(archive: Path) -> Iterator[None]:
    damaged = (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error, lzma.LZMAError)
    try:
        yield
    except (*damaged, NotImplementedError, RuntimeError) as error:
        raise InputError(
            f"{archive}: damaged or encrypted archive ({error}); get the file again"
        ) from error
    except OSError as error:
        raise InputError(
            f"{archive}: cannot be unpacked ({error.strerror or error}); check file and disk"
        ) from error


def _members(archive: Path, wanted: tuple[str, ...]) -> Iterator[tuple[str, IO[bytes]]]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            names = [i.filename for i in packed.infolist() if not i.is_dir()]
            for want in wanted:
                info = packed.getinfo(_the_one(archive, names, want))
                if info.external_attr >> 28 == 0o12:  # file type of a symbolic link
                    raise InputError(f"{archive}: {want} is a link; get the publisher's archive")
                with packed.open(info) as source:
                    yield want, source
    elif tarfile.is_tarfile(archive):
        with tarfile.open(archive) as packed_tar:
            entries = packed_tar.getmembers()
            names = [e.name for e in entries if not e.isdir()]
            for want in wanted:
                name = _the_one(archive, names, want)
                entry = next(e for e in entries if e.name == name)
                source_or_none = packed_tar.extractfile(entry) if entry.isreg() else None
                if source_or_none is None:
                    raise InputError(f"{archive}: {want} is a link; get the publisher's archive")
                yield want, source_or_none
    else:
        raise InputError(f"{archive}: neither a zip nor a tar archive; get the file again")


def _the_one(archive: Path, names: list[str], want: str) -> str:
    found = [n for n in names if n.removeprefix("./") == want or n.endswith(f"/{want}")]
    if len(found) != 1:
        how = "no" if not found else f"{len(found)} files"
        raise InputError(f"{archive}: {how} {want} in it; get the publisher's archive")
    return found[0]


def _copy(source: IO[bytes], to: Path, limit: int, archive: Path) -> int:
    written = 0
    free = shutil.disk_usage(to.parent).free
    with to.open("wb") as out:
        while block := source.read(BLOCK):
            written += len(block)
            if written > limit or written > free:
                why = "more than the disk holds" if written > free else "a decompression bomb"
                raise InputError(f"{archive}: unpacks to {why}; get the publisher's archive")
            out.write(block)
    return written
