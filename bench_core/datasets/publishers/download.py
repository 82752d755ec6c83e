"""A publisher's files: downloaded (verified, whole or not at all), and taken out of archives.

Where a member of an archive is written is decided here, never by the archive: paths in it are
compared, not followed, and links are refused.
"""

import shutil
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any

from bench_core._io.files import locked
from bench_core.errors import InputError, one_line

SECONDS = 30.0
CHUNK = 1 << 18
TRIES = 4
PAUSE = 0.5  # seconds, longer after each failure
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

    A cut transfer goes on where it stopped, in this call or the next. Raises InputError where there
    is no network, where the answer is not the expected file, and where the folder cannot be
    written; it ends with ``remedy``, what to do by hand.
    """
    import pooch
    from requests import RequestException

    to = folder / download.file
    pooch.get_logger().setLevel("WARNING")
    transfer = partial(_transfer, part=to.with_name(f".{to.name}.part"), progress=progress)
    sha256 = f"sha256:{download.sha256}" if download.sha256 else None
    reason = ""
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with locked(to.with_name(f".{to.name}.lock")):
            if not to.is_file():
                pooch.retrieve(download.url, sha256, to.name, to.parent, downloader=transfer)
                try:
                    check_file(to, size=download.bytes)
                except ValueError:
                    to.unlink()
                    raise
    except RequestException as error:
        reason = _reason(error)
    except ValueError as error:
        reason = f"not the expected file ({error})"
    except OSError as error:
        raise InputError(f"{to}: cannot be written ({error.strerror or error})") from error
    if reason:
        remedy = remedy or f"get it by hand and put it at {to}"
        raise InputError(f"{download.url}: {one_line(reason, 300)}; try again, or {remedy}")
    return to


def _reason(error: Exception) -> str:
    """The words of an error of requests, without those of the libraries below that wrap it."""
    inner = error.args[0] if error.args else error
    inner = getattr(inner, "reason", None) or inner
    return str(inner.args[0] if isinstance(inner, Exception) and inner.args else inner)


def _transfer(url: str, to: str, _: Any, *, part: Path, progress: Progress) -> None:
    """Fetch a file (a downloader of pooch). What has come is kept in ``part`` for the next try."""
    from requests import ConnectionError, HTTPError, Timeout
    from requests.exceptions import ChunkedEncodingError

    for tried in range(1, TRIES + 1):
        try:
            _continue(url, part, progress)
            break
        except (ConnectionError, Timeout, ChunkedEncodingError):
            if tried == TRIES:
                raise
        except HTTPError as error:
            status = 0 if error.response is None else error.response.status_code
            if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:  # another file than before
                part.unlink(missing_ok=True)
            elif tried == TRIES or status < HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
        time.sleep(tried * PAUSE)
    shutil.move(part, to)


def _continue(url: str, part: Path, progress: Progress) -> None:
    import requests

    done = part.stat().st_size if part.exists() else 0
    # packed on the way it would have another length than the one to go on from
    headers = {"User-Agent": "budget-bench", "Accept-Encoding": "identity"}
    if done:
        headers["Range"] = f"bytes={done}-"
    with requests.get(url, headers=headers, stream=True, timeout=SECONDS) as answer:
        answer.raise_for_status()
        # a server without ranges sends the whole file again
        done = done if answer.status_code == HTTPStatus.PARTIAL_CONTENT else 0
        length = int(answer.headers.get("Content-Length", 0))
        total = done + length if length else 0
        with part.open("ab" if done else "wb") as out:
            for block in answer.iter_content(CHUNK):
                out.write(block)
                done += len(block)
                progress(done, total)


def check_file(path: Path, sha256: str = "", size: int = 0) -> None:
    """Raise ValueError unless the file has this size and sha256, each where it is known."""
    import pooch

    found = path.stat().st_size
    if size and found != size:
        raise ValueError(f"{found} bytes instead of {size}")
    if sha256 and (digest := pooch.file_hash(str(path))) != sha256:
        raise ValueError(f"sha256 {digest}")


def unpack(archive: Path, members: Mapping[str, str], folder: Path) -> None:
    """Write each member (path in the archive, with or without leading folders) to ``folder``.

    Raises InputError for what is no archive, damaged, encrypted, lacks a member or holds it twice,
    or holds a link in its place.
    """
    with _readable(archive), ExitStack() as held:
        files = _contents(archive, held)
        for want, name in members.items():
            found = [f for f in files if f.removeprefix("./") == want or f.endswith(f"/{want}")]
            if len(found) != 1:
                how = "no" if not found else f"{len(found)} files"
                raise InputError(f"{archive}: {how} {want} in it; get the publisher's archive")
            source = files[found[0]]()
            if source is None:
                raise InputError(f"{archive}: {want} is a link; get the publisher's archive")
            to = folder / name
            to.parent.mkdir(parents=True, exist_ok=True)
            with source, to.open("wb") as out:
                shutil.copyfileobj(source, out)


@contextmanager
def _readable(archive: Path) -> Iterator[None]:
    damaged = (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error, NotImplementedError)
    try:
        yield
    except (*damaged, RuntimeError) as error:
        raise InputError(
            f"{archive}: damaged or encrypted archive ({error}); get the file again"
        ) from error
    except OSError as error:
        raise InputError(
            f"{archive}: cannot be unpacked ({error.strerror or error}); check file and disk"
        ) from error


def _contents(archive: Path, held: ExitStack) -> dict[str, Callable[[], IO[bytes] | None]]:
    """The files of an archive, each with what opens it (None for a link)."""
    if zipfile.is_zipfile(archive):
        z = held.enter_context(zipfile.ZipFile(archive))
        links = {i.filename for i in z.infolist() if i.external_attr >> 28 == 0o12}
        names = (i.filename for i in z.infolist() if not i.is_dir())
        return {n: (lambda: None) if n in links else partial(z.open, n) for n in names}
    if tarfile.is_tarfile(archive):
        tar = held.enter_context(tarfile.TarFile.open(archive))
        entries = (e for e in tar.getmembers() if not e.isdir())
        return {
            e.name: partial(tar.extractfile, e) if e.isreg() else (lambda: None) for e in entries
        }
    raise InputError(f"{archive}: neither a zip nor a tar archive; get the file again")
