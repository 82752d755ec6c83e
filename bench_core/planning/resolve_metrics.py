"""The metrics of a request, and those of them that can judge a data set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from bench_core.errors import UsageError, blaming
from bench_core.metrics.plugin import USUAL, default_metric, parse_metric
from bench_core.protocols import JudgesPictures
from bench_core.splits import Splits

if TYPE_CHECKING:
    from bench_core.planning.plan import Notify
    from bench_core.planning.request import RunRequest
    from bench_core.planning.suites import Suite
    from bench_core.plugins import Registry
    from bench_core.protocols import Metric


def check_metrics(request: RunRequest, suite: Suite | None, registry: Registry) -> None:
    """Refuse a misspelt metric before any data is read."""
    with blaming("--metric"):
        _known(request.metrics, registry)
    if suite:
        with blaming(f"{suite.place}, key 'metrics'"):
            _known(suite.metrics, registry)


def choose_metrics(
    request: RunRequest,
    suite: Suite | None,
    registry: Registry,
    splits: Splits,
    label: str,
    notify: Notify,
) -> list[Metric]:
    """The metrics of a request on a data set, the primary one first; ``label`` is its name.

    One asked for by name that cannot judge it is an error; of a suite's, those that can are taken,
    and the task's default where none can.
    """
    task = splits.task
    if request.metrics:
        asked = _known(request.metrics, registry)
        for metric in asked:
            if reason := _unsuited(metric, splits, label):
                raise UsageError(
                    f"--metric: metric {metric.name} {reason}: take for example "
                    f"{' or '.join(USUAL[task])}; 'bench list metrics' has all"
                )
        return asked
    listed = _known(suite.metrics if suite else USUAL[task], registry)
    fitting = [metric for metric in listed if not _unsuited(metric, splits, label)]
    if not fitting:
        fitting = [default_metric(task)]
        notify(f"{label}: no metric of the suite judges {task}, so {fitting[0].name} does", False)
    return fitting


def _unsuited(metric: Metric, splits: Splits, label: str) -> str:
    """Why a metric cannot judge a data set, or nothing."""
    if splits.task not in metric.tasks:
        return f"does not judge {splits.task} ({label})"
    if isinstance(metric, JudgesPictures) and metric.pictures and splits.valid.frames is None:
        return f"judges pictures, and the rows of {label} are not their pixels"
    return ""


def _known(names: Iterable[str], registry: Registry) -> list[Metric]:
    """The metrics of these spellings, each once."""
    found = (parse_metric(name, registry.metrics) for name in names)
    return list({metric.name: metric for metric in found}.values())
