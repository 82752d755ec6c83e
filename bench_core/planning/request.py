"""The request of a run: every option of ``bench run`` and of ``bench_core.run``, declared once."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Self

from bench_core.errors import UsageError, blaming, option, unknown
from bench_core.planning.option import (
    FLAG,
    NAMES,
    TEXT,
    TEXTS,
    Form,
    Option,
    choice,
    options_of,
    quantity,
    short,
    whole,
    whole_numbers,
)
from bench_core.results.budgets import COMMAS, as_caps, parse_budgets

if TYPE_CHECKING:
    from bench_core.costs.cost_file import CostFile
    from bench_core.costs.model import CostModel

PROFILES = ("quick", "standard", "paper")
AUDITS = ("sample", "full", "off")
TASKS = ("ranking", "regression", "binary", "multiclass")
EXECUTORS = ("local", "inline", "dask")
MOST_SEED = 2**32 - 1
"""The largest seed that every generator of random numbers takes."""

MOST_CONFIGS = 1000
MOST_FOLDS = 100
DAY = 86_400.0
"""Seconds that a job may take unless the request says otherwise."""

_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_BYTES = {"": 1, "b": 1} | {
    prefix + end: base**power
    for power, prefix in enumerate("kmgt", start=1)
    for end, base in (("", 1024), ("ib", 1024), ("b", 1000))
}
DURATION = quantity("a duration", float, _SECONDS, "for example 90s, 10m or 2h")
MEMORY = quantity("an amount of memory", int, _BYTES, "for example 500MiB or 4GiB")


def _caps(text: str) -> tuple[float, ...]:
    return as_caps(parse_budgets(text, "cap"), COMMAS)


def _cap_fault(value: Any) -> str:
    try:
        as_caps([value])
    except UsageError as error:
        return str(error)
    return ""


def _shares(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(",") if part)
    except ValueError:
        message = f"{text!r} is not a comma-separated list of fractions: write 0.2,0.2"
        raise ValueError(message) from None


SHARES_WANTED = "give the parts of validation and test as 0.2,0.2, in all below 1"


def _share_fault(value: Any) -> str:
    fits = isinstance(value, int | float) and 0 < value < 1
    return "" if fits else SHARES_WANTED


def _data_fault(value: Any) -> str:
    fits = bool(value) if isinstance(value, str) else is_dataset(value)
    return "" if fits else f"{short(value)} is no name, file or instance of a data set"


def _costs_fault(value: Any) -> str:
    from bench_core.costs.cost_file import CostFile
    from bench_core.costs.model import CostModel

    fits = isinstance(value, str | CostFile | CostModel)
    return "" if fits else f"must be text, not {short(value)}"


def executor_fault(value: Any) -> str:
    """Why a text names no executor, before anything is imported or asked for; or ""."""
    if not isinstance(value, str):
        return f"must be text, not {short(value)}"
    kind, equals, where = value.partition("=")
    if kind not in EXECUTORS:
        return unknown("value", kind, EXECUTORS)
    module, _, name = where.partition(":")
    named = all(part.isidentifier() for part in (*module.split("."), name))
    if equals and not (kind == "dask" and (named or "://" in where)):
        ways = "local, inline, dask, dask=tcp://HOST:PORT or dask=MODULE:CLUSTER"
        return f"{short(value)} names no cluster: write {ways}"
    return ""


def _anything(value: Any) -> str:
    return ""


LEARNERS = Form(NAMES.read, _anything, many=True)  # checked where they are looked up
DATA = Form(NAMES.read, _data_fault, many=True)
CAPS = Form(_caps, _cap_fault, many=True)
SHARES = Form(_shares, _share_fault, many=True)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The options of a run. All are optional; a request that is made has been checked.

    An option is added here, in one field, and used where it matters: the command, Python, their
    documentation and the command that repeats a run read these declarations.
    """

    suite: Annotated[
        str,
        Option(
            "The suite to run: 'bench list suites'.",
            TEXT,
            flags=("-s", "--suite"),
            metavar="NAME",
            complete="suite_files",
        ),
    ] = ""
    data: Annotated[
        tuple[Any, ...],
        Option(
            "Data sets by name, or files (SVMlight, CSV, Parquet; write ./letters for a file that "
            "has a data set's name). With {suite}, those of its data sets to use.",
            DATA,
            "Or instances of data sets.",
            flags=("-d", "--data"),
            complete="data",
        ),
    ] = ()
    valid: Annotated[
        str,
        Option(
            "Validation file; without one a part of {data}.",
            TEXT,
            "With X the pair (X, y), or (X, y, queries).",
            metavar="FILE",
        ),
    ] = ""
    test: Annotated[
        str,
        Option(
            "Test file; without one a part of {data}.",
            TEXT,
            "With X the pair (X, y), or (X, y, queries).",
            metavar="FILE",
        ),
    ] = ""
    label: Annotated[
        str, Option("Column of the label, for CSV and Parquet.", TEXT, metavar="COLUMN")
    ] = ""
    query: Annotated[
        str, Option("Column of the query, for CSV and Parquet.", TEXT, metavar="COLUMN")
    ] = ""
    split: Annotated[
        str,
        Option(
            "Column with the values train, valid and test.",
            TEXT,
            "With X also these values, one for each row.",
            metavar="COLUMN",
        ),
    ] = ""
    task: Annotated[
        str,
        Option(
            "ranking, regression, binary or multiclass; else the labels decide.",
            choice("", *TASKS),
            metavar="TASK",
        ),
    ] = ""
    drop: Annotated[
        tuple[str, ...], Option("Columns of the file to leave out.", NAMES, metavar="COLUMNS")
    ] = ()
    groups: Annotated[
        tuple[str, ...],
        Option(
            "Columns that one sensor measures, and its cost: a,b,c:5 or 'hist_*:5'.",
            TEXTS,
            flags=("--group",),
            metavar="COLUMNS:COST",
        ),
    ] = ()
    cv: Annotated[
        int,
        Option(
            "K-fold cross-validation of one file, queries kept whole.",
            whole(3, MOST_FOLDS),
            metavar="K",
        ),
    ] = 0
    share: Annotated[
        tuple[float, ...],
        Option(
            "Parts of one file for validation and test; default: 0.2,0.2.",
            SHARES,
            metavar="VALID,TEST",
        ),
    ] = ()
    unit: Annotated[
        str, Option("What the costs of a file count, such as ms.", TEXT, metavar="WORD")
    ] = ""
    metrics: Annotated[
        tuple[str, ...],
        Option(
            "Metrics, the primary one first: 'bench list metrics'.",
            NAMES,
            flags=("-m", "--metric"),
            complete="metrics",
        ),
    ] = ()
    costs: Annotated[
        "str | CostFile | CostModel",
        Option(
            "Feature costs as CSV, JSON, TOML, 'name:cost' lines or one value a line; default: "
            "the data set's own, for files 1 each.",
            Form(str, _costs_fault),
            "Also a mapping or series of costs by feature, one cost for each feature in order, a "
            "cost model, or the content of a cost file.",
            metavar="FILE",
        ),
    ] = ""
    caps: Annotated[
        tuple[float, ...],
        Option(
            "Costs that no row may exceed, enforced row by row: learners are also measured under "
            "each.",
            CAPS,
            metavar="COST,...",
        ),
    ] = ()
    index_base: Annotated[
        int,
        Option(
            "Number of the first feature in SVMlight files.",
            whole(0, 1),
            usual="1",
            metavar="NUMBER",
        ),
    ] = 1
    learners: Annotated[
        tuple[Any, ...],
        Option(
            "Learners by name, or 'all': 'bench list learners'. Default: the suite's; without a "
            "suite five for a first board. To run a learner that a suite leaves out on a data "
            "set, name it and the data set in {data}.",
            LEARNERS,
            "Or instances, or a mapping of names to parameters, in which lists are grids.",
            flags=("-l", "--learners"),
            complete="learners",
        ),
    ] = ()
    reference: Annotated[
        str,
        Option(
            "The learner that savings are measured against, put on every board. Default: the "
            "suite's; without a suite an imported model or gbrt, if it takes part, else none.",
            TEXT,
            metavar="NAME",
            complete="learners",
        ),
    ] = ""
    profile: Annotated[
        str,
        Option(
            "quick (the default), standard or paper.", TEXT, metavar="NAME", complete="profiles"
        ),
    ] = ""
    settings: Annotated[
        tuple[str, ...],
        Option(
            "A learner's parameter as a TOML value; a list is a grid (miser.trees=[100,300]).",
            TEXTS,
            "Or a mapping of such names to values.",
            flags=("--set",),
            metavar="LEARNER.FIELD=VALUE",
            complete="settings",
        ),
    ] = ()
    configs: Annotated[
        int,
        Option(
            "Try N settings of each learner instead of grids: its default and N-1 from the ranges "
            "that it declares. Validation chooses.",
            whole(1, MOST_CONFIGS),
            metavar="N",
        ),
    ] = 0
    seeds: Annotated[
        tuple[int, ...] | None,
        Option("Seeds, as 0,1,2 or 0-2.", whole_numbers(MOST_SEED), metavar="NUMBERS"),
    ] = None
    folds: Annotated[
        tuple[int, ...] | None,
        Option(
            "Folds of the data sets, as 0,1,2 or 0-2.", whole_numbers(MOST_SEED), metavar="NUMBERS"
        ),
    ] = None
    workers: Annotated[
        int,
        Option(
            "Jobs at the same time.",
            whole(1),
            flags=("-w", "--workers"),
            metavar="N",
            decides=False,
        ),
    ] = 0
    threads: Annotated[
        int,
        Option(
            "Threads of each job.",
            whole(1),
            flags=("-t", "--threads"),
            metavar="N",
            decides=False,
        ),
    ] = 0
    executor: Annotated[
        str,
        Option(
            "local: processes that can be killed; inline: this one; dask, dask=tcp://HOST:PORT or "
            "dask=MODULE:CLUSTER: the workers of a Dask cluster.",
            Form(str, executor_fault),
            usual="the suite's, else local",
            metavar="WHERE",
            decides=False,
        ),
    ] = ""
    timeout: Annotated[
        float,
        Option(
            "Limit of each job, start of its process left out: 90s, 10m, 2h; seconds without a "
            "unit. Default: 24h.",
            DURATION,
            metavar="TIME",
            decides=False,
        ),
    ] = DAY
    memory: Annotated[
        int,
        Option(
            "Memory limit per job, child processes included: 500MiB, 4GiB. Default: 80% of the "
            "machine's memory, shared by the workers.",
            MEMORY,
            metavar="SIZE",
            decides=False,
        ),
    ] = 0
    retries: Annotated[
        int,
        Option(
            "Try a job that does not end well up to N times more; 'bench log' has every attempt.",
            whole(0, 100),
            metavar="N",
            decides=False,
        ),
    ] = 0
    audit: Annotated[
        str,
        Option(
            "Replay a sample of the queries, all of them (full), or none (off), to check the "
            "declared costs.",
            choice(*AUDITS),
            usual="sample",
            metavar="HOW",
        ),
    ] = "sample"
    fresh: Annotated[
        bool, Option("Do all work again instead of reusing results.", FLAG, decides=False)
    ] = False
    strict_data: Annotated[
        bool, Option("Fail instead of falling back to generated data.", FLAG)
    ] = False
    data_dir: Annotated[
        str,
        Option(
            "Where the files of data sets and datasets.toml lie; may be a URL.",
            TEXT,
            metavar="FOLDER",
            variable="BENCH_DATA",
            decides=False,
        ),
    ] = ""
    store: Annotated[
        str,
        Option(
            "Where results are kept.",
            TEXT,
            metavar="FILE",
            variable="BENCH_STORE",
            decides=False,
        ),
    ] = ""
    plugins: Annotated[
        tuple[str, ...],
        Option(
            "Load a plugin module of the current folder or the environment that is not installed "
            "as a plugin.",
            NAMES,
            flags=("-p", "--plugin"),
            metavar="MODULE",
        ),
    ] = ()

    def __post_init__(self) -> None:
        for name in ("data", "seeds", "folds"):  # named twice is meant once
            if given := getattr(self, name):
                object.__setattr__(self, name, tuple(dict.fromkeys(given)))
        for field in options_of(type(self)).values():
            if fault := field.fault(getattr(self, field.name)):
                raise UsageError(fault)
        if not self.suite and self.profile not in ("", *PROFILES):
            with blaming(option("profile")):
                raise UsageError(unknown("profile", self.profile, PROFILES))

    @classmethod
    def of(cls, kept: Mapping[str, Any], **changes: Any) -> Self:
        """The request that a store kept as JSON, with changes; fields of other versions are left
        out."""
        from bench_core.results.records import with_tuples

        known = {field.name for field in fields(cls)}
        return cls(**with_tuples({k: v for k, v in kept.items() if k in known}) | changes)


def is_dataset(value: Any) -> bool:
    """True for an object that can be used as a data set."""
    from bench_core.contracts import name_of

    return hasattr(value, "prepare") and not isinstance(value, type) and bool(name_of(value))


def modules_of(request: RunRequest) -> tuple[str, ...]:
    """The modules of the objects in a request that another process can import."""
    from bench_core.class_names import importable

    given = [x for x in (*request.learners, *request.data, request.costs) if not isinstance(x, str)]
    return tuple(dict.fromkeys(type(x).__module__ for x in given if importable(type(x))))


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
