"""Do one trial of a store again, from nothing: the same bits, or what differs."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench_core.api.orchestration import registry_of
from bench_core.errors import InputError, UsageError
from bench_core.execution.events import OnEvent
from bench_core.execution.runner import carry_out
from bench_core.execution.work import warming
from bench_core.planning.invocation import given_from_python
from bench_core.planning.planner import make_plan
from bench_core.planning.request import RunRequest
from bench_core.results.differences import differences
from bench_core.results.records import Trial
from bench_core.results.store import Store
from bench_core.results.writer import open_writer

_SAME = ("learner", "params", "dataset", "fold", "seed")
"""Fields by which a trial is found again where its key changed."""

_DECIDE = (
    *("code", "learner_version", "params", "fingerprint", "libraries", "cost_model", "costs"),
    *("unit", "metrics", "accounting", "caps", "splits", "audit_mode", "versions", "machine"),
)
"""Fields of a trial that decide its numbers."""


@dataclass(frozen=True, slots=True)
class Rerun:
    """The comparison of a trial that was done again with the one in the store."""

    trial: str  # its key
    title: str
    rows: int  # operating points that were compared
    changed: tuple[str, ...]  # numbers that differ, one text each
    ingredients: tuple[str, ...]  # what made them and is not as it was, likewise

    @property
    def same(self) -> bool:
        """True where every number has the same bits."""
        return not self.changed


def rerun(trial: str, asked: RunRequest, on_event: OnEvent) -> Rerun:
    """Train and score the trial of this name (the beginning of its key) in a store of its own.

    ``asked`` names the store that has the trial, plugins and the folder of data. Raises UsageError
    where there is no such trial or it cannot be asked for again, InputError where it fails now.
    """
    kept = Store(asked.store)
    then = kept.trial(trial)
    with tempfile.TemporaryDirectory(prefix="bench-rerun-") as folder:
        path = Path(folder, "bench.db")
        request = _request(then, kept.request_for(then.key), path, asked)
        registry = registry_of(request)
        plan = make_plan(request, registry)
        same = [
            spec
            for spec in plan.trials
            if spec.key == then.key
            or all(getattr(spec, name) == getattr(then, name) for name in _SAME)
        ]
        if not same:
            raise UsageError(
                f"the run's request no longer makes {then.title}: its suite, or the learner's "
                "parameters changed"
            )
        # that of the same key, or the first
        spec = min(same, key=lambda spec: spec.key != then.key)
        with open_writer(path) as writer:
            warm_up = warming(registry, plan.metrics, lambda event: None)
            alone = replace(plan, trials=(spec,), skipped=())
            result = carry_out(alone, request, writer, on_event, warm_up)
        for title, status, error in result.failures:
            raise InputError(f"{title} is {status} now: {error}")
        now = Store(path).trial(spec.key)
        found = differences(then, now)
    decide = {name.replace("_", " "): (getattr(then, name), getattr(now, name)) for name in _DECIDE}
    return Rerun(
        then.key,
        then.title,
        len(then.points),
        tuple(f"{at}: {what} {old} then, {new} now" for at, what, old, new in found),
        tuple(
            f"{what}: {old} then, {new} now" for what, (old, new) in decide.items() if old != new
        ),
    )


def _request(then: Trial, before: Mapping[str, Any], store: Path, asked: RunRequest) -> RunRequest:
    """The run's request for the trial's data set and repeat alone."""
    if given_from_python(before):
        raise UsageError(
            "its data or costs were objects of Python, which the store does not hold: call "
            "bench_core.run with them and another store, and compare the exports"
        )
    return RunRequest.of(
        before,
        seeds=(then.seed,),
        folds=(then.fold,),
        data_dir=asked.data_dir or before.get("data_dir", ""),
        store=str(store),
        plugins=asked.plugins,
        workers=1,  # there is one trial
        timeout=0.0,  # no limit
        memory=0,
        fresh=False,
    )
