"""Request of a run: each option of ``bench run`` and of ``bench_core.run``, declared once.

    retries: int = declared(0, "How often a failed job is tried again.", whole_number(0, 100))

Such a field defines the command's option with its completion (``cli/options.py``) and the argument
of ``bench_core.run`` with its documentation (``api/arguments.py``). It also defines the check of
values and the command that repeats a run (``invocation.py``).
"""

import dataclasses
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from bench_core.errors import UsageError, one_line, option
from bench_core.results.budgets import as_caps

if TYPE_CHECKING:
    from bench_core.costs.cost_file import CostFile
    from bench_core.costs.model import CostModel


@dataclass(frozen=True, slots=True)
class Form:
    """Type of an option's values."""

    wanted: str  # name in messages
    metavar: str  # placeholder in help
    read: Callable[[str], Any] = str  # converts a text of the command; ValueError if invalid
    fits: Callable[[Any], bool] = lambda value: isinstance(value, str) and value != ""
    many: bool = False  # the value is a tuple; each text adds to it
    commas: bool = True  # one text may hold several values

    def of_text(self, text: str) -> Any:
        """Convert a text to a value. Raises ValueError if it is invalid."""
        try:
            value = self.read(text)
            usable = bool(value) and all(map(self.fits, value)) if self.many else self.fits(value)
        except ValueError:
            usable = False
        if not usable:
            remedy = "" if text.strip() else "; leave the option out"
            raise ValueError(f"{text!r} is not {self.wanted}{remedy}")
        return value

    def checked(self, value: Any, where: str) -> Any:
        """Convert a value to its stored form; UsageError, with ``where``, if it is invalid."""
        if self.many and not isinstance(value, tuple | list):
            raise UsageError(f"{where}: {short(value)} is not a list")
        for one in value if self.many else [value]:
            if not self.fits(one):
                raise UsageError(f"{where}: {short(one)} is not {self.wanted}")
        return tuple(value) if self.many else value


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


TEXT = Form("text", "NAME", fits=lambda value: isinstance(value, str))
NAMES = Form("a name", "NAMES", _names, many=True)
TEXTS = Form("text", "TEXT", lambda text: (text,), many=True, commas=False)
FLAG = Form("True or False", "", fits=lambda value: value in (True, False))


def choice(*known: str) -> Form:
    """Form of one of these words, or "" for none."""
    return Form(f"one of {', '.join(known)}", "WORD", fits=lambda value: value in ("", *known))


def whole_number(least: int, most: float = math.inf) -> Form:
    """Form of an integer in a range."""
    between = f"from {least} to {most}" if most < math.inf else f">= {least}"
    wanted = f"a whole number {between}"
    return Form(wanted, "N", int, lambda v: isinstance(v, int) and least <= v <= most)


def whole_numbers(most: int) -> Form:
    """Form of integers from 0, with ranges: ``0,1,2`` or ``0-2``."""

    def read(text: str) -> tuple[int, ...]:
        numbers: list[int] = []
        for name in _names(text):
            first, dash, last = name.partition("-")
            if dash and int(last) - int(first) > 10_000:
                raise ValueError("too many")
            numbers += range(int(first), int(last) + 1) if dash else [int(name)]
        return tuple(numbers)

    wanted = f"a whole number from 0 to {most} or several, as 0,1,2 or 0-2"
    return Form(wanted, "NUMBERS", read, whole_number(0, most).fits, many=True)


def quantity(
    wanted: str,
    metavar: str,
    kind: type[int] | type[float],
    units: Mapping[str, float],
    least: float = 0,
) -> Form:
    """Form of a number with a unit from a table, such as ``10m`` or ``4GiB``; 0 means no limit."""

    def read(text: str) -> float:
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", text)
        if match is None or match[2].lower() not in units:
            raise ValueError("no number with a unit")
        return kind(float(match[1]) * units[match[2].lower()])

    def fits(value: Any) -> bool:
        return isinstance(value, int | float) and (value == 0 or least <= value < math.inf)

    return Form(wanted, metavar, read, fits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A field of a request as users see it."""

    name: str = ""  # name of the field and in Python
    default: Any
    help: str  # ``{data}`` is another option, in the interface's spelling
    form: Form
    python: str = ""  # additional help for Python
    short: str = ""  # the short flag of the command, such as ``-d``
    long: str = ""  # long flag, if not the field's name
    metavar: str = ""  # placeholder, if not the form's
    usual: str = ""  # description of the default, instead of its value
    variable: str = ""  # environment variable
    decides: bool = True  # False: omitted from the command that repeats a run

    @property
    def word(self) -> str:
        """The long flag without dashes, used in messages (``errors.option``)."""
        return self.long or self.name.replace("_", "-")

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags of the command, the long one last."""
        return (*filter(None, [self.short]), f"--{self.word}")

    def check(self, value: Any) -> None:
        """Raise UsageError, which names the option, for an invalid value."""
        # Frames and arrays, accepted from Python, cannot be compared with a text.
        if type(value) is not type(self.default) or value != self.default:
            self.form.checked(value, option(self.name))


_BY_DEFAULT: dict[Any, Form] = {"": TEXT, (): NAMES, False: FLAG}


def declared(default: Any, help: str, form: Form | None = None, **more: Any) -> Any:
    """Declare a field as an option; without a ``form`` the default determines text, names and
    flags. ``more`` are other fields of ``Option``."""
    made = Option(default=default, help=help, form=form or _BY_DEFAULT[default], **more)
    return dataclasses.field(default=default, metadata={"option": made})


def options_of(request: Any) -> dict[str, Option]:
    """Return the options of a class of requests by field name, in order."""
    return {
        f.name: replace(f.metadata["option"], name=f.name)
        for f in dataclasses.fields(request)
        if "option" in f.metadata
    }


def help_of(described: Option, spellings: Mapping[str, str]) -> str:
    """Return the help of an option, which names other options by ``spellings``."""
    return described.help.format_map(spellings)


def short(value: Any) -> str:
    """Shorten a value for a message."""
    return one_line(repr(value), 80)


PROFILES = ("quick", "standard", "paper")
AUDITS = ("sample", "full", "off")
TASKS = ("ranking", "regression", "binary", "multiclass")
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


FILE = replace(TEXT, metavar="FILE")
COLUMN = replace(TEXT, metavar="COLUMN")
MARK = Form("a point or a comma", "MARK", fits=lambda value: value in ("", ".", ","))
NUMBERS = whole_numbers(MOST_SEED)
DURATION = quantity("a duration, such as 90s, 10m or 2h", "TIME", float, _SECONDS)
LEAST_MEMORY = 256 << 20  # libraries fail to load with less, and some hang
MEMORY = quantity(
    "an amount of memory from 256MiB on, such as 500MiB or 4GiB", "SIZE", int, _BYTES, LEAST_MEMORY
)
DATA = replace(NAMES, wanted="a name, file or instance of a data set", fits=_is_dataset)
LEARNERS = replace(NAMES, fits=lambda _: True)  # checked at look-up
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
"""Declare an option on the execution of a run that does not change results."""

_PAIR = "With X the pair (X, y), or (X, y, queries)."


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Options of a run. All are optional; values are checked on creation.

    To add an option, add a field here. The command, Python, their documentation and the command
    that repeats a run use it. ``api/arguments.py`` repeats its type for type checkers.
    """

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
    label: str = declared("", "Column of the label, for CSV and Parquet.", COLUMN)
    query: str = declared("", "Column of the query, for CSV and Parquet.", COLUMN)
    split: str = declared(
        "",
        "Column with the values train, valid and test.",
        COLUMN,
        python="With X also the values, one per row.",
    )
    task: str = declared(
        "", "ranking, regression, binary or multiclass; default: from the labels.", choice(*TASKS)
    )
    positive: str = declared(
        "",
        "Label of the positive class; default: the second label in sorted order.",
        metavar="LABEL",
    )
    drop: tuple[str, ...] = declared((), "Columns of the file to ignore.", TEXTS, metavar="COLUMNS")
    keep_column: tuple[str, ...] = declared(
        (),
        "Columns to keep although they only number the rows (1, 2, 3, ...).",
        TEXTS,
        metavar="COLUMNS",
    )
    decimal: str = declared(
        "",
        "Decimal mark in CSV files: a point (the default) or a comma, as in 1.234,50.",
        MARK,
    )
    encoding: str = declared(
        "",
        "Encoding of CSV files and price lists that are not UTF-8, such as cp1252.",
        metavar="NAME",
    )
    dates: bool = declared(
        False, "Read date columns (2024-02-01, 1.2.2024) as days since 1970-01-01."
    )
    groups: tuple[str, ...] = declared(
        (),
        "Columns that one measurement yields, and its cost: a,b,c:5 or 'hist_*:5'.",
        TEXTS,
        long="group",
        metavar="COLUMNS:COST",
    )
    cv: int = declared(
        0,
        "K-fold cross-validation of one file; queries are not split.",
        whole_number(3, 100),
        metavar="K",
    )
    share: tuple[float, ...] = declared(
        (), "Fractions of one file for validation and test; default: 0.2,0.2.", SHARES
    )
    unit: str = declared("", "Unit of the costs of a file, such as ms.", metavar="WORD")
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
    caps: tuple[float, ...] = declared(
        (),
        "Maximum costs per row, enforced for every row: learners are also measured under each.",
        CAPS,
    )
    index_base: int = declared(
        1, "Number of the first feature in SVMlight files.", whole_number(0, 1), usual="1"
    )
    unwritten: str = declared(
        "",
        "Value of cells omitted in an SVMlight file or a sparse matrix: zero (the default) or "
        "missing, as in XGBoost.",
        choice("zero", "missing"),
    )
    learners: tuple[Any, ...] = declared(
        (),
        "Learners by name, or 'all': 'bench list learners'. Default: the suite's, or six for a "
        "first board. A suite may exclude a learner on a data set; it runs if you name both.",
        LEARNERS,
        python="Or instances, or a mapping of names to parameters, in which lists are grids.",
        short="-l",
    )
    reference: str = declared(
        "",
        "Learner that savings are measured against; it joins every board. Default: the suite's, "
        "else an imported model, else gbrt, if it is run.",
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
        for described in options_of(type(self)).values():
            described.check(getattr(self, described.name))
        for name in ("data", "seeds", "folds"):  # drop duplicates
            if given := getattr(self, name):
                object.__setattr__(self, name, tuple(dict.fromkeys(given)))

    @classmethod
    def of(cls, kept: Mapping[str, Any], **changes: Any) -> Self:
        """Create a request from stored JSON, with changes; ignore fields of other versions."""
        known: dict[str, Any] = {k: v for k, v in kept.items() if k in options_of(cls)}
        known = {k: tuple(v) if isinstance(v, list) else v for k, v in known.items()}
        return cls(**known | changes)


def cores_for(request: RunRequest, jobs: int) -> tuple[int, int]:
    """Return workers and threads per worker: all cores, but at most one worker per job."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    cores = len(allowed) or os.cpu_count() or 1
    if request.executor == "inline":
        return 1, request.threads or cores
    workers = request.workers or max(1, min(cores // (request.threads or 1), jobs))
    return workers, request.threads or max(1, cores // workers)
