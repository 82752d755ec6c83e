"""A data set's files, downloaded from its publisher by pooch.

Files go to ``FOLDER/HOME``. They are first staged in a hidden folder next to it and compared with
their known checksums; only then they are moved. This module, never the archive, decides where a
member is written: paths in archives are compared, not followed.
"""

import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench_core.contracts import dataset_of
from bench_core.datasets.data_folder import DataFolder
from bench_core.errors import InputError, UsageError, check_memory, one_line, option
from bench_core.protocols import CompleteDataset, Dataset, Source

SECONDS = 30.0  # without an answer
CHUNK = 1 << 18  # bytes
AGAIN = 2  # retries of a failed transfer
# Called often, with the bytes done and the total (0: unknown).
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Download:
    """A publisher's file at ``url``, kept as ``file``.

    ``sha256`` and ``bytes`` are checked if known. ``members`` of an archive (zip, tar, tar.gz):
    path in it -> path under the data set's folder.
    """

    url: str
    file: str
    sha256: str = ""
    bytes: int = 0
    members: Mapping[str, str] = field(default_factory=dict)


def from_uci(number: int, archive: str, *files: str, bytes: int = 0) -> tuple[Download, ...]:
    """Return the download of a UCI zip whose files keep their names."""
    url = f"https://archive.ics.uci.edu/static/public/{number}/{archive}"
    return (Download(url, archive, bytes=bytes, members={name: name for name in files}),)


class _Bar:
    """Progress bar in the form that pooch expects."""

    def __init__(self, progress: Progress) -> None:
        self.progress, self.total, self.done = progress, 0, 0

    def update(self, size: int) -> None:
        self.done += size
        self.progress(min(self.done, self.total or self.done), self.total)

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None:
        """Do nothing."""


def fetch(
    download: Download,
    folder: Path,
    progress: Progress = lambda done, total: None,
    remedy: str = "",
) -> Path:
    """Return the file in ``folder``, fetched if absent.

    Raises InputError, ending with ``remedy``, if there is no network, the answer is not the
    expected file, or the folder cannot be written.
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
    remedy = remedy or f"download it yourself to {to}"
    raise InputError(f"{download.url}: {one_line(reason, 300)}; try again, or {remedy}")


def check_file(path: Path, sha256: str = "", size: int = 0) -> None:
    """Raise ValueError unless the file has this size and sha256, as far as they are known."""
    import pooch

    found = path.stat().st_size
    if size and found != size:
        raise ValueError(f"{found} bytes instead of {size}")
    if sha256 and (digest := pooch.file_hash(str(path))) != sha256:
        raise ValueError(f"sha256 {digest}")


def unpack(archive: Path, members: Mapping[str, str], folder: Path) -> None:
    """Write each member (path in the archive, with or without leading folders) to ``folder``.

    Raises InputError if it is not an archive, is damaged or encrypted, lacks a member as a plain
    file, or contains it twice.
    """
    damaged = (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error, NotImplementedError)
    try:
        with ExitStack() as held:
            files = _contents(archive, held)
            for want, name in members.items():
                hits = [f for f in files if f.removeprefix("./") == want or f.endswith(f"/{want}")]
                if len(hits) != 1:
                    how = "no" if not hits else f"{len(hits)} files"
                    raise InputError(f"{archive}: {how} {want} in it; get the publisher's archive")
                to = folder / name
                to.parent.mkdir(parents=True, exist_ok=True)
                with files[hits[0]]() as source, to.open("wb") as out:
                    shutil.copyfileobj(source, out)
    except (*damaged, RuntimeError, OSError) as error:
        check_memory(error, archive)
        raise InputError(
            f"{archive}: cannot be unpacked ({error}); get the file again, or check the disk"
        ) from error


def _contents(archive: Path, held: ExitStack) -> dict[str, Callable[[], Any]]:
    """Return the plain files of an archive, each with a function that opens it."""
    if zipfile.is_zipfile(archive):
        z = held.enter_context(zipfile.ZipFile(archive))
        return {i.filename: partial(z.open, i) for i in z.infolist() if not i.is_dir()}
    if tarfile.is_tarfile(archive):
        tar = held.enter_context(tarfile.TarFile.open(archive))
        return {e.name: partial(tar.extractfile, e) for e in tar.getmembers() if e.isreg()}
    raise InputError(f"{archive}: neither a zip nor a tar archive; get the file again")


Say = Callable[[str], None]
WORK = ".fetching-"  # prefix of the hidden staging folder


def home_of(dataset: Dataset) -> str:
    """Return the folder of a data set's files in the data folder."""
    return dataset_of(dataset).home or dataset.name


def remedy(dataset: Dataset) -> str:
    """Return the remedy for a missing file, as part of a message."""
    dataset = dataset_of(dataset)
    if dataset.downloads:
        return f"run 'bench data fetch {dataset.name}'"
    if dataset.homepage:
        return f"put it there ('bench show {dataset.name}' shows where it comes from)"
    return "put it there"


def is_there(dataset: Dataset, source: Source) -> bool:
    """True if the loader finds its files."""
    return bool(dataset_of(dataset).complete(source))


def fetch_dataset(
    dataset: Dataset, source: DataFolder, say: Say, progress: Progress = lambda done, total: None
) -> None:
    """Download, unpack, compare with checksums and move to the data folder.

    Raises UsageError if there is nothing to download, InputError if it fails.
    """
    dataset = dataset_of(dataset)
    if not dataset.downloads:
        why = f"its publisher allows no automatic download; {_by_hand(dataset)}"
        if dataset.place:
            why = f"its files are your own and stay where {dataset.place} says"
        if not dataset.files:
            why = "needs no files: it is bundled or generated"
        raise UsageError(f"{dataset.name}: {why}")
    with _staged(dataset, source) as home:
        for download in dataset.downloads:
            say(f"fetching {download.url}")
            fetched = fetch(download, home, progress, _by_hand(dataset))
            if download.members:
                say(f"unpacking {download.file}")
                unpack(fetched, download.members, home)
                fetched.unlink()


def _by_hand(dataset: CompleteDataset) -> str:
    """Return the manual way to get the files, as the end of a message."""
    if dataset.place:
        return f"put it there, or correct {dataset.place}"
    where = f" from {dataset.homepage}" if dataset.homepage else ""
    return (
        f"get {', '.join(dataset.files)}{where} and put them into the folder {home_of(dataset)} of "
        "the data folder"
    )


@contextmanager
def _staged(dataset: CompleteDataset, source: DataFolder) -> Iterator[Path]:
    """Yield a temporary folder for the files. If the block succeeds, their checksums are compared,
    and they are moved into the data folder. Errors name the data set, as the folder is deleted by
    then."""
    home = source.folder / home_of(dataset)
    for name in dataset.files:
        if source.has(name) and home not in source.find(name).parents:
            raise InputError(f"{source.find(name)}: already there; remove it first")
    try:
        source.folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=WORK, dir=source.folder) as stage:
            folder = Path(stage, home_of(dataset))
            folder.mkdir(parents=True)
            try:
                yield folder
                fetched = DataFolder(stage)
                for name in filter(fetched.has, dataset.files):
                    path = fetched.find(name)
                    packed = ".gz" if path.suffix == ".gz" else ""
                    try:
                        check_file(path, dataset.sums.get(name.removesuffix(".gz") + packed, ""))
                    except ValueError as error:
                        again = f"run 'bench data fetch {dataset.name} --again'"
                        fault = f"not the publisher's file ({error}); {again}"
                        raise InputError(f"{path}: {fault}") from error
            except InputError as error:
                origin = f"{dataset.name} as fetched"
                text = str(error).replace(f"{folder}/", f"{origin}: ").replace(stage, origin)
                raise InputError(text) from error
            if not home.exists():  # all at once; else files join those that are there
                home.parent.mkdir(parents=True, exist_ok=True)
                folder.replace(home)
                return
            for path in sorted(p for p in folder.rglob("*") if p.is_file()):
                to = home / path.relative_to(folder)
                to.parent.mkdir(parents=True, exist_ok=True)
                path.replace(to)
    except OSError as error:
        raise InputError(
            f"{source.folder}: cannot be written ({error}); name another with {option('data_dir')}"
        ) from error
