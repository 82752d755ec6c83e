"""Do one trial of a store again, from nothing: the same bits, or what differs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench_core.api.orchestration import registry_of
from bench_core.errors import InputError, UsageError
from bench_core.execution.events import OnEvent
from bench_core.execution.runner import RunResult, carry_out
from bench_core.planning.invocation import given_from_python
from bench_core.planning.plan import Plan
from bench_core.planning.planner import make_plan
from bench_core.planning.request import RunRequest
from bench_core.results.provenance import StoredTrial
from bench_core.results.records import TrialSpec, with_tuples
from bench_core.results.store import Store
from bench_core.results.writer import open_writer

_INGREDIENTS = {
    "code": "code",
    "learner_version": "version",
    "params": "settings",
    "fingerprint": "data fingerprint",
    "libraries": "libraries that decide",
    "cost_model": "cost model",
    "costs": "costs",
    **{name: name for name in ("unit", "metrics", "accounting", "audit", "caps", "splits")},
}
"""Fields of a trial's specification, each with its word."""
_SAME = ("learner", "params", "dataset", "fold", "seed")


@dataclass(frozen=True, slots=True)
class Rerun:
    """How a trial that was done again compares with what the store says of it.

    ``changed`` are rows or values that differ, one text each, ``ingredients`` what made them that
    is not as it was.
    """

    trial: str
    title: str
    rows: int
    changed: tuple[str, ...]
    ingredients: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether every number has the same bits."""
        return not self.changed


def rerun(trial: str, asked: RunRequest, on_event: OnEvent) -> Rerun:
    """Train and score the trial of this name (the beginning of its key) in a store of its own.

    ``asked`` names the store that has the trial, plugins and the folder of data. Raises UsageError
    where there is no such trial or it cannot be asked for again, InputError where it fails now.
    """
    then = Store(asked.store).trial(trial)
    with tempfile.TemporaryDirectory(prefix="bench-rerun-") as folder:
        path = Path(folder, "bench.db")
        request = _request(then, path, asked)
        registry = registry_of(request)
        plan = make_plan(request, registry)
        spec = _again(then, plan)
        plan = _alone(plan, spec)
        with open_writer(path) as writer:
            result = carry_out(plan, request, writer, on_event, _warmed(registry.warm_up))
        _check(result)
        now = Store(path).trial(spec.key)
    return Rerun(
        then.key,
        then.spec["title"],
        len(then.rows),
        tuple(_changed(then, now)),
        _ingredients(then, now),
    )


def _request(then: StoredTrial, store: Path, asked: RunRequest) -> RunRequest:
    """The run's request for the trial's data set and repeat alone."""
    if given_from_python(then.request):
        raise UsageError(
            "its data or costs were objects of Python, which the store does not hold: call "
            "bench_core.run with them and another store, and compare the exports"
        )
    return RunRequest.of(
        then.request,
        seeds=(then.spec["seed"],),
        folds=(then.spec["fold"],),
        data_dir=asked.data_dir or then.request.get("data_dir", ""),
        store=str(store),
        plugins=asked.plugins,
        workers=1,
        timeout=0.0,
        memory=0,
        fresh=False,
    )


def _again(then: StoredTrial, plan: Plan) -> TrialSpec:
    """The trial of the plan that is the same, or else the one of the same name and settings."""
    for spec in plan.trials:
        if spec.key == then.key:
            return spec
    for spec in plan.trials:
        given = with_tuples(asdict(spec))
        if all(given[name] == with_tuples(then.spec)[name] for name in _SAME):
            return spec
    title = then.spec["title"]
    raise UsageError(
        f"the run's request no longer makes {title}: its suite, or the learner's parameters changed"
    )


def _alone(plan: Plan, spec: TrialSpec) -> Plan:
    wanted, fits = {spec.fit}, []
    for fit in reversed(plan.fits):
        if fit.key in wanted:
            fits.append(fit)
            wanted.update(fit.needs.values())
    return replace(plan, trials=(spec,), fits=tuple(fits[::-1]), skipped=())


def _warmed(warm_up: Callable[..., None]) -> Callable[..., None]:
    return lambda learners: warm_up(learners, lambda line: None)


def _check(result: RunResult) -> None:
    for title, status, error in result.failures:
        raise InputError(f"{title} is {status} now: {error}")


def _changed(then: StoredTrial, now: StoredTrial) -> list[str]:
    """Rows that are not there in both, numbers that differ, and arrays that do."""
    found = []
    for row in {**then.rows, **now.rows}:
        before, after = then.rows.get(row), now.rows.get(row)
        where = f"{row[0]} {row[1]}"
        if before is None or after is None:
            found.append(f"{where}: only {'now' if before is None else 'then'}")
            continue
        for name in before:
            if repr(before[name]) != repr(after.get(name)):  # NaN is NaN
                found.append(f"{where}: {name} {before[name]!r} then, {after.get(name)!r} now")
    if not found:
        keys = {**then.values, **now.values}
        differ = [k for k in keys if then.values.get(k) != now.values.get(k)]
        found += [f"{split}: {name} by query or row" for split, name in differ]
    return found


def _ingredients(then: StoredTrial, now: StoredTrial) -> tuple[str, ...]:
    """Each ingredient that is not as it was: its word, what it was, what it is."""
    before: Mapping[str, Any] = with_tuples(then.spec)
    after: Mapping[str, Any] = with_tuples(now.spec)
    named = {word: (before.get(k), after.get(k)) for k, word in _INGREDIENTS.items()}
    named["versions"] = then.installed, now.installed
    named["machine"] = then.machine, now.machine
    return tuple(
        f"{word}: {old} then, {new} now" for word, (old, new) in named.items() if old != new
    )
