"""The options of a run, checked before any data is read, and those of its learners (``--set``)."""

import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from bench_core._io.text import toml_fault
from bench_core.class_names import importable
from bench_core.contracts import name_of
from bench_core.costs.cost_file import CostFile
from bench_core.costs.model import CostModel
from bench_core.data import Task
from bench_core.errors import UsageError, blaming, one_line, unknown
from bench_core.plugins import Registry
from bench_core.results.budgets import as_caps

PROFILES = ("quick", "standard", "paper")
MOST_SEED = 2**32 - 1
"""What every generator of random numbers takes."""

MOST_CONFIGS = 1000
DAY = 86_400.0
"""Seconds that a job may take unless the request says otherwise."""
EXECUTORS = ("local", "inline", "dask")


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The options of ``bench run``, all optional.

    Give ``suite`` or ``data`` (registered names, files or data-set instances; with a suite it
    restricts it). ``costs`` is a file, the name of a cost model, or its content or instance.
    ``learners`` holds registered names, ``"all"`` or learner instances, ``settings`` texts as
    ``"miser.trees=300"``, ``plugins`` modules. ``reference`` names the learner that savings are
    measured against and puts it on the board; "": the suite's, without a suite the one of that
    role. So many ``configs`` are tried of each learner; 0: the suite's grids. ``caps`` are costs
    that no row may exceed: each is enforced at prediction and measured besides the rest. ``seeds``
    and ``folds`` None: as the suite's profile says. ``test`` to ``task`` and ``index_base`` belong
    to a file in ``data``. ``drop`` leaves columns of a file out, those of one of the ``groups``
    (``"a,b:5"``) share one sensor, ``cv`` folds or ``share`` (of validation and test) divide it,
    ``unit`` is what its costs count. ``workers`` and ``threads`` 0: chosen from the cores at hand.
    ``executor`` is ``"local"`` (processes that can be killed), ``"inline"`` or ``"dask"``, which
    may name a scheduler or a cluster (``"dask=tcp://host:8786"``, ``"dask=module:cluster"``); "":
    the suite's, else local.
    ``timeout`` in seconds (0 is no limit) and ``memory`` in bytes (0: 80% of the machine's, shared
    by the ``workers``) hold for each job; one that does not end well is tried again up to
    ``retries`` times. ``audit`` is ``"off"``, ``"sample"`` or ``"full"``. ``fresh`` does everything
    anew, ``strict_data`` refuses stand-ins.
    What is "" is as the command's default.
    """

    suite: str = ""
    data: tuple[Any, ...] = ()
    test: str = ""
    valid: str = ""
    label: str = ""
    query: str = ""
    split: str = ""
    task: str = ""
    metrics: tuple[str, ...] = ()
    caps: tuple[float, ...] = ()
    index_base: int = 1
    costs: str | CostFile | CostModel = ""
    learners: tuple[Any, ...] = ()
    reference: str = ""
    profile: str = ""
    settings: tuple[str, ...] = ()
    configs: int = 0
    seeds: tuple[int, ...] | None = None
    folds: tuple[int, ...] | None = None
    workers: int = 0
    threads: int = 0
    executor: str = ""
    timeout: float = DAY
    memory: int = 0
    retries: int = 0
    audit: str = "sample"
    fresh: bool = False
    strict_data: bool = False
    data_dir: str = ""
    store: str = ""
    plugins: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    cv: int = 0
    share: tuple[float, ...] = ()
    unit: str = ""


def without_repeats(request: RunRequest) -> RunRequest:
    """The same request; what it names twice is meant once."""
    distinct: dict[str, Any] = {
        name: tuple(dict.fromkeys(given))
        for name in ("data", "seeds", "folds")
        if (given := getattr(request, name))
    }
    return replace(request, **distinct)


def modules_of(request: RunRequest) -> tuple[str, ...]:
    """The modules of the objects in a request that another process can import."""
    given = [x for x in (*request.learners, *request.data, request.costs) if not isinstance(x, str)]
    return tuple(dict.fromkeys(type(x).__module__ for x in given if importable(type(x))))


_TEXTS = ("drop", "groups", "metrics", "settings", "plugins")


def check_request(request: RunRequest) -> None:
    """Refuse values that no data is needed to refuse."""
    for f in fields(request):
        value = getattr(request, f.name)
        kinds = (str, CostFile, CostModel) if f.name == "costs" else (str,)
        if isinstance(f.default, str) and not isinstance(value, kinds):
            raise UsageError(f"{f.name} must be text, not {_short(value)}")
        if f.name in _TEXTS and not all(isinstance(text, str) and text for text in value):
            raise UsageError(f"{f.name} must be names or texts, not {_short([*value])}")
    for value in request.data:
        if not (isinstance(value, str) and value) and not is_dataset(value):
            raise UsageError(f"--data: {_short(value)} is no name, file or instance of a data set")
    for name, value, known in (
        ("--audit", request.audit, ("off", "sample", "full")),
        ("--task", request.task or "ranking", tuple(Task)),
    ):
        if value not in known:
            raise UsageError(f"{name}: {unknown('value', value, known)}")
    with blaming("--executor"):
        check_executor(request.executor or EXECUTORS[0])
    if not request.suite and request.profile not in ("", *PROFILES):
        raise UsageError(f"--profile: {unknown('profile', request.profile, PROFILES)}")
    if not isinstance(request.configs, int) or not 0 <= request.configs <= MOST_CONFIGS:
        raise UsageError(f"--configs: {request.configs!r} is not a number from 1 to {MOST_CONFIGS}")
    for name in ("workers", "threads", "timeout", "memory", "retries"):
        value = getattr(request, name)
        if not isinstance(value, int | float) or not value >= 0:
            raise UsageError(f"--{name} must be a number >= 0, not {value!r}")
    for name in ("seeds", "folds"):
        for number in getattr(request, name) or ():
            if not isinstance(number, int) or not 0 <= number <= MOST_SEED:
                raise UsageError(f"--{name}: {number} is not a whole number from 0 to {MOST_SEED}")
    with blaming("--caps"):
        as_caps(request.caps)
    if request.index_base not in (0, 1):
        raise UsageError("--index-base is 0 or 1")


def check_executor(text: str) -> None:
    """Refuse what is no executor, before anything is imported or asked for."""
    kind, equals, where = text.partition("=")
    if kind not in EXECUTORS:
        raise UsageError(unknown("value", kind, EXECUTORS))
    module, _, name = where.partition(":")
    named = all(part.isidentifier() for part in (*module.split("."), name))
    if equals and not (kind == "dask" and (named or "://" in where)):
        ways = "local, inline, dask, dask=tcp://HOST:PORT or dask=MODULE:CLUSTER"
        raise UsageError(f"{_short(text)} names no cluster: write {ways}")


def is_dataset(value: Any) -> bool:
    """Whether a value, which is no text, can be used as a data set."""
    return hasattr(value, "prepare") and not isinstance(value, type) and bool(name_of(value))


def _short(value: Any) -> str:
    return one_line(repr(value), 80)


def available_cores() -> int:
    """The cores that this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return cores or 1


def cores_for(request: RunRequest, jobs: int) -> tuple[int, int]:
    """Workers and threads of each: all cores, but no more workers than there are jobs."""
    cores = available_cores()
    if request.executor == "inline":
        return 1, request.threads or cores
    workers = request.workers or max(1, min(cores // (request.threads or 1), jobs))
    return workers, request.threads or max(1, cores // workers)


@dataclass(frozen=True, slots=True)
class Setting:
    """``--set owner.path=value`` taken apart."""

    owner: str
    path: tuple[str, ...]
    value: Any
    text: str


def parse_setting(text: str) -> Setting:
    """Read ``miser.trees=300``: the value is a TOML literal, a bare word is a string."""
    name, equals, value = text.partition("=")
    owner, *path = [part.strip() for part in name.split(".")]
    if not equals or not owner or not path or not all(path):
        raise UsageError(f"--set {text}: write it as LEARNER.PARAMETER=VALUE, as miser.trees=300")
    return Setting(owner, tuple(path), _literal(value.strip()), text)


def _literal(text: str) -> Any:
    try:
        read = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--set {text[:20]}...: {toml_fault(error)}; correct it") from error
    return read["value"] if set(read) == {"value"} else text


def with_setting(table: Mapping[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A copy of a table in which the value at a (nested) path is replaced."""
    key, *rest = path
    if not rest:
        return {**table, key: value}
    inner = table.get(key, {})
    if isinstance(inner, str):
        inner = {"learner": inner}
    if isinstance(inner, list):  # a grid of learners: the setting holds for each
        changed: Any = [with_setting({key: one}, path, value)[key] for one in inner]
        return {**table, key: changed}
    if not isinstance(inner, Mapping):
        raise UsageError(f"parameter {key!r} holds no learner, so {'.'.join(rest)} means nothing")
    return {**table, key: with_setting(inner, tuple(rest), value)}


def read_settings(request: RunRequest, registry: Registry) -> tuple[Setting, ...]:
    """The ``--set`` options of a request; UsageError for an owner that is neither a learner nor a
    data set."""
    settings = tuple(_spelt(parse_setting(text), registry) for text in request.settings)
    instances = {name_of(x) for x in request.learners if not isinstance(x, str)}
    known = [*registry.learners, *registry.datasets, *instances]
    for owner, text in ((setting.owner, setting.text) for setting in settings):
        if owner not in known:
            raise UsageError(f"--set {text}: {unknown('learner or data set', owner, known)}")
    return settings


def _spelt(setting: Setting, registry: Registry) -> Setting:
    """The same with its owner as the registry spells it."""
    with blaming(f"--set {setting.text}"):
        return replace(setting, owner=registry.learner_name(setting.owner))


def check_owners(
    settings: Sequence[Setting], learners: Sequence[str], datasets: Iterable[str]
) -> None:
    """Refuse a ``--set`` for a learner or data set that is not in the run."""
    used = {*learners, *datasets}
    for setting in settings:
        if setting.owner in used:
            continue
        what = f"--set {setting.text}: {setting.owner!r} is not in this run"
        for other in settings:
            if other.value == setting.owner:  # early-exit.base=imported: set what stands there
                place = other.text.partition("=")[0].strip().removesuffix(".learner")
                rest = setting.text.partition(".")[2]
                raise UsageError(f"{what} by itself: write --set {place}.{rest}")
        listed = f"(learners: {', '.join(learners)})"
        raise UsageError(f"{what} {listed}. Add it with --learners, or drop the option")
