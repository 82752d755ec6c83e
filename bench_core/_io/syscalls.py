"""A filter of system calls (Linux): what lets processes signal each other through the kernel, and
what a model that gets cells and answers with numbers does not need (seccomp(2)). A stranger's
learner has the same filter under ``--isolate``, but for ``FOR_LEARNERS``.

Locks are granted and lock nothing, so that what uses them for files of its own works on; advice on
what to keep in memory is taken and forgotten. Waiting for memory that processes share (futex(2)
without ``FUTEX_PRIVATE_FLAG``: by its place in a file, also one that is only read) returns at once,
as it may at any time, so that threads that end are joined and locks of ``multiprocessing`` work,
without sleep; a wait with a time limit is over at once, and nobody is woken. All else is refused.
"""

import contextlib
import ctypes
import errno
import os
import platform
import re
import struct
from collections.abc import Container, Iterator
from pathlib import Path

_CALLS = {  # numbers on x86-64, and on AArch64 and RISC-V; 0: there is none
    "flock": (73, 32),
    "fadvise64": (221, 223),
    "mincore": (27, 232),
    "cachestat": (451, 451),
    "inotify_init": (253, 0),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "socket": (41, 198),
    "mq_open": (240, 180),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "unshare": (272, 97),
    "setns": (308, 268),
    "clone3": (435, 435),
    "io_uring_setup": (425, 425),
    "fcntl": (72, 25),
    "madvise": (28, 233),
    "preadv2": (327, 286),
    "clone": (56, 220),
    "ioctl": (16, 29),
    "futex_waitv": (449, 449),
    "futex_wake": (454, 454),
    "futex_wait": (455, 455),
    "futex_requeue": (456, 456),
}
_FUTEX = 202, 98
_ARCHITECTURES = {
    "x86_64": (0xC000003E, 0),
    "aarch64": (0xC00000B7, 1),
    "riscv64": (0xC00000F3, 1),
}
_GRANTED = 0
_ANSWERS = {"flock": _GRANTED, "fadvise64": _GRANTED, "clone3": errno.ENOSYS}
_ANSWERS |= {f"futex_{name}": errno.ENOSYS for name in ("waitv", "wake", "wait", "requeue")}
_EQUAL, _ANY_BIT = 0x15, 0x45
_NOTES = (1024, 1025, 1026, 1031, 1032, *range(1035, 1039))
"""F_SETLEASE, _GETLEASE, _NOTIFY, _SETPIPE_SZ, _GETPIPE_SZ, and _GET and _SET_RW_HINT and
_FILE_RW_HINT: a number that the kernel keeps beside a file which may be read only."""
_KEYS = (0xC0506617, 0xC0406618, 0xC0406619, 0xC080661A)
"""FS_IOC_..._ENCRYPTION_KEY..., a keyring of each file system."""
_BY_ARGUMENT = {  # which argument, and the answer where it equals a value or has any of its bits
    "fcntl": (
        1,
        [(_EQUAL, command, _GRANTED) for command in (5, 6, 7, 36, 37, 38)]
        + [(_EQUAL, command, errno.EPERM) for command in _NOTES],
    ),  # F_GETLK, _SETLK(W), F_OFD_...
    "madvise": (2, [(_EQUAL, advice, _GRANTED) for advice in (20, 21)]),  # MADV_COLD, _PAGEOUT
    "preadv2": (5, [(_ANY_BIT, 8, errno.EOPNOTSUPP)]),  # RWF_NOWAIT
    "clone": (0, [(_ANY_BIT, 0x7E02_0080, errno.EPERM)]),  # CLONE_NEW...
    "ioctl": (1, [(_EQUAL, command, errno.EPERM) for command in _KEYS]),
}
FOR_LEARNERS: tuple[str, ...] = (
    "socket",
    "mq_open",
    "shmget",
    "semget",
    "msgget",
    "clone3",
    "unshare",
    "clone",
)
FOR_LEARNERS += ("futex", "futex_waitv", "futex_wake", "futex_wait", "futex_requeue")
"""What only a model does not need. Namespaces keep a private learner's apart from others', but for
futexes in files."""
_LOAD, _RETURN, _AT_LEAST, _AND = 0x20, 0x06, 0x35, 0x54
_PRIVATE, _REAL_TIME = 128, 256  # FUTEX_PRIVATE_FLAG, FUTEX_CLOCK_REALTIME
_WAIT, _WAKE, _WAIT_BITSET, _WAKE_BITSET = 0, 1, 9, 10
_ALLOW, _ANSWER = 0x7FFF_0000, 0x0005_0000
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2  # prctl(2)
_NONE = (ctypes.c_ulong(0),) * 3
_LANDLOCK = [(ctypes.c_long(number),) for number in (444, 445, 446)]
_BENEATH, _WRITE_FILE = ctypes.c_int(1), 2  # LANDLOCK_RULE_PATH_BENEATH, _ACCESS_FS_WRITE_FILE
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # places in seccomp_data
_OTHER_ABI = 0x4000_0000  # x32


def filter_calls(let: Container[str] = ()) -> None:
    """Filter the calls of this process, which may have one thread only, and of all that it starts,
    but those of these names. Raises OSError where the system does not allow it."""
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"system calls of {machine} are not known here")
    code = b"".join(struct.pack("HBBI", *line) for line in _program(*_ARCHITECTURES[machine], let))
    lines = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(lines))
    libc = ctypes.CDLL(None, use_errno=True)
    _keep_privileges(libc)
    if libc.prctl(_SECCOMP, ctypes.c_ulong(_FILTER), program, *_NONE[:2]):
        number = ctypes.get_errno()
        raise OSError(number, f"a filter of system calls: {os.strerror(number)}")


def write_below_mounts() -> None:
    """Let this process open nothing for writing but what is mounted so: on read-only mounts that
    still is possible for named pipes, which two processes share (landlock(7), Linux 5.13). Where
    the system does not have that, nothing is done."""
    libc = ctypes.CDLL(None, use_errno=True)
    _keep_privileges(libc)
    write = struct.pack("Q", _WRITE_FILE)
    rules = libc.syscall(*_LANDLOCK[0], write, ctypes.c_size_t(len(write)), _NONE[0])
    if rules < 0:
        return
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        place, options = line.split()[4:6]
        if "rw" not in options.split(","):
            continue
        with contextlib.suppress(OSError):  # hidden by another one
            place = re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), place)
            folder = os.open(place, os.O_PATH)
            below = struct.pack("=Qi", _WRITE_FILE, folder)
            libc.syscall(*_LANDLOCK[1], ctypes.c_int(rules), _BENEATH, below, _NONE[0])
            os.close(folder)
    libc.syscall(*_LANDLOCK[2], ctypes.c_int(rules), _NONE[0])
    os.close(rules)


def _keep_privileges(libc: ctypes.CDLL) -> None:
    """Without this no process may be confined but by root."""
    libc.prctl(_NO_NEW_PRIVILEGES, ctypes.c_ulong(1), *_NONE)


def _program(
    architecture: int, column: int, let: Container[str]
) -> Iterator[tuple[int, int, int, int]]:
    """Lines of BPF: operation, lines to skip if true, if false, operand."""
    yield _LOAD, 0, 0, _ARCHITECTURE
    yield _EQUAL, 1, 0, architecture
    yield _answer(errno.ENOSYS)
    yield _LOAD, 0, 0, _NUMBER
    yield _AT_LEAST, 0, 1, _OTHER_ABI
    yield _answer(errno.ENOSYS)
    for name, numbers in _CALLS.items():
        if name in let:
            continue
        number = numbers[column]
        if name not in _BY_ARGUMENT:
            yield _EQUAL, 0, 1, number or _OTHER_ABI
            yield _answer(_ANSWERS.get(name, errno.EPERM))
            continue
        argument, tests = _BY_ARGUMENT[name]
        yield _EQUAL, 0, 2 * len(tests) + 2, number
        yield _LOAD, 0, 0, _ARGUMENTS + 8 * argument
        for operation, operand, answer in tests:
            yield operation, 0, 1, operand
            yield _answer(answer)
        yield _LOAD, 0, 0, _NUMBER
    if "futex" not in let:
        yield from _shared_futexes(_FUTEX[column])
    yield _RETURN, 0, 0, _ALLOW


def _shared_futexes(number: int) -> Iterator[tuple[int, int, int, int]]:
    """What processes wait for together by a place in memory. Those of one process are allowed."""
    limit = _ARGUMENTS + 8 * 3
    lines = [
        (_LOAD, 0, 0, _ARGUMENTS + 8),
        (_ANY_BIT, 0, 1, _PRIVATE),
        (_RETURN, 0, 0, _ALLOW),
        (_AND, 0, 0, 0xFFFF_FFFF ^ _REAL_TIME),
        (_EQUAL, 5, 0, _WAIT),
        (_EQUAL, 4, 0, _WAIT_BITSET),
        (_EQUAL, 1, 0, _WAKE),
        (_EQUAL, 0, 1, _WAKE_BITSET),
        _answer(_GRANTED),
        _answer(errno.ENOSYS),  # what hands on a lock, which nothing else does in its place
        (_LOAD, 0, 0, limit),
        (_EQUAL, 0, 2, 0),
        (_LOAD, 0, 0, limit + 4),  # the other half of the address
        (_EQUAL, 1, 0, 0),
        _answer(errno.ETIMEDOUT),
        _answer(_GRANTED),
    ]
    yield _EQUAL, 0, len(lines), number
    yield from lines


def _answer(number: int) -> tuple[int, int, int, int]:
    """Return this error instead of doing the call; 0: say that it was done."""
    return _RETURN, 0, 0, _ANSWER | number
