"""Runs of whole suites with random faults, on one machine and on several, counted.

    python tests/durability/faults.py --faults 200 --data-dir FOLDER [--folder KEEP]

A suite is run through the local executor, through job files under xargs, and on a Dask cluster
whose scheduler and two workers are processes; each worker has a network namespace and a small disk
of its own. Again and again something goes wrong: a worker is killed, a process below it, the
scheduler, the client; a worker's network is cut; a disk is full; an allocation ends (SIGTERM, then
SIGKILL). What ended is started again, as a batch system would. No finished trial may be lost or
done twice, and in the end the export is that of an undisturbed inline run, bit for bit.

Linux, with ``unshare`` and ``ip``; the script makes namespaces for itself and needs no rights.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import pandas as pd

from bench_core._io.processes import descendants
from bench_core.results.store import Store

BENCH = (sys.executable, "-m", "bench_core")
TIMED = ["fit_seconds", "predict_seconds", "peak_rss_mb", "machine", "created_at", "run"]
CORES = ["threads", "workers"]
SCHEDULER = "10.77.0.1"
DISK = 400  # MiB of a store's disk, and of a worker's
INSIDE = "FAULTS_INSIDE"
QUICK = {  # what takes minutes by default is noticed in seconds
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10s",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "12s",
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "15s",
}


def started(words: tuple[str, ...], log: Path, **env: str) -> subprocess.Popen[bytes]:
    with log.open("ab") as out:
        about = os.environ | QUICK | env
        return subprocess.Popen(words, stdout=out, stderr=out, env=about, start_new_session=True)


def killed(process: subprocess.Popen[bytes], grace: float | None = None) -> None:
    """End a process with all below it, as an allocation ends if there is a ``grace`` in seconds."""
    below = descendants(process.pid)
    if grace is not None:
        for each in (process.pid, *below):
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(grace)
    for each in (process.pid, *below):
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    process.wait()


def export(store: Path) -> pd.DataFrame:
    frame = Store(store).frame().drop(columns=TIMED + CORES)
    order = ["learner", "params", "dataset", "fold", "seed", "split", "point"]
    return frame.sort_values(order, ignore_index=True)


def ended(stores: list[Path]) -> dict[str, str]:
    """The trials that ended well, and when."""
    found: dict[str, str] = {}
    for store in stores:
        for _ in range(20):  # it may be on its way to another journal mode
            with (
                suppress(sqlite3.Error),
                closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db,
            ):
                found |= db.execute("SELECT key, created_at FROM trial WHERE status = 'ok'")
                break
            if not store.exists():
                break
            time.sleep(0.05)
    return found


def named(suite: str, data_dir: str) -> tuple[str, ...]:
    """The options of a suite, or of some of its learners: ``letters:gbrt+cegb``; after a slash the
    number of configurations of each: ``letters:all/1``."""
    name, _, learners = suite.partition(":")
    learners, _, configs = learners.partition("/")
    some = ("--learners", learners.replace("+", ",")) if learners else ()
    some += ("--configs", configs) if configs else ()
    return ("--suite", name, *some, *(("--data-dir", data_dir) if data_dir else ()))


def tmpfs(folder: Path) -> Path:
    folder.mkdir(parents=True)
    size = f"size={DISK}m"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "none", str(folder)], check=True)
    return folder


class Local:
    """A run with the local executor; the ways of the others differ in what is started."""

    faults: tuple[str, ...] = ("client killed", "process killed", "allocation ends", "disk full")

    def __init__(self, folder: Path, suite: str, data_dir: str, draw: random.Random) -> None:
        self.folder, self.draw, self.log = folder, draw, folder / "log.txt"
        self.disk = tmpfs(folder / "disk")
        self.store = self.disk / "bench.db"
        self.suite = (*named(suite, data_dir), "--store", str(self.store))
        self.process = self.client()

    def client(self) -> subprocess.Popen[bytes]:
        words = (*BENCH, "run", *self.suite, "--no-progress", "-w", "2", "-t", "1")
        return started((*words, "--retries", "99", *self.more()), self.log)

    def more(self) -> tuple[str, ...]:
        return ()

    def stores(self) -> list[Path]:
        return [self.store]

    def wait(self, seconds: float) -> None:
        """Start what has ended again; the client where it ended badly."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.revive()
            time.sleep(0.05)

    def revive(self) -> None:
        if self.process.poll() not in (None, 0):
            time.sleep(0.5)
            self.process = self.client()

    def over(self) -> bool:
        return self.process.poll() == 0

    def harm(self, fault: str) -> None:
        if fault == "process killed":
            below = [p for p in descendants(self.process.pid) if is_worker(p)]
            for each in self.draw.sample(below, min(1, len(below))):
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
        elif fault == "disk full":
            self.filled(self.disk)
        else:
            killed(self.process, 1.0 if fault == "allocation ends" else None)

    def filled(self, disk: Path) -> None:
        ballast = disk / "ballast"
        with suppress(OSError), ballast.open("wb") as file:
            while file.write(bytes(1 << 20)):
                file.flush()
        self.wait(self.draw.uniform(0.5, 4))
        ballast.unlink()

    def result(self) -> Path:
        return self.store

    def close(self) -> None:
        killed(self.process)
        subprocess.run(["umount", "-l", str(self.disk)], check=True)


class Jobs(Local):
    """Job files under xargs, two at a time; in the end their shards are merged."""

    def __init__(self, folder: Path, suite: str, data_dir: str, draw: random.Random) -> None:
        self.jobs = folder / "disk" / "jobs"
        super().__init__(folder, suite, data_dir, draw)

    def client(self) -> subprocess.Popen[bytes]:
        if not self.jobs.exists():
            plan = (*BENCH, "plan", *self.suite, "--jobs", "6", "-o", str(self.jobs))
            subprocess.run(plan, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        work = f"{shlex.join(BENCH)} work --no-progress {self.jobs}/{{}}"
        count = len([*self.jobs.glob("*.json")])
        line = f"seq {count} | shuf | xargs -P 2 -I{{}} {work}"
        return started(("sh", "-c", line), self.log)

    def stores(self) -> list[Path]:
        return sorted(self.jobs.glob("*.db"))

    def result(self) -> Path:
        merge = (*BENCH, "merge", *map(str, self.stores()), "--store", str(self.store))
        subprocess.run(merge, check=True, capture_output=True)
        return self.store


class Dask(Local):
    """A scheduler and two workers, each as on a machine of its own."""

    faults = (
        *("client killed", "scheduler killed", "worker killed", "process killed"),
        *("network cut", "disk full", "allocation ends"),
    )

    def __init__(self, folder: Path, suite: str, data_dir: str, draw: random.Random) -> None:
        self.hosts: list[Path] = []
        self.machines: list[subprocess.Popen[bytes]] = []
        self.log = folder / "log.txt"
        bridge()
        for number in (1, 2):
            self.hosts.append(tmpfs(folder / f"host{number}"))
            self.machines.append(machine(number))
        self.scheduler = self.begin_scheduler()
        self.workers = [self.begin_worker(number) for number in (1, 2)]
        super().__init__(folder, suite, data_dir, draw)

    def more(self) -> tuple[str, ...]:
        return ("--executor", f"dask=tcp://{SCHEDULER}:8786")

    def begin_scheduler(self) -> subprocess.Popen[bytes]:
        words = ("distributed.cli.dask_scheduler", "--host", SCHEDULER, "--no-dashboard")
        return started((sys.executable, "-m", *words), self.log)

    def begin_worker(self, number: int) -> subprocess.Popen[bytes]:
        host = self.hosts[number - 1]
        enter = ("nsenter", "-t", str(self.machines[number - 1].pid), "-n")
        words = ("distributed.cli.dask_worker", f"tcp://{SCHEDULER}:8786", "--no-dashboard")
        more = ("--no-nanny", "--nthreads", "1", "--death-timeout", "20")
        place = ("--host", f"10.77.0.{number + 1}", "--local-directory", str(host / "dask"))
        where = {"BENCH_CACHE": str(host / "cache")}
        return started((*enter, sys.executable, "-m", *words, *more, *place), self.log, **where)

    def revive(self) -> None:
        if self.scheduler.poll() is not None:
            self.scheduler = self.begin_scheduler()
        for number, worker in enumerate(self.workers, start=1):
            if worker.poll() is not None:
                killed(worker)
                self.workers[number - 1] = self.begin_worker(number)
        super().revive()

    def harm(self, fault: str) -> None:
        number = self.draw.randrange(2)
        worker = self.workers[number]
        if fault == "scheduler killed":
            killed(self.scheduler)
        elif fault == "worker killed":
            killed(worker)
        elif fault == "allocation ends":
            killed(worker, 1.0)
        elif fault == "process killed":
            below = [p for p in descendants(worker.pid) if is_worker(p)]
            for each in self.draw.sample(below, min(1, len(below))):
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
        elif fault == "network cut":
            ip(f"link set cable{number + 1} down")
            self.wait(self.draw.choice((0.5, 2, 12)))
            ip(f"link set cable{number + 1} up")
        elif fault == "disk full":
            self.filled(self.hosts[number])
        else:
            killed(self.process)

    def close(self) -> None:
        for process in (self.process, self.scheduler, *self.workers, *self.machines):
            killed(process)
        for host in self.hosts:
            subprocess.run(["umount", "-l", str(host)], check=True)
        ip("link del bridge0")
        subprocess.run(["umount", "-l", str(self.disk)], check=True)


def is_worker(process: int) -> bool:
    with suppress(OSError):
        return b"bench_core.execution.start" in Path(f"/proc/{process}/cmdline").read_bytes()
    return False


def ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True)


def bridge() -> None:
    ip("link add bridge0 type bridge")
    ip(f"addr add {SCHEDULER}/24 dev bridge0")
    ip("link set bridge0 up")


def machine(number: int) -> subprocess.Popen[bytes]:
    """A network namespace with a cable to the bridge; it lasts as long as this process."""
    process = subprocess.Popen(["unshare", "-n", "sleep", "100000"])
    time.sleep(0.3)
    ip(f"link add cable{number} type veth peer name far{number}")
    ip(f"link set cable{number} master bridge0 up")
    ip(f"link set far{number} netns {process.pid}")
    inner = ("nsenter", "-t", str(process.pid), "-n", "ip")
    for words in ("link set lo up", f"addr add 10.77.0.{number + 1}/24 dev far{number}"):
        subprocess.run([*inner, *words.split()], check=True)
    subprocess.run([*inner, "link", "set", f"far{number}", "up"], check=True)
    return process


def one_run(
    way: type[Local], folder: Path, suite: str, data_dir: str, faults: int, draw: random.Random
) -> Counter[str]:
    """A run with at most so many faults, to its end; what happened."""
    counts: Counter[str] = Counter()
    whole = folder / f"{suite.replace('/', '-')}.whole.db"
    words = (*BENCH, "run", *named(suite, data_dir), "--no-progress", "-q")
    more = ("--executor", "inline", "-t", "1", "--store", str(whole))
    subprocess.run((*words, *more), check=True, stdout=subprocess.DEVNULL)
    place = Path(tempfile.mkdtemp(prefix=f"{way.__name__.lower()}-", dir=folder))
    run = way(place, suite, data_dir, draw)
    known: dict[str, str] = {}

    def look() -> None:
        now = ended(run.stores())
        counts["lost"] += len(known.keys() - now.keys())
        counts["doubled"] += sum(now.get(key, at) != at for key, at in known.items())
        known.update(now)

    late = time.monotonic() + 3600
    try:
        while not run.over():
            assert time.monotonic() < late, f"no end: {run.log}"
            more, limit = len(known) + draw.randrange(3), time.monotonic() + 60
            while not run.over() and len(known) < more and time.monotonic() < limit:
                run.wait(0.2)
                look()
            run.wait(draw.uniform(0, 2))
            if sum(counts[fault] for fault in way.faults) < faults and not run.over():
                fault = draw.choice(way.faults)
                look()
                run.harm(fault)
                counts[fault] += 1
                look()
        look()
        store = run.result()
        with closing(sqlite3.connect(store)) as db:
            twice = "SELECT 1 FROM attempt WHERE kind = 'score' AND status = 'ok' "
            twice += "GROUP BY key HAVING count(*) > 1"
            counts["doubled"] += len(db.execute(twice).fetchall())
        counts["runs"] += 1
        counts["exports equal"] += export(store).equals(export(whole))
        if not counts["lost"] + counts["doubled"] and counts["exports equal"]:
            run.close()
            shutil.rmtree(place)
        else:
            shutil.copytree(run.disk, place / "left")
            run.close()
    except BaseException:
        run.close()
        raise
    return counts


WAYS: dict[str, type[Local]] = {"local": Local, "jobs": Jobs, "dask": Dask}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--each", type=int, default=12, help="faults in one run, at most")
    parser.add_argument("--suites", default="quickstart,letters", help="or letters:gbrt+cegb/1")
    parser.add_argument("--ways", default="local,jobs,dask")
    parser.add_argument("--data-dir", default="")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if INSIDE not in os.environ:
        os.execvpe(
            "unshare", ["unshare", "-rnm", sys.executable, *sys.argv], os.environ | {INSIDE: "1"}
        )
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))
    ip("link set lo up")
    folder = (given.folder or Path(tempfile.mkdtemp())).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["BENCH_CACHE"] = str(folder / "cache")
    os.chdir(folder)
    total, draw = Counter[str](), random.Random(given.seed)
    turns = [(w, s) for s in given.suites.split(",") for w in given.ways.split(",")]
    kinds = {fault for way in WAYS.values() for fault in way.faults}
    while (left := given.faults - sum(total[kind] for kind in kinds)) > 0:
        way, suite = turns[total["runs"] % len(turns)]
        began = time.monotonic()
        total += one_run(WAYS[way], folder, suite, given.data_dir, min(left, given.each), draw)
        seconds = time.monotonic() - began
        print(f"{way} {suite} {seconds:.0f} s", dict(total), flush=True)
    good = total["exports equal"] == total["runs"] and not total["lost"] + total["doubled"]
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
