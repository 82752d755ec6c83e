"""From a command line to an exit status: 0 all well; 1 some trials failed, or an audit did; 2
unusable input; 3 an error inside bench or a plugin; 130 interrupted; 141 nobody reads stdout."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from bench_core.errors import BenchError, one_line

ALL_WELL, UNUSABLE_INPUT, INTERNAL_ERROR, INTERRUPTED, BROKEN_PIPE = 0, 2, 3, 130, 141


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Entry point of the ``bench`` command; ``argv`` leaves out the program's name."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that cannot show "±" shows "?"
            stream.reconfigure(errors="replace")
    sys.exit(_status(arguments))


def _status(arguments: list[str]) -> int:
    import click

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
        from bench_core.execution.failures import fault_of

        kind = type(error).__name__
        fault = fault_of(error) or f"internal error ({kind}: {error}). Please report it"
        _complain(f"{fault}; rerun with --debug for the traceback")
        return INTERNAL_ERROR


def _invoke(arguments: list[str]) -> int:
    """Run the verb; its return value is the exit status."""
    import click

    from bench_core.cli.app import bench

    completion = os.environ.get("_BENCH_COMPLETE")
    if completion:
        from click.shell_completion import shell_complete

        return shell_complete(bench, {}, "bench", "_BENCH_COMPLETE", completion)
    try:
        with bench.make_context("bench", arguments or ["--help"]) as context:
            result = bench.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    return result if isinstance(result, int) else ALL_WELL


def _usage_line(error: Exception) -> str:
    """An error found by click, with the verb and a hint."""
    import click

    message = error.format_message() if isinstance(error, click.ClickException) else str(error)
    for jargon, plain in (("float range", "number"), ("integer range", "whole number")):
        message = message.replace(f"a valid {jargon}", f"a {plain}")
    context = getattr(error, "ctx", None)
    if context is None:
        return message
    hint = f"see '{context.command_path} --help'"
    if isinstance(error, click.NoSuchOption) and context.parent is None:
        hint = f"options come after the verb, as in 'bench run {error.option_name}'; {hint}"
    elif "unexpected extra argument" in message and context.info_name in ("run", "plan"):
        hint = f"data go behind --data, suites behind --suite; {hint}"
    return f"{context.command_path}: {message.rstrip('.')} ({hint})"


def _system_line(error: OSError) -> str:
    where = f" {error.filename}" if error.filename else ""
    reason = error.strerror or str(error) or type(error).__name__
    return f"cannot use{where}: {reason}; choose another place or check permissions"


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
