"""Progress events emitted during a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from bench_core.results.records import Job

Kind = Literal["prepare", "plan", "start", "progress", "finish", "note"]


@dataclass(frozen=True, slots=True)
class Event:
    """A progress event, passed to ``on_event``.

    ``prepare``  a data set is being read or generated (``done`` of ``total`` if known)
    ``plan``     planning has ended: ``total`` trials, ``done`` of them finished
    ``start``    job ``key`` started in worker ``worker``
    ``progress`` job ``key`` is at ``done`` of ``total`` (trees, blocks of rows)
    ``finish``   job ``key`` ended with ``status`` after ``seconds``; ``trace`` and ``output`` are
                 its traceback and the end of its output
    ``note``     one line for the user (a stand-in, assumed costs, a skipped learner)
    """

    kind: Kind
    message: str = ""
    key: str = ""
    title: str = ""  # short description of the job or data set
    activity: str = ""  # fit, score or audit
    learner: str = ""
    dataset: str = ""
    worker: int = 0  # counted from 1
    status: str = ""
    seconds: float = 0.0
    done: int = 0
    total: int = 0
    jobs_done: int = 0  # finished jobs of the run
    jobs_total: int = 0
    warning: bool = False
    trace: str = ""
    output: str = ""


OnEvent = Callable[[Event], None]


def silent(event: Event) -> None:
    """Ignore every event."""


def news(kind: Kind, job: Job, **more: Any) -> Event:
    """Create an event about a job."""
    return Event(
        kind,
        key=job.key,
        title=job.spec.title,
        activity=job.kind,
        learner=job.learner,
        dataset=job.spec.dataset,
        **more,
    )
