"""Plan that bills a finished run again: its stored models under another cost model."""

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from bench_core._io.digests import digest
from bench_core._io.files import file_name
from bench_core.costs.model import CostModel, costs_key
from bench_core.datasets.cache import open_prepared
from bench_core.datasets.cautions import joined
from bench_core.datasets.pricing import same_sensors, with_costs
from bench_core.datasets.user_datasets import groups_and_unit
from bench_core.errors import InputError, UsageError, blaming, option
from bench_core.metrics.rows import TOTAL_COST
from bench_core.option_fields import chosen
from bench_core.planning.keys import billed, metric_key, priced
from bench_core.planning.plan import Plan, resumed
from bench_core.planning.planner import matrix_for
from bench_core.planning.request import FROM_PYTHON, RunRequest
from bench_core.plugins import Registry
from bench_core.results.budgets import as_caps
from bench_core.results.records import DatasetUse, RunRecord, TrialSpec
from bench_core.results.store import Store
from bench_core.results.store_files import load_costs, states_folder
from bench_core.splits import Note

FIRST = "billed from"
"""Key in a run's ``extra``: the run that trained the models which it bills."""

_CARRIED_OUT = (
    "costs",
    "error_costs",
    "caps",
    "plugins",
    "workers",
    "executor",
    "timeout",
    "memory",
)
"""Options taken from the new request; the others are the run's."""


def plan_reprice(
    store: Store, run: str, data: Sequence[str], request: RunRequest, registry: Registry
) -> tuple[Plan, RunRequest]:
    """Return a plan that scores a run's finished trials again under the costs of ``request``, of
    features or of errors, and the request to store with it. Nothing is trained.

    ``data``: data sets to bill, all of the run if empty. Raises InputError if prepared data or
    models are missing, and if the costs need other sensors than the models bill.
    """
    info, costs = store.info(run), request.costs
    if not (costs or request.error_costs):
        raise UsageError(f"nothing new: give {option('costs')} or {option('error_costs')}")
    first = str(info.extra.get(FIRST, info.run))
    errors = request.error_costs or info.request.get("error_costs", "")
    place = costs if isinstance(costs, str) else FROM_PYTHON
    place = place or f"costs of errors {errors}"
    with blaming(option("data")):
        data = chosen("data set of this run", data, [use.name for use in info.datasets])
    now = {name: getattr(request, name) for name in _CARRIED_OUT}
    now["error_costs"], now["costs"] = errors, costs or info.request.get("costs", "")
    now["encoding"] = request.encoding or info.request.get("encoding", "")
    request = RunRequest.of(info.request, **now, store=str(store.path), fresh=False)
    states = str(states_folder(store.path).absolute())  # the store may have been moved

    of_use: dict[tuple[str, int, int], list[TrialSpec]] = {}
    for spec in store.specs(info.run):
        of_use.setdefault((spec.dataset, spec.fold, spec.seed), []).append(spec)
    note = (
        f"billed again from run {info.number} under {place}: learners trained on the costs of that "
        "run"
    )
    uses, trials, models = list[DatasetUse](), list[TrialSpec](), dict[str, CostModel]()
    for use in info.datasets:
        specs = of_use.get((use.name, use.fold, use.seed), [])
        if not specs or (data and use.name not in data):
            continue
        old = open_prepared(specs[0].data)
        if specs[0].costs:
            old = old.under(load_costs(states, specs[0].costs))
        splits = old
        if costs:
            defaults = groups_and_unit(registry.datasets.get(use.name), request)
            splits = with_costs(old, costs, registry.cost_models, request.encoding, **defaults)
        if not same_sensors(splits.costs, old.costs):
            raise InputError(
                f"{place}: its features share other measurements than the run's: the models "
                f"bill {old.costs.sensors} sensors; run again with {option('costs', place)}"
            )
        # budgets of the suite are in the old unit
        notes = (Note.of(note), *splits.all_notes)
        use = replace(use, notes=notes, budgets=(), metrics=with_total_cost(use.metrics, errors))
        if request.error_costs:
            use = replace(use, error_costs=matrix_for(splits, errors, request.encoding))
        use = priced(use, splits, as_caps(request.caps))
        uses.append(use)
        key = costs_key(splits.costs)
        models[key] = splits.costs
        for spec in specs:
            # the stored plugins may differ
            new = replace(spec, costs=key, states=states, plugins=request.plugins)
            new = replace(new, metrics=use.metrics, error_costs=use.error_costs)
            metrics = [metric_key(name, registry.metrics) for name in new.metrics]
            trials.append(billed(new, use, splits, costs_key(old.prices), metrics))
    if not trials:
        raise UsageError(f"run {info.run} has no finished trial to bill")
    record: dict[str, Any] = {f.name: getattr(info, f.name) for f in fields(RunRecord)}
    lines = joined(f"{use.name}: {line}" for use in uses for line in use.notes)
    record |= {"datasets": tuple(uses), "notes": tuple(lines), "extra": {FIRST: first}}
    record["metrics"] = with_total_cost(info.metrics, errors)
    record["higher_is_better"] = {TOTAL_COST: False} | dict(info.higher_is_better)
    record["in_money"] = tuple(dict.fromkeys((TOTAL_COST, *info.in_money)))
    # of a run that was itself billed again, the name has one such suffix
    stem = file_name(Path(place).stem)[:40]
    name = f"{first}-{stem}-{digest(sorted(trial.key for trial in trials))[:6]}"
    plan = resumed(Plan(**record, run=name, fits=(), trials=tuple(trials), costs=models), request)
    for trial in plan.trials:
        if trial.fit not in plan.finished_fits:
            again = f"run again with {option('fresh', True)}"
            raise InputError(f"the fitted model of {trial.title} is gone; {again}")
    return plan, request


def with_total_cost(metrics: Sequence[str], errors: str) -> tuple[str, ...]:
    """Return metrics with the total cost first if errors have costs."""
    others = (metric for metric in metrics if metric != TOTAL_COST)
    return (TOTAL_COST, *others) if errors else tuple(metrics)
