"""Plan that bills a finished run again: its stored models under another cost model."""

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from bench_core._io.digests import digest
from bench_core.costs.model import CostModel, costs_key
from bench_core.datasets.cache import open_prepared
from bench_core.datasets.pricing import same_sensors, with_costs
from bench_core.datasets.user_datasets import groups_and_unit
from bench_core.errors import InputError, UsageError, option, unknown
from bench_core.planning.invocation import FROM_PYTHON
from bench_core.planning.keys import metric_key, score_key
from bench_core.planning.plan import DatasetUse, Plan
from bench_core.planning.planner import known_optimum
from bench_core.planning.request import RunRequest, cores_for
from bench_core.plugins import Registry
from bench_core.results.budgets import as_caps
from bench_core.results.records import RunRecord, with_tuples
from bench_core.results.store import Store
from bench_core.results.store_files import costs_path, load_model, state_path, states_folder
from bench_core.splits import Note, Splits

_CARRIED_OUT = ("costs", "caps", "plugins", "workers", "executor", "timeout", "memory")
"""Options taken from the new request; the others are the run's."""


def plan_reprice(
    store: Store, run: str, data: Sequence[str], request: RunRequest, registry: Registry
) -> tuple[Plan, RunRequest]:
    """Return a plan that scores a run's finished trials again under the costs of ``request``, and
    the request to store with it. Nothing is trained.

    ``data``: data sets to bill, all of the run if empty. Raises InputError if prepared data or
    models are missing, and if the costs need other sensors than the models bill.
    """
    info, costs = store.info(run), request.costs
    place = costs if isinstance(costs, str) else FROM_PYTHON
    known = list(dict.fromkeys(use["name"] for use in info.datasets))
    for name in data:
        if name not in known:
            raise UsageError(f"{option('data')}: {unknown('data set of this run', name, known)}")
    now = {name: getattr(request, name) for name in _CARRIED_OUT}
    now["encoding"] = request.encoding or info.request.get("encoding", "")
    request = RunRequest.of(info.request, **now, store=str(store.path))
    states = str(states_folder(store.path).absolute())  # the store may have been moved
    caps = as_caps(request.caps)

    @cache
    def priced(name: str, folder: str, before: str) -> tuple[Splits, str]:
        """Return data under the new costs, and the key of the prices that learners trained on."""
        splits = open_prepared(folder)
        if before:
            splits = splits.under(load_model(costs_path(states, before)))
        own = groups_and_unit(registry.datasets.get(name), request)
        made = with_costs(splits, costs, registry.cost_models, request.encoding, **own)
        if not same_sensors(made.costs, splits.costs):
            raise InputError(
                f"{place}: its features share other measurements than the run's: the models "
                f"bill {splits.costs.sensors} sensors; run again with {option('costs', place)}"
            )
        return made, costs_key(splits.prices)

    trials, models = [], dict[str, CostModel]()
    billed: dict[tuple[str, int, int], Splits] = {}
    for spec in store.specs(info.run):
        if spec.dataset not in (data or known):
            continue
        if not state_path(states, spec.fit).is_file():
            again = f"run again with {option('fresh', True)}"
            raise InputError(f"the fitted model of {spec.title} is gone; {again}")
        splits, trained = priced(spec.dataset, spec.data, spec.costs)
        billed[spec.dataset, spec.fold, spec.seed] = splits
        key = costs_key(splits.costs)
        models[key] = splits.costs
        new = replace(
            spec,
            costs=key,
            cost_model=splits.costs.name,
            surrogate=trained != key,
            unit=splits.costs.unit,
            states=states,
            caps=caps,
            plugins=request.plugins,  # the stored ones may differ
        )
        metrics = [metric_key(name, registry.metrics) for name in new.metrics]
        trials.append(replace(new, key=score_key(new, key, metrics)))
    if not trials:
        raise UsageError(f"run {info.run} has no finished trial to bill")
    before = "learners trained on the costs of that run"
    note = f"billed again from run {info.number} under {place}: {before}"
    uses = [DatasetUse(**with_tuples(use)) for use in info.datasets]
    for i, use in enumerate(uses):
        if found := billed.get((use.name, use.fold, use.seed)):
            uses[i] = replace(
                use,
                price_of_everything=found.prices.everything,
                cheapest_price=found.prices.cheapest,
                unit=found.costs.unit,
                notes=(Note.of(note), *found.all_notes),
                caps=caps,
                optimum=known_optimum(found, {}, caps),  # what the data set states is of its prices
                budgets=(),  # the suite's are in the old unit
            )
    uses = [use for use in uses if not data or use.name in data]
    record: dict[str, Any] = {f.name: getattr(info, f.name) for f in fields(RunRecord)}
    lines = dict.fromkeys(f"{use.name}: {line}" for use in uses for line in use.notes)
    record |= {"datasets": tuple(uses), "notes": tuple(lines), "extra": {}}
    workers, threads = cores_for(request, len(trials))
    stem = "".join(c if c.isalnum() or c in "-_." else "_" for c in Path(place).stem)[:40]
    plan = Plan(
        **record,
        run=f"{info.run}-{stem}-{digest(sorted(t.key for t in trials))[:6]}",
        fits=(),
        trials=tuple(trials),
        costs=models,
        finished=store.finished()[0] & {t.key for t in trials},
        finished_fits=frozenset(t.fit for t in trials),
        workers=workers,
        threads=threads,
        executor=request.executor,
    )
    return plan, request
