"""Settings to try of a learner where all contenders are searched alike (``--configs N``).

The first is the default setting: what the suite's tables give, else the class's defaults. The
others take the parameters that declare a ``search`` from a Sobol sequence without scrambling: it
spreads evenly however many are drawn, the first ten of twenty are the ten of ten, and every
learner's ``tradeoff`` and ``learning_rate`` take the same values.

A learner that stands on another (``search=inside()``) takes in its k-th setting the k-th setting of
that one, so that both have equal room and share their fits; several such bases take turns.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
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

Values = Mapping[str, Any]

Base = tuple[type, Values, Values] | Any
"""A learner that others stand on: class, table, what is fixed there; or a value as it is."""


def searched(cls: type, table: Values, fixed: Values) -> dict[str, tuple[Parameter, Search]]:
    """The parameters to search and where: those that declare it, unless ``fixed`` gives one value,
    and those for which ``table`` or ``fixed`` has a list of values."""
    found = {}
    for p in parameters(cls):
        free = p.search is not None and p.name not in fixed
        given = None if free else {**fixed, **table}.get(p.name)
        if p.search and p.search.inside:
            continue
        if given and is_grid(p, given):
            found[p.name] = p, Search(choices=tuple(given))
        elif p.search and free:
            found[p.name] = p, p.search
    return found


def _bases(
    cls: type, table: Values, fixed: Values, registry: Registry, where: str
) -> dict[str, list[Base]]:
    """By parameter that is searched inside: its values."""
    found: dict[str, list[Base]] = {}
    for p in parameters(cls):
        if not (p.search and p.search.inside):
            continue
        value, kept = table.get(p.name, p.default), fixed.get(p.name, {})
        each = value if is_grid(p, value) else [value]
        found[p.name] = []
        for one, own in zip(each, kept if isinstance(kept, list) else repeat(kept), strict=False):
            if one == "none" or not isinstance(one, str | Mapping):
                found[p.name].append(one)
                continue
            there = dict(own) if isinstance(own, Mapping) else {}
            there.pop("learner", None)
            found[p.name].append((*held(p, one, registry, where), there))
    return found


def _declared(p: Parameter) -> tuple[Any, ...]:
    return p.search.choices if p.search else ()


def configurations(
    cls: type, table: Values, fixed: Values, count: int, registry: Registry, where: str
) -> tuple[Any, ...]:
    """``count`` different settings of a learner, fewer where there are no more.

    ``table`` are the suite's values with those of ``--set``, ``fixed`` the latter alone.
    """
    space = searched(cls, table, fixed)
    bases = _bases(cls, table, fixed, registry, where)
    start = {
        name: value
        for name, value in {**fixed, **table}.items()
        if name not in space or not is_grid(space[name][0], value)
    }
    start |= {n: s.choices[0] for n, (p, s) in space.items() if s.choices != _declared(p)}
    turns = {name: _in_turn(each, count, registry, where) for name, each in bases.items()}
    found: list[Any] = []
    seen: dict[int, list[Any]] = {}
    columns = _columns(space, _taken(bases, registry, where))
    for shares in _draws(1 + max(columns.values(), default=-1), 16 * count):
        drawn = {
            name: search.value(float(shares[columns[name]]), float not in members(p.annotation))
            for name, (p, search) in space.items()
            if shares is not None
        }
        stands_on = {name: each[len(found) % len(each)] for name, each in turns.items()}
        made = expand(cls, start | drawn | stands_on, registry, where)
        found += [one for one in made if _is_new(one, seen)]
        if len(found) >= count or not (space or bases):
            break
    return tuple(found[:count])


def _in_turn(each: Sequence[Base], count: int, registry: Registry, where: str) -> list[Any]:
    """Settings of several bases: the first of each, the second of each, ..."""
    settings = [
        configurations(one[0], one[1], one[2], count, registry, where)
        if isinstance(one, tuple)
        else (one,)
        for one in each
    ]
    turns = [one[k] for k in range(count) for one in settings if k < len(one)]
    seen: dict[int, list[Any]] = {}
    return [one for one in turns if _is_new(one, seen)][:count]


def _is_new(value: Any, seen: dict[int, list[Any]]) -> bool:
    """True for a value that equals none ``seen`` (by hash); it is added to them."""
    try:
        place = hash(value)
    except TypeError:  # it holds a list or a table
        place = 0
    alike = seen.setdefault(place, [])
    if value in alike:
        return False
    alike.append(value)
    return True


def _columns(space: Mapping[str, Any], taken: int) -> dict[str, int]:
    """By parameter its dimension; ``taken`` are those of the learners that it stands on."""
    others = (name for name in space if name not in FIRST)
    columns = {name: len(FIRST) + taken + k for k, name in enumerate(others)}
    return columns | {name: k for k, name in enumerate(FIRST) if name in space}


def _taken(bases: Mapping[str, Sequence[Base]], registry: Registry, where: str) -> int:
    """The number of dimensions, next to the ``FIRST``, that the settings of bases take."""
    taken = 0
    for one in (one for each in bases.values() for one in each if isinstance(one, tuple)):
        cls, table, fixed = one
        own = [name for name in searched(cls, table, fixed) if name not in FIRST]
        inner = _taken(_bases(cls, table, fixed, registry, where), registry, where)
        taken = max(taken, len(own) + inner)
    return taken


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
        if len(numbers) < 2:
            continue
        low, high = least, most = min(numbers), max(numbers)
        if drawn and p.search:
            if p.search.choices:
                continue
            least, most = p.search.least, p.search.most
            low, high = p.search.value(0.05), p.search.value(0.95)
        limits = min(p.range.most, p.range.below), max(p.range.least, p.range.above)
        found[p.name] = None if least <= limits[1] else low, None if most >= limits[0] else high
    return found


def _draws(dimensions: int, count: int) -> Iterator[FloatArray | None]:
    """None, for the default setting, then points (dimensions,) of the sequence after its first,
    which is 0."""
    yield None
    if not dimensions:
        yield from np.zeros((count, 0))
        return
    from scipy.stats.qmc import Sobol

    yield from Sobol(dimensions, scramble=False).fast_forward(1).random(count)
