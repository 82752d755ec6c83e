"""Removing runs: what goes, and that nothing another run needs goes with it."""

import pytest

from bench_core.results.store import Store
from bench_core.results.store_files import load_model, models_in

RUN = ("run", "--data", "data.csv", "--executor", "inline", "-q", "--task", "binary")
SMALL = ("--set", "gbrt.trees=3", "--set", "early-exit.base.trees=3")


@pytest.fixture
def two_runs(ran):
    """The second run has the trials of the first, and one more that stands on its model."""
    ran(*RUN[1:], "-l", "gbrt,constant", "--set", "gbrt.trees=3").ok()
    ran(*RUN[1:], "-l", "gbrt,early-exit,greedy-order", *SMALL).ok()
    return Store()


def test_a_dry_run_removes_nothing_and_says_what_would_go(two_runs, bench):
    before = {p: p.read_bytes() for p in models_in(two_runs.path)}
    ended = bench("remove", "1", "--dry-run").ok()
    assert "would remove data.csv-quick-" in ended.err
    assert "1 trial, 1 fitted model (" in ended.err  # the constant; gbrt is in the other run too
    assert {p: p.read_bytes() for p in models_in(two_runs.path)} == before
    assert len(two_runs.runs()) == 2
    assert "models" in bench("list", "fits").out


def test_what_another_run_needs_stays(two_runs, bench):
    rows, attempts = len(two_runs.frame("2")), two_runs.attempts("2")
    files = len([*models_in(two_runs.path)])
    bench("remove", "1").ok()
    assert [run.number for run in two_runs.runs()] == [2]
    assert len(two_runs.frame()) == rows
    assert two_runs.attempts() == attempts
    assert len([*models_in(two_runs.path)]) == files - 1
    for path in models_in(two_runs.path):
        load_model(path)
    bench("audit", "--executor", "inline", "-q").ok()
    bench(*RUN, "-l", "constant").ok()  # and can be run again


def test_the_last_run_takes_all_files_with_it(two_runs, bench):
    bench("remove", "1", "2").ok()
    assert two_runs.runs() == []
    assert [*models_in(two_runs.path)] == []
    assert "no run there yet" in bench("report").err


def test_fitted_models_can_go_alone(two_runs, bench):
    rows = len(two_runs.frame("2"))
    bench("remove", "2", "--fits").ok()
    assert len(two_runs.frame("2")) == rows
    assert 0 < len([*models_in(two_runs.path)]) <= 2  # those of the first run
    bench("report", "1").ok()


def test_prepared_data_are_listed_and_removed(tmp_path, two_runs, bench):
    assert "data.csv-" in bench("list", "cache").out
    bench("remove", "--cache", "--dry-run").ok()
    assert [*(tmp_path / "cache" / "prepared").iterdir()]
    bench("remove", "--cache").ok()
    assert not (tmp_path / "cache" / "prepared").exists()
    assert bench("remove").status == 2
