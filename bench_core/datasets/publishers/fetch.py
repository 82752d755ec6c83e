"""A data set's files: fetched from its publisher, taken from the user's copy, verified.

Files land in ``FOLDER/HOME``. They are put together in a hidden folder beside it, by one process at
a time, read by the data set's own loader, compared with its facts, and only then moved.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench_core._io.files import locked
from bench_core.contracts import dataset_of
from bench_core.datasets.publishers.archives import unpack
from bench_core.datasets.publishers.download import Download, Progress, check_file, fetch
from bench_core.datasets.search import DataFolder
from bench_core.errors import InputError, UsageError
from bench_core.protocols import Dataset, Source

Say = Callable[[str], None]
WORK = ".fetching"
"""The hidden folder of what is not finished."""
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")


@dataclass(frozen=True, slots=True)
class Publisher:
    """Names, places and downloads of a data set's files."""

    name: str
    files: tuple[str, ...]
    downloads: tuple[Download, ...]
    homepage: str
    home: str
    sums: Mapping[str, str]
    place: str

    @classmethod
    def of(cls, dataset: Dataset) -> Publisher:
        """Collect the class variables."""
        d = dataset_of(dataset)
        home = d.home or d.name
        return cls(d.name, d.files, d.downloads, d.homepage, home, d.sums, d.place)

    def inside(self, name: str) -> str:
        """A file's path under ``home``."""
        return name.removeprefix(f"{self.home}/")

    @property
    def again(self) -> str:
        """How to replace files that are wrong, as the end of a message."""
        if self.downloads:
            return f"say 'bench data fetch {self.name} --again'"
        return f"correct {self.place}" if self.place else "get it again"

    @property
    def by_hand(self) -> str:
        """How a person gets the files, as the end of a message."""
        if self.place:
            return f"put it there, or correct {self.place}"
        where = f" from {self.homepage}" if self.homepage else ""
        return f"get {', '.join(self.files)}{where} and say 'bench data import {self.name} FOLDER'"


def remedy(dataset: Dataset) -> str:
    """What to do about a file that is not there, as a part of a message."""
    dataset = dataset_of(dataset)
    if dataset.downloads:
        return f"say 'bench data fetch {dataset.name}'"
    if dataset.homepage:
        return f"put it there ('bench show {dataset.name}' says where it comes from)"
    return "put it there"


def is_there(dataset: Dataset, source: Source) -> bool:
    """Whether the loader finds what it needs."""
    return bool(dataset_of(dataset).complete(source))


def fetch_dataset(
    dataset: Dataset, source: DataFolder, say: Say, progress: Progress = lambda done, total: None
) -> None:
    """Download, unpack, verify and put in place.

    Raises UsageError where there is nothing to download, InputError where it fails; what was
    transferred is kept for the next try, and nothing else is.
    """
    publisher = Publisher.of(dataset)
    if not publisher.downloads:
        raise UsageError(_nothing_to_fetch(publisher))
    transfers = source.folder / WORK / publisher.home
    with _staged(publisher, source) as stage:
        for download in publisher.downloads:
            say(f"fetching {download.url}")
            fetched = fetch(download, transfers, progress, publisher.by_hand)
            try:
                if download.members:
                    say(f"unpacking {download.file}")
                    unpack(fetched, download.members, stage / publisher.home)
                else:
                    _copy(fetched, stage / publisher.home / download.file)
            except InputError:
                fetched.unlink()  # the next try begins anew
                raise
        try:
            _verify(dataset, publisher, DataFolder(stage), say)
        except InputError:
            shutil.rmtree(transfers, ignore_errors=True)
            raise
    shutil.rmtree(transfers, ignore_errors=True)


def import_dataset(dataset: Dataset, taken: Path, source: DataFolder, say: Say) -> None:
    """Copy the files from a folder, a file or an archive of the user's; verify; put in place."""
    publisher = Publisher.of(dataset)
    if not publisher.files or publisher.place:
        raise UsageError(_nothing_to_fetch(publisher))
    if not taken.exists():
        raise InputError(f"{taken}: no such file or folder; check the name")
    with _staged(publisher, source) as stage:
        home = stage / publisher.home
        if taken.is_dir():
            _import_folder(dataset, publisher, DataFolder(taken), stage)
        elif taken.name.endswith(ARCHIVES) and taken.name not in publisher.files:
            _check(publisher, taken, publisher.sums.get(taken.name, ""))
            say(f"unpacking {taken.name}")
            unpack(taken, _members(publisher, taken), home)
        else:
            _copy(taken, home / _file_called(publisher, taken))
        if not is_there(dataset, DataFolder(stage)):
            missing = [n for n in publisher.files if not DataFolder(stage).has(n)]
            raise InputError(
                f"{taken}: no {', '.join(missing)} in it; name the folder of all files"
            )
        _verify(dataset, publisher, DataFolder(stage), say)


def verify_dataset(dataset: Dataset, source: DataFolder, say: Say) -> list[tuple[str, ...]]:
    """(file, bytes, sha256 "as published", "not known") for each file, after reading them.

    Raises InputError for the first fault: a missing file, another sha256, unreadable content, other
    numbers of rows, labels or values.
    """
    publisher = Publisher.of(dataset)
    if not publisher.files:
        raise UsageError(_nothing_to_fetch(publisher))
    if not is_there(dataset, source):
        missing = next(n for n in publisher.files if not source.has(n))
        raise InputError(f"{source.folder}: no file {missing}; {publisher.by_hand}")
    _verify(dataset, publisher, source, say)
    paths = {name: source.find(name) for name in publisher.files if source.has(name)}
    return [
        (
            str(path),
            str(path.stat().st_size),
            "as published" if _sum_of(publisher, name, path) else "not known",
        )
        for name, path in paths.items()
    ]


def _nothing_to_fetch(publisher: Publisher) -> str:
    if not publisher.files:
        return f"{publisher.name}: needs no files: it is bundled or generated"
    if publisher.place:
        return f"{publisher.name}: its files are your own and stay where {publisher.place} says"
    return f"{publisher.name}: its publisher allows no automatic download; {publisher.by_hand}"


def _verify(dataset: Dataset, publisher: Publisher, source: DataFolder, say: Say) -> None:
    for name in publisher.files:
        if source.has(name):
            path = source.find(name)
            _check(publisher, path, _sum_of(publisher, name, path))
    say(f"reading {publisher.name}")
    if faults := dataset_of(dataset).faults(source):
        raise InputError(
            f"{source.folder}: not the publisher's {publisher.name}: {'; '.join(faults)}; "
            f"{publisher.again}"
        )


def _check(publisher: Publisher, path: Path, sha256: str) -> None:
    try:
        check_file(path, sha256)
    except ValueError as error:
        raise InputError(
            f"{path}: not the publisher's file ({error}); {publisher.again}"
        ) from error


def _sum_of(publisher: Publisher, name: str, path: Path) -> str:
    """The sum known for the file as it lies there: packed or not."""
    plain = name.removesuffix(".gz")
    return publisher.sums.get(f"{plain}.gz" if path.suffix == ".gz" else plain, "")


@contextmanager
def _staged(publisher: Publisher, source: DataFolder) -> Iterator[Path]:
    """A temporary data folder; its ``home`` moves into the true one when the block ends well."""
    home = source.folder / publisher.home
    for name in publisher.files:
        if source.has(name) and home not in source.find(name).parents:
            raise InputError(
                f"{source.find(name)}: already there; remove it first, or say "
                f"'bench data verify {publisher.name}'"
            )
    stage = source.folder / WORK / f"{publisher.home}.new"
    with ExitStack() as held:
        try:
            stage.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(locked(stage.with_suffix(".lock")))
            shutil.rmtree(stage, ignore_errors=True)  # of a process that was killed
            stage.mkdir()
        except OSError as error:
            raise InputError(
                f"{source.folder}: cannot be written ({error.strerror}); "
                "name another with --data-dir"
            ) from error
        try:
            yield stage
            _land(stage / publisher.home, home)
        finally:
            shutil.rmtree(stage, ignore_errors=True)


def _land(stage: Path, home: Path) -> None:
    """Whole or not at all where the folder is new; file by file where it is there."""
    if not home.exists():
        stage.rename(home)
        return
    for path in sorted(p for p in stage.rglob("*") if p.is_file()):
        to = home / path.relative_to(stage)
        to.parent.mkdir(parents=True, exist_ok=True)
        path.replace(to)


def _copy(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copyfile(path, to)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be copied ({error.strerror}); check file and disk"
        ) from error


def _import_folder(dataset: Dataset, publisher: Publisher, given: DataFolder, stage: Path) -> None:
    home = stage / publisher.home
    for name in publisher.files:
        inside = publisher.inside(name)
        if given.has(inside):
            path = given.find(inside)
            plain = inside.removesuffix(".gz")
            _copy(path, home / (f"{plain}.gz" if path.suffix == ".gz" else plain))
    if is_there(dataset, DataFolder(stage)):
        return
    for download in publisher.downloads:  # the publisher's archives, not unpacked
        if download.members and given.has(download.file):
            unpack(given.find(download.file), download.members, home)


def _members(publisher: Publisher, archive: Path) -> Mapping[str, str]:
    for download in publisher.downloads:
        if download.members and download.file == archive.name:
            return download.members
    return {publisher.inside(name): publisher.inside(name) for name in publisher.files}


def _file_called(publisher: Publisher, path: Path) -> str:
    plain = path.name.removesuffix(".gz")
    for name in publisher.files:
        if Path(name).name.removesuffix(".gz") == plain:
            return str(Path(publisher.inside(name)).with_name(path.name))
    raise InputError(
        f"{path}: no file of {publisher.name} has this name; it has {', '.join(publisher.files)}"
    )
