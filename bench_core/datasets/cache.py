"""The prepared-data cache: a data set's arrays as ``.npy`` files, opened as memory maps.

An entry is a folder ``NAME-KEY``::

    meta.json            written last: shapes, file sizes, prices, fingerprint
    train.X.npy  train.y.npy  train.queries.npy  train.multiplicity.npy   (valid., test. alike)
    train.groups.npy  train.groups.tags.npy      where rows depend on each other

    shared/                                         results that learners derive from training rows

It is built under a temporary name and renamed. A folder of the final name is therefore complete,
even if a process was killed. One process builds an entry; others wait for it. An entry whose files
are missing or too short is rebuilt.

Next to the entries are arrays and text that all folds of a data set share (``kept_arrays``).
Computing them for each fold would repeat the work, and measured values would differ by fold.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from bench_core._io.digests import code_key, digest, module_digest
from bench_core._io.digests import content_digest as content_digest
from bench_core._io.files import atomic_file, atomic_folder, file_name, locked
from bench_core._io.files import cache_folder as cache_folder
from bench_core._io.large_arrays import mapped, shared_arrays
from bench_core.arrays import Array
from bench_core.contracts import dataset_of, labels_fault, shapes_fault
from bench_core.costs.model import SensorPrices
from bench_core.costs.shipped import from_json, to_json
from bench_core.data import Examples, Queries, Task
from bench_core.datasets.cautions import copied_rows
from bench_core.datasets.data_folder import DataFolder
from bench_core.encoding import encodings_from
from bench_core.errors import InputError, charging, check_memory
from bench_core.protocols import Dataset, Source
from bench_core.splits import CAUTION, SPLITS, Note, Splits

FORMAT = 5
META, SHARED = "meta.json", "shared"
TRUTH = "truth."  # prefix of the arrays of ``Splits.truth``
# Fields of ``Splits`` that ``META`` stores unchanged.
PLAIN = (
    *("classes", "class_names", "feature_names", "notes", "stand_in", "costs_assumed"),
    "price_columns",
)
_OURS = (
    *("cautions", "pricing", "readers", "splitting"),
    *("table_options", "user_data", "user_files"),
)
# Modules of bench_core that decide which numbers are read. If one changes, data sets that import it
# are prepared again. FORMAT rises when other code would give other arrays.
_BELOW = ("costs.cost_", "encoding", "_io.text")
READING = tuple(f"bench_core.{name}" for name in (*_BELOW, *(f"datasets.{our}" for our in _OURS)))

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A complete entry of the cache: its folder and its memory-mapped content."""

    path: Path
    splits: Splits


def prepare(
    dataset: Dataset,
    size: str = "quick",
    fold: int = 0,
    seed: int = 0,
    source: Source | None = None,
    cache_dir: str | Path | None = None,
    say: Say = lambda message: None,
) -> Prepared:
    """Return the prepared splits of a data set, from the cache or prepared now.

    ``say`` gets a line before work begins. Raises InputError for unusable files and for a
    cache folder that cannot be written.
    """
    source = source or DataFolder(None, say)
    home = cache_folder(cache_dir) / "prepared"
    path = home / entry_name(dataset, size, fold, seed, source)
    if (splits := _whole(path)) is not None:
        return Prepared(path, splits)
    lock = home / f".{path.name}.lock"
    with _writable(home, f"{home}: cannot keep prepared data"), locked(lock):
        if _whole(path) is None:  # no other process has built it meanwhile
            say(f"preparing {dataset.name}")
            made = _made(dataset, source, size, fold, seed)
            # preparing may have fetched a file, which changes the entry's name
            path = home / entry_name(dataset, size, fold, seed, source)
            _write(path, made)
    return Prepared(path, open_prepared(path))


def _made(dataset: Any, source: Source, size: str, fold: int, seed: int) -> Splits:
    """Prepare a data set, complete and checked. Raises InputError naming the data set."""
    with charging(f"data set {dataset.name}: its prepare"):
        splits = dataset.prepare(source, size, fold, seed)  # plugin code
    wrong = shapes_fault(splits)
    if not wrong:
        task = dataset_of(dataset).task
        splits = splits.complete(task)
        wrong = labels_fault(task or splits.task, splits)
    if wrong:
        raise InputError(f"data set {dataset.name}: {wrong}; correct what its class prepares")
    copies = (Note(CAUTION, line) for line in copied_rows(splits))
    return cast(Splits, replace(splits, notes=(*splits.notes, *copies)))


@contextmanager
def _writable(folder: Path, what: str) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise InputError(f"{what} ({error}); name a writable folder in BENCH_CACHE") from error


def entry_name(dataset: Dataset, size: str, fold: int, seed: int, source: Source) -> str:
    """Return an entry's folder name, made from everything that its arrays depend on."""
    about = dataset_of(dataset)
    arguments = {"size": size, "fold": fold, "seed": seed}
    options: Any = fields(dataset) if is_dataclass(dataset) else ()
    paths = (source.find(name).resolve() for name in about.files if source.has(name))
    # by content: a copy may keep the size and the time of an older version
    files = [(str(path), content_digest(path)) for path in paths]
    facts = {
        "format": FORMAT,
        "name": dataset.name,
        "version": about.version,
        "code": code_key(type(dataset), READING),
        "options": {f.name: repr(getattr(dataset, f.name)) for f in options},
        "asked": {k: v for k, v in arguments.items() if k in about.depends_on},
        "files": about.stamp(source) or files,
        "fingerprint": "with test rows",
    }
    return f"{file_name(dataset.name)[:60]}-{digest(facts)}"


def open_prepared(path: str | Path, rows: Sequence[str] = SPLITS) -> Splits:
    """Return the splits in an entry as read-only memory maps.

    Splits not in ``rows`` are not opened and have no rows. Raises InputError if a file is missing
    or too short.
    """
    path = Path(path)
    try:
        meta: dict[str, Any] = json.loads((path / META).read_text(encoding="utf-8"))
        train, valid, test = (
            _open_examples(path, meta["arrays"], name)
            if name in rows
            else Examples(np.empty((0, meta["features"]), np.float32), np.empty(0))
            for name in SPLITS
        )
        plain: dict[str, Any] = {
            k: tuple(v) if isinstance(v := meta[k], list) else v for k in PLAIN
        }
        plain["notes"] = tuple(x if isinstance(x, str) else Note(*x) for x in meta["notes"])
        return Splits(
            train,
            valid,
            test,
            cast(SensorPrices, from_json(meta["prices"])),
            Task(meta["task"]),
            cost_model=from_json(meta["cost_model"]) if meta["cost_model"] else None,
            fingerprint=meta["fingerprint"],
            encodings=encodings_from(meta["encodings"]),
            truth={
                name.removeprefix(TRUTH): mapped(path / f"{name}.npy")
                for name in meta["arrays"]
                if name.startswith(TRUTH)
            },
            **plain,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        check_memory(error, path)
        raise InputError(
            f"{path}: prepared data are incomplete ({error}); run again to rebuild them"
        ) from error


def _whole(path: Path) -> Splits | None:
    if path.is_dir():
        with suppress(InputError):
            return open_prepared(path)
    return None


def _open_examples(path: Path, arrays: Sequence[str], split: str) -> Examples:
    def array(name: str) -> Any:
        name = f"{split}.{name}"
        return mapped(path / f"{name}.npy") if name in arrays else None

    def queries(name: str) -> Queries | None:
        boundaries = array(name)
        return None if boundaries is None else Queries(boundaries, array(f"{name}.tags"))

    copies = array("multiplicity")
    of_rows = array("X"), array("y"), queries("queries"), copies, queries("groups")
    return Examples(*of_rows, array("price_columns"))


def _arrays(splits: Splits) -> Iterator[tuple[str, Array]]:
    """Yield all arrays of the splits, named "train.X", "train.y", ..."""
    for name in SPLITS:
        examples: Examples = getattr(splits, name)
        for what, kind, array in (
            ("X", np.float32, examples.X),
            ("y", np.float64, examples.y),
            ("queries", np.int64, getattr(examples.queries, "boundaries", None)),
            ("queries.tags", np.int64, getattr(examples.queries, "tags", None)),
            ("multiplicity", np.int64, examples.multiplicity),
            ("groups", np.int64, getattr(examples.groups, "boundaries", None)),
            ("groups.tags", np.int64, getattr(examples.groups, "tags", None)),
            ("price_columns", np.float64, examples.price_columns),
        ):
            if array is not None:
                yield f"{name}.{what}", np.ascontiguousarray(array, dtype=kind)
    for name, array in splits.truth.items():
        yield f"{TRUTH}{name}", np.ascontiguousarray(array, dtype=np.float64)


def fingerprint(splits: Splits) -> str:
    """Return a digest of the names, types, shapes and bytes of all arrays, without prices. Its
    second half is of the test rows alone (``Repeat.test_rows``)."""
    every, test = hashlib.sha256(), hashlib.sha256()
    for name, array in _arrays(splits):
        # little-endian, so that the same data have one fingerprint on every machine
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        for h in (every, test) if name.startswith("test") else (every,):
            h.update(f"{name} {array.dtype.name} {array.shape}\n".encode())
            h.update(little.reshape(-1).view(np.uint8).data if little.size else b"")
    return every.hexdigest()[:32] + test.hexdigest()[:32]


def _write(path: Path, splits: Splits) -> None:
    with atomic_folder(path) as new:
        arrays = dict(_arrays(splits))
        for name, array in arrays.items():
            np.save(new / f"{name}.npy", array, allow_pickle=False)
        meta = {name: getattr(splits, name) for name in PLAIN} | {
            "task": splits.task,
            "encodings": [*map(asdict, splits.encodings)],
            "arrays": [*arrays],
            "features": splits.train.X.shape[1],
            "prices": to_json(splits.prices),
            "cost_model": to_json(splits.cost_model) if splits.cost_model else None,
            "fingerprint": fingerprint(splits),
        }
        (new / META).write_text(json.dumps(meta, indent=1), encoding="utf-8")
        (new / SHARED).mkdir()


def kept_arrays(
    name: str,
    depends: Any,
    modules: Sequence[str],
    build: Callable[[], Mapping[str, Array]],
) -> Mapping[str, Array]:
    """Return the arrays of that name as read-only maps; build them if absent.

    ``depends``: JSON of everything that decides them besides the source of ``modules``.
    """
    folder = _kept(name, depends, modules)
    with _writable(folder.parent, f"{folder}: cannot be kept"):
        return shared_arrays(folder, build)


def kept_text(name: str, depends: Any, modules: Sequence[str], build: Callable[[], str]) -> Path:
    """Return a file with the text of that name, as ``kept_arrays``; ``name`` has its suffix."""
    path = _kept(Path(name).stem, depends, modules).with_suffix(Path(name).suffix)
    with (
        _writable(path.parent, f"{path}: cannot be kept"),
        locked(path.with_name(f".{path.name}.lock")),
    ):
        if not path.is_file():
            text = build()
            with atomic_file(path) as new:
                new.write_text(text, encoding="utf-8")
    return path


def _kept(name: str, depends: Any, modules: Sequence[str]) -> Path:
    key = digest([depends, [module_digest(module) for module in modules]])
    return cache_folder() / "kept" / f"{name}-{key}"
