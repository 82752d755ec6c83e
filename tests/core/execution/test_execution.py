import os
import re
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
from helpers.kit import table
from helpers.toys import Prefix, fits
from threadpoolctl import threadpool_info, threadpool_limits

import bench_core
from bench_core.api import plan
from bench_core.errors import InputError
from bench_core.execution.contract import failure
from bench_core.execution.executors import LocalExecutor
from bench_core.execution.runner import jobs_in_order, run_jobs
from bench_core.results.records import FitSpec, Job, Outcome, Status

linux = pytest.mark.skipif(sys.platform != "linux", reason="limits on memory, and signals")

FIT = FitSpec(
    key="", title="", learner={}, learner_name="x", dataset="d", data="", metric="", seed=0,
    states="",
)  # fmt: skip


def job(name, *needs, kind="fit"):
    spec = replace(FIT, key=name, title=name)
    return Job(kind, spec, tuple(f"fit:{n}" for n in needs))


class Scripted:
    """Ends jobs in the order they came, or as ``order`` says; those in ``bad`` fail."""

    def __init__(self, slots=1, bad=()):
        self.slots, self.bad = slots, bad
        self.running = []
        self.started = []
        self.most = 0

    def submit(self, job):
        self.running.append(job)
        self.started.append(job.key)
        self.most = max(self.most, len(self.running))

    def outcome(self):
        job = self.running.pop()
        if job.spec.key in self.bad:
            return Outcome(job, Status.TIMEOUT, "too slow")
        return Outcome(job, Status.OK)

    def close(self):
        pass


@pytest.mark.parametrize("executor", ["inline", "local"])
def test_the_marks_of_a_model_are_those_of_its_rows(executor, home):
    path = table(home / "rows.csv", "a,y", [f"{i},{i % 7 > 3}" for i in range(300)])
    frame = bench_core.run(
        data=path,
        learners=["gbrt", "constant"],
        settings=("gbrt.trees=3", "gbrt.learning_rate=500.0"),
        executor=executor,
    ).frame()
    marks = frame.groupby("learner")["marks"].unique()
    assert (list(marks["gbrt"]), list(marks["constant"])) == (["diverged"], [""])


def test_a_job_waits_for_what_it_needs():
    executor = Scripted(slots=4)
    list(run_jobs([job("a"), job("b", "a"), job("c", "b"), job("d")], executor))
    assert executor.started.index("fit:a") < executor.started.index("fit:b")
    assert executor.started.index("fit:b") < executor.started.index("fit:c")


def test_no_more_jobs_run_than_there_are_slots():
    executor = Scripted(slots=2)
    assert len(list(run_jobs([job(str(i)) for i in range(7)], executor))) == 7
    assert executor.most == 2


def test_what_stands_on_a_failure_is_skipped_with_the_reason():
    jobs = [job("a"), job("a", "a", kind="score"), job("b", "a"), job("c", "b"), job("d")]
    ended = {o.job.key: o for o in run_jobs(jobs, Scripted(bad=("a",)))}
    assert {k: o.status for k, o in ended.items()} == {
        "fit:a": Status.TIMEOUT,
        "score:a": Status.TIMEOUT,  # as its fit
        "fit:b": Status.SKIPPED,
        "fit:c": Status.SKIPPED,
        "fit:d": Status.OK,
    }
    assert ended["score:a"].error == "too slow"
    assert ended["fit:b"].error == "needs a: timeout (too slow)"
    assert ended["fit:c"].error == "needs a: timeout (too slow)"


def test_scores_come_before_further_fits_so_that_there_are_rows_early():
    executor = Scripted()
    jobs = [job("a"), job("b"), job("x", "a", kind="score"), job("y", "b", kind="score")]
    list(run_jobs(jobs, executor))
    assert executor.started == ["fit:a", "score:x", "fit:b", "score:y"]


def test_the_reference_goes_first_then_baselines_then_what_others_stand_on(home):
    path = table(home / "rows.csv", "a,b,y", [f"{i},{i % 5},{i % 7 > 3}" for i in range(200)])
    started = []
    bench_core.run(
        data=path,
        learners=["early-exit", "cegb", "gbrt", "constant"],
        settings=("gbrt.trees=2", "cegb.trees=2", "cegb.tradeoff=0.1", "early-exit.base.trees=3"),
        executor="inline",
        on_event=lambda e: started.append(e.title) if e.kind == "start" else None,
    )
    assert [title.removesuffix(" on rows.csv") for title in started] == [
        *("gbrt", "gbrt"),  # its fit, and its trial at once
        *("constant", "constant"),
        "gbrt for early-exit",
        *("cegb", "cegb"),
        *("early-exit", "early-exit"),
    ]


def test_first_is_the_fit_that_the_longest_chain_of_fits_waits_for(home):
    p = plan(data="toy-rank", learners=["toy-prefix", "toy-stacked"], plugins=("helpers.toys",))
    base, stacked = p.fits[-2:]
    seconds = {fit.key: float(number) for number, fit in enumerate(p.fits[:-2])}
    work = jobs_in_order(replace(p, expected=seconds | {base.key: 1.0, stacked.key: 4.5}))
    alone = [fit.key for fit in p.fits[6:4:-1]]  # of 6 and 5 seconds
    assert [job.spec.key for job in work][:4] == [alone[0], base.key, alone[1], stacked.key]
    work = jobs_in_order(replace(p, expected=seconds | {base.key: 1.0, stacked.key: 5.5}))
    assert [job.spec.key for job in work][:2] == [base.key, alone[0]]


def run(**options):
    usual = {"data": "toy-rank", "workers": 2, "audit": "off", "plugins": ("helpers.toys",)}
    return bench_core.run(**(usual | options))


def errors(result):
    return {title: (status, error) for title, status, error in result.failures}


@linux
def test_whatever_goes_wrong_in_a_learner_is_a_row_and_the_rest_goes_on(home):
    how = "toy-broken.how=['raise', 'memory', 'crash', 'exit', 'state']"
    both = {"learners": ["toy-broken", "toy-prefix"], "timeout": 300, "memory": 1 << 30}
    result = run(**both, settings=[how, "toy-prefix.tradeoff=[0.5, 1]"])
    assert result.counts == {"failed": 2, "out-of-memory": 1, "crashed": 2, "ok": 2}
    found = {title.split("how=")[1].split()[0]: end for title, end in errors(result).items()}
    assert found["raise"][0] == "failed"
    assert found["raise"][1].startswith("RuntimeError: deliberately broken (toys.py:")
    assert found["memory"][0] == "out-of-memory"
    assert found["crash"] == ("crashed", "its process was killed by SIGSEGV")
    assert found["exit"] == ("crashed", "its process ended with status 3")
    assert "array of Python objects" in found["state"][1]


def test_what_takes_longer_than_allowed_is_ended(home):
    result = run(learners=["toy-broken"], settings=["toy-broken.how=hang"], timeout=0.5)
    ((_, status, error),) = result.failures
    assert (status, error) == ("timeout", "exceeded the time limit of 0.5 s")


def test_progress_tells_who_is_how_far(home):
    seen = []
    run(
        learners="toy-prefix",
        settings=["toy-prefix.tradeoff=0.5", "toy-prefix.seconds=0.8"],
        on_event=seen.append,
    )
    kinds = [e.kind for e in seen]
    assert kinds.index("plan") < kinds.index("start") < kinds.index("progress")
    steps = [(e.done, e.total) for e in seen if e.kind == "progress" and e.activity == "fit"]
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]
    ends = [(e.activity, e.status, e.jobs_done, e.jobs_total) for e in seen if e.kind == "finish"]
    assert ends == [("fit", "ok", 1, 2), ("score", "ok", 2, 2)]
    assert all(e.worker in (1, 2) for e in seen if e.kind in ("start", "progress"))


def test_a_learner_that_no_other_process_can_import_runs_inline(home):
    @dataclass(frozen=True)
    class Mine(Prefix):
        name: ClassVar[str] = "mine"

    seen = []
    result = run(learners=[Mine(0.5), Mine(2.0)], on_event=seen.append)
    assert result.failures == ()
    assert any("Mine cannot be imported by another process" in e.message for e in seen)
    assert len(fits(home)) == 2


def test_a_learner_that_ends_the_program_is_a_failed_trial_inline_too(home):
    class Leaving(Prefix):
        name: ClassVar[str] = "leaving"

        def fit(self, *given):
            raise SystemExit(3)

    result = run(learners=[Leaving(0.5), Prefix(0.5)])
    assert result.counts == {"failed": 1, "ok": 1}
    assert "SystemExit: 3" in result.failures[0][2]


def test_what_a_learner_prints_does_not_reach_the_pipe(home, monkeypatch):
    (home / "printing.py").write_text(
        "from dataclasses import dataclass\n"
        "from typing import ClassVar\n"
        "import os, sys\n"
        "import bench_core\n"
        "from helpers.toys import Prefix\n"
        "@dataclass(frozen=True)\n"
        "class Printing(Prefix):\n"
        "    name: ClassVar[str] = 'printing'\n"
        "    def fit(self, *a):\n"
        "        print('hello'); os.write(1, b'x' * 5000); sys.stdin.read()\n"
        "        return super().fit(*a)\n"
        "@bench_core.hookimpl\n"
        "def bench_learners():\n"
        "    return [Printing]\n"
    )
    monkeypatch.syspath_prepend(home)
    asked = {"learners": "printing", "settings": ["printing.tradeoff=[0.1, 1.0]"], "workers": 1}
    result = run(**asked, plugins=("helpers.toys", "printing"))
    assert result.counts == {"ok": 2}


def test_a_worker_that_dies_between_two_jobs_takes_none_with_it(home):
    made = plan(data="toy-rank", learners="toy-prefix", plugins="helpers.toys")
    executor = LocalExecutor(1, 1, lambda event: None)
    try:
        executor.submit(Job("fit", made.fits[0]))
        assert executor.outcome().status == Status.OK
        (worker,) = executor._workers.values()
        worker.process.kill()
        worker.process.wait()
        executor.submit(Job("fit", made.fits[1]))
        assert executor.outcome().status == Status.OK
    finally:
        executor.close()


def test_threads_are_pinned_in_workers(home):
    executor = LocalExecutor(1, 3, lambda event: None)
    try:
        executor.submit(Job("fit", replace(FIT, learner={"class": "none:None", "fields": {}})))
        (worker,) = executor._workers.values()
        environ = Path(f"/proc/{worker.process.pid}/environ")
        if not environ.exists():
            pytest.skip("no /proc here")
        until = time.monotonic() + 60
        while not environ.read_bytes() and time.monotonic() < until:
            time.sleep(0.01)  # it is empty while the program is being loaded
        assert b"OMP_NUM_THREADS=3\0" in environ.read_bytes()
        assert b"NUMBA_NUM_THREADS=3\0" in environ.read_bytes()
        assert b"OPENBLAS_NUM_THREADS=1\0" in environ.read_bytes()  # sums in one order
    finally:
        executor.close()
    assert not os.path.exists(f"/proc/{worker.process.pid}/cmdline")  # noqa: PTH110


def test_inline_blas_has_one_thread_as_in_workers(home):
    seen = []

    class Looking(Prefix):
        name: ClassVar[str] = "looking"

        def fit(self, *given):
            seen.extend(lib["num_threads"] for lib in threadpool_info() if is_blas(lib))
            return super().fit(*given)

    def is_blas(lib):
        return bool(lib["user_api"] == "blas")

    with threadpool_limits(2, "blas"):
        assert run(learners=[Looking(0.5)]).counts == {"ok": 1}
        assert {lib["num_threads"] for lib in threadpool_info() if is_blas(lib)} == {2}
    assert set(seen) == {1}


def test_a_message_for_users_stands_alone_and_a_fault_names_its_place():
    def said(error):
        try:
            raise error
        except Exception as caught:
            return failure(caught)[1]

    assert said(InputError("model.txt: no model; give it")) == "model.txt: no model; give it"
    assert re.fullmatch(r"KeyError: 'x' \(test_execution\.py:\d+\)", said(KeyError("x")))


@linux
def test_memory_of_children_counts_and_what_holds_it_is_ended(home):
    settings = ["toy-broken.how='children'", "toy-broken.megabytes=300"]
    result = run(learners="toy-broken", settings=settings, memory=600 << 20)
    assert errors(result).popitem()[1] == ("out-of-memory", "needed more than 600 MiB of memory")


def test_rows_say_how_they_ran(home):
    one = {"learners": "toy-prefix", "settings": "toy-prefix.tradeoff=0.1", "workers": 1}
    frame = run(**one, executor="inline", threads=1).frame()
    assert set(zip(frame["threads"], frame["workers"], strict=True)) == {(1, 1)}
    assert all(row["machine"].startswith(row["cpu"]) for _, row in frame.iterrows())
    assert not frame["cpu"].str.contains("cores").any()
