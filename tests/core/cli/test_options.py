from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from bench_core import UsageError
from bench_core.cli.app import bench as group
from bench_core.cli.run import run_command
from bench_core.planning.request import DURATION, MEMORY, RunRequest, options_of
from bench_core.plugins import Registry, load_registry

REGISTRY = load_registry()


def asked(monkeypatch: pytest.MonkeyPatch, *words: str) -> RunRequest:
    """The request that ``bench run`` hands to the engine."""
    seen: list[RunRequest] = []

    class StopError(Exception):
        pass

    def catch(request: RunRequest, registry: Registry, notify: Any) -> None:
        seen.append(request)
        raise StopError

    monkeypatch.setattr("bench_core.api.orchestration.carried_out", catch)
    monkeypatch.setattr("bench_core.api.orchestration.registry_of", lambda request: REGISTRY)
    with pytest.raises(StopError), group.make_context("bench", ["run", *words]) as context:
        group.invoke(context)
    return seen[0]


def test_without_options_a_run_is_local_audited_by_sample_and_kept_in_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    got = asked(monkeypatch)
    assert got == RunRequest(store=got.store)  # the command and the Python interface agree
    assert {name: value for name, value in asdict(got).items() if value} == {
        "index_base": 1,
        "timeout": 86400.0,
        "audit": "sample",
        "store": str(Path("results/bench.db")),
    }


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ("-l miser,cegb --learners gbrt -l miser", "learners", ("miser", "cegb", "gbrt")),
        ("--set a.b=[0.1,1] --set a.c=3", "settings", ("a.b=[0.1,1]", "a.c=3")),
        ("--seeds 0-2,7 --seeds 1", "seeds", (0, 1, 2, 7)),
    ],
)
def test_lists_are_given_by_comma_range_or_repetition(
    words: str, field: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert getattr(asked(monkeypatch, *words.split()), field) == value


def test_every_field_of_a_request_has_its_option() -> None:
    assert {option.name for option in run_command.params} >= set(options_of(RunRequest))


def test_environment_variables_stand_for_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_STORE", "other.db")
    monkeypatch.setenv("BENCH_DATA", "data")
    got = asked(monkeypatch)
    assert (got.store, got.data_dir) == ("other.db", "data")


def test_durations_and_amounts_of_memory_have_units() -> None:
    durations = {"90": 90, "90s": 90, "1.5m": 90, "2 h": 7200, "1D": 86400}
    assert {text: DURATION.read(text) for text in durations} == durations
    sizes = {"1024": 1024, "1k": 1024, "1KiB": 1024, "1kB": 1000, "2GB": 2e9, "1.5m": 1.5 * 2**20}
    assert {text: MEMORY.read(text) for text in sizes} == sizes


@pytest.mark.parametrize("text", ["", "x", "-3s", "3 parsecs", "1e400", "nan"])
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="10m"):
        DURATION.of_text(text)


@pytest.mark.parametrize(
    "executor", ["dask=", "dask=host:8786", "dask=my_cluster", "inline=tcp://a"]
)
def test_what_names_no_cluster_is_refused_before_anything_is_imported(executor: str) -> None:
    with pytest.raises(UsageError, match=r"--executor: .* is not local, inline, dask, dask=tcp"):
        RunRequest(executor=executor)
