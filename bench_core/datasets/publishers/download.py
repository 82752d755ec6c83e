"""A publisher's files: downloaded by pooch, verified, and taken out of archives.

Where a member of an archive is written is decided here, never by the archive: paths in it are
compared, not followed.
"""

import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

from bench_core.errors import InputError, one_line

SECONDS = 30.0  # without an answer
CHUNK = 1 << 18  # bytes
AGAIN = 2  # how often a transfer that failed is tried again
# Called often, with the bytes done and in all (0: not known).
Progress = Callable[[int, int], None]


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


class _Bar:
    """What pooch takes for a progress bar."""

    def __init__(self, progress: Progress) -> None:
        self.progress, self.total, self.done = progress, 0, 0

    def update(self, size: int) -> None:
        self.done += size
        self.progress(min(self.done, self.total or self.done), self.total)

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None:
        """Nothing is shown here."""


def fetch(
    download: Download,
    folder: Path,
    progress: Progress = lambda done, total: None,
    remedy: str = "",
) -> Path:
    """The file in ``folder``, fetched unless it is there.

    Raises InputError where there is no network, where the answer is not the expected file, and
    where the folder cannot be written; it ends with ``remedy``, what to do by hand.
    """
    import pooch
    from requests import RequestException

    pooch.get_logger().setLevel("WARNING")
    name, to = download.file, folder / download.file
    sums = {name: f"sha256:{download.sha256}" if download.sha256 else None}
    files = pooch.create(
        folder, "", registry=sums, urls={name: download.url}, retry_if_failed=AGAIN
    )
    http = pooch.HTTPDownloader(_Bar(progress), CHUNK, timeout=SECONDS)
    try:
        files.fetch(name, downloader=http)
        check_file(to, size=download.bytes)
    except RequestException as error:
        reason = str(error)
    except ValueError as error:
        to.unlink(missing_ok=True)
        reason = f"not the expected file ({error})"
    except OSError as error:
        raise InputError(f"{to}: cannot be written ({error.strerror or error})") from error
    else:
        return to
    remedy = remedy or f"get it by hand and put it at {to}"
    raise InputError(f"{download.url}: {one_line(reason, 300)}; try again, or {remedy}")


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

    Raises InputError for what is no archive, damaged, encrypted, lacks a member as a plain file or
    holds it twice.
    """
    damaged = (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error, NotImplementedError)
    try:
        with ExitStack() as held:
            files = _contents(archive, held)
            for want, name in members.items():
                found = [f for f in files if f.removeprefix("./") == want or f.endswith(f"/{want}")]
                if len(found) != 1:
                    how = "no" if not found else f"{len(found)} files"
                    raise InputError(f"{archive}: {how} {want} in it; get the publisher's archive")
                to = folder / name
                to.parent.mkdir(parents=True, exist_ok=True)
                with files[found[0]]() as source, to.open("wb") as out:
                    shutil.copyfileobj(source, out)
    except (*damaged, RuntimeError, OSError) as error:
        raise InputError(
            f"{archive}: cannot be unpacked ({error}); get the file again, or check the disk"
        ) from error


def _contents(archive: Path, held: ExitStack) -> dict[str, Callable[[], IO[bytes]]]:
    """The plain files of an archive, each with what opens it."""
    if zipfile.is_zipfile(archive):
        z = held.enter_context(zipfile.ZipFile(archive))
        return {i.filename: partial(z.open, i) for i in z.infolist() if not i.is_dir()}
    if tarfile.is_tarfile(archive):
        tar = held.enter_context(tarfile.TarFile.open(archive))

        def opened(entry: tarfile.TarInfo) -> IO[bytes]:
            file = tar.extractfile(entry)
            assert file is not None  # a plain file
            return file

        return {e.name: partial(opened, e) for e in tar.getmembers() if e.isreg()}
    raise InputError(f"{archive}: neither a zip nor a tar archive; get the file again")
