"""Settings to try of a learner where all contenders are searched alike (``--configs N``).

The first is the default setting: what the suite's tables give, else the class's defaults. The
others take the parameters that declare a ``search`` from a Sobol sequence without scrambling: it
spreads evenly however many are drawn, the first ten of twenty are the ten of ten, and every
learner's ``tradeoff`` takes the same values.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bench_core.annotations import members
from bench_core.arrays import FloatArray
from bench_core.parameters import Parameter, Registry, Search, expand, is_grid, parameters

FIRST = ("tradeoff", "learning_rate")
"""Parameters that take the first dimensions, so that learners which share them try the same."""


def searched(
    cls: type, table: Mapping[str, Any], fixed: Mapping[str, Any]
) -> dict[str, tuple[Parameter, Search]]:
    """The parameters to search and where: those that declare it, unless ``fixed`` gives one value,
    and those for which ``table`` or ``fixed`` has a list of values."""
    found = {}
    for p in sorted(parameters(cls), key=lambda p: (*FIRST, p.name).index(p.name)):
        given = fixed.get(p.name, None if p.search else table.get(p.name))
        if given and is_grid(p, given):
            found[p.name] = p, Search(choices=tuple(given))
        elif p.search and p.name not in fixed:
            found[p.name] = p, p.search
    return found


def _declared(p: Parameter) -> tuple[Any, ...]:
    return p.search.choices if p.search else ()


def configurations(
    cls: type,
    table: Mapping[str, Any],
    fixed: Mapping[str, Any],
    count: int,
    registry: Registry,
    where: str,
) -> tuple[Any, ...]:
    """``count`` different settings of a learner, fewer where there are no more.

    ``table`` are the suite's values, ``fixed`` those of ``--set``.
    """
    space = searched(cls, table, fixed)
    start = {
        name: value
        for name, value in {**table, **fixed}.items()
        if name not in space or not is_grid(space[name][0], value)
    }
    start |= {n: s.choices[0] for n, (p, s) in space.items() if s.choices != _declared(p)}
    found = list(expand(cls, start, registry, where))
    if not space:
        return tuple(found)
    for shares in _sobol(len(space), 16 * count):
        drawn = {
            name: search.value(float(share), whole=float not in members(p.annotation))
            for share, (name, (p, search)) in zip(shares, space.items(), strict=True)
        }
        if len(found) >= count:
            break
        found += [one for one in expand(cls, start | drawn, registry, where) if one not in found]
    return tuple(found[:count])


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
        low, high = min(numbers), max(numbers)
        if drawn and p.search and not p.search.choices:
            low, high = p.search.value(0.05), p.search.value(0.95)
        limits = min(p.range.most, p.range.below), max(p.range.least, p.range.above)
        found[p.name] = None if low <= limits[1] else low, None if high >= limits[0] else high
    return found


def _sobol(dimensions: int, count: int) -> FloatArray:
    """The points (count, dimensions) of the sequence after its first, which is 0."""
    from scipy.stats.qmc import Sobol  # takes a second

    drawn: FloatArray = Sobol(dimensions, scramble=False).fast_forward(1).random(count)
    return drawn
