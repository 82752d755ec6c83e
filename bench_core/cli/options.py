"""The options of the verbs: those of a request, made from its fields, and those of the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bench_core._io.text import is_url
from bench_core.cli.completion import COMPLETIONS, names_of, runs_named
from bench_core.errors import UsageError, blaming, one_line
from bench_core.planning.invocation import shell_word
from bench_core.planning.option import FLAG, NAMES, Form, Option, help_of, options_of
from bench_core.planning.request import RunRequest
from bench_core.results.budgets import KINDS, Budget, parse_budgets

if TYPE_CHECKING:
    from bench_core.plugins import Registry

Command = TypeVar("Command", bound=Callable[..., Any])

STORE = Path("results/bench.db")
_DEBUG = "bench.debug"

if TYPE_CHECKING:
    Choice = click.Choice[str]
    ParamType = click.ParamType[Any]
else:  # older releases cannot be subscripted
    Choice = click.Choice
    ParamType = click.ParamType


class Written(ParamType):
    """A value as a form of ``planning.option`` reads it."""

    name = "text"

    def __init__(self, form: Form) -> None:
        self._form = form

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value of a text; a default stays as it is."""
        try:
            return self._form.of_text(value) if isinstance(value, str) else value
        except (ValueError, UsageError) as error:
            self.fail(str(error), param, ctx)


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


def together(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one, in this order."""

    def decorate(command: Command) -> Command:
        return reduce(lambda made, option: option(made), reversed(decorators), command)

    return decorate


def _joined(default: Any) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """A callback that joins what repetitions of an option gave, each value once."""

    def joined(_: click.Context, __: click.Parameter, given: Iterable[Iterable[Any]]) -> Any:
        return tuple(dict.fromkeys(chain.from_iterable(given))) or default

    return joined


def request_options(request: type, *left_out: str) -> Callable[[Command], Command]:
    """All options of a request but those left out."""
    names = [name for name in options_of(request) if name not in left_out]
    return together(*(request_option(name, request) for name in names))


def request_option(
    name: str, request: type = RunRequest, **changes: Any
) -> Callable[[Command], Command]:
    """The option of one field; ``changes`` are those of this verb, in click's words."""
    known = options_of(request)
    given = _of_form(known[name]) | _OWN.get(name, {}) | changes
    given = {"help": help_of(known[name], known)} | given
    if given.get("required"):
        given.pop("default", None)  # click would take it
    return click.option(*known[name].flags, name, **given)


def _of_form(option: Option) -> dict[str, Any]:
    """An option of click that reads a field's value."""
    form = option.form
    if form is FLAG:
        return {"is_flag": True, "default": option.default}
    given: dict[str, Any] = {"type": Written(form), "metavar": option.metavar or form.metavar}
    if form.many:
        given |= {"multiple": True, "callback": _joined(option.default)}
    else:
        given |= {"default": option.default}
    if option.complete:
        given["shell_complete"] = COMPLETIONS.get(option.complete, names_of(option.complete))
    if option.usual:
        given["show_default"] = option.usual
    if option.variable:
        given |= {"envvar": option.variable, "show_envvar": True}
    return given


_OWN: dict[str, dict[str, Any]] = {
    "store": {"type": FILE, "default": STORE, "show_default": True},
    "data_dir": {"type": Folder(), "default": None},
}
"""Paths: what they are on the command line alone."""

plugins_option = request_option("plugins")
store_option = request_option("store")
data_dir_option = request_option("data_dir")


def names_option(*names: str, **given: Any) -> Callable[[Command], Command]:
    """A list of names that belongs to one verb alone."""
    how: dict[str, Any] = {
        "type": Written(NAMES),
        "multiple": True,
        "callback": _joined(()),
        "metavar": "NAMES",
    }
    return click.option(*names, **how | given)


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
    """The budgets of these options."""
    with blaming("--budget"):
        return parse_budgets(text, kind)


def one_budget(text: str, kind: str) -> Budget:
    """The budget of these options, where several make no sense."""
    found = budgets(text, kind)
    if len(found) > 1:
        raise UsageError(f"--budget {text}: write one budget here, as {found[0]}")
    return found[0]


def store_words(store: str | Path) -> str:
    """The words that name this store in a command that is shown: quoted for the shell, none where
    it is the usual one."""
    return "" if Path(store) == STORE else f" --store {shell_word(str(store))}"


output_option = click.option(
    "-o", "--output", type=FILE, metavar="FILE", help="Write to this file instead of the terminal."
)
no_progress_option = click.option(
    "--no-progress", is_flag=True, help="Show no progress bars or lines."
)
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Show nothing but the result.")
verbose_option = click.option("-v", "--verbose", is_flag=True, help="Show more details.")

# ``app`` reads it from the command line, so that it works where parsing fails
debug_option = click.option(
    "--debug",
    is_flag=True,
    expose_value=False,
    callback=lambda context, _, value: context.meta.update({_DEBUG: value}),
    help="Show the traceback of an error.",
)


def debugging() -> bool:
    """True where the running verb was called with ``--debug``."""
    return bool(click.get_current_context().meta.get(_DEBUG))


few_options = together(plugins_option, quiet_option, debug_option)
common_options = together(plugins_option, quiet_option, verbose_option, debug_option)

run_argument = click.argument("run", default="last", metavar="[RUN]", shell_complete=runs_named)

stored_run_options = together(
    run_argument,
    request_option("workers"),
    request_option("executor", default="local", show_default=True),
    no_progress_option,
    output_option,
    store_option,
    common_options,
)
"""The options of a verb that does the work of a stored run again."""


def registry(plugins: Sequence[str], data_dir: Path | None = None) -> Registry:
    """All installed plugins, those of ``-p``, which may lie in the current folder, and the
    user's own data sets."""
    from bench_core.datasets.user_datasets import open_registry

    find_plugins_here(plugins)
    return open_registry(plugins, data_dir)


def find_plugins_here(plugins: Sequence[str]) -> None:
    """Make modules of the current folder importable, if ``-p`` named any, without hiding installed
    ones."""
    here = str(Path.cwd())
    if plugins and here not in sys.path:
        sys.path.append(here)


def note(message: str, quiet: bool = False) -> None:
    """A line on stderr, above a progress bar if there is one; stdout holds the result alone."""
    if sys.stderr is not None and not quiet:  # closed: print would take stdout
        print(one_line(message), file=sys.stderr, flush=True)
