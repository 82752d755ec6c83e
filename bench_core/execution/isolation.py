"""``--isolate`` (Linux): each job in a process that sees what the job needs, and no more of ours.

It reads the files that its job needs and has a folder to put its result into. Empty are the store,
the fitted models beside it, prepared data, the folder of publishers' files and the user's own data
files; there is no network. In sight stay data bundled with installed packages, generators of data,
and whatever else the user's files hold.
"""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_core._io.namespaces import check_possible, why_impossible
from bench_core._io.plugin_folders import code_folders
from bench_core.datasets.cache import cache_folder, files_of
from bench_core.datasets.data_folder import data_folder
from bench_core.datasets.user_datasets import FILE, read_entries
from bench_core.errors import InputError, UsageError
from bench_core.planning.request import RunRequest
from bench_core.results.records import NOT_PRIVATE, FitSpec, Job, Outcome, TrialSpec
from bench_core.results.store_files import (
    costs_path,
    shared_with,
    state_path,
    states_folder,
    store_path,
)
from bench_core.splits import SPLITS

FITTING = ("train", "valid")
_SETTINGS = ".numba_config.yaml"
"""A file of the current folder that numba reads: also where compiled code is to be taken from."""


@dataclass(frozen=True, slots=True)
class View:
    """The ``arguments`` of ``confine`` for a job's process, and the ``folder`` of its result."""

    arguments: dict[str, Any]
    folder: Path | None = None

    def keep(self, job: Job) -> None:
        """Put the model that a fit wrote where it belongs."""
        if self.folder is None or not isinstance(job.spec, FitSpec):
            return
        result = state_path(job.spec.states, job.spec.key)
        found = self.folder / result.name
        if found.is_file() and not found.is_symlink():
            result.parent.mkdir(parents=True, exist_ok=True)
            found.replace(result)

    def close(self) -> None:
        """Remove what is left in the folder."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Isolation:
    """What is ``hidden`` from all jobs of a run."""

    hidden: tuple[str, ...]

    @classmethod
    def of(cls, store: Path, data: Sequence[Path]) -> "Isolation":
        """Raises UsageError where the system does not allow it, or a folder to be hidden has code.

        ``data`` are the folder of publishers' files and the user's own files.
        """
        check_possible()
        if Path(_SETTINGS).exists():
            fault = f"numba would take settings from {_SETTINGS} here, where rows are judged too"
            raise UsageError(f"--isolate: {fault}; start elsewhere, or remove it")
        parts = [store.with_name(store.name + end) for end in ("", "-wal", "-shm")]
        wanted = [*parts, states_folder(store), cache_folder(), *data]
        paths = {path.resolve() for path in wanted if path.exists()}
        for path in paths:
            for code in (Path(entry or ".").resolve() for entry in code_folders()):
                if path.is_dir() and (code == path or path in code.parents):
                    fault = f"{path} would be hidden, and learners need code in {code}"
                    raise UsageError(f"--isolate: {fault}; keep data and code apart")
        return cls(tuple(sorted(map(str, paths))))

    @classmethod
    def of_request(cls, request: RunRequest) -> "Isolation":
        """What a request names, with the user's own data files and those of ``datasets.toml``."""
        folder = data_folder(request.data_dir or None)
        named = (*request.data, request.test, request.valid, *_listed(folder))
        files = [Path(name) for name in named if isinstance(name, str) and name]
        files = [path for path in files if path.is_file()]
        return cls.of(store_path(request.store), [folder, *files])

    def view(self, job: Job) -> View:
        """What one job sees."""
        spec, places, folder = job.spec, [], None
        if isinstance(spec, FitSpec):
            result = state_path(spec.states, spec.key)
            Path(spec.states).mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(prefix=".isolated-", dir=spec.states)).resolve()
            places = [[str(folder), str(result.parent.resolve())]]
        shown = [str(path.resolve()) for path in _needed(job) if path.is_file()]
        private = isinstance(spec, FitSpec) and bool(spec.origin)  # models have hosts of their own
        arguments = {"hidden": self.hidden, "shown": shown, "places": places, "private": private}
        return View(arguments, folder)


def _listed(folder: Path) -> Iterator[str]:
    """The files that ``datasets.toml`` in a folder names, wherever they lie."""
    if (path := folder / FILE).is_file():
        with suppress(InputError):  # then none of it is a data set
            for dataset in read_entries(path):
                yield from dataset.files


def is_refused(outcome: Outcome) -> bool:
    """Whether a model was to have private processes and had none."""
    spec, marks = outcome.job.spec, getattr(outcome.result, "marks", ())
    return isinstance(spec, TrialSpec) and spec.private and NOT_PRIVATE in marks


def not_private() -> str:
    """Why the system lets no process be private."""
    reason = why_impossible() or "a model's process could not be started so"
    return f"models of plugins are {NOT_PRIVATE} here, and their rows are marked: {reason}"


def _needed(job: Job) -> Iterator[Path]:
    """The files that a job reads."""
    spec, data = job.spec, Path(job.spec.data)
    rows = FITTING if isinstance(spec, FitSpec) else SPLITS
    yield from files_of(data, rows, rows)
    if spec.costs:
        yield costs_path(spec.states, spec.costs)
    waiting = [*spec.needs.values()] if isinstance(spec, FitSpec) else [spec.fit]
    seen: set[str] = set()
    while waiting:
        key = waiting.pop()
        if key not in seen:
            seen.add(key)
            state = state_path(spec.states, key)
            yield state
            waiting += shared_with(state)
