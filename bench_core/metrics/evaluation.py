"""Metrics by spelling, and joint evaluation of many metrics with a single sort."""

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.contracts import metric_of
from bench_core.costs.model import Acquired
from bench_core.data import Queries, Task
from bench_core.errors import UsageError, charging, option, unknown
from bench_core.metrics import ranking, rows
from bench_core.metrics.built_in import BuiltIn, Labels, Ranked, checked_scores
from bench_core.metrics.ranking import RankingMetric, rank
from bench_core.protocols import Metric, MetricValues

_SPELLING = re.compile(
    r"(?P<family>[A-Za-z_][A-Za-z0-9_]*)(?:@(?P<k>[^()\s]+))?(?:\((?P<options>[^()]*)\))?"
)
USUAL = {
    Task.RANKING: ("ndcg@5", "precision@5"),
    Task.REGRESSION: ("mse",),
    Task.BINARY: ("accuracy", "auc"),
    Task.MULTICLASS: ("accuracy",),
    Task.CHOICE: ("score", "regret"),
}
"""Default metrics of each task; the first is the primary one."""

given_metrics: dict[str, Metric] = {}
"""Metrics that this process got as objects, such as those of a notebook, by name."""


def families() -> dict[str, type[Any]]:
    """Metric classes by family name (``"ndcg"``)."""
    return {c.family: c for c in (*ranking.METRICS, *rows.METRICS)}


def parse_metric(
    name: str,
    registered: Mapping[str, Metric] = MappingProxyType({}),
    task: Task | None = None,
) -> Metric:
    """Return the metric of that spelling: one of ``given_metrics`` or ``registered``, or a built-in
    one at any cut-off.

    ``parse_metric(m.name) == m`` for every built-in metric. Raises UsageError (one line) for an
    unknown family or option, and for a missing, superfluous or invalid cut-off (an integer > 0).
    The message names metrics of the ``task``, or all.
    """
    if own := given_metrics.get(name) or registered.get(name):
        return own
    match = _SPELLING.fullmatch(name.strip())
    if match is None:
        raise UsageError(
            f"metric {name!r}: write it as name, name@k or name@k(option=value), such as ndcg@5"
        )
    family, k, listed = match.groups()
    known_families = families()
    if family not in known_families:
        every: dict[str, Any] = {
            **known_families,
            **{n.partition("@")[0]: m for n, m in registered.items()},
        }
        suited = [n for n, m in every.items() if task is None or task in m.tasks]
        line = unknown("metric", family, suited)
        raise UsageError(f"{line}; one of your own: {option('plugins', like='MODULE')}")
    metric, arguments = known_families[family], dict[str, Any]()
    options = {f.name: f for f in dataclasses.fields(metric)}  # fields are options
    has_cut_off = options.pop("k", None) is not None
    if k is None and metric.needs_cut_off:
        raise UsageError(f"metric {name!r} needs a cut-off, such as {family}@5")
    if k is not None:
        if not has_cut_off:
            raise UsageError(f"metric {name!r}: {family} has no cut-off, leave out @{k}")
        if not re.fullmatch(r"0*[1-9][0-9]{0,8}", k):
            raise UsageError(f"metric {name!r}: the cut-off {k!r} must be a whole number from 1 up")
        arguments["k"] = int(k)
    for assignment in listed.split(",") if listed else ():
        key, _, value = map(str.strip, assignment.partition("="))
        if not value or key not in options or key in arguments:
            known = ", ".join(sorted(options)) or "none"
            raise UsageError(
                f"metric {name!r}: write {assignment.strip()!r} as option=value, each option "
                f"once; known: {known}"
            )
        try:
            arguments[key] = options[key].metadata["read"](value)
        except ValueError as error:
            raise UsageError(f"metric {name!r}: {key}={value} {error}") from None
    made: Metric = metric(**arguments)
    return made


def default_metric(task: Task) -> Metric:
    """Return the default primary metric of a task: ndcg@5, mse or accuracy."""
    return parse_metric(USUAL[Task(task)][0])


def evaluate(
    metrics: Iterable[Metric],
    scores: FloatArray,
    labels: Labels,
    spent: FloatArray | float = 0.0,
) -> dict[str, MetricValues]:
    """Return the values of each metric by name, equal to ``metric.values``.

    ``scores`` (n,) or (n, K) belong to ``labels``. Create ``labels`` once per split and use it for
    all operating points, as it caches ideal orders, class sizes and similar arrays. ``spent`` (n,)
    is the cost of the rows' purchases, which metrics in money add.
    """
    metrics = list(metrics)
    by_rank = [m for m in metrics if isinstance(m, RankingMetric)]
    ranked = None
    if by_rank and labels.queries is not None:
        checked = checked_scores(scores, len(labels), by_rank[0].name)
        ranked = rank(checked, labels, max(m.depth(labels) for m in by_rank))
    values = {metric.name: _judge(metric, scores, labels, ranked) for metric in metrics}
    for metric in metrics:
        if metric_of(metric).in_money:
            answers = values[metric.name]
            values[metric.name] = dataclasses.replace(answers, values=answers.values + spent)
    return values


def _judge(
    metric: Metric, scores: FloatArray, labels: Labels, ranked: Ranked | None
) -> MetricValues:
    if isinstance(metric, RankingMetric):
        return metric.judge(scores, labels, ranked)
    if isinstance(metric, BuiltIn) and type(metric).values is BuiltIn.values:
        return metric.judge(scores, labels)
    with charging(f"metric {metric.name}"):
        values = metric.values(scores, labels.y, labels.queries, labels.multiplicity)
        shapes = np.shape(values.values), np.shape(values.weights)
    if len(shapes[0]) != 1 or shapes[0] != shapes[1]:
        fault = f"values of shape {shapes[0]} and weights of shape {shapes[1]}"
        raise UsageError(f"metric {metric.name}: {fault}; give one of each for every row or query")
    return values


def warm_up(metrics: Iterable[Metric], say: Callable[[str], None]) -> None:
    """Compile the meter and the kernels of ranking metrics into numba's cache before workers start,
    by evaluating three rows."""
    from bench_core.costs.meter import Meter

    Meter(np.ones(2), np.ones(1)).cost(Acquired.nothing(2))
    by_rank = [m for m in metrics if isinstance(m, RankingMetric)]
    if not by_rank:
        return
    from bench_core.metrics import kernels

    labels = Labels(np.array([0.0, 1.0, 2.0]), Queries(np.array([0, 3])))
    rank(labels.y, labels, 1)
    if kernels.rank.stats.cache_misses:
        say("compiling the ranking metrics, once per machine, a few seconds")
    evaluate(by_rank, np.array([0.0, 0.0, 1.0]), labels)
