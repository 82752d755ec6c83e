"""Looking at processes that end while they are looked at."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench_core._io.processes import (
    Thread,
    computing,
    descendants,
    own_memory,
    running_elsewhere,
    threads_of,
    waited_seconds,
)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize("error", [ProcessLookupError, FileNotFoundError])
@pytest.mark.parametrize("step", ["listing", "reading"])
def test_a_process_may_end_at_any_moment(
    monkeypatch: pytest.MonkeyPatch, step: str, error: type[OSError]
) -> None:
    # The kernel answers "no such process" where the folder was opened before the process ended.
    def gone(*_: object, **__: object) -> None:
        raise error

    if step == "listing":
        monkeypatch.setattr(os, "listdir", gone)
        monkeypatch.setattr(os, "scandir", gone)
    else:
        monkeypatch.setattr(Path, "read_bytes", gone)
        monkeypatch.setattr(Path, "read_text", gone)
    process = os.getpid()
    assert threads_of([process]) == {}
    assert descendants(process) == []
    if step == "reading":
        assert own_memory([process], 0) == waited_seconds([process]) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_child_and_its_computing_are_seen() -> None:
    program = "import sys; sys.stdout.write('x'); sys.stdout.flush(); exec('while True: pass')"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            child.stdout.read(1)
            assert child.pid in descendants(os.getpid())
            (computes,) = threads_of([child.pid]).values()
            assert computes.ready
        finally:
            child.kill()
    assert threads_of([child.pid]) == {}


def looked(*threads: Thread) -> dict[Path, Thread]:
    return {Path(f"/proc/1/task/{number}"): thread for number, thread in enumerate(threads)}


def test_threads_that_share_the_time_compute_and_not_those_awake_for_a_moment() -> None:
    before = looked(Thread(True, 5_000_000), Thread(False, 70), Thread(True, 0))
    hardly = looked(Thread(True, 15_000_000), Thread(True, 100_070), Thread(False, 0))
    assert computing(before, hardly) == pytest.approx(1.02, abs=0.001)
    equal = looked(Thread(True, 9_000_000), Thread(True, 4_000_070), Thread(True, 4_000_000))
    assert computing(before, equal) == 3
    in_turn = looked(Thread(False, 9_000_000), Thread(True, 4_000_070), Thread(False, 4_000_000))
    assert computing(before, in_turn) == 1
    assert computing(before, before) == 2  # no time to share yet
    assert computing({}, looked(*[Thread(True, 2_000_000)] * 4)) == 4


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="schedstat")
def test_of_two_that_share_a_processor_one_waits() -> None:
    core = min(os.sched_getaffinity(0))
    program = f"import os; os.sched_setaffinity(0, [{core}]); exec('while True: pass')"
    pair = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(2)]
    try:
        until = time.monotonic() + 30
        while waited_seconds(each.pid for each in pair) < 0.05 and time.monotonic() < until:
            time.sleep(0.01)
        assert waited_seconds(each.pid for each in pair) >= 0.05
        assert running_elsewhere() >= 1.5  # one waits, and wants a processor all the same
    finally:
        for each in pair:
            each.kill()
            each.wait()
