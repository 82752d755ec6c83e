"""The Dask cluster that ``--executor`` or a suite names, by its scheduler or by import path."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from bench_core.errors import InputError, UsageError, one_line, option
from bench_core.planning.request import RunRequest


class NoSchedulerError(InputError):
    """There is none to be asked."""


@contextmanager
def client_of(request: RunRequest, workers: int) -> Iterator[Any]:
    """A client of the cluster that the request names, or of one on this machine."""
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        fault = f"{option('executor', 'dask')}: {error}: pip install 'budget-bench[dask]'"
        raise UsageError(fault) from error
    where = request.executor.partition("=")[2]
    if not where:
        how = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(processes=True, **how) as cluster, Client(cluster) as client:
            yield client
        return
    found = where if "://" in where else named(where)
    try:
        client = Client(found, timeout="20s")
    except (OSError, ValueError, ImportError, AttributeError, TypeError) as error:
        raise NoSchedulerError(
            f"{option('executor', f'dask={where}')}: no scheduler there ({error})"
        ) from error
    with client:
        yield client


def _named(where: str) -> str:
    return option("executor", f"dask={where}")


def threads_of(client: Any) -> int:
    """Tasks that the workers of a cluster do at a time, at least one."""
    return max(1, sum(map(int, client.nthreads().values())))


def named(where: str) -> Any:
    """The cluster at an import path ``MODULE:NAME``; a function is called. The module may lie in
    the current folder.

    Raises InputError where it cannot be imported, NoSchedulerError where the function fails.
    """
    module, _, name = where.partition(":")
    try:
        with _current_folder():
            found = getattr(import_module(module), name, None)
    except Exception as error:
        raise InputError(f"{option('executor', f'dask={where}')}: {_why(module, error)}") from error
    if found is None:
        raise InputError(f"{option('executor', f'dask={where}')}: module {module} has no {name}")
    try:
        return found() if callable(found) else found
    except Exception as error:
        why = one_line(f"{type(error).__name__}: {error}", 300)
        raise NoSchedulerError(
            f"{option('executor', f'dask={where}')}: {name}() made no cluster ({why})"
        ) from error


@contextmanager
def _current_folder() -> Iterator[None]:
    """Modules of the current folder can be imported in the body, if they hide no other."""
    folder = str(Path.cwd())
    if folder in sys.path:
        yield
        return
    sys.path.append(folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _why(module: str, error: Exception) -> str:
    """Why a module was not imported: it is not there, or something in it fails."""
    lacking = error.name if isinstance(error, ModuleNotFoundError) else None
    if lacking and f"{module}.".startswith(f"{lacking}."):
        return f"there is no module {lacking}, neither in the current folder nor installed"
    return one_line(f"module {module} cannot be imported ({type(error).__name__}: {error})", 300)
