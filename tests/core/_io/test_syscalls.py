"""What the filter of system calls leaves to a model, and what it closes."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.machine() not in ("x86_64", "aarch64"),
    reason="needs a filter of system calls",
)

FUTEX = """
import ctypes, fcntl, mmap, os, struct, sys, threading, time
import numpy as np

file = os.open(np.__file__, os.O_RDONLY)
pages = mmap.mmap(file, 0, prot=mmap.PROT_READ)
start = np.frombuffer(pages, dtype=np.uint8).ctypes.data
number = ctypes.c_long(202 if os.uname().machine == "x86_64" else 98)
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def futex(address, command, value, limit=None):
    at = ctypes.c_void_p(address)
    found = libc.syscall(number, at, ctypes.c_int(command), ctypes.c_int(value), limit, None, 1)
    return found, ctypes.get_errno() if found < 0 else 0


def word():
    return struct.unpack_from("i", pages, 0)[0]
"""


def filtered(code: str, seconds: float = 60.0, *let: str) -> list[str]:
    """The lines that this prints in a process with the filter, but for what it ``let``s."""
    begin = f"from bench_core._io.syscalls import filter_calls; filter_calls({let!r})\n"
    asked = [sys.executable, "-c", begin + code]
    said = subprocess.run(asked, capture_output=True, text=True, timeout=seconds, check=False)
    assert said.returncode == 0, said.stderr
    return said.stdout.splitlines()


def test_nobody_is_woken_by_a_place_in_a_file_that_both_may_read() -> None:
    wake = f"{FUTEX}\nprint(futex(start, 1, 9)[0])"
    wait = f"""{FUTEX}
import subprocess
woken = []
waiting = threading.Thread(target=lambda: woken.append(futex(start, 0, word())), daemon=True)
waiting.start()
time.sleep(0.3)
waits = waiting.is_alive()
said = subprocess.run([sys.executable, "-c", {wake!r}], capture_output=True, text=True).stdout
print(waits, said.strip())
"""
    assert filtered(wait, 60.0, "futex") == ["True 1"]  # the channel is there
    assert filtered(wait) == ["False 0"]


def test_shared_futexes_return_at_once_and_those_of_one_process_are_as_before() -> None:
    code = f"""{FUTEX}
own = np.zeros(1, dtype=np.int32)
second = struct.pack("qq", 0, 50_000_000)
for command in (0, 9, 0 | 256, 9 | 256):
    print(futex(start, command, word()), futex(start, command, word(), second))
print(futex(start, 1, 1), futex(start, 10, 1), futex(start, 6, 0), futex(start, 4, 1))
begin = time.monotonic()
print(futex(own.ctypes.data, 128, 0, second), time.monotonic() - begin > 0.04)
print(futex(own.ctypes.data, 128, 1, second), futex(own.ctypes.data, 129, 1))
"""
    out, again, known = (-1, 110), (-1, 11), (0, 0)  # ETIMEDOUT, EAGAIN
    *waits, others, slept, private = filtered(code)
    assert waits == [f"{known} {out}"] * 4
    assert others == f"{known} {known} {(-1, 38)} {(-1, 38)}"  # ENOSYS
    assert (slept, private) == (f"{out} True", f"{again} {known}")


def test_no_number_is_kept_beside_a_file_that_may_be_read_only() -> None:
    code = f"""{FUTEX}
for command in (1035, 1036, 1037, 1038):
    try:
        fcntl.fcntl(file, command, struct.pack("Q", 0))
        print("done")
    except OSError as error:
        print(error.errno)
"""
    assert filtered(code) == ["1"] * 4
    assert filtered(code, 60.0, "futex") == ["1"] * 4


def test_threads_and_processes_of_a_model_wait_for_each_other() -> None:
    code = """
import multiprocessing, threading, time
from concurrent.futures import ThreadPoolExecutor
import numpy as np


def square(x):
    return x * x


def add(total, lock):
    for _ in range(200):
        with lock:
            total.value += 1


with ThreadPoolExecutor(4) as pool:
    print(sum(pool.map(square, range(100))))
fork = multiprocessing.get_context("fork")
with fork.Pool(2) as pool:
    print(sum(pool.map(square, range(100), chunksize=7)))
total, lock = fork.Value("i", 0, lock=False), fork.Lock()
own = [fork.Process(target=add, args=(total, lock)) for _ in range(3)]
[one.start() for one in own]
[one.join() for one in own]
print(total.value)
event = fork.Event()
print(event.wait(0.01))
event.set()
print(event.wait(5))
print(np.linalg.norm(np.ones((400, 400)) @ np.ones((400, 400))) > 0)
"""
    assert filtered(code) == ["328350", "328350", "600", "False", "True", "True"]
