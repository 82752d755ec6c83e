"""Request of a run: each option of ``bench run`` and of ``bench_core.run``, declared once, and the
command that repeats it."""

import json
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from bench_core.datasets.table_options import TableOptions
from bench_core.option_fields import (
    FILE,
    FLAG,
    NAMES,
    TEXT,
    TEXTS,
    Form,
    Option,
    choice,
    declared,
    listed,
    options_of,
    quantity,
    whole_number,
    whole_numbers,
)
from bench_core.results.budgets import SHARE, as_caps, parsed_share

if TYPE_CHECKING:
    from bench_core.costs.cost_file import CostFile
    from bench_core.costs.model import CostModel


PROFILES = ("quick", "standard", "paper")
AUDITS = ("sample", "full", "off")
EXECUTORS = ("local", "inline", "dask")
MOST_SEED = 2**32 - 1
"""Largest seed accepted by every random number generator."""

MOST_CONFIGS = 1000
DAY = 86_400.0
"""Default time limit of a job in seconds."""

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


NUMBERS = whole_numbers(MOST_SEED)
DURATION = quantity("a duration, such as 90s, 10m or 2h", "TIME", float, _SECONDS)
LEAST_MEMORY = 256 << 20  # libraries fail to load with less, and some hang
MEMORY = quantity(
    "an amount of memory from 256MiB on, such as 500MiB or 4GiB", "SIZE", int, _BYTES, LEAST_MEMORY
)
DATA = replace(
    NAMES,
    wanted="a name, file or instance of a data set",
    read=partial(listed, exists=os.path.exists),
    fits=_is_dataset,
)
LEARNERS = replace(NAMES, fits=lambda _: True)  # checked at look-up
COSTS = Form("a file, a mapping of costs or a cost model", "FILE", fits=_is_costs)
CAPS = Form(
    "a cost > 0",
    "COST,...",
    as_caps,
    lambda value: isinstance(value, int | float) and value > 0,
    many=True,
)
KEPT = Form(
    "a share, such as 95% or 0.95",
    "SHARE",
    parsed_share,
    lambda value: isinstance(value, int | float) and 0 < value <= 1,
)
EXECUTOR = Form(
    "local, inline, dask, dask=tcp://HOST:PORT or dask=MODULE:CLUSTER", "WHERE", fits=_is_executor
)

carried_out_by = partial(declared, decides=False)
"""Declare an option on the execution of a run that does not change results."""

_PAIR = "With X the pair (X, y), or (X, y, queries)."


@dataclass(frozen=True)
class _DataChoice:
    """Options of which data to run on."""

    suite: str = declared("", "The suite to run: 'bench list suites'.", short="-s")
    data: tuple[Any, ...] = declared(
        (),
        "Data sets by name, or files (SVMlight, CSV, Parquet; write ./letters for a file with a "
        "data set's name). With {suite}, the data sets of the suite to use.",
        DATA,
        python="Or instances of data sets.",
        short="-d",
    )
    valid: str = declared("", "Validation file; default: a part of {data}.", FILE, python=_PAIR)
    test: str = declared("", "Test file; default: a part of {data}.", FILE, python=_PAIR)


@dataclass(frozen=True)
class RunRequest(TableOptions, _DataChoice):
    """Options of a run. All are optional; values are checked on creation.

    To add an option, add a field here, or to ``TableOptions`` if it is about reading data. The
    command, Python, their documentation and the command that repeats a run use it.
    """

    metrics: tuple[str, ...] = declared(
        (),
        "Metrics, the primary one first: 'bench list metrics'.",
        python="Or instances (``Metric``).",
        short="-m",
        long="metric",
    )
    costs: "str | CostFile | CostModel" = declared(
        "",
        "Feature costs as CSV, JSON, TOML, 'name:cost' lines or one value per line; default: the "
        "data set's own costs, or 1 per feature for files.",
        COSTS,
        python="Also a mapping, series or data frame of costs by feature, one cost for each "
        "feature in order, a cost model, or the content of a cost file.",
    )
    error_costs: str = declared(
        "",
        "Cost of an error, in the unit of prices: a number, one for each true class (50,500), "
        "column:NAME, or a CSV file of the true class (rows) and the answer (columns). The best "
        "model then has the least total cost.",
        replace(TEXT, metavar="COSTS"),
        python="Also a sequence, a mapping by class, a matrix or a data frame.",
    )
    caps: tuple[float, ...] = declared(
        (),
        "Maximum costs per row, enforced for every row: learners are also measured under each.",
        CAPS,
    )
    learners: tuple[Any, ...] = declared(
        (),
        "Learners by name, or 'all': 'bench list learners'. Default: the suite's, or six for a "
        "first board (on large data without slow ones), and aaco-tree under caps. A suite may "
        "exclude a learner on a data set; it runs if you name both.",
        LEARNERS,
        python="Or instances, or a mapping of names to parameters, in which lists are grids.",
        short="-l",
    )
    reference: str = declared(
        "",
        "Learner that savings are measured against; it joins every board. Default, also where it "
        "does not apply: the suite's, else an imported model, gbrt or best-single, if it is run.",
    )
    keep: float = declared(
        SHARE,
        "Share of the reference's best quality that the answer is sure to keep, such as 95%.",
        KEPT,
        usual=f"{SHARE:.0%}",
    )
    profile: str = declared(
        "", "Amount of work: quick (the default), standard or paper (as in the papers)."
    )
    settings: tuple[str, ...] = declared(
        (),
        "A learner's parameter as a TOML value; a list is a grid (miser.trees=[100,300]).",
        TEXTS,
        python="Or a mapping of such names to values.",
        long="set",
        metavar="LEARNER.FIELD=VALUE",
    )
    configs: int = declared(
        0,
        "Try N settings of each learner instead of its grid: the default and N-1 from its "
        "declared ranges. The best on validation is shown.",
        whole_number(1, MOST_CONFIGS),
    )
    seeds: tuple[int, ...] | None = declared(None, "Seeds, as 0,1,2 or 0-2.", NUMBERS)
    folds: tuple[int, ...] | None = declared(
        None, "Folds of the data sets, as 0,1,2 or 0-2.", NUMBERS
    )
    workers: int = carried_out_by(0, "Number of parallel jobs.", whole_number(1), short="-w")
    threads: int = carried_out_by(0, "Threads per job.", whole_number(1), short="-t")
    executor: str = carried_out_by(
        "",
        "local: worker processes; inline: this process; dask, dask=tcp://HOST:PORT or "
        "dask=MODULE:CLUSTER: workers of a Dask cluster.",
        EXECUTOR,
        usual="the suite's, else local",
    )
    timeout: float = carried_out_by(
        DAY,
        "Time limit per job, excluding the start of its process: 90s, 10m, 2h; seconds without a "
        "unit. Default: 24h.",
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
        "Retry a failed job up to N times; 'bench log' lists every attempt.",
        whole_number(0, 100),
    )
    audit: str = declared(
        "sample",
        "Check costs by repeating predictions of some queries (sample), all (full) or none (off).",
        choice(*AUDITS),
        usual="sample",
    )
    fresh: bool = carried_out_by(False, "Repeat all work instead of reusing results.")
    strict_data: bool = declared(False, "Fail instead of falling back to generated data.")
    data_dir: str = carried_out_by(
        "",
        "Folder of data sets' files and datasets.toml.",
        metavar="FOLDER",
        variable="BENCH_DATA",
    )
    store: str = carried_out_by("", "File of the results store.", FILE, variable="BENCH_STORE")
    plugins: tuple[str, ...] = declared(
        (),
        "Load a module of the current folder or the environment as a plugin, without installation.",
        short="-p",
        long="plugin",
        metavar="MODULE",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("data", "seeds", "folds"):  # drop duplicates
            if values := getattr(self, name):
                object.__setattr__(self, name, tuple(dict.fromkeys(values)))


def cores_for(request: RunRequest, jobs: int) -> tuple[int, int]:
    """Return workers and threads per worker: all cores, but at most one worker per job."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    cores = len(allowed) or os.cpu_count() or 1
    if request.executor == "inline":
        return 1, request.threads or cores
    workers = request.workers or max(1, min(cores // (request.threads or 1), jobs))
    return workers, request.threads or max(1, cores // workers)


FROM_PYTHON = "(from Python)"
"""Suffix of names of data given as objects, and placeholder of such costs."""


def command(request: Mapping[str, Any], kind: type = RunRequest) -> str:
    """Return the command with all options that affect results; "" for data or costs that were
    objects."""
    if given_from_python(request):
        return ""
    kept = {option.name: value for option, value in _given(request, kind) if option.decides}
    return shell_line(words(kept, kind))


def words(request: Mapping[str, Any], kind: type = RunRequest) -> list[str]:
    """Return the words of ``bench run`` for the fields of a request of a kind, in order."""
    command = ["bench", "run"]
    for option, value in _given(request, kind):
        flag = f"--{option.word}"
        if option.form is FLAG:
            command.append(flag)
        elif option.form.many and not option.form.commas:
            command += [word for one in value for word in (flag, str(one))]
        else:
            values = value if option.form.many else [value]
            command += [
                flag,
                ",".join(f"{x:.15g}" if isinstance(x, float) else str(x) for x in values),
            ]
    return command


def _given(request: Mapping[str, Any], kind: type) -> Iterator[tuple[Option, Any]]:
    """Yield the options to write, with values; a single value may represent a list of one."""
    for option in options_of(kind).values():
        value = request.get(option.name, option.default)
        if option.form.many and not isinstance(value, list | tuple | Mapping):
            value = (value,) if value else ()
        default = option.default or ()
        same = list(value) == list(default) if option.form.many else value == option.default
        if not same and value not in (None, False, ""):
            yield option, value


def given_from_python(request: Mapping[str, Any]) -> bool:
    """True if data or costs of a run were objects, which a command cannot name."""
    given = [*request.get("data", ()), request.get("costs") or ""]
    return any(str(value).endswith(FROM_PYTHON) for value in given)


def shell_line(line: Iterable[str]) -> str:
    """Quote words as a line that bash and zsh split into the same words."""
    return " ".join(map(shell_word, line))


def shell_word(word: str) -> str:
    """Quote a word for a shell; characters that could control a terminal are escaped."""
    # the leading quote makes ``repr`` escape the other kind
    return shlex.quote(word) if word.isprintable() else f"$'{repr(chr(34) + word)[2:]}"


def toml_literal(value: Any) -> str:
    """Format a parameter's value for settings and suites; None is the word none."""
    if value is None:
        return '"none"'
    if isinstance(value, Mapping):
        inner = ", ".join(f"{key} = {toml_literal(v)}" for key, v in value.items())
        return f"{{{inner}}}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(toml_literal, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)
