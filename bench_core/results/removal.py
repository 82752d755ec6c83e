"""Removing runs from a store, and the fitted models that no other run needs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench_core.results.store import Store
from bench_core.results.store_files import state_path, states_folder
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

    A model stays if a trial of another run was made with it. Raises InputError for a damaged store.
    """
    names = tuple(dict.fromkeys(store.resolve(run) for run in runs))
    others = [info.run for info in store.runs() if info.run not in names]
    left, own = (
        {trial.key: trial.fit for run in some for trial in store.trials(run)}
        for some in (others, names)
    )
    # what models stand on may have no trial of its own
    trained = {one.key for run in names for one in store.attempts(run) if one.kind == "fit"}
    fits = {*own.values(), *trained} - {*left.values()}
    paths = (state_path(states_folder(store.path), key) for key in sorted(fits))
    gone = () if fits_alone else sorted(own.keys() - left.keys())
    return Removal(names, tuple(gone), tuple(path for path in paths if path.is_file()))


def remove(store: Store, what: Removal, *, fits_alone: bool = False) -> None:
    """Carry it out: the rows in one transaction, then the files.

    Raises InputError where another run is writing to the store.
    """
    with open_writer(store.path) as writer:
        keys = [path.stem for path in what.fits]
        writer.remove(() if fits_alone else what.runs, what.trials, keys)
        for path in what.fits:
            path.unlink(missing_ok=True)
