"""The spelling of metrics: ``family``, ``@cut-off``, ``(option=value,...)``.

A metric is a frozen dataclass. Its fields are its options; a field ``k`` is its cut-off. The
canonical spelling leaves out options at their default and sorts the others, so that two equal
metrics have one name and the name alone rebuilds the metric.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bench_core.arrays import FloatArray
from bench_core.data import Queries, Task
from bench_core.errors import UsageError
from bench_core.metrics.labels import Labels
from bench_core.protocols import MetricValues

_SPELLING = re.compile(
    r"(?P<family>[A-Za-z_][A-Za-z0-9_]*)(?:@(?P<k>[^()\s]+))?(?:\((?P<options>[^()]*)\))?"
)


class BuiltIn:
    """What the built-in metrics share: a name made of family, cut-off and non-default options, and
    judging by labels that are prepared once."""

    __slots__ = ()

    family: ClassVar[str]
    needs_cut_off: ClassVar[bool] = False
    higher_is_better: ClassVar[bool] = True
    tasks: ClassVar[frozenset[Task]]

    @property
    def name(self) -> str:
        """Canonical spelling, such as ``ndcg@5`` or ``ndcg@5(empty=skip,ties=stable)``."""
        fields = sorted(dataclasses.fields(self), key=lambda f: f.name)  # type: ignore[arg-type]
        options = [
            f"{f.name}={_show(value)}"
            for f in fields
            if f.name != "k" and (value := getattr(self, f.name)) != f.default
        ]
        k = getattr(self, "k", None)
        cut_off = "" if k is None else f"@{k}"
        return f"{self.family}{cut_off}" + (f"({','.join(options)})" if options else "")

    def values(
        self,
        scores: FloatArray,
        y: FloatArray,
        queries: Queries | None = None,
        multiplicity: NDArray[np.int64] | None = None,
    ) -> MetricValues:
        """As ``Metric.values``."""
        return self.judge(scores, Labels(y, queries, multiplicity))

    def judge(self, scores: FloatArray, labels: Labels) -> MetricValues:
        """As ``values``, with labels prepared once."""
        raise NotImplementedError


def _show(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return str(value)


def choice(default: str, values: tuple[str, ...], doc: str) -> Any:
    """An option that is one of a few words."""

    def read(text: str) -> str:
        if text not in values:
            raise ValueError(f"must be {' or '.join(values)}")
        return text

    return _option(default, read, doc)


def number(default: float, doc: str) -> Any:
    """An option that is a finite number > 0."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not 0 < value < float("inf"):
            raise ValueError("must be a number above 0")
        return value

    return _option(default, read, doc)


def _option(default: Any, read: Callable[[str], Any], doc: str) -> Any:
    return dataclasses.field(default=default, metadata={"doc": doc, "read": read})


def build(text: str, families: dict[str, type[Any]]) -> Any:
    """The metric that ``text`` spells, out of ``families``; UsageError in one line if none."""
    match = _SPELLING.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"metric {text!r}: write it as name, name@k or name@k(option=value), such as ndcg@5"
        )
    metric = families.get(match["family"])
    if metric is None:
        from bench_core.errors import unknown

        name = match["family"]
        if name.lower() in families:
            raise UsageError(f"unknown metric {name!r}: did you mean {name.lower()}?")
        raise UsageError(unknown("metric", name, families))
    arguments: dict[str, Any] = {}
    options = {f.name: f for f in dataclasses.fields(metric)}
    if match["k"] is not None:
        arguments["k"] = _cut_off(text, match["k"], metric)
    elif metric.needs_cut_off:
        raise UsageError(f"metric {text!r} needs a cut-off, such as {metric.family}@5")
    options.pop("k", None)
    for key, value in _pairs(text, match["options"]):
        if key not in options:
            known = ", ".join(sorted(options)) or "none"
            raise UsageError(f"metric {text!r}: unknown option {key!r}, known: {known}")
        if key in arguments:
            raise UsageError(f"metric {text!r}: option {key!r} is given twice, keep one")
        try:
            arguments[key] = options[key].metadata["read"](value)
        except ValueError as error:
            raise UsageError(f"metric {text!r}: {key}={value} {error}") from None
    return metric(**arguments)


def _cut_off(text: str, k: str, metric: type[Any]) -> int:
    if "k" not in {f.name for f in dataclasses.fields(metric)}:
        raise UsageError(f"metric {text!r}: {metric.family} has no cut-off, leave out @{k}")
    if not re.fullmatch(r"0*[1-9][0-9]{0,8}", k):
        raise UsageError(f"metric {text!r}: the cut-off {k!r} must be a whole number from 1 up")
    return int(k)


def _pairs(text: str, options: str | None) -> Iterable[tuple[str, str]]:
    for part in options.split(",") if options else ():
        key, equals, value = part.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise UsageError(f"metric {text!r}: {part.strip()!r} is not option=value")
        yield key.strip(), value.strip()
