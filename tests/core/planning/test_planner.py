"""What a plan says of metrics, data and the store, and what it says while it is made."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import bench_core
from bench_core import InputError, UsageError
from bench_core.api import plan
from bench_core.planning.planner import make_plan
from bench_core.planning.request import RunRequest
from bench_core.plugins import load_registry
from bench_core.results.store import Store

PLUGINS = ("helpers.toys",)
FEW = ("toy-prefix.tradeoff=[0.5, 1.0]",)


def made(**options: Any) -> Any:
    return plan(plugins=PLUGINS, **options)


def changed(suite: Path, *changes: tuple[str, str]) -> None:
    text = suite.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    suite.write_text(text)


TWO_TASKS = ('["toy-licensed"]', '["toy-rank", "toy-binary"]')
METRICS = '["ndcg@5", "precision@5"]'


def test_a_suites_metrics_judge_what_they_can_in_the_order_of_the_suite(suite: Path) -> None:
    metrics = '["accuracy", "ndcg@3", "mse", "log_loss", "precision@3"]'
    changed(suite, TWO_TASKS, (METRICS, metrics))
    p = made(suite="toys")
    assert {d.name: d.metrics for d in p.datasets} == {
        "toy-rank": ("ndcg@3", "precision@3"),
        "toy-binary": ("accuracy", "log_loss"),
    }
    assert p.metrics == ("accuracy", "ndcg@3", "log_loss", "precision@3")
    assert {f.dataset: f.metric for f in p.fits} == {"toy-rank": "ndcg@3", "toy-binary": "accuracy"}
    assert p.higher_is_better == {
        "accuracy": True, "ndcg@3": True, "log_loss": False, "precision@3": True
    }  # fmt: skip


def test_where_no_metric_of_a_suite_judges_the_data_the_usual_one_does_and_says_so(
    suite: Path,
) -> None:
    changed(suite, TWO_TASKS, (METRICS, '["ndcg@3"]'))
    p = made(suite="toys")
    assert [d.metrics for d in p.datasets] == [("ndcg@3",), ("accuracy",)]
    note = "toy-binary: no metric of the suite judges binary, so accuracy does"
    assert p.notes.count(note) == 1


def test_a_misspelt_metric_is_told_before_any_data_is_looked_for(suite: Path) -> None:
    with pytest.raises(InputError, match="MiniBooNE"):
        made(data="miniboone", learners="gbrt")
    with pytest.raises(UsageError, match=r"^metrics: unknown metric 'acuracy'"):
        made(data="miniboone", learners="gbrt", metrics="acuracy")
    changed(suite, ('["toy-licensed"]', '["miniboone"]'), ("precision@5", "precison@5"))
    with pytest.raises(UsageError, match=r"toys\.toml, key 'metrics': unknown metric 'precison'"):
        made(suite="toys")


def test_a_file_that_is_no_store_is_told_before_any_data_is_looked_for(home: Path) -> None:
    (home / "notes.txt").write_text("not a store")
    with pytest.raises(InputError, match=r"notes\.txt: not a results store"):
        made(data="nowhere.csv", learners="gbrt", store="notes.txt")


def test_data_are_looked_for_in_the_folder_that_the_request_names(suite: Path, home: Path) -> None:
    (home / "elsewhere").mkdir()
    (home / "elsewhere" / "licensed.txt").write_text("x")
    assert [d.name for d in made(suite="toys").datasets] == ["toy-rank"]
    found = made(suite="toys", data_dir="elsewhere").datasets
    assert [(d.name, d.title) for d in found] == [("toy-licensed", "licensed queries")]


def heard(**options: Any) -> list[tuple[str, bool]]:
    """The lines that planning says, each with whether it is a warning."""
    lines: list[tuple[str, bool]] = []
    request = RunRequest(plugins=PLUGINS, **options)
    registry = load_registry(PLUGINS)
    make_plan(request, registry, lambda line, warning: lines.append((line, warning)))
    return lines


def test_warnings_and_notes_are_told_once_each(suite: Path) -> None:
    lines = heard(suite="toys", seeds=(0, 1))
    assert [warning for _, warning in lines] == [True, False, False]
    assert lines[0][0].startswith("STAND-IN: licensed.txt of toy-licensed is not there")
    assert lines[1][0] == "toy-rank: made of random numbers"
    assert lines[2][0].startswith("toy-rank: fewer than 500 validation queries")


def test_notes_wait_until_the_plan_is_made_and_warnings_do_not(suite: Path) -> None:
    lines: list[tuple[str, bool]] = []
    request = RunRequest(suite="toys", plugins=PLUGINS, folds=(0, 9))
    registry = load_registry(PLUGINS)
    with pytest.raises(UsageError, match="folds 0 to 1, not 9"):
        make_plan(request, registry, lambda line, warning: lines.append((line, warning)))
    assert [warning for _, warning in lines] == [True]


def test_what_the_store_has_is_finished_unless_all_is_to_be_done_anew(home: Path) -> None:
    small: dict[str, Any] = {"data": "toy-rank", "learners": "toy-prefix", "settings": FEW}
    more = {**small, "learners": ["toy-prefix", "toy-stacked"]}
    bench_core.run(plugins=PLUGINS, executor="inline", **more)
    p = made(**small)
    assert p.finished == {t.key for t in p.trials}
    assert p.finished_fits == {f.key for f in p.fits}
    assert len(p.fits) == 2
    further = made(**{**small, "settings": "toy-prefix.tradeoff=[0.5, 2.0]"})
    assert (len(further.finished), len(further.finished_fits)) == (1, 1)
    fresh = made(**small, fresh=True)
    assert (fresh.finished, fresh.finished_fits) == (set(), set())
    assert (fresh.estimate.jobs, fresh.estimate.recorded) == (4, 4)  # by what was recorded
    shutil.rmtree(home / "results/bench.fits")
    p = made(**small)
    assert (len(p.finished), p.finished_fits) == (2, set())


def test_a_fit_that_the_store_does_not_know_is_not_finished_though_its_file_is_there(
    home: Path,
) -> None:
    small: dict[str, Any] = {"data": "toy-rank", "learners": "toy-prefix", "settings": FEW}
    bench_core.run(plugins=PLUGINS, executor="inline", **small)
    for path in (home / "results").glob("bench.db*"):
        path.unlink()
    bench_core.run(plugins=PLUGINS, executor="inline", data="toy-binary", learners="toy-stacked")
    assert made(**small).finished_fits == set()


def test_the_run_is_named_by_suite_or_data_and_by_what_decides_its_results(suite: Path) -> None:
    def run(**options: Any) -> str:
        return str(made(**{"data": "toy-rank", "learners": "toy-prefix", **options}).run)

    both = run(data=["toy-rank", "toy-binary"])
    assert both.startswith("toy-rank+toy-binary-quick-")
    assert run(data="toy-rank", settings="toy-rank.queries=7").startswith("toy-rank_queries_7_-qu")
    assert run(suite="toys", data=(), profile="paper").startswith("toys-paper-")
    suite.write_text(f'{suite.read_text()}\n[profiles.brief]\nsize = "standard"\n')
    assert run(suite="toys", data=(), profile="brief").startswith("toys-brief-")
    assert run() == run(workers=3) != run(metrics="ndcg@3")


def test_a_request_of_ones_own_is_not_changed(home: Path) -> None:
    request = RunRequest(data=("toy-rank", "toy-rank"), learners=("toy-prefix",), plugins=PLUGINS)
    before = replace(request)
    assert len(make_plan(request, load_registry(PLUGINS)).datasets) == 1
    assert request == before


def with_executor(suite: Path, executor: str) -> None:
    suite.write_text(f'executor = "{executor}"\n{suite.read_text()}')


def test_a_suite_says_where_its_trials_run_unless_the_request_does(suite: Path) -> None:
    usual = made(suite="toys")
    assert usual.executor == "local"
    with_executor(suite, "dask=my_cluster:cluster")
    there = made(suite="toys")
    assert there.executor == "dask=my_cluster:cluster"
    assert made(suite="toys", executor="local").executor == "local"
    assert (there.run, there.fits, there.trials) == (usual.run, usual.fits, usual.trials)


def test_a_run_goes_where_its_suite_says(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_executor(suite, "dask=tcp://host:8786")
    asked: list[str] = []

    def on_cluster(plan: Any, request: RunRequest, *rest: Any) -> Any:
        asked.append(request.executor)
        raise InputError("no scheduler there")

    monkeypatch.setattr("bench_core.execution.dask.on_cluster", on_cluster)
    with pytest.raises(InputError, match="no scheduler there"):
        bench_core.run(suite="toys", plugins=PLUGINS, on_event=lambda event: None)
    assert asked == ["dask=tcp://host:8786"]
    more = {"settings": FEW, "learners": "toy-prefix", "on_event": lambda event: None}
    bench_core.run(suite="toys", plugins=PLUGINS, executor="inline", **more)
    assert Store("results/bench.db").info().request["executor"] == "inline"
