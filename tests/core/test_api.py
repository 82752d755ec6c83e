import os
import shutil
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from helpers.toys import Prefix

import bench_core
from bench_core import plugins
from bench_core.api import RunRequest, RunResult, audit, plan, run
from bench_core.planning.request import cores_for

SMALL = {
    "data": "toy-rank",
    "learners": "toy-prefix",
    "plugins": "helpers.toys",
    "executor": "inline",
    "settings": "toy-prefix.tradeoff=[0.1, 1.0]",
}


def test_options_may_be_lists_single_words_or_a_request(home):
    one = plan(**SMALL)
    two = plan(**{k: [v] if k in ("data", "learners", "settings") else v for k, v in SMALL.items()})
    request = RunRequest(
        data=("toy-rank",),
        learners=("toy-prefix",),
        plugins=("helpers.toys",),
        settings=("toy-prefix.tradeoff=[0.1, 1.0]",),
    )
    assert one.run == two.run == plan(request=request).run
    assert plan(request=request, seeds=3).run != one.run


def test_a_run_from_python_returns_counts_store_and_rows(home):
    result = bench_core.run(**SMALL)
    assert isinstance(result, RunResult)
    assert result.counts == {"ok": 2}
    assert result.store == Path("results/bench.db")
    assert result.exit_status == 0
    assert set(result.frame()["learner"]) == {"toy-prefix"}
    assert result.notes == (
        "toy-rank: made of random numbers",
        "toy-rank: fewer than 500 validation queries: the choice of points, and savings, are "
        "uncertain",
    )


def test_learner_objects_and_names_go_together(home):
    result = run(**{**SMALL, "learners": ["toy-stacked", Prefix(0.25)], "settings": ()})
    assert sorted(set(result.frame()["learner"])) == ["toy-prefix", "toy-stacked"]


@pytest.mark.parametrize(
    ("counts", "more", "status"),
    [
        ({"failed": 1}, {}, 1),
        ({"ok": 3, "timeout": 1}, {}, 1),
        ({"crashed": 1}, {}, 1),
        ({"ok": 1, "skipped": 3}, {}, 0),
        ({"ok": 1}, {"audit_failures": ("x",)}, 1),
        ({"ok": 1}, {"interrupted": True}, 130),
    ],
)
def test_failures_refused_audits_and_interruptions_have_an_exit_status(counts, more, status):
    assert RunResult("r", Path(), counts, **more).exit_status == status


def test_the_time_is_estimated_from_what_like_trials_took(home):
    slow = {**SMALL, "settings": ["toy-prefix.tradeoff=[0.1, 1.0]", "toy-prefix.seconds=0.2"]}
    run(**slow)
    made = plan(**{**slow, "seeds": [0, 1, 2]})
    assert made.estimate.recorded == made.estimate.jobs == 8  # two seeds of two trials are left
    assert 4 * 0.2 * 0.8 <= made.estimate.work < 4 * 0.2 + 4
    assert len(made.finished) == 2
    assert plan(**slow).estimate.jobs == 0


def test_fits_that_no_unfinished_trial_needs_are_not_in_the_estimate(home):
    run(**SMALL)
    shutil.rmtree("results/bench.fits")
    assert plan(**SMALL).estimate.jobs == 0


def test_a_single_trial_that_is_left_has_all_cores(home):
    more = {**SMALL, "settings": "toy-prefix.tradeoff=[0.1, 1.0, 2.0]", "executor": "local"}
    assert plan(**more, threads=1).workers == min(3, cores_for(RunRequest(threads=1), 99)[0])
    run(**SMALL)
    assert plan(**more).workers == 1


def test_a_store_that_was_moved_can_be_audited(home):
    run(**SMALL)
    (home / "results").rename(home / "kept")
    result = audit(store="kept/bench.db", plugins=("helpers.toys",), executor="inline")
    assert (result.counts, result.failures) == ({"ok": 2}, ())


def test_all_learners_are_planned_for_ones_own_files(home):
    lines = (f"{k % 5} qid:{k // 5} 1:{k * 7 % 11} 2:{k % 3}\n" for k in range(150))
    (home / "train.svm").write_text("".join(lines))
    learners = {trial.learner for trial in plan(data="train.svm", learners="all").trials}
    assert {"gbrt", "miser", "cegb", "cronus", "budget-boosting", "early-exit"} <= learners


def test_a_broken_plugin_is_a_warning_and_not_a_crash(home, monkeypatch):
    bad = EntryPoint("bad", "bad_module", "bench")
    real = plugins.entry_points(group="bench")
    monkeypatch.setattr(plugins, "entry_points", lambda group: [*real, bad])
    seen = []
    plan(**SMALL, on_event=seen.append)
    assert any(e.warning and "plugin bad" in e.message for e in seen)


@pytest.mark.parametrize("threads", ["0", "-1", "many", ""])
def test_numba_starts_whatever_number_of_threads_it_is_given(threads):
    code = "import bench_core, numba; print(numba.get_num_threads() > 0)"
    given = {**os.environ, "NUMBA_NUM_THREADS": threads}
    ended = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True)
    assert (ended.stdout, ended.stderr) == (b"True\n", b"")


def test_where_nothing_is_writable_kernels_are_kept_in_the_cache_folder(tmp_path):
    code = (
        "import os; os.access = lambda path, mode: False; import bench_core\n"
        "print(os.environ['NUMBA_CACHE_DIR'])\n"
    )
    given = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    for extra, where in (({}, tmp_path / "kernels"), ({"NUMBA_CACHE_DIR": "own"}, Path("own"))):
        env = {**given, "BENCH_CACHE": str(tmp_path), **extra}
        ended = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True)
        assert Path(ended.stdout.decode().strip()) == where, ended.stderr
