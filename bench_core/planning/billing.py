"""The part of a plan that depends on costs: facts of a data set, and the bill of a trial."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from bench_core.costs.model import costs_key
from bench_core.datasets.cache import kept_arrays
from bench_core.optimum import optimum_of
from bench_core.planning.keys import score_key
from bench_core.results.records import DatasetUse, TrialSpec
from bench_core.splits import Splits

Stated = Mapping[str | tuple[str, str], Any]
"""Corners of the optimum that a data set states for its own costs, by metric."""


def priced(
    use: DatasetUse, splits: Splits, caps: tuple[float, ...], stated: Stated | None = None
) -> DatasetUse:
    """Return the use of a data set with the facts that depend on its costs and on caps."""
    return replace(
        use,
        price_of_everything=splits.prices.everything,
        cheapest_price=splits.prices.cheapest,
        unit=splits.costs.unit,
        caps=caps,
        optimum=_optimum(splits, stated or {}, caps),
    )


def billed(
    spec: TrialSpec,
    use: DatasetUse,
    splits: Splits,
    trained: str,
    metrics: Iterable[tuple[str, ...]],
) -> TrialSpec:
    """Return a trial under the costs of ``splits``, with its key. ``trained`` is the key of the
    prices that its learner was trained on, ``metrics`` are the keys of its metrics."""
    key = costs_key(splits.costs)
    spec = replace(
        spec,
        unit=use.unit,
        caps=use.caps,
        cost_model=splits.costs.name,
        surrogate=trained != key,
    )
    return replace(spec, key=score_key(spec, key, metrics))


def _optimum(splits: Splits, stated: Stated, caps: tuple[float, ...]) -> dict[str, Any]:
    """Return the known optimum, as stated or computed from the truth and these costs: corners by
    metric, for caps by ``metric cap``."""
    optimum = {
        name if isinstance(name, str) else " ".join(name): [*at] for name, at in stated.items()
    }
    if splits.truth:
        depends = [splits.fingerprint, costs_key(splits.costs), [*caps]]
        computed = kept_arrays(
            *("optimum", depends, ["bench_core.optimum"]),
            lambda: optimum_of(splits.truth, splits.costs, caps),
        )
        optimum |= {name: corners.tolist() for name, corners in computed.items() if len(corners)}
    return optimum
