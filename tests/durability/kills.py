"""Runs that are killed or meet a full disk, counted.

    python tests/durability/kills.py --kills 200 --full 10
    python tests/durability/kills.py --kills 100 --full 0 --suite quickstart

A kill ends a run of two workers by SIGKILL or SIGTERM, at a random moment: the parent, one worker,
or all of them. Just before it the store is copied by SQLite's backup. Then: every row of the copy
is in the store, unchanged; no process of the run is left after 5 seconds. A run is killed again and
again until it comes to its end, and then its export equals that of an undisturbed one, and no
temporary file is left.

A full disk ends a run in one line. What is left is a store whose rows are those of an undisturbed
run, and going on gives the same export.
"""

import argparse
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

HERE = Path(__file__).parents[1]
sys.path.insert(0, str(HERE))

from helpers import run_toys  # noqa: E402

from bench_core.errors import BenchError  # noqa: E402
from bench_core.results.store import Store  # noqa: E402
from bench_core.results.store_files import states_folder  # noqa: E402

TIMED = ["fit_seconds", "predict_seconds", "peak_rss_mb", "machine", "created_at", "run"]
PATH = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
QUIET = ("--workers", "2", "--no-progress", "--quiet")
ROW = ["learner", "params", "dataset", "fold", "seed", "split", "point"]


def start(store, mark, file_size=0):
    def limited():
        import resource

        if size := file_size:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    words = [run_toys.__file__, str(store)]
    if suite := os.environ.get("DURABILITY_SUITE"):
        words = ["-m", "bench_core", "run", "--suite", suite, "--store", str(store), *QUIET]
    return subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE if file_size else subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": PATH, "DURABILITY": mark},
        start_new_session=True,
        preexec_fn=limited,
    )


def alive(mark):
    """The processes that a run started, itself included."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state = (place / "stat").read_text().rsplit(")", 1)[1].split()[0]
            if state != "Z" and f"DURABILITY={mark}\0".encode() in (place / "environ").read_bytes():
                found.append(int(place.name))
    return found


def rows(store):
    frame = Store(store).frame().drop(columns=TIMED)
    frame = frame[frame["status"] == "ok"].sort_values(ROW, ignore_index=True)
    assert not frame.duplicated(ROW).any(), "a row is there twice"
    return frame


def copied(store, to):
    """The rows of a copy of the store, None before there is a run."""
    to.unlink(missing_ok=True)
    source = f"file:{store}?mode=ro"
    try:
        with closing(sqlite3.connect(source, uri=True)) as one, closing(sqlite3.connect(to)) as two:
            one.backup(two)
        return rows(to)
    except (sqlite3.Error, BenchError) as error:
        if "damaged" in str(error):
            raise
        return None


def finished(store):
    """How many trials have ended well."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db:
        return int(db.execute("SELECT count(*) FROM trial").fetchone()[0])
    return 0


def contained(some, whole):
    return len(some.merge(whole, how="inner")) == len(some)


class Kills:
    """Kills of runs in a folder, and what became of them."""

    def __init__(self, folder, seed):
        self.folder, self.draw, self.counts = folder, random.Random(seed), Counter[str]()
        self.whole = folder / "whole.db"
        began = time.monotonic()
        assert start(self.whole, "whole").wait() == 0
        self.seconds = time.monotonic() - began
        self.undisturbed = rows(self.whole)

    def kill(self, store):
        """Run the store once and kill it; whether it ended before that."""
        mark = f"{store.name}-{self.counts['kills']}"
        process = start(store, mark)
        copy, known = store.with_suffix(".copy"), None
        more = finished(store) + self.draw.randrange(3)
        late = time.monotonic() + (0.3 if more else self.seconds) * self.draw.random()
        while process.poll() is None and (finished(store) < more or time.monotonic() < late):
            time.sleep(0.02)
        if process.poll() is not None:
            return True
        try:
            known = copied(store, copy)
        except BenchError:  # copied in the very moment of a checkpoint
            self.counts["copies that were torn, and said so"] += 1
        self.counts["kills"] += 1
        own, way = alive(mark), self.draw.choice(("parent", "all", "worker"))
        victims = [process.pid] if way == "parent" else own
        if way == "worker":
            victims = [p for p in own if p != process.pid][:1]
        number = self.draw.choice((signal.SIGKILL, signal.SIGTERM))
        for victim in victims:
            with suppress(ProcessLookupError):
                os.kill(victim, number)
        if way == "worker":  # the run goes on without it, and ends with a crashed trial
            process.wait()
        process.wait()
        limit = time.monotonic() + 5
        while alive(mark) and time.monotonic() < limit:
            time.sleep(0.05)
        self.counts["processes after 5 s"] += len(alive(mark))
        if known is not None:
            self.counts["copies"] += 1
            self.counts["rows in copies"] += len(known)
            self.counts["rows lost"] += len(known) - len(known.merge(rows(store), how="inner"))
        return False

    def run(self, kills):
        number = 0
        while self.counts["kills"] < kills:
            number += 1
            store = self.folder / f"store{number}.db"
            while not self.kill(store) and self.counts["kills"] < kills:
                pass
            self.finish(store)
            print(dict(self.counts), flush=True)

    def finish(self, store):
        assert start(store, "end").wait() == 0
        self.counts["stores"] += 1
        self.counts["exports equal"] += rows(store).equals(self.undisturbed)
        self.counts["temporary files left"] += len([*states_folder(store).rglob(".*.new")])

    def full_disks(self, count):
        """Stores that meet a full disk while they are written."""
        for number in range(count):
            store = self.folder / f"full{number}.db"
            full = start(store, "full", file_size=self.draw.randrange(40, 90) * 1024)
            said = full.communicate()[1]
            clear = "make room and run again" in said.splitlines()[-1] if said else False
            self.counts["full disks without a word"] += full.returncode != 0 and not clear
            left = rows(store) if store.exists() else self.undisturbed[:0]
            self.counts["full disks with wrong rows"] += not contained(left, self.undisturbed)
            self.finish(store)
        print(dict(self.counts), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--full", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--suite", default="", help="other than a run of toys")
    given = parser.parse_args()
    os.environ["DURABILITY_SUITE"] = given.suite
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["BENCH_CACHE"] = f"{folder}/cache"
        made = Kills(Path(folder), given.seed)
        made.full_disks(given.full)
        made.run(given.kills)
        bad = (
            "rows lost",
            "processes after 5 s",
            "full disks with wrong rows",
            "temporary files left",
            "full disks without a word",
        )
        assert not any(made.counts[name] for name in bad), dict(made.counts)
        assert made.counts["exports equal"] == made.counts["stores"], dict(made.counts)


if __name__ == "__main__":
    main()
