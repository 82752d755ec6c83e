"""Registration of the built-in metric families, with the hook that plugins use."""

from collections.abc import Sequence

from bench_core.hookspecs import hookimpl
from bench_core.metrics.evaluation import families, parse_metric
from bench_core.protocols import Metric

CUT_OFFS = (5, 10)


@hookimpl
def bench_metrics() -> Sequence[Metric]:
    """All families: with cut-offs 5 and 10, and without a cut-off if that is defined."""
    names = []
    for family, metric in families().items():
        if not metric.needs_cut_off:
            names.append(family)
        if "k" in metric.__dataclass_fields__:
            names.extend(f"{family}@{k}" for k in CUT_OFFS)
    return [parse_metric(name) for name in names]
