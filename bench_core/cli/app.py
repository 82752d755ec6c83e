"""The ``bench`` command: it finds verbs by name and loads them on use. Exit status: 0 success; 1
some trials or an audit failed; 2 unusable input; 3 an error inside bench or a plugin; 130
interrupted; 141 stdout closed."""

from __future__ import annotations

import codecs
import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from bench_core import __version__
from bench_core.errors import BenchError, UsageError, lacks_memory, one_line, spelt, unknown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from bench_core.plugins import PluginInfo

Command = TypeVar("Command", bound=click.Command)

ALL_WELL, UNUSABLE_INPUT, INTERNAL_ERROR, INTERRUPTED, BROKEN_PIPE = 0, 2, 3, 130, 141

_NO_COMMAND: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())  # since click 8.2

# Order of the help. Verbs of other plugins follow; absent verbs are skipped.
SECTIONS = {
    "Measure": ("run", "plan", "work", "merge", "audit", "rerun", "reprice"),
    "Read the results": (
        *("report", "best", "compare", "features", "export", "bundle", "log", "claims"),
        "publish",
    ),
    "Look up": ("list", "show"),
    "Build a plugin": ("new", "check"),
    "Take a model home": ("model",),
    "Get data and costs": ("init", "data", "cost"),
    "Tidy up": ("remove",),
}

# The module of each verb, which defines ``VERB_command``.
BUILT_IN = {
    **dict.fromkeys(("plan", "work", "merge"), "jobs"),
    **dict.fromkeys(("run", "report", "audit", "rerun", "reprice"), "run"),
    **dict.fromkeys(("export", "bundle", "log", "remove"), "store"),
    **dict.fromkeys(("list", "show"), "catalog"),
    **dict.fromkeys(("new", "check"), "authoring"),
    **{verb: verb for verb in ("data", "init", "model")},
}


def with_examples(command: Command) -> Command:
    """Move the "Examples:" of a docstring below the options, without wrapping their lines."""
    text, found, more = cleandoc(command.help or "").partition("\n\nExamples:\n")
    if found:
        # click keeps the lines of a paragraph that begins with \b
        command.help, command.epilog = text, f"\b\nExamples:\n{more}"
    return command


@cache
def plugin_commands() -> dict[str, EntryPoint]:
    """Return the verbs of plugins from installed metadata, without loading a module."""
    from bench_core.plugins import COMMANDS, installed

    # our plugins come first, then others by name
    points = {p.name: p for p in reversed(installed(COMMANDS))}  # the first of a name wins
    return {name: points[name] for name in sorted(points) if name not in BUILT_IN}


def load_command(point: EntryPoint) -> click.Command:
    """Load the command of a plugin. Raises UsageError, naming the plugin, if it fails."""
    from bench_core.plugins import FAULTS, about
    from bench_core.plugins import one_line as fault_line

    try:
        command = point.load()
        if not isinstance(command, click.Command):
            raise TypeError(f"{point.value} is not a click command")
    except FAULTS as error:
        raise UsageError(
            f"verb {point.name!r} of {about(point).origin} does not load: {fault_line(error)}"
        ) from error
    return command


def invalid_commands() -> Iterator[PluginInfo]:
    """Yield the plugins' verbs that cannot be used, each with the reason."""
    from bench_core.plugins import COMMANDS, about, installed

    for point in installed(COMMANDS):
        used = plugin_commands().get(point.name)
        try:
            if used is None or used != point:
                owner = about(used).origin if used else "bench itself"
                raise UsageError(f"verb {point.name!r} belongs to {owner}: uninstall or rename one")
            load_command(point)
        except UsageError as fault:
            yield replace(about(point), error=str(fault))


class Verbs(click.Group):
    """Group that imports a verb's module on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all verbs in the order of the help."""
        return [verb for _, verbs in _sections() for verb in verbs]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return ``VERB_command`` of the verb's module, or a plugin's command."""
        if cmd_name in BUILT_IN:
            module = import_module(f"bench_core.cli.{BUILT_IN[cmd_name]}")
            command: click.Command = getattr(module, f"{cmd_name}_command")
            return with_examples(command)
        if cmd_name not in plugin_commands():
            return None
        try:
            return with_examples(load_command(plugin_commands()[cmd_name]))
        except UsageError as fault:
            return click.Command(  # accepts any arguments and reports why the verb does not load
                cmd_name,
                callback=partial(_fail, fault),
                short_help="does not load: see 'bench list plugins'",
                add_help_option=False,
                context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
            )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve as click does, but suggest similar names for an unknown verb."""
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise click.UsageError(unknown("verb", args[0], self.list_commands(ctx)), ctx)
        verb, command, rest = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing:  # not to complete a word
            check_once(command, verb, rest, ctx)
        return verb, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs under their headings."""
        for title, verbs in _sections():
            commands = ((verb, self.get_command(ctx, verb)) for verb in verbs)
            with formatter.section(title):
                formatter.write_dl([(v, c.get_short_help_str(200)) for v, c in commands if c])


def check_once(
    command: click.Command, name: str | None, args: Sequence[str], parent: click.Context
) -> None:
    """Raise click's UsageError if ``args`` give an option two values, of which click would take the
    last. Options that may be repeated, flags and equal values pass."""
    every = copy(command)
    every.params = [copy(param) for param in command.params]
    single = [p for p in every.params if isinstance(p, click.Option) and not (p.is_flag or p.count)]
    single = [option for option in single if not option.multiple]
    for option in single:
        option.multiple = True  # the parser keeps all values
    context = command.context_class(command, parent, name, **command.context_settings)
    values, rest, _ = every.make_parser(context).parse_args([*args])
    for option in single:
        if len(given := {*map(str, values.get(str(option.name), ()))}) > 1:
            twice = f"{option.opts[-1]} is given {len(given)} values, but takes one"
            raise click.UsageError(f"{twice}: keep one of them", context)
    if isinstance(command, click.Group) and rest:
        verb, inner, rest = command.resolve_command(context, rest)
        if inner is not None:
            check_once(inner, verb, rest, context)


def _fail(fault: UsageError) -> NoReturn:
    raise fault


def _sections() -> Iterator[tuple[str, list[str]]]:
    others = list(plugin_commands())
    for title, verbs in SECTIONS.items():
        yield title, [verb for verb in verbs if verb in BUILT_IN or verb in others]
    known = [verb for verbs in SECTIONS.values() for verb in verbs]
    if new := [verb for verb in others if verb not in known]:
        yield "Other plugins", new


@with_examples
@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="bench %(version)s")
def bench() -> None:
    """Compare learners under test-time budgets: quality against cost.

    Examples:
      bench run
      bench run --suite yahoo --learners miser,cronus,cegb
      bench run --data train.svm --test test.svm --costs mine.csv --learners all
      bench best --keep 99%
      bench report -o board.html

    Separate list items by commas, or repeat the option (-l miser,cegb or -l miser -l cegb). RUN is
    'last', a run's number or the start of its name. Results are kept in results/bench.db (--store,
    BENCH_STORE); finished trials are not repeated.

    Shell completion: eval "$(_BENCH_COMPLETE=bash_source bench)"  (or zsh_source, fish_source)

    Exit status: 0 success, 1 some trials or an audit failed, 2 unusable input, 3 an error inside
    bench or a plugin, 130 interrupted.
    """


SIGNS = "bench-signs"
_PLAIN = {"±": "+/-", "─": "-", "━": "-", "…": "...", "≤": "<=", "×": "x", "–": "-"}


def _plain_signs(error: UnicodeError) -> tuple[str, int]:
    """Replace characters that a stream cannot encode."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return "".join(_PLAIN.get(sign, "?") for sign in wrong), error.end


codecs.register_error(SIGNS, _plain_signs)


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the ``bench`` command. ``argv`` excludes the program's name."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        # closed by a daemon, absent under pythonw. In this order each gets its own number, which
        # the next file that is opened would have otherwise
        if getattr(getattr(sys, name), "closed", getattr(sys, name) is None):
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=SIGNS)
    sys.exit(_status(arguments))


def _status(arguments: list[str]) -> int:
    """Run the verb and return the exit status. An error is one line on stderr."""
    try:
        with spelt(_as_flag):
            status = _invoke(arguments)
        sys.stdout.flush()  # a closed pipe shows here, not after the end
        return status
    except KeyboardInterrupt:
        status = INTERRUPTED
        line = "interrupted: finished work is kept; repeat the command to continue"
    except BrokenPipeError:  # as in bench list learners | head -1: end quietly
        with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - the interpreter flushes it again
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        return BROKEN_PIPE
    except Exception as error:
        if "--debug" in arguments:
            raise
        status, line = _explained(error)
    from bench_core.terminal.tables import complain

    with contextlib.suppress(OSError):  # nobody reads stderr: the exit status remains
        complain(f"error: {line}")
    return status


def _as_flag(name: str, like: str, value: object) -> str:
    from bench_core.cli.options import as_flag

    return as_flag(name, like, value)


def _invoke(arguments: list[str]) -> int:
    """Run the verb and return its exit status."""
    if completion := os.environ.get("_BENCH_COMPLETE"):
        from click.shell_completion import shell_complete

        return shell_complete(bench, {}, "bench", "_BENCH_COMPLETE", completion)
    if not arguments or arguments[0] == "help":
        arguments = [*arguments[1:], "--help"]
    try:
        with bench.make_context("bench", arguments) as context:
            result = bench.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.UsageError as error:
        if not isinstance(error, _NO_COMMAND):
            raise
        click.echo(error.format_message())  # the message is the help, as for `bench data`
        return ALL_WELL
    return result if isinstance(result, int) else ALL_WELL


def _explained(error: Exception) -> tuple[int, str]:
    """Return the exit status of an error, and one line: place, fault and remedy."""
    if isinstance(error, click.ClickException):
        return UNUSABLE_INPUT, _usage_line(error)
    if isinstance(error, BenchError):
        return UNUSABLE_INPUT, str(error)
    if lacks_memory(error):
        fault = f"out of memory ({one_line(str(error), 300)})".replace(" ()", "")
        return UNUSABLE_INPUT, f"{fault}: use fewer rows or columns, or a larger machine"
    if isinstance(error, OSError):
        where = f" {error.filename}" if error.filename else ""
        reason = error.strerror or str(error) or type(error).__name__
        remedy = "choose another place or check permissions"
        return UNUSABLE_INPUT, f"cannot use{where}: {reason}; {remedy}"
    # anything else is a fault of a plugin or of bench
    from bench_core.execution.contract import fault_of

    kind = type(error).__name__
    fault = fault_of(error) or f"internal error ({kind}: {error}). Please report it"
    return INTERNAL_ERROR, f"{fault}; rerun with --debug for the traceback"


def _usage_line(error: click.ClickException) -> str:
    """Return the line of an error found by click, with the verb and a hint."""
    message = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    if context is None:
        return message
    hint = f"see '{context.command_path} --help'"
    if isinstance(error, click.NoSuchOption) and context.parent is None:
        hint = f"options come after the verb, as in 'bench run {error.option_name}'; {hint}"
    elif isinstance(error, click.NoSuchOption) and error.option_name == "--budget":
        message = (
            "no option --budget: budgets apply to a finished run (bench best --budget 10); "
            "--caps measures caps"
        )
    elif "unexpected extra argument" in message and context.info_name in ("run", "plan"):
        hint = f"give data by --data and suites by --suite; {hint}"
    return f"{context.command_path}: {message} ({hint})"
