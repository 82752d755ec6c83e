"""A publisher's files: downloaded (resumed when cut, verified, atomic), and taken out of archives.

Where a member of an archive is written is decided here, never by the archive: paths in it are
compared, not followed. Links, devices and folders are refused, and so is a member that grows beyond
all reason.
"""

import hashlib
import http.client
import json
import lzma
import os
import shutil
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from bench_core._io.files import locked
from bench_core._io.text import FLOOR, RATIO
from bench_core.errors import InputError

SECONDS = 30.0
CHUNK = 1 << 18
TRIES = 4  # in a row without a byte more
PAUSE = 0.5  # seconds, longer after each of them
Progress = Callable[[int, int], None]
"""Called often, with the bytes done and in all (0: not known)."""


@dataclass(frozen=True, slots=True)
class Download:
    """One file that a publisher offers at ``url``, kept as ``file``.

    ``sha256`` and ``bytes`` are checked where they are known. ``members`` names what an archive
    (zip, tar, tar.gz) holds: path in it -> path under the data set's folder.
    """

    url: str
    file: str
    sha256: str = ""
    bytes: int = 0
    members: Mapping[str, str] = field(default_factory=dict)


def from_uci(number: int, archive: str, *files: str, bytes: int = 0) -> tuple[Download, ...]:
    """A zip of UCI's repository, the files of which keep their names."""
    url = f"https://archive.ics.uci.edu/static/public/{number}/{archive}"
    return (Download(url, archive, bytes=bytes, members={name: name for name in files}),)


def fetch(
    download: Download,
    folder: Path,
    progress: Progress = lambda done, total: None,
    remedy: str = "",
) -> Path:
    """The file in ``folder``, fetched unless it is there.

    It grows under a temporary name; a cut transfer goes on where it stopped, in this call or the
    next. Raises InputError where there is no network, where the answer is not the expected file,
    and where the folder cannot be written; it ends with ``remedy``, what to do by hand.
    """
    to = folder / download.file
    remedy = remedy or f"get {download.url} by hand and put it at {to}"
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with locked(to.with_name(f".{to.name}.lock")):
            if not to.is_file():
                _fetch(download, to, progress)
    except _RefusedError as error:
        raise InputError(
            f"{download.file}: not fetched: {error}; try again, or {remedy}"
        ) from error
    except OSError as error:
        raise InputError(f"{to}: cannot be written ({error.strerror or error})") from error
    return to


class _RefusedError(Exception):
    """Why there is no file."""


class _CutError(Exception):
    """The transfer ended early; more may come when it is tried again."""


def _fetch(download: Download, to: Path, progress: Progress) -> None:
    part = to.with_name(f".{to.name}.part")
    _transfer(download, part, progress)
    try:
        check_file(part, download.sha256, download.bytes)
    except ValueError as error:
        part.unlink()
        raise _RefusedError(f"{download.url} is not the expected file ({error})") from error
    part.replace(to)
    _validator(part).unlink(missing_ok=True)


def check_file(path: Path, sha256: str = "", size: int = 0) -> None:
    """Raise ValueError unless the file has this size and sha256, each where it is known."""
    found = path.stat().st_size
    if size and found != size:
        raise ValueError(f"{found} bytes instead of {size}")
    if sha256:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != sha256:
            raise ValueError(f"sha256 {digest}")


def _transfer(download: Download, part: Path, progress: Progress) -> None:
    if not download.url.startswith(("http://", "https://")):
        raise _RefusedError(f"{download.url} is no address of the web")
    idle = 0
    while True:
        before = _begun(part)[0]
        try:
            _continue(download, part, progress)
        except _CutError as cut:
            idle = 0 if _begun(part)[0] > before else idle + 1
            if idle == TRIES:
                raise _RefusedError(str(cut)) from cut
            time.sleep(idle * PAUSE)
        else:
            return


def _continue(download: Download, part: Path, progress: Progress) -> None:
    """Fetch what is missing. Raises _CutError where the rest may come later."""
    headers = {"User-Agent": "budget-bench", "Accept-Encoding": "identity"}
    have, mark = _begun(part)
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": mark}
    try:
        with urlopen(Request(download.url, headers=headers), timeout=SECONDS) as answer:
            start = have if answer.status == http.HTTPStatus.PARTIAL_CONTENT else 0
            _write(download, answer, part, start, progress)
    except HTTPError as error:
        error.close()
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and have:
            part.unlink()
            raise _CutError("the file changed meanwhile") from error
        kind = _CutError if error.code >= http.HTTPStatus.INTERNAL_SERVER_ERROR else _RefusedError
        raise kind(f"the publisher answers {error.code} {error.reason}") from error
    except (http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise _CutError(str(error) or type(error).__name__) from error
    except OSError as error:  # URLError too: no network, no such host
        reason = getattr(error, "reason", None)
        if reason is None and error.errno is not None:
            raise  # the disk's
        reason = getattr(reason, "strerror", None) or reason or error
        raise _RefusedError(f"{download.url}: {reason}") from error


def _write(download: Download, answer: Any, part: Path, start: int, progress: Progress) -> None:
    stated = answer.headers.get("Content-Length") or "0"
    if not (stated.isascii() and stated.isdecimal() and len(stated) < 20):
        raise _RefusedError(f"the publisher states a length of {stated[:40]!r} bytes")
    length = int(stated)
    total = start + length if length else download.bytes
    if download.bytes and total != download.bytes:
        raise _RefusedError(f"the publisher offers {total} bytes instead of {download.bytes}")
    if total - start > (free := shutil.disk_usage(part.parent).free):
        raise _RefusedError(f"it needs {total - start} bytes of disk and {free} are free")
    mark = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
    _validator(part).write_text(json.dumps("" if mark.startswith("W/") else mark))
    done = start
    with part.open("ab" if start else "wb") as out:
        progress(done, total)
        while block := answer.read(CHUNK):
            done += len(block)
            if download.bytes and done > download.bytes:
                raise _RefusedError(f"the answer is longer than {download.bytes} bytes")
            out.write(block)
            progress(done, total)
        out.flush()
        os.fsync(out.fileno())
    if length and done < start + length:
        raise _CutError(f"the connection ended after {done} of {total} bytes")


def _validator(part: Path) -> Path:
    return part.with_name(f"{part.name}.mark")


def _begun(part: Path) -> tuple[int, str]:
    """Bytes that a further request may go on from, and the mark of what they are of."""
    with suppress(OSError, ValueError):
        if mark := json.loads(_validator(part).read_text()):
            return part.stat().st_size, mark
    return 0, ""


def unpack(archive: Path, members: Mapping[str, str], folder: Path) -> None:
    """Write each member (path in the archive, with or without leading folders) to ``folder``.

    Raises InputError for what is no archive, damaged, encrypted, lacks a member or holds it twice,
    or holds a link in its place.
    """
    limit = RATIO * archive.stat().st_size + FLOOR
    with _readable(archive):
        for path, source in _members(archive, members):
            to = folder / members[path]
            to.parent.mkdir(parents=True, exist_ok=True)
            limit -= _copy(source, to, limit, archive)


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


def _members(archive: Path, wanted: Iterable[str]) -> Iterator[tuple[str, IO[bytes]]]:
    files: list[tuple[str, bool, Callable[[], IO[bytes] | None]]]  # name, whether a link, opens it
    with ExitStack() as held:
        if zipfile.is_zipfile(archive):
            z = held.enter_context(zipfile.ZipFile(archive))
            inside = [i for i in z.infolist() if not i.is_dir()]
            files = [
                (i.filename, i.external_attr >> 28 == 0o12, partial(z.open, i)) for i in inside
            ]
        elif tarfile.is_tarfile(archive):
            tar = held.enter_context(tarfile.open(archive))
            entries = [e for e in tar.getmembers() if not e.isdir()]
            files = [(e.name, not e.isreg(), partial(tar.extractfile, e)) for e in entries]
        else:
            raise InputError(f"{archive}: neither a zip nor a tar archive; get the file again")
        for want in wanted:
            found = [
                f for f in files if f[0].removeprefix("./") == want or f[0].endswith(f"/{want}")
            ]
            if len(found) != 1:
                how = "no" if not found else f"{len(found)} files"
                raise InputError(f"{archive}: {how} {want} in it; get the publisher's archive")
            [(_, linked, opened)] = found
            if linked or (source := opened()) is None:
                raise InputError(f"{archive}: {want} is a link; get the publisher's archive")
            with source:
                yield want, source


def _copy(source: IO[bytes], to: Path, limit: int, archive: Path) -> int:
    written = 0
    free = shutil.disk_usage(to.parent).free
    with to.open("wb") as out:
        while block := source.read(CHUNK):
            written += len(block)
            if written > limit or written > free:
                why = "more than the disk holds" if written > free else "a decompression bomb"
                raise InputError(f"{archive}: unpacks to {why}; get the publisher's archive")
            out.write(block)
    return written
