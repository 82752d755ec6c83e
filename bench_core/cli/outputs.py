"""Files that a verb writes: they must not replace its input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from bench_core.errors import BenchError, UsageError
from bench_core.terminal.tables import check_output

_INPUTS = ("data", "valid", "test", "costs", "error_costs", "suite", "store", "inputs", "folder")
"""Options that may name files to read."""


def guarded(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Apply ``check_outputs`` before the work of a verb."""

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def called(**arguments: Any) -> Any:
            check_outputs(*names)
            return command(**arguments)

        return called

    return decorated


def check_outputs(*names: str, modules: Iterable[str] = ()) -> None:
    """Raise UsageError if one of these options of the running verb names a file that cannot be
    written, that is read (as an option says, or with a plugin or one of ``modules``), or that
    belongs to a data set."""
    values = click.get_current_context().params
    for output in (values[name] for name in names):
        if output is None or not output.exists():
            check_output(output)
            continue
        read = [*_read(values, modules)]
        inside = {*map(Path.resolve, map(Path, read))} & {*output.resolve().parents}
        check_output(output, [output] if inside else read)
        for fault in _uses(output, values.get("data_dir")):
            raise UsageError(f"cannot write {output}: it {fault}; name another file")


def check_replaced(folder: Path) -> None:
    """Raise UsageError if the running verb reads a file in a folder that it replaces."""
    for file in map(Path, _read(click.get_current_context().params, ())):
        if folder.resolve() in file.resolve().parents:
            fault = f"this command reads {file} there"
            raise UsageError(f"cannot replace {folder}: {fault}; name another folder")


def _read(values: Mapping[str, Any], modules: Iterable[str]) -> Iterator[str | Path]:
    """Yield the files that a verb with these options reads, and folders of such files."""
    from bench_core.datasets.user_files import PRICES

    for value in map(values.get, _INPUTS):
        for file in value if isinstance(value, tuple) else [value] if value else []:
            yield from (file, f"{file}{PRICES}")
    for module in (*values.get("plugins", ()), *modules):
        with suppress(ImportError, ValueError):  # reported by the import
            if spec := find_spec(module.partition(".")[0]):
                yield from filter(None, [spec.origin, *(spec.submodule_search_locations or ())])
    if store := values.get("store"):
        from bench_core.results.store_files import lock_path, states_folder

        yield from (f"{store}-wal", lock_path(store), states_folder(store))
    if (suite := Path(values.get("suite") or "")).suffix == ".toml":
        from bench_core._io.text import parse_toml, read_text

        with suppress(BenchError):  # reported where the suite is read
            yield suite.parent / str(parse_toml(suite, read_text(suite)).get("costs"))


def _uses(output: Path, data_dir: str | None) -> Iterator[str]:
    """Yield what a file is, as the end of "it ...": ``datasets.toml`` of the data folder or of the
    current one, a file that it names, or a data set's file below the data folder."""
    from bench_core.datasets.data_folder import data_folder
    from bench_core.datasets.user_datasets import FILE, open_registry, read_entries

    folder = data_folder(data_dir or None)
    for path in filter(Path.is_file, (folder / FILE, Path.cwd() / FILE)):
        if output.samefile(path):
            yield "describes data sets"
        with suppress(BenchError):  # reported where the data set is used
            for entry in read_entries(path):
                if any(output.samefile(file) for file in entry.files if Path(file).exists()):
                    yield f"is a file of data set {entry.name}"
    if folder.resolve() in output.resolve().parents:
        registry = open_registry((), data_dir)
        path = output.resolve().relative_to(folder.resolve())
        inside = f"/{path.as_posix().removesuffix('.gz')}"
        for name in registry.datasets:
            files = registry.about_dataset(name).files
            if any(inside.endswith(f"/{file.removesuffix('.gz')}") for file in files):
                yield f"is a file of data set {name}"
