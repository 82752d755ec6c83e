"""What the ways of running cost beside the work itself.

    python tests/durability/overhead.py trials [--ways local,work,dask] [--few 10] [--many 110]
    python tests/durability/overhead.py workers --data-dir FOLDER
    python tests/durability/overhead.py memory --trials 100,1000
    python tests/durability/overhead.py store --trials 300 [--data letters --data-dir FOLDER]

``trials``: seconds and processor seconds for each trial beyond the first ones, of fits that take
milliseconds, each way; what a way has more than inline is its overhead. Processor seconds are those
of all processes; on a busy machine they tell more. ``workers``: eight equal fits by one and by two
workers of one thread. ``memory``: resident memory of a client of Dask whose cluster answers at
once, before and after so many trials. ``store``: how many finished trials a second one writer
brings to the disk, each in a transaction of its own, as a run does, and how many it takes from
shards of one trial, as a client of Dask does.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

BENCH = (sys.executable, "-m", "bench_core")
HERE = Path(__file__).resolve()
PORT = 8799


def spent() -> float:
    """Processor seconds of all processes that were waited for."""
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return use.ru_utime + use.ru_stime


def timed(*words: str) -> tuple[float, float]:
    """Processor seconds and seconds of a command."""
    before, began = spent(), time.perf_counter()
    subprocess.run((*BENCH, *words), check=True, capture_output=True)
    return spent() - before, time.perf_counter() - began


def grid(count: int) -> tuple[str, ...]:
    """A request of so many small trials."""
    rates = ", ".join(f"{0.1 + 0.0001 * k:.4f}" for k in range(count))
    which = ("--data", "breast-cancer", "--learners", "gbrt", "--set", "gbrt.trees=1")
    return (*which, "--set", f"gbrt.learning_rate=[{rates}]")


def run(count: int, *more: str) -> tuple[float, float]:
    store = tempfile.mktemp(suffix=".db", dir=".")
    return timed("run", *grid(count), "-t", "1", "--store", store, "--no-progress", "-q", *more)


def work(count: int) -> tuple[float, float]:
    folder = tempfile.mkdtemp(dir=".")
    plan = ("plan", *grid(count), "--jobs", "1", "-o", f"{folder}/jobs")
    timed(*plan, "--store", f"{folder}/none.db")
    return timed("work", "--no-progress", f"{folder}/jobs/1")


def dask(count: int) -> tuple[float, float]:
    address, before = f"tcp://127.0.0.1:{PORT}", spent()
    ours = ("--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory", "dask")
    with Path("dask.log").open("wb") as log:
        started = [
            subprocess.Popen([sys.executable, "-m", *words], stdout=log, stderr=log)
            for words in (
                ("distributed.cli.dask_scheduler", "--port", str(PORT), "--no-dashboard"),
                ("distributed.cli.dask_worker", address, *ours),
            )
        ]
    client, seconds = run(count, "--executor", f"dask={address}")
    for process in started[::-1]:
        process.terminate()
        process.wait()
    print(f"dask, {count} trials: {client:.2f} of these processor seconds are the client's")
    return spent() - before, seconds


def trials(ways: str, few: int, many: int) -> None:
    known = {
        "inline": lambda count: run(count, "--executor", "inline"),
        "local": lambda count: run(count, "-w", "1"),
        "work": work,
        "dask": dask,
    }
    for way in ways.split(","):
        pairs = zip(known[way](few), known[way](many), strict=True)
        processor, wall = (1000 * (b - a) / (many - few) for a, b in pairs)
        print(f"{way}: {processor:.1f} ms of processors, {wall:.1f} ms for each trial", flush=True)


def workers(data_dir: str) -> None:
    suite = ("--suite", "letters", "--learners", "gbrt", "--set", "gbrt.trees=4000")
    more = ("--seeds", "0-7", "--audit", "off", "-t", "1", "--data-dir", data_dir)
    for count in ("1", "2"):
        store = tempfile.mktemp(suffix=".db", dir=".")
        use = timed("run", *suite, *more, "-w", count, "--store", store, "--no-progress", "-q")
        print(f"{count} workers: {use[1]:.1f} s, {use[0]:.1f} processor seconds", flush=True)


class Prompt:
    """A cluster whose one worker has always done a trial already."""

    status = "running"

    def __init__(self, result: Any) -> None:
        self.result = result

    def nthreads(self) -> dict[str, int]:
        return {"here": 1}

    def submit(self, do: Any, name: str, text: str, given: bytes, *rest: Any, **more: Any) -> Any:
        from bench_core.execution.dask import pack
        from bench_core.planning.job_files import parse_job
        from bench_core.results.records import FitResult, Job, Outcome, Status
        from bench_core.results.writer import open_writer

        job, task = parse_job(text), Future[bytes]()
        with tempfile.TemporaryDirectory() as folder, open_writer(Path(folder) / "1.db") as writer:
            writer.begin(job.run, job.about, [trial.key for trial in job.trials])
            for fit in job.fits:
                writer.fit(Outcome(Job("fit", fit), Status.OK, result=FitResult(0.1, 100.0)))
            for trial in job.trials:
                writer.trial(trial, Outcome(Job("score", trial), Status.OK, result=self.result))
            task.set_result(pack(Path(folder).resolve() / "1.db"))
        task.key, task.status, task.release = name, "finished", lambda: None  # type: ignore
        return task


def memory(counts: str) -> None:
    """Each count in a process of its own."""
    for count in counts.split(","):
        words = (sys.executable, str(HERE), "one", "--trials", count)
        subprocess.run(words, check=True)


def resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def one(count: int) -> None:
    import bench_core
    from bench_core import api
    from bench_core.execution.dask import Handing
    from bench_core.execution.trial import run_trial
    from bench_core.planning.plan import about_run
    from bench_core.planning.request import RunRequest
    from bench_core.planning.steps import Steps
    from bench_core.results.writer import open_writer

    rates = "[" + ", ".join(f"{0.1 + 0.0001 * k:.4f}" for k in range(min(count, 1000))) + "]"
    request = RunRequest(
        data=("breast-cancer",),
        learners=("gbrt",),
        settings=("gbrt.trees=1", f"gbrt.learning_rate={rates}"),
        seeds=tuple(range(max(1, count // 1000))),
    )
    few = replace(request, settings=("gbrt.trees=1",), seeds=(0,), executor="inline")
    bench_core.run(request=few, store="few.db", progress=False)
    result = run_trial(api.plan(request=replace(few, store="few.db")).trials[0])
    plan = api.plan(request=request)
    store, planned = Path(tempfile.mkdtemp(dir=".")) / "bench.db", resident()
    with open_writer(store) as writer:
        writer.begin(plan.run, about_run(plan, request), [t.key for t in plan.trials])
        steps = Steps(plan, request)
        client = Handing(plan, request, writer, lambda event: None, steps)
        began = time.perf_counter(), time.process_time()
        client.drive(Prompt(result), Ready)
        wall, processor = time.perf_counter() - began[0], time.process_time() - began[1]
    print(
        f"{len(plan.trials)} trials: {planned:.0f} MiB when planned, {resident():.0f} MiB when "
        f"done; {1000 * processor / count:.1f} ms of processors, {1000 * wall / count:.1f} ms each"
    )


def store(count: int, data: str, data_dir: str) -> None:
    import bench_core
    from bench_core import api
    from bench_core.execution.trial import run_trial
    from bench_core.planning.request import RunRequest
    from bench_core.results.merge import take
    from bench_core.results.records import Job, Outcome, Status
    from bench_core.results.writer import open_writer

    given = {"data": (data,), "learners": ("gbrt",), "data_dir": data_dir}
    request = RunRequest(**given, executor="inline", audit="off", store="one.db")
    bench_core.run(request=request, progress=False)
    trial = api.plan(request=request).trials[0]
    result = run_trial(trial)

    def keep(writer: Any, number: int) -> None:
        spec = replace(trial, key=f"{number:064x}")
        outcome = Outcome(Job("score", spec), Status.OK, result=result)
        with writer.transaction():
            writer.attempt("run", outcome)
            writer.trial(spec, outcome)

    def told(what: str, began: tuple[float, float], many: int) -> None:
        wall, processor = time.perf_counter() - began[0], time.process_time() - began[1]
        ms = f"{1000 * processor / many:.1f} ms of processors, {1000 * wall / many:.1f} ms each"
        print(f"{data}, {what}: {many / wall:.0f} trials a second; {ms}", flush=True)

    with open_writer(Path("many.db")) as writer:
        began = time.perf_counter(), time.process_time()
        for number in range(count):
            keep(writer, number)
        told("written", began, count)
    print(f"{Path('many.db').stat().st_size / count / 1000:.0f} kB a trial")
    shards = [Path(f"shard{number}.db") for number in range(min(count, 100))]
    for number, shard in enumerate(shards):
        with open_writer(shard) as writer:
            keep(writer, number)
    with open_writer(Path("merged.db")) as writer:
        began = time.perf_counter(), time.process_time()
        for shard in shards:
            take(writer, shard)
        told("merged from shards", began, len(shards))


class Ready(list[Any]):
    """Stands for ``distributed.as_completed``: all that was added is done."""

    def add(self, task: Any) -> None:
        self.append(task)

    def __next__(self) -> Any:
        return self.pop(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("trials", "workers", "memory", "one", "store"))
    parser.add_argument("--ways", default="inline,local,work,dask")
    parser.add_argument("--few", type=int, default=10)
    parser.add_argument("--many", type=int, default=110)
    parser.add_argument("--trials", default="100,1000")
    parser.add_argument("--data", default="breast-cancer")
    parser.add_argument("--data-dir", default="")
    given = parser.parse_args()
    if given.what == "one":
        return one(int(given.trials))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        if given.what == "trials":
            return trials(given.ways, given.few, given.many)
        if given.what == "store":
            return store(int(given.trials), given.data, given.data_dir)
        return workers(given.data_dir) if given.what == "workers" else memory(given.trials)


if __name__ == "__main__":
    main()
