"""Exceptions for users: a status, one line, and a traceback that starts in the plugin."""

import sysconfig
import traceback
from pathlib import Path
from traceback import FrameSummary, walk_tb

from bench_core._io.digests import plugin_packages
from bench_core.errors import BenchError, lacks_memory, one_line
from bench_core.results.records import Status

LONGEST_LINE = 500
LONGEST_TEXT = 20_000
"""Maximum characters of an error's line, of a traceback and of a job's output."""

CUT = "-- above: frames of the plugin; below: the whole traceback, with bench_core and libraries --"


def failure(error: BaseException) -> tuple[Status, str, str]:
    """Status, one line and traceback of a job's exception."""
    from bench_core.execution.contract import ContractError

    status, frames = Status.FAILED, traceback.extract_tb(error.__traceback__)
    try:
        line = f"{type(error).__name__}: {error}" + (f" ({_place(frames[-1])})" if frames else "")
        if lacks_memory(error):
            status, line = Status.OUT_OF_MEMORY, f"out of memory: {error}".rstrip(": ")
        elif isinstance(error, ContractError):
            line = f"breaks the contract: {error}"
        elif isinstance(error, BenchError):  # the message has location, cause and remedy
            line = str(error)
        return status, one_line(line, LONGEST_LINE), trace(error)
    except Exception:  # str() of a plugin's exception may fail
        return Status.FAILED, f"{type(error).__name__}, whose message cannot be read", ""


def trace(error: BaseException) -> str:
    """Traceback: the plugin's frames, a separator line, then all frames."""
    frames = [frame for frame, _ in plugin_frames(error)]
    head = [*traceback.format_list(frames), *traceback.format_exception_only(error)]
    whole = traceback.format_exception(error)
    parts = [shortened("".join(part), LONGEST_TEXT // 2) for part in (head, whole)]
    return f"{parts[0]}{CUT}\n{parts[1]}" if frames else parts[1]


def plugin_frames(error: BaseException) -> list[tuple[FrameSummary, str]]:
    """Plugins' frames of an exception or its cause, outermost first, with module names."""
    at: BaseException | None = error
    while at is not None:
        modules = [raw.f_globals.get("__name__", "") for raw, _ in walk_tb(at.__traceback__)]
        named = zip(traceback.extract_tb(at.__traceback__), modules, strict=False)
        if frames := [pair for pair in named if _in_plugin(*pair)]:
            return frames
        at = at.__cause__ or at.__context__
    return []


def fault_of(error: BaseException) -> str:
    """``plugin mine failed (TypeError: ..., mine.py:12)``, or "" if no plugin was involved."""
    frames = plugin_frames(error)
    if not frames:
        return ""
    frame, name = frames[-1]
    return f"plugin {name} failed ({type(error).__name__}: {error}, {_place(frame)})"


def shortened(text: str, most: int = LONGEST_TEXT) -> str:
    """Cut text to ``most`` characters: its beginning and end, with a line for the omitted part."""
    if len(text) <= most:
        return text
    half, left_out = most // 2, len(text) - most
    return f"{text[:half]}\n... {left_out} characters left out ...\n{text[-half:]}"


def _in_plugin(frame: FrameSummary, module: str) -> bool:
    """True for shipped plugins, registered modules and modules outside installed libraries."""
    package = module.partition(".")[0]
    if package == "bench_core" or not Path(frame.filename).is_absolute():  # as in Cython, "<"
        return False
    library = frame.filename.startswith(sysconfig.get_path("stdlib"))
    return not (library or "site-packages" in frame.filename) or package in plugin_packages()


def _place(frame: FrameSummary) -> str:
    return f"{Path(frame.filename).name}:{frame.lineno}"
