"""Exceptions as users read them: a status, one line, and a traceback that begins in the plugin."""

import sysconfig
import traceback
from pathlib import Path
from traceback import FrameSummary, walk_tb

from bench_core._io.digests import plugin_packages
from bench_core.errors import BenchError, one_line
from bench_core.results.records import Status

LONGEST_LINE = 500
LONGEST_TEXT = 20_000
"""Characters kept of an error's one line, and of a traceback or of what a job wrote."""

CUT = "-- above: frames of the plugin; below: the whole traceback, with bench_core and libraries --"


def failure(error: BaseException) -> tuple[Status, str, str]:
    """Status, one line and traceback of an exception that a job raised."""
    try:
        return _described(error)
    except Exception:  # a plugin's exception may fail when it is asked for its text
        return Status.FAILED, f"{type(error).__name__}, whose text cannot be had", ""


def _described(error: BaseException) -> tuple[Status, str, str]:
    from bench_core.execution.contract import ContractError

    status = Status.FAILED
    if isinstance(error, MemoryError):
        status, line = Status.OUT_OF_MEMORY, f"out of memory: {error}".rstrip(": ")
    elif isinstance(error, ContractError):
        line = f"breaks the contract: {error}"
    elif isinstance(error, BenchError):  # the message has place, fault and remedy
        line = str(error)
    else:
        frames = traceback.extract_tb(error.__traceback__)
        place = f" ({_place(frames[-1])})" if frames else ""
        line = f"{type(error).__name__}: {error}{place}"
    return status, one_line(line, LONGEST_LINE), trace(error)


def trace(error: BaseException) -> str:
    """The traceback: the frames of the plugin, a line that says where they end, then all frames."""
    frames = [frame for frame, _ in plugin_frames(error)]
    head = [*traceback.format_list(frames), *traceback.format_exception_only(error)]
    whole = traceback.format_exception(error)
    parts = [shortened("".join(part), LONGEST_TEXT // 2) for part in (head, whole)]
    return f"{parts[0]}{CUT}\n{parts[1]}" if frames else parts[1]


def plugin_frames(error: BaseException) -> list[tuple[FrameSummary, str]]:
    """The frames of an exception, or else of its cause, that lie in plugins, the outermost first,
    each with the name of its module."""
    at: BaseException | None = error
    while at is not None:
        modules = [raw.f_globals.get("__name__", "") for raw, _ in walk_tb(at.__traceback__)]
        named = zip(traceback.extract_tb(at.__traceback__), modules, strict=False)
        if frames := [pair for pair in named if _in_plugin(*pair)]:
            return frames
        at = at.__cause__ or at.__context__
    return []


def fault_of(error: BaseException) -> str:
    """``plugin mine failed (TypeError: ..., mine.py:12)``, or an empty string where no plugin took
    part."""
    frames = plugin_frames(error)
    if not frames:
        return ""
    frame, name = frames[-1]
    return f"plugin {name} failed ({type(error).__name__}: {error}, {_place(frame)})"


def shortened(text: str, most: int = LONGEST_TEXT) -> str:
    """At most so many characters: the beginning and the end, with a line for what is left out."""
    if len(text) <= most:
        return text
    half, left_out = most // 2, len(text) - most
    return f"{text[:half]}\n... {left_out} characters left out ...\n{text[-half:]}"


def _in_plugin(frame: FrameSummary, module: str) -> bool:
    """Plugins shipped with bench by their packages, all others by not being installed libraries
    or by being registered."""
    package = module.partition(".")[0]
    if package == "bench_core" or frame.filename.startswith("<"):
        return False
    library = frame.filename.startswith(sysconfig.get_path("stdlib"))
    return not (library or "site-packages" in frame.filename) or package in plugin_packages()


def _place(frame: FrameSummary) -> str:
    return f"{Path(frame.filename).name}:{frame.lineno}"
