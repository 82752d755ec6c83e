"""What a plugin's process says of its learners, checked: plain values of limited size, and of what
decides about a trial nothing that could be worked out here.

Of each learner the package and the digest of its code come from the name of its class, so that
none passes for one that comes with Budget Bench, or for another's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench_core._io.digests import code_key, code_modules, modules_key
from bench_core.class_names import SHIPPED, Elsewhere, find_class, is_shipped
from bench_core.contracts import check_name, name_of
from bench_core.data import Task
from bench_core.errors import UsageError
from bench_core.planning.facts import Facts
from bench_core.planning.resolve_learners import DescribedLearner, Wanted
from bench_core.plugins import PluginInfo

MOST = 10_000
"""Learners, names or modules in one answer."""
LONGEST = 2_000
_DEEPEST = 20
_KINDS = ("learner", "data set", "metric", "cost model", "report", "suite", "suite key")


Given = Sequence[tuple[str, str, str]]
"""Kind and name of what a plugin brings; of a learner the spelling of its class, of a suite its
file."""


def unimported(
    plugin: PluginInfo, given: Given, chosen: Callable[[Wanted], Any]
) -> list[tuple[str, str, Any]]:
    """What is registered of a plugin that is not imported: its learners and suites."""
    learners = [(k, n, Elsewhere(n, of, plugin, chosen)) for k, n, of in given if k == "learner"]
    return [*learners, *((k, name, Path(of)) for k, name, of in given if k == "suite")]


def given_of(answer: Any) -> Given:
    """What a plugin brings: kinds, names and more. Raises UsageError for anything else."""
    found = [tuple(map(_text, one)) for one in _listed(answer)]
    kinds = (*_KINDS, "report section")
    if not all(len(one) == 3 and one[0] in kinds and one[1] for one in found):
        raise _refused("what it brings")
    for kind, name, _ in found:
        check_name(kind, name)
    return [(kind, name, more) for kind, name, more in found]


def described_learner(wanted: Wanted, answer: Mapping[str, Any], place: str) -> DescribedLearner:
    """A learner that is chosen there. Raises UsageError, begun by ``place``, for what is none."""
    try:
        facts = tuple(_facts(one, one["encoded"]) for one in _listed(answer["facts"]))
        varied = tuple(map(_text, _listed(answer["varied"])))
        if len(varied) != len(facts) or not facts or {one.name for one in facts} != {wanted.name}:
            raise _refused("its settings")
        ends = {_text(k): (_end(low), _end(high)) for k, (low, high) in answer["ends"].items()}
        role = _text(answer["role"])
    except (KeyError, TypeError, ValueError, AttributeError, ImportError, RecursionError) as error:
        raise UsageError(f"{place}: learner {wanted.name} is not described ({error})") from error
    return DescribedLearner(wanted.name, facts, wanted.named, role, varied, ends)


def _facts(told: Mapping[str, Any], encoded: Mapping[str, Any], depth: int = 0) -> Facts:
    """``encoded`` is that of the learner that holds it, where one does."""
    if depth > _DEEPEST or encoded.keys() != {"class", "fields"}:
        raise _refused("a learner")
    fields = {_text(name): _plain(value) for name, value in encoded["fields"].items()}
    spelling = _text(encoded["class"])
    name = _text(told["name"])
    package, code, modules = _source(name, spelling, [*map(_text, _listed(told["modules"]))])
    held = {n for n, v in fields.items() if isinstance(v, dict) and v.keys() == {"class", "fields"}}
    if held != told["inner"].keys():  # a class that is not listed would come from nowhere
        raise _refused("a learner inside another")
    inner = {n: _facts(one, fields[n], depth + 1) for n, one in told["inner"].items()}
    return Facts(
        name=name,
        tasks=tuple(str(Task(task)) for task in told["tasks"]),
        version=_text(told["version"]),
        encoded={"class": spelling, "fields": fields},
        package=package,
        code=code,
        modules=modules,
        stamp=_text(told["stamp"]),
        numerics=tuple(map(_text, _listed(told["numerics"]))),
        inner=inner,
        needs=tuple(_facts(one, one["encoded"], depth + 1) for one in _listed(told["needs"])),
    )


def _source(name: str, spelling: str, modules: Sequence[str]) -> tuple[str, str, tuple[str, ...]]:
    """Of a learner's class its package, a digest of its source, and the modules that this begins
    with. One of Budget Bench must be the learner ``name``: keys know a class by its name."""
    module = spelling.partition(":")[0]
    package = module.partition(".")[0]
    if package in SHIPPED:
        cls = find_class(spelling)
        if not is_shipped(cls) or not hasattr(cls, "fit") or name_of(cls) != name:
            raise _refused(f"class {spelling}")
        return "", code_key(cls), tuple(code_modules(cls))
    every = tuple(sorted({module, *modules}))
    return package, modules_key(every), every


def _plain(value: Any, depth: int = 0) -> Any:
    """A parameter's value as JSON has it, its texts printable."""
    if isinstance(value, str):
        return _text(value)
    if depth <= _DEEPEST and isinstance(value, list):
        return [_plain(item, depth + 1) for item in value]
    if depth <= _DEEPEST and isinstance(value, dict):
        return {_text(name): _plain(item, depth + 1) for name, item in value.items()}
    if value is None or isinstance(value, bool | int | float):
        return value
    raise _refused("a value")


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list) or len(value) > MOST:
        raise _refused("a list")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > LONGEST or not value.isprintable():
        raise _refused("a text")
    return value


def _end(value: Any) -> float | None:
    if value is not None and (not isinstance(value, int | float) or isinstance(value, bool)):
        raise _refused("a number")
    return value


def _refused(what: str) -> UsageError:
    return UsageError(f"its process says of {what} what cannot be")
