"""What is left of a plan one trial at a time, for workers that share the fits under them.

A trial is handed out with the fits that it still needs, unless one of these is being trained for
another: then it waits for that one. So a fit is trained once, results come back trial by trial,
and what stands on a fit may go to any worker as soon as it is there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Set

from bench_core.planning.job_files import Cutter, Piece, groups_of
from bench_core.planning.plan import Plan, fits_left
from bench_core.planning.request import RunRequest
from bench_core.results.records import TrialSpec


class Steps:
    """Pieces of a plan, the longest work first; each has one trial.

    What stands on a fit that failed is one piece, the last: there it is tried once more, and where
    it fails again, all that stands on it is said to.
    """

    def __init__(self, plan: Plan, request: RunRequest) -> None:
        groups = sorted(groups_of(plan), key=lambda group: -group.seconds)
        self._due = deque(trial for group in groups for trial in group.trials)
        self.total = len(self._due)
        self._cutter = Cutter(plan, request)
        self._left = {fit.key for fit in fits_left(plan)}
        self._finished = set(plan.finished_fits)
        self._training: dict[str, list[TrialSpec]] = {}  # and who waits for it
        self._failed: set[str] = set()
        self._hopeless: list[TrialSpec] = []

    def next(self) -> Piece | None:
        """A piece that can begin now, if there is one."""
        while self._due:
            trial = self._due.popleft()
            keys = self._missing(trial)
            if keys & self._failed:
                self._hopeless.append(trial)
            elif held := keys & self._training.keys():
                self._training[min(held)].append(trial)
            else:
                self._training |= {key: [] for key in keys}
                return self._cutter.piece(keys, [trial], self._finished)
        if self._training or not self._hopeless:
            return None
        trials, self._hopeless = self._hopeless, []
        keys = set().union(*map(self._missing, trials))
        return self._cutter.piece(keys, trials, self._finished)

    def ended(self, piece: Piece, fitted: Set[str]) -> None:
        """A piece has ended; of its fits those in ``fitted`` ended well."""
        for key in {fit.key for fit in piece.job.fits} - {*piece.ready}:
            self._due.extendleft(reversed(self._training.pop(key, [])))
            (self._finished if key in fitted else self._failed).add(key)

    def _missing(self, trial: TrialSpec) -> set[str]:
        """The fits under a trial that are to be made."""
        missing, due = set[str](), [trial.fit]
        while due:
            key = due.pop()
            if key in self._left and key not in self._finished and key not in missing:
                missing.add(key)
                due += self._cutter.fits[key].needs.values()
        return missing
