"""A bundle: one archive with a run's request, its own files, versions and results.

``bench bundle`` writes it; ``bench run run.zip`` repeats the run elsewhere and compares the
results. Files keep their relative paths; others are placed at the top. Data files of the user are
included only on request, published data never.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from bench_core import __version__
from bench_core._io.digests import source_files
from bench_core._io.files import atomic_file
from bench_core._io.machine import installed
from bench_core._io.text import parse_toml, read_text
from bench_core.datasets.user_datasets import FILE as DATASETS
from bench_core.datasets.user_files import PRICES
from bench_core.errors import InputError, UsageError, one_line
from bench_core.option_fields import options_of
from bench_core.planning.request import RunRequest, command
from bench_core.planning.resolve_learners import parse_setting

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo

FORMAT = 1
RESULTS = "results.csv"
PAGES = ("features.csv", "board.html")
_ABOUT = "run.json"
TAKEN = {name: Path("bundle", name) for name in ("README.md", _ABOUT, RESULTS, *PAGES)}
"""Files that every bundle has."""

_DATA = ("data", "valid", "test")  # fields of a request with data files

_POINT = ("learner", "params", "dataset", "fold", "seed", "point", "split", "cap", "accounting")
"""Columns that identify a row of results."""

_MACHINE = frozenset(
    {
        *("run", "trial", "code", "threads", "workers", "fit_seconds", "predict_seconds"),
        *("peak_rss_mb", "cpu", "machine", "versions", "created_at"),
    }
)
"""Columns that may differ between two machines."""


@dataclass(frozen=True, slots=True)
class Contents:
    """Files that a request names, by their names in the bundle."""

    files: dict[str, Path] = field(default_factory=dict)
    data: dict[str, Path] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)  # names by the texts of the request

    def add(self, text: str, path: Path, data: bool = False) -> None:
        """Add a file, and the prices by row of a data file."""
        if not path.is_file():
            return
        name = PurePath(text)
        if name.is_absolute() or ".." in name.parts:
            name = PurePath(name.name)
        other = {**self.files, **self.data, **TAKEN}.get(name.as_posix(), path)
        if other.absolute() != path.absolute():
            remedy = "rename one of them and repeat the run"
            raise UsageError(f"{path} and {other} have one name in a bundle, {name}; {remedy}")
        (self.data if data else self.files)[name.as_posix()] = path
        self.moved[text] = str(name)
        prices = path.with_name(path.name + PRICES)
        if data and prices.is_file():
            self.data[f"{name.as_posix()}{PRICES}"] = prices


def contents(request: Mapping[str, Any]) -> Contents:
    """Return the files that a run's request names, seen from the current folder: data, costs, its
    suite, values of settings, and modules of ``-p`` with what they import here. Raises UsageError
    for two files that would have one name."""
    held = Contents()
    for name in _DATA:
        values = request.get(name) or ()
        for text in [values] if isinstance(values, str) else values:
            held.add(text, Path(text), data=True)
    for text in filter(None, (request.get(name) for name in ("costs", "error_costs", "suite"))):
        held.add(text, Path(text))
    for text in request.get("settings", ()):
        for value in _texts(parse_setting(text).value):
            held.add(value, Path(value))
    suite = Path(request.get("suite", ""))
    if suite.is_file():
        for text in _texts(parse_toml(suite, read_text(suite))):
            held.add(str(suite.parent / text), suite.parent / text)
    own = Path(DATASETS)
    tables = parse_toml(own, read_text(own)) if own.is_file() else {}
    for name in {*request.get("data", ())} & {*tables}:
        held.add(DATASETS, own)
        for text in _texts(tables[name]):
            held.add(text, Path(text), data=text != tables[name].get("costs"))
    for module in request.get("plugins", ()):
        for path in source_files(module):
            if path.is_relative_to(Path.cwd()):
                held.add(str(path.relative_to(Path.cwd())), path)
    return held


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a value of TOML."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(one)


def write_bundle(
    path: Path, info: RunInfo, results: Mapping[str, bytes], *, with_data: bool
) -> Contents:
    """Write a bundle of a stored run; return its files and the data files that it names.

    ``results`` are files by name, ``RESULTS`` among them.
    """
    held = contents(info.request)
    files = held.files | (held.data if with_data else {})
    decided = {
        name: option.default for name, option in options_of(RunRequest).items() if option.decides
    }
    request = {k: v for k, v in info.request.items() if k in decided and v not in (decided[k], [])}
    about = {
        "format": FORMAT,
        "bench": __version__,
        "versions": installed(),
        "request": _moved(request, held.moved),
        "data": sorted(held.data),
        "files": sorted(files),
    }
    with atomic_file(path) as new, zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("README.md", _readme(path.name, about))
        archive.writestr(_ABOUT, json.dumps(about, indent=1))
        for name, content in results.items():
            archive.writestr(name, content)
        for name, file in files.items():
            archive.write(file, name)
    return held


def _moved(request: Mapping[str, Any], moved: Mapping[str, str]) -> dict[str, Any]:
    """Return a request that names files by their places in the bundle."""

    def new(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [new(one) for one in value]
        return moved.get(value, value) if isinstance(value, str) else value

    changed = {name: new(value) for name, value in request.items()}
    for old, text in moved.items() if changed.get("settings") else ():
        changed["settings"] = [one.replace(old, text) for one in changed["settings"]]
    return changed


def _readme(name: str, about: Mapping[str, Any]) -> str:
    """Return the page that explains a bundle."""
    lacking = sorted({*about["data"]} - {*about["files"]})
    modules = "".join(f" -p {module}" for module in about["request"].get("plugins", ()))
    needed = f"Put the data files next to this page first: {', '.join(lacking)}.\n\n"
    return f"""# A run of Budget Bench

To repeat the run and compare each number with `{RESULTS}`, install budget-bench
{about["bench"]} from its repository (`pip install FOLDER`) with the versions below, then:

    bench run {name}{modules}

{needed if lacking else ""}The command of the run:

    {command(about["request"])}

Made with budget-bench {about["bench"]}, {about["versions"]}.
"""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle unpacked into a folder."""

    folder: Path
    about: Mapping[str, Any]

    @property
    def request(self) -> RunRequest:
        """The request of the run."""
        return RunRequest.of(self.about["request"])

    def differences(self, frame: pd.DataFrame) -> tuple[int, list[str]]:
        """Compare exported rows with those in the bundle. Return the number of rows, and a line for
        each row that differs; columns about the machine are left out."""
        import pandas as pd

        then, now = (
            pd.read_csv(file, dtype=str, keep_default_na=False)
            for file in (self.folder / RESULTS, io.StringIO(frame.to_csv(index=False)))
        )
        names = [name for name in then if name not in _MACHINE]
        point = [name for name in _POINT if name in names]
        rows = {tuple(row.get(name) for name in point): row for row in now.to_dict("records")}
        lines = []
        for row in then.to_dict("records"):
            other = rows.get(tuple(row[name] for name in point))
            where = " ".join(str(row[name]) for name in ("learner", "dataset", "split", "point"))
            if other is None:
                lines.append(f"{where}: not in this run")
            elif differ := [name for name in names if row[name] != other.get(name)]:
                changes = (f"{name} {row[name]} then, {other.get(name)} now" for name in differ)
                lines.append(f"{where}: {', '.join(changes)}")
        return len(then), lines


def unpack(path: Path, folder: Path) -> Bundle:
    """Unpack a bundle into a folder. Raises InputError for a file that is not a bundle, for other
    files of the same names, and for a data file that the user has to add."""
    try:
        with zipfile.ZipFile(path) as archive:
            about = json.loads(archive.read(_ABOUT))
            if about["format"] != FORMAT:
                made_by = f"budget-bench {about['bench']}"
                raise InputError(f"{path}: a bundle of another version; install {made_by}")
            for name in archive.namelist():
                there = folder / name
                if there.is_file() and there.read_bytes() != archive.read(name):
                    raise InputError(f"{there} is not the file of {path}: rename one of them")
                archive.extract(name, folder)
    except (OSError, KeyError, ValueError, TypeError, zipfile.BadZipFile) as error:
        remedy = "'bench bundle -o run.zip' writes one"
        raise InputError(
            f"{path}: not a bundle of a run ({one_line(str(error))}); {remedy}"
        ) from error
    for name in about["data"]:
        if not (folder / name).exists():
            raise InputError(f"{path} does not include {name}: put your file at {folder / name}")
    return Bundle(folder, about)
