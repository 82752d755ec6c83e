"""The plan that bills a finished run again: its stored models under another cost model."""

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from bench_core._io.digests import digest
from bench_core.costs.model import CostModel, costs_key
from bench_core.datasets.cache import open_prepared
from bench_core.datasets.pricing import costs_for, same_sensors
from bench_core.errors import InputError, UsageError, option, unknown
from bench_core.planning.keys import judged, metric_key, score_key
from bench_core.planning.plan import DatasetUse, Plan
from bench_core.planning.request import RunRequest, cores_for
from bench_core.plugins import Registry
from bench_core.results.budgets import as_caps
from bench_core.results.records import RunInfo, RunRecord, TrialSpec, with_tuples
from bench_core.results.store import Store
from bench_core.results.store_files import costs_path, load_model, state_path, states_folder
from bench_core.splits import Splits


def plan_reprice(
    store: Store, run: str, data: Sequence[str], request: RunRequest, registry: Registry
) -> tuple[Plan, RunRequest]:
    """A plan that scores the finished trials of a run again under the costs of ``request``, and
    the request that the store keeps for it. Trains nothing.

    ``data``: the data sets to bill, all of the run if empty. Raises InputError where prepared data
    or models are gone, and where the costs need other sensors than those that the models bill.
    """
    info = store.info(run)
    costs = str(request.costs)
    chosen = _chosen(data, info)
    request = _request_of(info.request, request, store)
    states = str(states_folder(store.path).absolute())  # the store may have been moved
    billed = _Billed(costs, registry, states, as_caps(request.caps))
    before = "learners trained on that run's costs"
    note = f"billed again from run {info.number} under {costs}: {before}"
    trusted: dict[str, Any] = {"plugins": request.plugins, "modules": ()}  # not the store's
    trials = [
        billed.again(replace(spec, **trusted))
        for spec in store.specs(info.run)
        if spec.dataset in chosen
    ]
    if not trials:
        raise UsageError(f"run {info.run} has no finished trial to bill")
    workers, threads = cores_for(request, len(trials))
    finished, _ = store.finished()
    old = (DatasetUse(**with_tuples(use)) for use in info.datasets)
    uses = tuple(billed.use(use, note) for use in old if use.name in chosen)
    lines = dict.fromkeys(f"{use.name}: {line}" for use in uses for line in use.notes)
    record = {f.name: getattr(info, f.name) for f in fields(RunRecord)}
    record |= {"datasets": uses, "notes": tuple(lines), "extra": {}}
    plan = Plan(
        **record,
        run=_name(info.run, costs, trials),
        fits=(),
        trials=tuple(trials),
        costs=billed.models,
        finished=finished & {t.key for t in trials},
        finished_fits=frozenset(t.fit for t in trials),
        workers=workers,
        threads=threads,
        executor=request.executor,
    )
    return plan, request


def _chosen(data: Sequence[str], info: RunInfo) -> Sequence[str]:
    """The names in ``data``, all of the run's if there are none; UsageError for an unknown one."""
    known = list(dict.fromkeys(use["name"] for use in info.datasets))
    for name in data:
        if name not in known:
            raise UsageError(f"{option('data')}: {unknown('data set of this run', name, known)}")
    return data or known


def _name(run: str, costs: str, trials: Sequence[TrialSpec]) -> str:
    """The old run's name, the cost file's, and a digest of what is billed."""
    stem = "".join(c if c.isalnum() or c in "-_." else "_" for c in Path(costs).stem)[:40]
    return f"{run}-{stem}-{digest(sorted(t.key for t in trials))[:6]}"


class _Billed:
    """Trials under new costs; each data set is opened and priced once."""

    def __init__(
        self, costs: str, registry: Registry, states: str, caps: tuple[float, ...]
    ) -> None:
        self.costs, self.registry, self.states, self.caps = costs, registry, states, caps
        self.models: dict[str, CostModel] = {}
        self._open = cache(self._opened)
        self._by_use: dict[tuple[str, int, int], Splits] = {}

    def again(self, spec: TrialSpec) -> TrialSpec:
        """The same trial under the new costs, its state where the store is now."""
        if not state_path(self.states, spec.fit).is_file():
            again = f"run again with {option('fresh', True)}"
            raise InputError(f"the fitted model of {spec.title} is gone; {again}")
        splits, trained = self._open(spec.data, spec.costs)
        self._by_use[spec.dataset, spec.fold, spec.seed] = splits
        key = costs_key(splits.costs)
        self.models[key] = splits.costs
        new = replace(
            spec,
            costs=key,
            cost_model=splits.costs.name,
            surrogate=trained != key,
            unit=splits.costs.unit,
            states=self.states,
            caps=self.caps,
        )
        metrics = (metric_key(name, self.registry.metrics) for name in new.metrics)
        how = judged(
            new.dataset, key, metrics, new.accounting, new.audit_mode, new.splits, new.caps
        )
        return replace(new, key=score_key(new.fit, how))

    def _opened(self, data: str, costs_before: str) -> tuple[Splits, str]:
        """The data under the new costs, and the key of the prices that learners trained on."""
        splits = open_prepared(data)
        if costs_before:
            splits = splits.under(load_model(costs_path(self.states, costs_before)))
        costs = costs_for(splits, self.costs, self.registry.cost_models)
        if not same_sensors(costs, splits.costs):
            raise InputError(
                f"{self.costs}: its features share other measurements than in the run: its models "
                f"bill {splits.costs.sensors} sensors; run again with {option('costs', self.costs)}"
            )
        return splits.under(costs), costs_key(splits.prices)

    def use(self, use: DatasetUse, note: str) -> DatasetUse:
        """The record of a data set in the run, with its new price and unit."""
        splits = self._by_use.get((use.name, use.fold, use.seed))
        if splits is None:
            return use
        return replace(
            use,
            price_of_everything=splits.prices.everything,
            unit=splits.costs.unit,
            notes=(note, *splits.all_notes),
            caps=self.caps,
            budgets=(),  # of the suite, in the old unit
        )


def _request_of(kept: Any, given: RunRequest, store: Store) -> RunRequest:
    """The request of the run, carried out as the user asks for now."""
    named = ("costs", "caps", "plugins", "workers", "executor")
    now = {name: getattr(given, name) for name in named}
    return RunRequest.of(kept, **now, store=str(store.path))
