"""Option types and the options that several verbs share, spelt once."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial, reduce
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bench_core._io.text import is_url
from bench_core.cli.complete import runs_named
from bench_core.errors import UsageError, blaming, one_line
from bench_core.planning.commands import shell_word
from bench_core.results.budgets import COMMAS, KINDS, Budget, as_caps, parse_budgets

if TYPE_CHECKING:
    from bench_core.plugins import Registry

Command = TypeVar("Command", bound=Callable[..., Any])

STORE = Path("results/bench.db")
_DEBUG = "bench.debug"

_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_BYTES = {"": 1, "b": 1} | {
    prefix + end: base**power
    for power, prefix in enumerate("kmgt", start=1)
    for end, base in (("", 1024), ("ib", 1024), ("b", 1000))
}


if TYPE_CHECKING:
    Choice = click.Choice[str]
    ParamType = click.ParamType[float]
else:  # older releases cannot be subscripted
    Choice = click.Choice
    ParamType = click.ParamType


class Quantity(ParamType):
    """A number with a unit out of a table, such as ``10m`` or ``4GiB``."""

    def __init__(self, name: str, units: dict[str, int], example: str) -> None:
        self.name = name
        self._units = units
        self._example = example

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number in the table's base unit; a fault names the units."""
        if isinstance(value, int | float):
            return value
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", value)
        unit = self._units.get(match[2].lower()) if match else None
        if match is None or unit is None or float(match[1]) == 0:
            self.fail(f"{value!r} is no {self.name}: write {self._example}", param, ctx)
        return float(match[1]) * unit


DURATION = Quantity("duration", _SECONDS, "for example 90s, 10m or 2h")
MEMORY = Quantity("amount of memory", _BYTES, "for example 500MiB or 4GiB")


class File(click.Path):
    """The path of a file, which need not be there."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As click's, with what to do about a folder."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if path.is_dir():
            self.fail(f"{path} is a folder: name a file in it", param, ctx)
        return path


FILE = File()


class Folder(click.Path):
    """The path of a folder, or the URL of one."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, file_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As click's; a URL stays as it is."""
        url = isinstance(value, str) and is_url(value)
        return value if url else super().convert(value, param, ctx)


def budget_options(required: bool = False) -> Callable[[Command], Command]:
    """``--budget 10,20,40`` and ``--budget-kind``."""
    return together(
        click.option(
            *("-b", "--budget"),
            required=required,
            metavar="COST,...",
            help="Costs per row; 'p95 20' or 'cap 20' is of that kind.",
        ),
        click.option(
            "--budget-kind",
            type=click.Choice(KINDS),
            default=KINDS[0],
            show_default=True,
            help="What a budget bounds: the mean cost, that of 95% of rows, or of every row.",
        ),
    )


def budgets(text: str, kind: str) -> tuple[Budget, ...]:
    """What these options say."""
    with blaming("--budget"):
        return parse_budgets(text, kind)


def one_budget(text: str, kind: str) -> Budget:
    """The budget of these options, where several make no sense."""
    found = budgets(text, kind)
    if len(found) > 1:
        raise UsageError(f"--budget {text}: write one budget here, as {found[0]}")
    return found[0]


def caps_option(help: str) -> Callable[[Command], Command]:
    """``--caps 5,10,20``: what no row may cost."""
    return click.option("--caps", metavar="COST,...", callback=_caps, help=help)


def _caps(_: click.Context, __: click.Parameter, value: str | None) -> tuple[float, ...]:
    with blaming("--caps"):
        return () if value is None else as_caps(parse_budgets(value, "cap"), COMMAS)


def split_names(_: click.Context, __: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    """Lists by comma or by repetition, in order, each name once."""
    names: dict[str, None] = {}
    for value in values:
        found = [name.strip() for name in value.split(",") if name.strip()]
        if not found:
            raise click.BadParameter("an empty list: write a name, or leave the option out")
        names |= dict.fromkeys(found)
    return tuple(names)


def whole_numbers(
    ctx: click.Context, param: click.Parameter, values: Sequence[str]
) -> tuple[int, ...]:
    """Lists of whole numbers >= 0 by comma, repetition or range: ``0,1,2`` or ``0-2``."""
    numbers: list[int] = []
    for name in split_names(ctx, param, values):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", name)
        last = int(match[2] or match[1]) if match else -1
        if match is None or not int(match[1]) <= last < int(match[1]) + 10_000:
            raise click.BadParameter(f"{name!r} is no whole number or range: write 0,1,2 or 0-2")
        numbers.extend(range(int(match[1]), last + 1))
    return tuple(dict.fromkeys(numbers))


def together(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one, in this order."""

    def decorate(command: Command) -> Command:
        return reduce(lambda made, option: option(made), reversed(decorators), command)

    return decorate


names_option = partial(click.option, multiple=True, callback=split_names, metavar="NAMES")
numbers_option = partial(click.option, multiple=True, callback=whole_numbers, metavar="NUMBERS")

plugins_option = names_option(
    "-p",
    "--plugin",
    "plugins",
    metavar="MODULE",
    help="Load a plugin module of the current folder or the environment that is not installed "
    "as a plugin.",
)

store_option = click.option(
    "--store",
    type=FILE,
    envvar="BENCH_STORE",
    default=STORE,
    show_default=True,
    show_envvar=True,
    metavar="FILE",
    help="Where results are kept.",
)


def store_words(store: str | Path) -> str:
    """How a command that is shown names this store: quoted for the shell, nothing where it is the
    usual one."""
    return "" if Path(store) == STORE else f" --store {shell_word(str(store))}"


data_dir_option = click.option(
    "--data-dir",
    type=Folder(),
    envvar="BENCH_DATA",
    show_envvar=True,
    metavar="FOLDER",
    help="Where the files of data sets and datasets.toml lie; may be a URL.",
)

output_option = click.option(
    "-o", "--output", type=FILE, metavar="FILE", help="Write to this file instead of the terminal."
)


def count_option(
    *names: str, least: int = 1, most: int | None = None, metavar: str = "N", help: str
) -> Callable[[Command], Command]:
    """A whole number of at least one; 0 where it is not given."""
    return click.option(
        *names,
        type=click.IntRange(least, most),
        metavar=metavar,
        callback=lambda context, _, value: value or 0,
        help=help,
    )


texts_option = partial(click.option, multiple=True)
"""Texts by repetition; a comma belongs to the text."""

workers_option = count_option("-w", "--workers", help="Jobs at the same time.")

executor_option = partial(
    click.option,
    "--executor",
    metavar="WHERE",
    help="local: processes that can be killed; inline: this one; dask, dask=tcp://HOST:PORT or "
    "dask=MODULE:CLUSTER: the workers of a Dask cluster.",
)

no_progress_option = click.option(
    "--no-progress", is_flag=True, help="Show no progress bars or lines."
)

quiet_option = click.option("-q", "--quiet", is_flag=True, help="Show nothing but the result.")

verbose_option = click.option("-v", "--verbose", is_flag=True, help="Show more details.")

# ``entry`` reads it from the command line, so that it works where parsing fails
debug_option = click.option(
    "--debug",
    is_flag=True,
    expose_value=False,
    callback=lambda context, _, value: context.meta.update({_DEBUG: value}),
    help="Show the traceback of an error.",
)


def debugging() -> bool:
    """Whether the running verb was called with ``--debug``."""
    return bool(click.get_current_context().meta.get(_DEBUG))


few_options = together(plugins_option, quiet_option, debug_option)
common_options = together(plugins_option, quiet_option, verbose_option, debug_option)

run_argument = click.argument("run", default="last", metavar="[RUN]", shell_complete=runs_named)

stored_run_options = together(
    run_argument,
    workers_option,
    executor_option(default="local", show_default=True),
    no_progress_option,
    output_option,
    store_option,
    common_options,
)
"""The options of a verb that does the work of a stored run again."""


def registry(plugins: Sequence[str], data_dir: Path | None = None) -> Registry:
    """All installed plugins, those of ``-p``, which may lie in the current folder, and the
    user's own data sets."""
    from bench_core.datasets.data_folder import data_folder
    from bench_core.datasets.user_datasets import add_own_data
    from bench_core.plugins import load_registry

    find_plugins_here(plugins)
    found = load_registry(plugins)
    add_own_data(found, data_folder(data_dir))
    return found


def find_plugins_here(plugins: Sequence[str]) -> None:
    """Make modules of the current folder importable, if ``-p`` named any, without hiding installed
    ones."""
    here = str(Path.cwd())
    if not plugins:
        return
    if here not in sys.path:
        sys.path.append(here)
    for module in plugins:
        top = module.partition(".")[0]
        own = next((name for name in (top, f"{top}.py") if Path(here, name).exists()), "")
        if own and not _lies_in(top, here):
            note(f"-p {module}: an installed module has that name, so ./{own} is not taken")


def _lies_in(top: str, folder: str) -> bool:
    """Whether a package or module would be imported from a folder."""
    try:
        spec = find_spec(top)
    except ValueError:  # made by a program, without a file
        return False
    places = [*(spec.submodule_search_locations or [spec.origin or ""])] if spec else []
    return any(Path(place).resolve().parent == Path(folder) for place in places)


def note(message: str, quiet: bool = False) -> None:
    """A line on stderr, above a progress bar if there is one; stdout holds the result alone."""
    if sys.stderr is not None and not quiet:  # closed: print would take stdout
        print(one_line(message), file=sys.stderr, flush=True)
