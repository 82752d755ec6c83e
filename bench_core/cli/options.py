"""Options of the verbs: options made from a request's fields, and options of the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import reduce, wraps
from itertools import chain
from pathlib import Path
from shlex import quote
from threading import Timer
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from bench_core.cli.outputs import guarded
from bench_core.errors import UsageError
from bench_core.option_fields import FLAG, TEXTS, Form, options_of
from bench_core.planning.request import RunRequest, shell_word
from bench_core.results.budgets import KINDS, limit_of, limits_of
from bench_core.terminal.tables import complain

if TYPE_CHECKING:
    from bench_core.plugins import Registry

    ParamType = click.ParamType[Any]
else:  # older releases cannot be subscripted
    ParamType = click.ParamType

Decorator = Callable[[Any], Any]

STORE = Path("results/bench.db")
FILE = click.Path(path_type=Path)  # need not exist


class Written(ParamType):
    """Parameter type that parses text by a form of ``option_fields``."""

    name = "text"

    def __init__(self, form: Form) -> None:
        self._form = form

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse a text; return a default unchanged."""
        source = ctx.get_parameter_source(str(param.name)) if ctx and param else None
        if value == "" and source is ParameterSource.COMMANDLINE:  # a default may be ""
            self.fail("'' is not a value; leave the option out", param, ctx)
        try:
            return self._form.of_text(value) if isinstance(value, str) else value
        except (ValueError, UsageError) as error:
            self.fail(str(error), param, ctx)


def together(*decorators: Decorator) -> Decorator:
    """Combine several options into one decorator, in this order."""
    return lambda command: reduce(lambda made, option: option(made), reversed(decorators), command)


def request_options(request: type, *left_out: str) -> Decorator:
    """Return all options of a request except ``left_out``."""
    names = [name for name in options_of(request) if name not in left_out]
    return together(*(request_option(name, request) for name in names))


def request_option(name: str, request: type = RunRequest, **changes: Any) -> Decorator:
    """Return the option of one field. ``changes`` override click's arguments for this verb."""
    options = options_of(request)
    option = options[name]
    form = option.form
    flags = {field: other.flags[-1] for field, other in options.items()}
    arguments: dict[str, Any] = {"default": option.default, "help": option.help.format_map(flags)}
    if form is FLAG:
        return click.option(*option.flags, name, is_flag=True, **arguments | changes)
    arguments |= {"type": Written(form), "metavar": option.metavar or form.metavar}
    if form.many:
        del arguments["default"]
        arguments |= {"multiple": True, "callback": _joined(option.default)}
    if option.usual:
        arguments["show_default"] = option.usual == str(option.default) or option.usual
    if option.variable:
        arguments |= {"envvar": option.variable, "show_envvar": True}
    if name == "store":
        arguments |= {"type": FILE, "default": STORE, "show_default": True}
    if changes.get("required"):
        del arguments["default"]  # click would take it
    return click.option(*option.flags, name, **arguments | changes)


def _joined(default: Any) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Return a callback that joins the values of a repeated option, without duplicates."""

    def joined(_: click.Context, option: click.Parameter, given: Iterable[Iterable[Any]]) -> Any:
        # -l miser,cegb -l miser: (("miser", "cegb"), ("miser",)) -> ("miser", "cegb")
        values = tuple(dict.fromkeys(chain.from_iterable(given))) or default
        if option.name == "plugins" and values:
            find_plugins_here()
        return values

    return joined


def as_flag(name: str, like: str, value: object) -> str:
    """Format an option for a message (``errors.option``): ``--task binary``, quoted for a shell."""
    known = options_of(RunRequest)
    flag = known[name].flags[-1] if name in known else f"--{name.replace('_', '-')}"
    flag = "-p" if name == "plugins" else flag  # as usual
    if value is None or value is True or value == "":
        return f"{flag} {like}".rstrip()
    return f"{flag} {quote(','.join(value) if isinstance(value, list) else str(value))}"


def names_option(*names: str, **arguments: Any) -> Decorator:
    """Return an option for a list of names that only one verb has."""
    # names are divided where they are known (``chosen``)
    how: dict[str, Any] = {"type": Written(TEXTS), "metavar": "NAMES", "multiple": True}
    return click.option(*names, callback=_joined(()), **how | arguments)


def budget_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--budget 10,20,40`` and ``--budget-kind``, as texts, to a verb."""
    about = "Costs per row; 'cap 20' names the kind."
    kinds = click.Choice(KINDS)
    words = "Cost that a budget limits: the mean, or the cost of every row."

    def budgets(_: click.Context, __: click.Parameter, given: Iterable[str]) -> str | None:
        return ",".join(given) if given else None

    added: Decorator = together(
        click.option(
            *("-b", "--budget"), multiple=True, callback=budgets, metavar="COST,...", help=about
        ),
        click.option("--budget-kind", type=kinds, default=KINDS[0], show_default=True, help=words),
    )
    made: Callable[..., Any] = added(command)
    return made


def keep_option(help: str) -> Decorator:
    """Return the option ``--keep``, as text."""
    about = f"{help}  [default: the run's, 99% unless named]"
    return click.option("--keep", metavar="SHARE", help=about)


def limit_options(several: bool = True) -> Decorator:
    """Parse the options that choose a point into ``limits``, or one ``limit`` or None: ``--budget``
    with its kind, ``--keep`` or ``--quality``; they exclude each other."""

    def joined(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def called(
            budget: str | None, budget_kind: str, keep: str | None, quality: str | None, **more: Any
        ) -> Any:
            given = budget, budget_kind, keep, quality
            if several:
                return command(limits=limits_of(*given), **more)
            return command(limit=limit_of(*given), **more)

        chosen_by: Decorator = together(
            budget_options,
            keep_option("Least cost that is sure to keep this share of the reference's quality."),
            click.option(
                "--quality",
                metavar="Q",
                help="Least cost that is sure to reach quality Q, such as 0.85.",
            ),
        )
        made: Callable[..., Any] = chosen_by(called)
        return made

    return joined


def _remember(context: click.Context, option: click.Parameter, value: Any) -> None:
    context.meta[f"bench.{option.name}"] = value


def _flag(*names: str, help: str) -> Decorator:
    """Return an option that code reads by ``flag``; the verb does not receive it."""
    return click.option(*names, is_flag=True, expose_value=False, callback=_remember, help=help)


def flag(name: str) -> bool:
    """True if the running verb was called with ``quiet``, ``verbose``, ``no_progress`` or
    ``debug``."""
    return bool(click.get_current_context().meta.get(f"bench.{name}"))


plugins_option = request_option("plugins")
store_option = request_option("store")
data_dir_option = request_option("data_dir")
output_option = together(
    click.option(
        *("-o", "--output"),
        type=FILE,
        metavar="FILE",
        help="Write to this file instead of the terminal.",
    ),
    guarded("output"),
)
no_progress_option = _flag("--no-progress", help="Show no progress bars or lines.")
quiet_option = _flag("-q", "--quiet", help="Show only the result.")
verbose_option = _flag("-v", "--verbose", help="Show more details.")
# ``app`` reads it from the command line, so that it works even if parsing fails
debug_option = _flag("--debug", help="Show the traceback of an error.")

few_options = together(plugins_option, quiet_option, debug_option)
common_options = together(plugins_option, quiet_option, verbose_option, debug_option)


def _one_run(context: click.Context, _: click.Parameter, value: str | None) -> str:
    """Return the run named by place or by ``--run``, which is eager; the last one without both."""
    named = context.meta.get("bench.named_run")
    if None not in (named, value) and named != value:
        raise click.UsageError(f"RUN {value} and --run {named}: keep one of them", context)
    return value or named or "last"


run_argument = together(
    click.argument("run", required=False, metavar="[RUN]", callback=_one_run),
    click.option(
        *("--run", "named_run"),
        metavar="RUN",
        is_eager=True,
        expose_value=False,
        callback=_remember,
        help="The run, if RUN does not name it.  [default: last]",
    ),
)

# options of verbs that repeat the work of a stored run
stored_run_options = together(
    run_argument,
    request_option("workers"),
    request_option("executor", default="local", show_default=True),
    request_option("timeout"),
    request_option("memory"),
    no_progress_option,
    output_option,
    store_option,
    common_options,
)


def store_words(store: str | Path) -> str:
    """Return `` --store STORE`` for a displayed command, quoted for the shell; "" for the default
    store."""
    return "" if Path(store) == STORE else f" --store {shell_word(str(store))}"


def registry(plugins: Iterable[str] = (), data_dir: str = "") -> Registry:
    """Return a registry of installed plugins, modules of ``-p`` and the user's data sets."""
    from bench_core.datasets.user_datasets import open_registry

    return open_registry(plugins, data_dir)


def find_plugins_here() -> None:
    """Make modules of the current folder importable; installed modules take precedence."""
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)


def note(message: str) -> None:
    """Print a line on stderr unless ``--quiet``; stdout holds only the result."""
    if not flag("quiet"):
        complain(message)


@contextmanager
def noted_after(seconds: float, message: str) -> Iterator[None]:
    """Print a ``note`` if the work of the body takes longer than ``seconds``."""
    timer = Timer(seconds, (lambda _: None) if flag("quiet") else complain, [message])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def warn(message: str) -> None:
    """Complain about the current exception; with --debug raise it."""
    if flag("debug"):
        raise
    complain(message)
