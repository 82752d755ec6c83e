"""Processes with all that they started."""

import os
import subprocess
import sys
import time

import psutil
import pytest

from bench_core._io.machine import descendants, end_all, memory_of

TREE = (
    "import subprocess, sys, time\n"
    "below = 'print(flush=True); held = bytearray(80 << 20); import time; time.sleep(600)'\n"
    "subprocess.Popen([sys.executable, '-c', below], start_new_session=True)\n"
    "time.sleep(600)\n"
)


@pytest.fixture
def tree():
    """A process with a child that has left its session."""
    with subprocess.Popen([sys.executable, "-c", TREE], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        root = psutil.Process(process.pid)
        yield root
        end_all(root)


def test_descendants_are_seen_and_their_memory_counts(tree):
    below = descendants(tree)
    assert [child.ppid() for child in below] == [tree.pid]
    until = time.monotonic() + 30
    while memory_of([tree, *below], 1 << 40) < 80 << 20 and time.monotonic() < until:
        time.sleep(0.01)
    assert memory_of([tree, *below], 1 << 40) > 80 << 20 > memory_of([tree], 1 << 40)
    assert memory_of([tree, *below], 0) > 80 << 20


def test_all_that_a_process_started_ends_with_it(tree):
    below = descendants(tree)
    assert below
    end_all(tree)
    _, alive = psutil.wait_procs([tree, *below], timeout=10)
    assert not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]


def test_what_its_parent_cut_off_is_ended_where_it_was_known(tree):
    below = descendants(tree)
    tree.kill()
    end_all(tree, below)
    _, alive = psutil.wait_procs(below, timeout=10)
    assert not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]


def test_a_process_that_has_ended_has_nothing():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        ended = psutil.Process(process.pid)
        process.wait()
    assert descendants(ended) == []
    assert memory_of([ended], 0) == 0
    end_all(ended)


@pytest.mark.skipif(os.name != "posix", reason="fork")
def test_children_are_known_until_they_end():
    code = (
        "import subprocess, sys; from bench_core._io.machine import has_children\n"
        "print(has_children()); child = subprocess.Popen([sys.executable, '-c', 'input()'],"
        "stdin=subprocess.PIPE); print(has_children()); child.communicate(b'x\\n')\n"
        "print(has_children())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "False"]


BOTH = """
import sys
from bench_core._io import machine
first = machine.kernels()
import scipy.linalg
machine.kernels.cache_clear()
assert machine.kernels() == first, (first, machine.kernels())
assert "BLAS ?" not in first, first
"""


def test_the_kernels_are_those_with_all_of_scipys_linear_algebra_loaded():
    subprocess.run([sys.executable, "-c", BOTH], check=True)
