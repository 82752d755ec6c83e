"""The ``bench`` command itself: its verbs, found by name and loaded on use, and its exit status: 0
all well; 1 some trials failed, or an audit did; 2 unusable input; 3 an error inside bench or a
plugin; 130 interrupted; 141 nobody reads stdout."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import click

from bench_core import __version__
from bench_core.errors import BenchError, UsageError, one_line, unknown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from click.shell_completion import CompletionItem

    from bench_core.plugins import PluginInfo

ALL_WELL, UNUSABLE_INPUT, INTERNAL_ERROR, INTERRUPTED, BROKEN_PIPE = 0, 2, 3, 130, 141

_NO_COMMAND: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())  # since click 8.2

SECTIONS = {
    "Measure": ("run", "plan", "work", "merge", "audit", "rerun", "reprice"),
    "Read the results": (
        *("report", "best", "compare", "features", "export", "log", "claims", "publish"),
    ),
    "Look up": ("list", "show"),
    "Build a plugin": ("new", "check"),
    "Take a model home": ("model",),
    "Get data and costs": ("data", "cost"),
    "Tidy up": ("remove",),
}
"""The order of the help. Verbs of plugins that are not named here follow; those named here that are
not installed are left out."""

BUILT_IN = (
    *("run", "plan", "audit", "rerun", "reprice", "report", "export", "log", "list", "show"),
    *("data", "model", "remove", "work", "merge", "new", "check"),
)

_EPILOG = """\b
Examples:
  bench run --suite quickstart
  bench run --suite yahoo --learners miser,cronus,cegb
  bench run --data train.svm --test test.svm --costs mine.csv --learners all
  bench best --budget 60
  bench report -o board.html

\b
Lists are given by comma or by repetition (-l miser,cegb or -l miser -l cegb). RUN is 'last',
a run's number or the beginning of its name. Results are kept in results/bench.db (--store,
BENCH_STORE), and finished work is not done twice.

\b
Completion, of names too: eval "$(_BENCH_COMPLETE=bash_source bench)"  (or zsh_source, fish_source)
Exit status: 0 all well, 1 some trials or an audit failed, 2 unusable input, 3 an error inside bench
or a plugin, 130 interrupted.
"""


@cache
def plugin_commands() -> dict[str, EntryPoint]:
    """The verbs of plugins, from installed metadata: no module is loaded."""
    from bench_core.plugins import COMMANDS, installed

    points = {p.name: p for p in reversed(installed(COMMANDS))}  # the first of a name wins
    return {name: points[name] for name in sorted(points) if name not in BUILT_IN}


def invalid_commands() -> list[PluginInfo]:
    """The verbs of plugins that cannot be used, each with the reason."""
    from bench_core.plugins import COMMANDS, about, installed

    invalid = []
    for point in installed(COMMANDS):
        used = plugin_commands().get(point.name)
        if used is None or used != point:
            owner = about(used).origin if used else "bench itself"
            error = f"verb {point.name!r} is that of {owner}: uninstall or rename one"
            invalid.append(replace(about(point), error=error))
            continue
        try:
            load_command(point)
        except UsageError as fault:
            invalid.append(replace(about(point), error=str(fault)))
    return invalid


class Verbs(click.Group):
    """Loads the module of a verb only when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, in the order of the help."""
        return [verb for _, verbs in _sections() for verb in verbs]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb of that name: ``command`` in the module of that name, or a plugin's."""
        if cmd_name in BUILT_IN:
            command = import_module(f"bench_core.cli.{cmd_name}").command
        elif cmd_name in (points := plugin_commands()):
            command = load_command(points[cmd_name])
        else:
            return None
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, with the nearest names for an unknown verb."""
        name = args[0]
        if name == "help":
            args = [*args[1:], "--help"]
            if not args[:-1]:
                click.echo(ctx.get_help())
                ctx.exit()
            name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            raise click.UsageError(unknown("verb", name, self.list_commands(ctx)), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs under their headings."""
        for title, verbs in _sections():
            with formatter.section(title):
                formatter.write_dl([(verb, self._help(ctx, verb)) for verb in verbs])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """As click's, also where a verb does not load."""
        from click.shell_completion import CompletionItem

        verbs = [verb for verb in self.list_commands(ctx) if verb.startswith(incomplete)]
        items = [CompletionItem(verb, help=self._help(ctx, verb)) for verb in verbs]
        return items + click.Command.shell_complete(self, ctx, incomplete)

    def _help(self, ctx: click.Context, verb: str) -> str:
        try:
            command = self.get_command(ctx, verb)
        except UsageError:
            return "does not load: see 'bench list plugins'"
        return command.get_short_help_str(limit=200) if command else ""


def load_command(point: EntryPoint) -> click.Command:
    """The command of a plugin. Raises UsageError naming the plugin where there is none."""
    from bench_core.plugins import FAULTS, about, one_line

    try:
        command = point.load()
        if not isinstance(command, click.Command):
            raise TypeError(f"{point.value} is no click command")
    except FAULTS as error:
        raise UsageError(
            f"verb {point.name!r} of {about(point).origin} does not load: {one_line(error)}"
        ) from error
    return command


def _sections() -> Iterable[tuple[str, list[str]]]:
    others = list(plugin_commands())
    for title, verbs in SECTIONS.items():
        yield title, [verb for verb in verbs if verb in BUILT_IN or verb in others]
    known = [verb for verbs in SECTIONS.values() for verb in verbs]
    if new := [verb for verb in others if verb not in known]:
        yield "Of other plugins", new


@click.group(
    cls=Verbs,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="bench %(version)s")
def bench() -> None:
    """Compare methods that learn under a test-time budget: quality against cost."""


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Entry point of the ``bench`` command; ``argv`` leaves out the program's name."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that cannot show "±" shows "?"
            stream.reconfigure(errors="replace")
    sys.exit(_status(arguments))


def _status(arguments: list[str]) -> int:
    debug = "--debug" in arguments
    try:
        status = _invoke(arguments)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        _complain("interrupted: finished work is kept, and the same command does the rest")
        return INTERRUPTED
    except BrokenPipeError:
        return _stop_writing()
    except Exception as error:
        if debug:
            raise
        if isinstance(error, click.ClickException):
            return _complain(_usage_line(error))
        if isinstance(error, BenchError):
            return _complain(str(error))
        if isinstance(error, OSError):
            return _complain(_system_line(error))
        if isinstance(error, MemoryError):
            return _complain(_memory_line(error))
        from bench_core.execution.failures import fault_of

        kind = type(error).__name__
        fault = fault_of(error) or f"internal error ({kind}: {error}). Please report it"
        _complain(f"{fault}; rerun with --debug for the traceback")
        return INTERNAL_ERROR


def _invoke(arguments: list[str]) -> int:
    """Run the verb; its return value is the exit status."""
    completion = os.environ.get("_BENCH_COMPLETE")
    if completion:
        from click.shell_completion import shell_complete

        return shell_complete(bench, {}, "bench", "_BENCH_COMPLETE", completion)
    try:
        with bench.make_context("bench", arguments or ["--help"]) as context:
            result = bench.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.UsageError as error:
        if not isinstance(error, _NO_COMMAND):
            raise
        click.echo(error.format_message())  # its message is the help, as of `bench` alone
        return ALL_WELL
    return result if isinstance(result, int) else ALL_WELL


def _usage_line(error: click.ClickException) -> str:
    """An error found by click, with the verb and a hint."""
    message = error.format_message()
    context = getattr(error, "ctx", None)
    if context is None:
        return message
    hint = f"see '{context.command_path} --help'"
    if isinstance(error, click.NoSuchOption) and context.parent is None:
        hint = f"options come after the verb, as in 'bench run {error.option_name}'; {hint}"
    elif isinstance(error, click.NoSuchOption) and error.option_name == "--budget":
        return (
            f"{context.command_path}: no option --budget: budgets are asked of a finished run "
            f"(bench best --budget 10), --caps has caps measured ({hint})"
        )
    elif "unexpected extra argument" in message and context.info_name in ("run", "plan"):
        hint = f"data go behind --data, suites behind --suite; {hint}"
    return f"{context.command_path}: {message.rstrip('.')} ({hint})"


def _system_line(error: OSError) -> str:
    where = f" {error.filename}" if error.filename else ""
    reason = error.strerror or str(error) or type(error).__name__
    return f"cannot use{where}: {reason}; choose another place or check permissions"


def _memory_line(error: MemoryError) -> str:
    detail = f" ({error})" if str(error) else ""
    return f"out of memory{detail}: give fewer rows or columns, or use a machine that has more free"


def _complain(message: str) -> int:
    """One line on stderr, whatever the message holds."""
    with contextlib.suppress(OSError):  # nobody reads stderr: the exit status remains
        print(f"error: {one_line(message)}", file=sys.stderr, flush=True)
    return UNUSABLE_INPUT


def _stop_writing() -> int:
    """The reader of stdout went away (``bench list learners | head -1``): end quietly."""
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - the interpreter flushes stdout again
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    return BROKEN_PIPE
