"""Benchmarks from Python: the same engine that the command line drives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_core.execution.events import Event
from bench_core.plan import Plan, RunRequest

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Event", "Interrupted", "Plan", "RunRequest", "RunResult", "audit", "plan", "run"]

OnEvent = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run came to.

    ``counts`` are trials by status (ok, failed, timeout, out-of-memory, crashed, skipped) and
    ``reused`` how many of them were there before; ``audit_failures`` lists the trials that the
    replay audit refused.
    """

    run: str
    store: Path
    counts: Mapping[str, int]
    reused: int = 0
    audit_failures: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    interrupted: bool = False
    failures: tuple[tuple[str, str, str], ...] = field(default=())  # title, status, error

    @property
    def exit_status(self) -> int:
        """0 all well, 1 some trials or audits failed, 130 interrupted."""
        if self.interrupted:
            return 130
        bad = sum(n for status, n in self.counts.items() if status not in ("ok", "skipped"))
        return 1 if bad or self.audit_failures else 0

    def frame(self) -> pd.DataFrame:
        """One row per trial, point and split: the export columns."""
        from bench_core.store import Store

        return Store(self.store).frame(self.run)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a run; all finished work is kept, ``result`` says how far it came."""

    def __init__(self, result: RunResult) -> None:
        super().__init__("interrupted; finished work is kept")
        self.result = result


def run(
    *, request: RunRequest | None = None, on_event: OnEvent | None = None, **options: Any
) -> RunResult:
    """Run a suite or a data set through learners and keep the results in the store.

    ``options`` are the fields of ``RunRequest`` (lists are accepted for tuples)::

        bench_core.run(suite="yahoo", learners=["miser", MyLearner()])

    Raises InputError or UsageError before any work where something is unusable, ``Interrupted``
    on Ctrl-C.
    """
    raise NotImplementedError


def plan(
    *, request: RunRequest | None = None, on_event: OnEvent | None = None, **options: Any
) -> Plan:
    """What ``run`` would do with the same options; prepares data, trains nothing."""
    raise NotImplementedError


def audit(
    run: str = "last",
    *,
    store: str = "",
    workers: int = 0,
    executor: str = "local",
    plugins: tuple[str, ...] = (),
    on_event: OnEvent | None = None,
) -> RunResult:
    """Replay every query and every point of a finished run's trials, and store the verdicts."""
    raise NotImplementedError
