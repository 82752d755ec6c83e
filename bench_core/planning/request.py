"""The request of a run: every option of ``bench run`` and of ``bench_core.run``, declared once."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from bench_core.planning.option import (
    NAMES,
    TEXT,
    TEXTS,
    Form,
    choice,
    declared,
    options_of,
    quantity,
    whole,
    whole_numbers,
)
from bench_core.results.budgets import as_caps

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
DAY = 86_400.0
"""Seconds that a job may take unless the request says otherwise."""

_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_BYTES = {"": 1, "b": 1} | {
    prefix + end: base**power
    for power, prefix in enumerate("kmgt", start=1)
    for end, base in (("", 1024), ("ib", 1024), ("b", 1000))
}


def _is_dataset(value: Any) -> bool:
    from bench_core.contracts import name_of

    instance = hasattr(value, "prepare") and not isinstance(value, type) and bool(name_of(value))
    return instance or (isinstance(value, str) and value != "")


def _is_costs(value: Any) -> bool:
    from bench_core.costs.cost_file import CostFile
    from bench_core.costs.model import CostModel

    return isinstance(value, str | CostFile | CostModel)


def _is_executor(value: Any) -> bool:
    kind, equals, where = str(value).partition("=")
    module, _, name = where.partition(":")
    cluster = "://" in where or all(part.isidentifier() for part in (*module.split("."), name))
    return kind in ("", *EXECUTORS) and (not equals or (kind == "dask" and cluster))


FILE = replace(TEXT, metavar="FILE")
COLUMN = replace(TEXT, metavar="COLUMN")
NUMBERS = whole_numbers(MOST_SEED)
DURATION = quantity("a duration, such as 90s, 10m or 2h", "TIME", float, _SECONDS)
MEMORY = quantity("an amount of memory, such as 500MiB or 4GiB", "SIZE", int, _BYTES)
DATA = replace(NAMES, wanted="a name, file or instance of a data set", fits=_is_dataset)
LEARNERS = replace(NAMES, fits=lambda _: True)  # checked where they are looked up
COSTS = Form("a file, a mapping of costs or a cost model", "FILE", fits=_is_costs)
CAPS = Form(
    "a cost > 0",
    "COST,...",
    as_caps,
    lambda value: isinstance(value, int | float) and value > 0,
    many=True,
)
SHARES = Form(
    "a comma-separated list of fractions, as 0.2,0.2",
    "VALID,TEST",
    lambda text: tuple(map(float, text.split(","))),
    lambda value: isinstance(value, int | float) and 0 < value < 1,
    many=True,
)
EXECUTOR = Form(
    "local, inline, dask, dask=tcp://HOST:PORT or dask=MODULE:CLUSTER", "WHERE", fits=_is_executor
)

carried_out_by = partial(declared, decides=False)
"""Declares an option that says how a run is done, and changes no result."""

_PAIR = "With X the pair (X, y), or (X, y, queries)."


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The options of a run. All are optional; a request that is made has been checked.

    An option is added here, in one field, and used where it matters: the command, Python, their
    documentation and the command that repeats a run read these declarations. Only type checkers
    cannot: ``api/arguments.py`` has its type.
    """

    suite: str = declared(
        "", "The suite to run: 'bench list suites'.", short="-s", complete="suite_files"
    )
    data: tuple[Any, ...] = declared(
        (),
        "Data sets by name, or files (SVMlight, CSV, Parquet; write ./letters for a file that has "
        "a data set's name). With {suite}, those of its data sets to use.",
        DATA,
        python="Or instances of data sets.",
        short="-d",
        complete="data",
    )
    valid: str = declared("", "Validation file; without one a part of {data}.", FILE, python=_PAIR)
    test: str = declared("", "Test file; without one a part of {data}.", FILE, python=_PAIR)
    label: str = declared("", "Column of the label, for CSV and Parquet.", COLUMN)
    query: str = declared("", "Column of the query, for CSV and Parquet.", COLUMN)
    split: str = declared(
        "",
        "Column with the values train, valid and test.",
        COLUMN,
        python="With X also these values, one for each row.",
    )
    task: str = declared(
        "", "ranking, regression, binary or multiclass; else the labels decide.", choice(*TASKS)
    )
    positive: str = declared(
        "",
        "The positive one of two classes, by its label; else the second in sorted order.",
        metavar="LABEL",
    )
    drop: tuple[str, ...] = declared(
        (), "Columns of the file to leave out.", TEXTS, metavar="COLUMNS"
    )
    keep: tuple[str, ...] = declared(
        (),
        "Columns to keep although they number the rows; such columns are left out.",
        TEXTS,
        metavar="COLUMNS",
    )
    groups: tuple[str, ...] = declared(
        (),
        "Columns that one sensor measures, and its cost: a,b,c:5 or 'hist_*:5'.",
        TEXTS,
        long="group",
        metavar="COLUMNS:COST",
    )
    cv: int = declared(
        0, "K-fold cross-validation of one file, queries kept whole.", whole(3, 100), metavar="K"
    )
    share: tuple[float, ...] = declared(
        (), "Parts of one file for validation and test; default: 0.2,0.2.", SHARES
    )
    unit: str = declared("", "What the costs of a file count, such as ms.", metavar="WORD")
    metrics: tuple[str, ...] = declared(
        (),
        "Metrics, the primary one first: 'bench list metrics'.",
        short="-m",
        long="metric",
        complete="metrics",
    )
    costs: "str | CostFile | CostModel" = declared(
        "",
        "Feature costs as CSV, JSON, TOML, 'name:cost' lines or one value a line; default: the "
        "data set's own, for files 1 each.",
        COSTS,
        python="Also a mapping or series of costs by feature, one cost for each feature in order, "
        "a cost model, or the content of a cost file.",
    )
    caps: tuple[float, ...] = declared(
        (),
        "Costs that no row may exceed, enforced row by row: learners are also measured under each.",
        CAPS,
    )
    index_base: int = declared(
        1, "Number of the first feature in SVMlight files.", whole(0, 1), usual="1"
    )
    unwritten: str = declared(
        "",
        "Cells that an SVMlight file or a sparse matrix does not write: zero (the default) or "
        "missing, as XGBoost reads them.",
        choice("zero", "missing"),
    )
    learners: tuple[Any, ...] = declared(
        (),
        "Learners by name, or 'all': 'bench list learners'. Default: the suite's; without a suite "
        "five for a first board. To run a learner that a suite leaves out on a data set, name it "
        "and the data set in {data}.",
        LEARNERS,
        python="Or instances, or a mapping of names to parameters, in which lists are grids.",
        short="-l",
        complete="learners",
    )
    reference: str = declared(
        "",
        "The learner that savings are measured against, put on every board. Default: the suite's; "
        "without a suite an imported model or gbrt, if it takes part, else none.",
        complete="learners",
    )
    profile: str = declared("", "quick (the default), standard or paper.", complete="profiles")
    settings: tuple[str, ...] = declared(
        (),
        "A learner's parameter as a TOML value; a list is a grid (miser.trees=[100,300]).",
        TEXTS,
        python="Or a mapping of such names to values.",
        long="set",
        metavar="LEARNER.FIELD=VALUE",
        complete="settings",
    )
    configs: int = declared(
        0,
        "Try N settings of each learner instead of grids: its default and N-1 from the ranges "
        "that it declares. Validation chooses.",
        whole(1, MOST_CONFIGS),
    )
    seeds: tuple[int, ...] | None = declared(None, "Seeds, as 0,1,2 or 0-2.", NUMBERS)
    folds: tuple[int, ...] | None = declared(
        None, "Folds of the data sets, as 0,1,2 or 0-2.", NUMBERS
    )
    workers: int = carried_out_by(0, "Jobs at the same time.", whole(1), short="-w")
    threads: int = carried_out_by(0, "Threads of each job.", whole(1), short="-t")
    executor: str = carried_out_by(
        "",
        "local: processes that can be killed; inline: this one; dask, dask=tcp://HOST:PORT or "
        "dask=MODULE:CLUSTER: the workers of a Dask cluster.",
        EXECUTOR,
        usual="the suite's, else local",
    )
    timeout: float = carried_out_by(
        DAY,
        "Limit of each job, start of its process left out: 90s, 10m, 2h; seconds without a unit. "
        "Default: 24h.",
        DURATION,
    )
    memory: int = carried_out_by(
        0,
        "Memory limit per job, child processes included: 500MiB, 4GiB. Default: 80% of the "
        "machine's memory, shared by the workers.",
        MEMORY,
    )
    retries: int = carried_out_by(
        0,
        "Try a job that does not end well up to N times more; 'bench log' has every attempt.",
        whole(0, 100),
    )
    audit: str = declared(
        "sample",
        "Replay a sample of the queries, all of them (full), or none (off), to check the declared "
        "costs.",
        choice(*AUDITS),
        usual="sample",
    )
    fresh: bool = carried_out_by(False, "Do all work again instead of reusing results.")
    strict_data: bool = declared(False, "Fail instead of falling back to generated data.")
    data_dir: str = carried_out_by(
        "",
        "Where the files of data sets and datasets.toml lie; may be a URL.",
        metavar="FOLDER",
        variable="BENCH_DATA",
    )
    store: str = carried_out_by("", "Where results are kept.", FILE, variable="BENCH_STORE")
    plugins: tuple[str, ...] = declared(
        (),
        "Load a plugin module of the current folder or the environment that is not installed as a "
        "plugin.",
        short="-p",
        long="plugin",
        metavar="MODULE",
    )

    def __post_init__(self) -> None:
        for described in options_of(type(self)).values():
            described.check(getattr(self, described.name))
        for name in ("data", "seeds", "folds"):  # named twice is meant once
            if given := getattr(self, name):
                object.__setattr__(self, name, tuple(dict.fromkeys(given)))

    @classmethod
    def of(cls, kept: Mapping[str, Any], **changes: Any) -> Self:
        """The request that a store kept as JSON, with changes; fields of other versions are left
        out."""
        known: dict[str, Any] = {k: v for k, v in kept.items() if k in options_of(cls)}
        known = {k: tuple(v) if isinstance(v, list) else v for k, v in known.items()}
        return cls(**known | changes)


def cores_for(request: RunRequest, jobs: int) -> tuple[int, int]:
    """Workers and threads of each: all cores, but no more workers than there are jobs."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    cores = len(allowed) or os.cpu_count() or 1
    if request.executor == "inline":
        return 1, request.threads or cores
    workers = request.workers or max(1, min(cores // (request.threads or 1), jobs))
    return workers, request.threads or max(1, cores // workers)
