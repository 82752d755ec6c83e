"""Removing runs from a store, and the fitted models that no other run needs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench_core.results.store import Store
from bench_core.results.store_files import shared_with, state_path, states_folder
from bench_core.results.writer import open_writer


@dataclass(frozen=True, slots=True)
class Removal:
    """Everything removed with some runs: ``trials`` by key that no other run has, and the files of
    fitted models ``fits`` that nothing left needs."""

    runs: tuple[str, ...]
    trials: tuple[str, ...]
    fits: tuple[Path, ...]

    @property
    def size(self) -> int:
        """Bytes of the fitted models."""
        return sum(path.stat().st_size for path in self.fits)


def plan_removal(store: Store, runs: Iterable[str], *, fits_alone: bool = False) -> Removal:
    """Plan the removal of these runs; ``fits_alone``: their fitted models, results are kept.

    A model stays if a trial of another run was made with it, if such a model shares arrays with it,
    or if others of its data may stand on it. Raises InputError for a damaged store.
    """
    names = tuple(dict.fromkeys(store.resolve(run) for run in runs))
    specs, trials, fitted = store.contents()
    own = {key for run in names for key in trials[run]}
    others = {key for run in trials.keys() - {*names} for key in trials[run]}
    trained = {key for run in names for key in fitted.get(run, ())}
    folder = states_folder(store.path)
    gone, left = own - others, others & specs.keys()
    scored = {specs[key]["fit"] for key in specs}
    needed = _with_bases(folder, {specs[key]["fit"] for key in left})
    fits = {specs[key]["fit"] for key in gone & specs.keys()}
    if not {_data(specs[k]) for k in gone & specs.keys()} & {_data(specs[k]) for k in left}:
        fits |= trained - scored  # what others of these data stand on
    paths = (state_path(folder, key) for key in sorted(fits - needed))
    found = tuple(path for path in paths if path.is_file())
    return Removal(names, () if fits_alone else tuple(sorted(gone)), found)


def _data(spec: dict[str, object]) -> tuple[object, ...]:
    return spec["fingerprint"], spec["fold"]


def _with_bases(folder: Path, keys: set[str]) -> set[str]:
    """The keys, and those of the fits whose arrays their files refer to."""
    found: set[str] = set()
    due = [*keys]
    while due:
        key = due.pop()
        if key not in found:
            found.add(key)
            due += shared_with(state_path(folder, key))
    return found


def remove(store: Store, what: Removal, *, fits_alone: bool = False) -> None:
    """Carry it out: the rows in one transaction, then the files.

    Raises InputError where another run is writing to the store.
    """
    with open_writer(store.path) as writer:
        keys = [path.stem for path in what.fits]
        writer.remove(() if fits_alone else what.runs, what.trials, keys)
        for path in what.fits:
            path.unlink(missing_ok=True)
