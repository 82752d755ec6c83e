"""Settings to try of a learner where all contenders are searched alike (``--configs N``).

The first is the default setting: what the suite's tables give, else the class's defaults. The
others take the parameters that declare a ``search`` from a Sobol sequence without scrambling: it
spreads evenly however many are drawn, the first ten of twenty are the ten of ten, and every
learner's ``tradeoff`` and ``learning_rate`` lie at the same places of their ranges.

A learner that stands on another (``search=inside()``) takes in its k-th setting the k-th setting of
that one, so that both have equal room and share their fits; several such bases take turns.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.parameters import (
    Parameter,
    Registry,
    Search,
    expand,
    held,
    is_grid,
    members,
    parameters,
)

FIRST = ("tradeoff", "learning_rate")
"""Parameters that have dimensions of their own, so that learners which share them try the same."""


def configurations(
    cls: type,
    table: Mapping[str, Any],
    fixed: Mapping[str, Any],
    count: int,
    registry: Registry,
    where: str,
) -> tuple[Any, ...]:
    """``count`` different settings of a learner, fewer where there are no more.

    ``table`` are the suite's values with those of ``--set``, ``fixed`` the latter alone.
    """
    return tuple(_Space(cls, table, fixed, registry, where).settings(count))


class _Space:
    """The settings of one learner."""

    def __init__(
        self,
        cls: type,
        table: Mapping[str, Any],
        fixed: Mapping[str, Any],
        registry: Registry,
        where: str,
    ) -> None:
        self.cls, self.registry, self.where = cls, registry, where
        self.start: dict[str, Any] = {**fixed, **table}  # values of the first setting
        self.searched: dict[str, tuple[Parameter, Search]] = {}
        self.bases: dict[str, list[Any]] = {}  # by parameter: spaces, or values as they are
        for p in parameters(cls):
            value = self.start.get(p.name)
            if p.search and p.search.inside:
                self.bases[p.name] = list(self._stands_on(p, fixed.get(p.name, {})))
            elif p.search and p.name not in fixed:
                self.searched[p.name] = p, p.search
                if is_grid(p, value):  # it gives way to the search
                    del self.start[p.name]
            elif value and is_grid(p, value):
                self.searched[p.name] = p, Search(choices=tuple(value))
                self.start[p.name] = value[0]

    def _stands_on(self, p: Parameter, fixed: Any) -> Iterator[Any]:
        value = self.start.get(p.name, p.default)
        each = value if is_grid(p, value) else [value]
        for one, own in zip(
            each, fixed if isinstance(fixed, list) else repeat(fixed), strict=False
        ):
            if one == "none" or not isinstance(one, str | Mapping):
                yield one
                continue
            cls, table = held(p, one, self.registry, self.where)
            kept = {**own} if isinstance(own, Mapping) else {}
            kept.pop("learner", None)
            yield _Space(cls, table, kept, self.registry, self.where)

    @property
    def dimensions(self) -> int:
        """The dimensions next to the ``FIRST`` that it takes with the learners it stands on."""
        return self._below + sum(name not in FIRST for name in self.searched)

    @property
    def _below(self) -> int:
        spaces = (one for one in chain(*self.bases.values()) if isinstance(one, _Space))
        return max((one.dimensions for one in spaces), default=0)

    def settings(self, count: int) -> list[Any]:
        """At most ``count`` different instances."""
        bases = {name: _in_turn(each, count) for name, each in self.bases.items()}
        others = [name for name in self.searched if name not in FIRST]
        column = {name: FIRST.index(name) for name in self.searched if name in FIRST}
        column |= {name: len(FIRST) + self._below + k for k, name in enumerate(others)}
        found: list[Any] = []
        for shares in _draws(1 + max(column.values(), default=-1), 16 * count):
            drawn = {
                name: search.value(float(shares[column[name]]), float not in members(p.annotation))
                for name, (p, search) in self.searched.items()
                if shares is not None
            }
            stands_on = {name: each[len(found) % len(each)] for name, each in bases.items()}
            made = expand(self.cls, self.start | drawn | stands_on, self.registry, self.where)
            found += [one for one in made if one not in found]
            if len(found) >= count or not (self.searched or self.bases):
                break
        return found[:count]


def _in_turn(bases: Sequence[Any], count: int) -> list[Any]:
    """Settings of several bases: the first of each, the second of each, ..."""
    each = [one.settings(count) if isinstance(one, _Space) else [one] for one in bases]
    turns: list[Any] = []
    for k in range(count):
        turns += [own[k] for own in each if k < len(own) and own[k] not in turns]
    return turns[:count]


def _draws(dimensions: int, count: int) -> Iterator[FloatArray | None]:
    """None, for the default setting, then points (dimensions,) of the sequence after its first,
    which is 0."""
    yield None
    if not dimensions:
        yield from np.zeros((count, 0))
        return
    from scipy.stats.qmc import Sobol

    yield from Sobol(dimensions, scramble=False).fast_forward(1).random(count)


def search_ends(
    instances: Sequence[Any], drawn: bool
) -> dict[str, tuple[float | None, float | None]]:
    """By varied parameter the values from which on a choice is at the edge of what was tried: the
    least and the most of a grid, a twentieth of the way from the ends of a range that settings were
    ``drawn`` from. None where the parameter cannot go further."""
    found = {}
    for p in parameters(type(instances[0])):
        values = [getattr(instance, p.name) for instance in instances]
        numbers = {v for v in values if isinstance(v, int | float) and not isinstance(v, bool)}
        if len(numbers) < 2 or (drawn and p.search and p.search.choices):
            continue
        low, high = least, most = min(numbers), max(numbers)
        if drawn and p.search:
            least, most = p.search.least, p.search.most
            low, high = p.search.value(0.05), p.search.value(0.95)
        floor, ceiling = max(p.range.least, p.range.above), min(p.range.most, p.range.below)
        found[p.name] = None if least <= floor else low, None if most >= ceiling else high
    return found
