"""The built-in metric families, registered as a third party would register its own."""

from collections.abc import Sequence

from bench_core.hookspecs import hookimpl
from bench_core.metrics.evaluation import families, parse_metric
from bench_core.protocols import Metric

CUT_OFFS = (5, 10)


@hookimpl
def bench_metrics() -> Sequence[Metric]:
    """Every family, those with a cut-off at 5 and 10, and without one where that has a meaning."""
    names = []
    for family, metric in families().items():
        if not metric.needs_cut_off:
            names.append(family)
        if "k" in metric.__dataclass_fields__:
            names.extend(f"{family}@{k}" for k in CUT_OFFS)
    return [parse_metric(name) for name in names]
