"""Job files: done anywhere, in any order, and merged to what one run gives."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from helpers import run_toys
from helpers.kit import refused
from helpers.run_toys import export
from helpers.toys import fits

import bench_core
from bench_core import InputError, api
from bench_core.execution.work import work
from bench_core.planning import job_files
from bench_core.planning.job_files import read_job, write_jobs
from bench_core.planning.plan import silent
from bench_core.results.merge import merge
from bench_core.results.store import Store

SWEEP = ("toy-prefix.tradeoff=[0.0, 0.1, 0.5, 1.0]", "toy-stacked.shrink=[0.5, 0.25]")
TOYS = replace(run_toys.TOYS, settings=SWEEP, executor="inline")


def cut(request, folder, count):
    """The jobs of a request, in files."""
    plan = api.plan(request=request)
    alike = dict.fromkeys([spec.key for spec in (*plan.fits, *plan.trials)], 1.0)
    write_jobs(replace(plan, expected=alike), request, folder, count)
    return [read_job(folder / f"{n}.json") for n in range(1, len([*folder.glob("*.json")]) + 1)]


def do(folder, number, **more):
    return work(read_job(folder / f"{number}.json"), folder / f"{number}.db", silent, **more)


def shards(folder):
    return sorted(folder.glob("*.db"))


def test_jobs_share_no_fit_and_hold_every_trial_once(home):
    jobs = cut(TOYS, home / "jobs", 3)
    trials = [trial.key for job in jobs for trial in job.trials]
    assert len(jobs) == 3
    assert sorted(trials) == sorted(jobs[0].listed)
    assert len({*trials}) == len(trials) == 6
    trained = Counter(fit.key for job in jobs for fit in job.fits)
    assert {*trained.values()} == {1}
    for job in jobs:  # whatever a fit stands on is there, before it
        seen = set()
        for fit in job.fits:
            assert {*fit.needs.values()} <= seen
            seen.add(fit.key)
        assert {trial.fit for trial in job.trials} <= seen
    # toy-prefix at 0 carries both of toy-stacked: six pieces of work in one job, two in the others
    assert sorted(job.seconds for job in jobs) == [2.0, 4.0, 6.0]


def test_a_job_of_one_trial_holds_what_it_stands_on_and_no_more(home):
    plan = api.plan(request=TOYS)
    cutter = job_files.Cutter(plan, TOYS)
    (base, *_), trial = [f for f in plan.fits if f.needs == {}], plan.trials[-1]
    assert cutter.job([base], set()).trials == ()
    job = cutter.job([trial], {fit.key for fit in plan.fits})
    assert {*job.ready} == {fit.key for fit in job.fits} == {trial.fit}
    assert [*job.data] == [trial.data]
    assert {fit.learner["class"] for fit in job.fits} <= job.code.keys()


def test_shards_merge_to_the_rows_of_one_run(home):
    bench_core.run(request=TOYS, store="whole.db", progress=False)
    trained = len(fits(home))
    folder = home / "jobs"
    cut(TOYS, folder, 2)
    for number in (2, 1):
        assert do(folder, number).exit_status == 0
    assert len(fits(home)) == 2 * trained
    assert do(folder, 1).counts == {"ok": len(read_job(folder / "1.json").trials)}
    assert len(fits(home)) == 2 * trained
    merge(home / "all.db", shards(folder)[::-1])
    assert export(home / "all.db").equals(export(home / "whole.db"))
    info = Store("all.db").info()
    assert (info.state, info.counts) == ("finished", {"ok": 6})
    assert bench_core.run(request=TOYS, store="all.db", progress=False).reused == 6
    merge(home / "whole.db", [home / "all.db"])  # the same bits


def test_a_finished_fit_travels_with_the_job(home):
    alone = replace(TOYS, learners=("toy-prefix",), settings=("toy-prefix.tradeoff=[0.0]",))
    bench_core.run(request=alone, progress=False)
    before = len(fits(home))
    jobs = cut(TOYS, home / "jobs", 1)
    assert len(jobs[0].trials) == 5
    do(home / "jobs", 1)
    assert sorted(fits(home)[before:]) == [
        "toy-prefix 0.1", "toy-prefix 0.5", "toy-prefix 1", "toy-stacked 0.25", "toy-stacked 0.5"
    ]  # fmt: skip
    merge(home / "results" / "bench.db", shards(home / "jobs"))
    assert Store().info().counts == {"ok": 6}


def test_data_that_are_not_there_are_prepared_and_compared(home, monkeypatch):
    folder = home / "jobs"
    (job,) = cut(TOYS, folder, 1)
    monkeypatch.setenv("BENCH_CACHE", str(home / "elsewhere"))
    ((planned, use),) = job.data.items()
    gone = str(home / "gone")
    moved = replace(job, data={gone: use})
    specs = {
        name: tuple(replace(spec, data=gone) for spec in getattr(moved, name))
        for name in ("fits", "trials")
    }
    moved = replace(moved, **specs)
    other = replace(moved, data={gone: replace(use, fingerprint="0" * 64)})
    refused("toy-rank, prepared here, has the fingerprint", work, other, folder / "1.db", silent)
    assert not (folder / "1.db").exists()
    assert work(moved, folder / "1.db", silent).counts == {"ok": 6}
    assert Path(planned) not in (home / "elsewhere").rglob("*")
    # rows keep the plan's place, where results go
    assert {spec.data for spec in Store(folder / "1.db").specs()} == {gone}


def test_a_job_of_other_code_is_refused_in_one_line(home):
    (job,) = cut(TOYS, home / "jobs", 1)
    changed = {**job.code, "helpers.toys:Prefix": "other"}
    with pytest.raises(InputError, match=r"source of helpers\.toys:Prefix differs from the plan's"):
        work(replace(job, code=changed), home / "1.db", silent)
    refused("planned by budget-bench 9", work, replace(job, bench="9"), home / "1.db", silent)
    assert not (home / "1.db").exists()


@pytest.mark.parametrize("text", ["", "[1]", '{"format": 0}', '{"format": 1, "fits": []}'])
def test_a_file_that_is_no_job_is_refused_in_one_line(home, text):
    (home / "1.json").write_text(text)
    refused("not a job file", read_job, home / "1.json")


def test_a_changed_job_is_refused(home):
    cut(TOYS, home / "jobs", 1)
    path = home / "jobs" / "1.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"about": "x"}))
    refused("changed after it was written", read_job, path)


def test_jobs_are_not_written_over_others_nor_without_work(home):
    cut(TOYS, home / "jobs", 1)
    refused("job files already", cut, TOYS, home / "jobs", 1)
    bench_core.run(request=TOYS, progress=False)
    refused("nothing to do", cut, TOYS, home / "other", 1)
