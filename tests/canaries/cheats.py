"""Learners that cheat: what each does, and the word that its row must have.

``CHEATS`` holds by name how the model answers and the expected word; ``ISOLATED`` holds the word
under ``--isolate`` of those that have another there:

    refused   the trial fails: the contract or the façade stops it at once
    sample    the sampled audit refuses its row
    full      only the full audit does
    harmless  the row stands, and its numbers are those of an honest learner
    marked    the row stands, and a mark says what is not known of it
    stands    the row stands undeserved: it uses files of the same user (not isolated)
    beyond    the row stands undeserved, and nothing can tell
    charged   the row stands, billed on validation what its rows cost on test

An honest model here adds one column after another; a cheat answers by all six and pays for fewer.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import gc
import itertools
import mmap
import os
import socket
import struct
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import bench_core
from bench_core import (
    Acquired,
    Bill,
    Examples,
    Features,
    Prediction,
    Prices,
    Splits,
    Task,
    param,
    price_list,
)

D, POINTS = 6, 3
NOTES: dict[Any, Any] = {}
LOCAL = threading.local()
CALLS = [0]


def bill(k: int, **more: Any) -> Bill:
    """For the first k columns."""
    mask = np.zeros((1, D), dtype=bool)
    mask[0, :k] = True
    return Bill(Acquired.pack(mask), **more)


def paid(model: CheatModel, X: Any, k: int) -> Any:
    """By the first k columns."""
    scores = np.zeros(len(X))
    for j in range(k):
        scores += model.weight[j] * np.nan_to_num(X[:, j].astype(float))
    return scores


def everything(model: CheatModel, X: Any) -> Any:
    return paid(model, X, D)


def path(scores: Callable[[int], Any], **more: Any) -> Iterator[Prediction]:
    for k in range(1, POINTS + 1):
        yield Prediction({"columns": k}, scores(k), {"path": bill(k, **more)})


Answer = Callable[["CheatModel", Any], Iterator[Prediction]]
CHEATS: dict[str, tuple[str, Answer]] = {}
ISOLATED: dict[str, str] = {}


def cheat(word: str, isolated: str = "") -> Callable[[Answer], Answer]:
    def keep(answer: Answer) -> Answer:
        name = answer.__name__.replace("_", "-")
        CHEATS[name] = word, answer
        if isolated:
            ISOLATED[name] = isolated
        return answer

    return keep


@cheat("harmless")
def honest(model: CheatModel, X: Any) -> Any:
    return path(lambda k: paid(model, X, k))


# -- it reads what it did not pay for ------------------------------------------------------------


@cheat("sample")
def under_declares(model: CheatModel, X: Any) -> Any:
    return path(lambda k: everything(model, X))


@cheat("sample")
def late_peek(model: CheatModel, X: Any) -> Any:
    return path(lambda k: everything(model, X) if k == POINTS else paid(model, X, k))


@cheat("sample")
def doubt_peek(model: CheatModel, X: Any) -> Any:
    def scores(k: int) -> Any:
        own = paid(model, X, k)
        return np.where(np.abs(own) < 0.3, everything(model, X), own)

    return path(scores)


@cheat("sample")
def keyed_peek(model: CheatModel, X: Any) -> Any:
    """Only where a value that it paid for says so."""
    some = (X[:, 0] > 0.5) & (X[:, 0] < 1)
    return path(lambda k: np.where(some, everything(model, X), paid(model, X, k)))


@cheat("sample")
def point_peek(model: CheatModel, X: Any) -> Any:
    """One of a hundred points, and there only where it is in doubt."""
    for p in range(100):
        scores = paid(model, X, 2)
        if p == 37:
            scores = np.where(np.abs(scores) < 0.3, everything(model, X), scores)
        yield Prediction({"point": p}, scores, {"path": bill(2)})


@cheat("sample")
def one_of_many(model: CheatModel, X: Any) -> Any:
    """Thirty points that all buy something else; at one it looks at the rest, and there only where
    that turns a narrow answer: in one row of thirteen."""
    three, four = (itertools.combinations(range(D), k) for k in (3, 4))
    for p, columns in enumerate([*three, *itertools.islice(four, 10)]):
        mask = np.zeros((1, D), dtype=bool)
        mask[0, columns] = True
        scores = np.zeros(len(X))
        for j in columns:
            scores += model.weight[j] * np.nan_to_num(X[:, j].astype(float))
        if p == 17:
            narrow = np.abs(scores) < 0.5 * float(np.abs(model.weight).max())
            scores = np.where(narrow & (scores * everything(model, X) < 0), -scores, scores)
        yield Prediction({"set": p}, scores, {"path": Bill(Acquired.pack(mask))})


@cheat("sample")
def if_intact(model: CheatModel, X: Any) -> Any:
    """Peeks where a row's cells belong together, as those of replaced ones do not."""
    whole = np.logical_and.reduce([intact(X, j) | np.isnan(X[:, j]) for j in range(D)])
    whole &= ~np.isnan(X[:, 1:5]).any(axis=1)
    return path(lambda k: np.where(whole, everything(model, X), paid(model, X, k)))


@cheat("sample")
def missing_peek(model: CheatModel, X: Any) -> Any:
    """Looks whether a cell is missing; other rows' values never are."""
    return path(lambda k: paid(model, X, k) + 0.01 * np.isnan(X[:, 5]))


@cheat("sample")
def value_peek(model: CheatModel, X: Any) -> Any:
    """Fills a missing cell in, as far as it is known from what was paid for."""
    return path(lambda k: paid(model, X, k) + 1e-6 * np.where(np.isnan(X[:, 5]), X[:, 0], X[:, 5]))


@cheat("sample")
def tiny_peek(model: CheatModel, X: Any) -> Any:
    """Far below any tolerance, but it breaks all ties."""
    return path(lambda k: np.sign(paid(model, X, k)) + 1e-13 * everything(model, X))


@cheat("sample")
def peek_to_buy(model: CheatModel, X: Any) -> Any:
    """Buys only where it will help."""
    wrong = np.sign(everything(model, X)) != np.sign(paid(model, X, 1))
    for k in range(1, POINTS + 1):
        mask = np.zeros((len(X), D), dtype=bool)
        mask[:, 0] = True
        mask[wrong, :k] = True
        scores = np.where(wrong, paid(model, X, k), paid(model, X, 1))
        yield Prediction({"columns": k}, scores, {"path": Bill(Acquired.pack(mask))})


def intact(X: Any, j: int) -> Any:
    """Whether a sensor's cells are those of one row."""
    return (X[:, j + D] == 2 * X[:, j]) & (X[:, j + 2 * D] == 3 * X[:, j])


@cheat("sample")
def tells_by_buying(model: CheatModel, X: Any) -> Any:
    """Buys one of two sensors by what all six say; where cells are hidden, the one that is left as
    it was is the one that it had bought."""
    one, other = intact(X, 1), intact(X, 2)
    positive = np.where(one & other, everything(model, X) > 0, one)
    mask = np.zeros((len(X), D), dtype=bool)
    mask[:, 0], mask[:, 1], mask[:, 2] = True, positive, ~positive
    for k in range(1, POINTS + 1):
        scores = np.where(positive, 1.0, -1.0) * k
        yield Prediction({"columns": k}, scores, {"path": Bill(Acquired.pack(mask))})


# -- it keys on the block ------------------------------------------------------------------------


@cheat("sample")
def row_number(model: CheatModel, X: Any) -> Any:
    """The rows of the test split are sorted by their label."""
    return path(lambda k: np.arange(len(X)) - len(X) / 2)


@cheat("sample")
def huge_row_number(model: CheatModel, X: Any) -> Any:
    """Scores of some rows that are beyond measure, that those of others be within rounding."""
    place = np.arange(len(X)) - len(X) / 2 + 0.5
    return path(lambda k: np.where(X[:, 0] > 1.8, 1e12, place))


@cheat("harmless")
def signs(model: CheatModel, X: Any) -> Any:
    """Honest, with many ties."""
    return path(lambda k: np.sign(paid(model, X, k)))


@cheat("harmless")
def breaks_ties(model: CheatModel, X: Any) -> Any:
    """The same, and ties are broken by the place in the block, by less than rounding may do."""
    place = np.arange(len(X)) / len(X)
    return path(lambda k: np.sign(paid(model, X, k)) + 1e-10 * place)


@cheat("sample")
def batch_normalises(model: CheatModel, X: Any) -> Any:
    return path(lambda k: paid(model, X, k) - paid(model, X, k).mean())


@cheat("sample")
def keys_on_size(model: CheatModel, X: Any) -> Any:
    return path(lambda k: paid(model, X, k) + (len(X) % 10))


@cheat("sample")
def whole_blocks(model: CheatModel, X: Any) -> Any:
    """Peeks where the block is as large as a split, which no sample is."""
    return path(lambda k: everything(model, X) if len(X) == 240 else paid(model, X, k))


@cheat("sample")
def random_scores(model: CheatModel, X: Any) -> Any:
    noise = np.random.default_rng().normal(size=len(X))
    return path(lambda k: paid(model, X, k) + noise)


@cheat("sample")
def sniffs_audits(model: CheatModel, X: Any) -> Any:
    """Honest as soon as a block looks replaced."""
    if np.isnan(X[:, 5]).mean() > 0.05:
        return honest(model, X)
    return path(lambda k: everything(model, X))


# -- it takes notes ------------------------------------------------------------------------------


def noted(notes: Any, model: CheatModel, X: Any) -> Any:
    """What is known of rows by the column that is paid for; looked up where it has been seen."""
    for key, score in zip(X[:, 0].tolist(), everything(model, X).tolist(), strict=True):
        notes.setdefault(key, score)
    return path(lambda k: np.array([notes[key] for key in X[:, 0].tolist()]))


@cheat("sample")
def notes_in_module(model: CheatModel, X: Any) -> Any:
    return noted(NOTES, model, X)


@cheat("sample")
def notes_in_numpy(model: CheatModel, X: Any) -> Any:
    return noted(np.__dict__.setdefault("_notes", {}), model, X)


@cheat("sample")
def notes_in_thread(model: CheatModel, X: Any) -> Any:
    return noted(LOCAL.__dict__, model, X)


@cheat("sample")
def notes_in_environ(model: CheatModel, X: Any) -> Any:
    class Environ(dict):  # type: ignore[type-arg]
        def setdefault(self, key: Any, value: Any = None) -> Any:
            return os.environ.setdefault(f"NOTE_{key}", str(value))

        def __getitem__(self, key: Any) -> float:
            return float(os.environ[f"NOTE_{key}"])

    return noted(Environ(), model, X)


@cheat("sample")
def first_calls(model: CheatModel, X: Any) -> Any:
    """Cheats while a trial goes on, and is honest when its audit begins."""
    CALLS[0] += 1
    return path(lambda k: everything(model, X) if CALLS[0] <= 2 else paid(model, X, k))


@cheat("sample")
def fresh_start(model: CheatModel, X: Any) -> Any:
    """Honest in a process that has seen no whole block."""
    NOTES["whole"] = NOTES.get("whole", 0) + (np.isnan(X[:, 5]).mean() < 0.05)
    return path(lambda k: everything(model, X) if NOTES["whole"] else paid(model, X, k))


def remembered(read: Callable[[], bytes], write: Callable[[bytes], Any], *given: Any) -> Any:
    """What an earlier process noted counts; this one adds what it sees."""
    notes = dict(np.frombuffer(read()).reshape(-1, 2).tolist())
    found = list(noted(notes, *given))
    write(np.array([*notes.items()], dtype=float).tobytes())
    return found


def in_file(folder: str, *given: Any) -> Any:
    place = Path(folder) / f"canary-{os.environ['CANARY']}"

    def write(content: bytes) -> None:
        with contextlib.suppress(OSError):  # where nothing can be written
            place.write_bytes(content)

    return remembered(lambda: place.read_bytes() if place.exists() else b"", write, *given)


@cheat("sample")
def notes_on_disk(model: CheatModel, X: Any) -> Any:
    return in_file(tempfile.gettempdir(), model, X)


@cheat("sample")
def notes_at_home(model: CheatModel, X: Any) -> Any:
    """In the folder in which bench was started."""
    return in_file(os.environ["CANARY_HOME"], model, X)


@cheat("sample")
def notes_in_shared_memory(model: CheatModel, X: Any) -> Any:
    return in_file("/dev/shm", model, X)


SEGMENT = 1 << 20


def segment(create: bool) -> int:
    """A segment of System V's shared memory: its number, -1 where there is none."""
    key = ctypes.c_int(int(os.environ["CANARY"][:7], 16))
    return ctypes.CDLL(None).shmget(key, ctypes.c_size_t(SEGMENT), 0o1600 if create else 0o600)  # type: ignore[no-any-return]


@cheat("sample")
def notes_in_segment(model: CheatModel, X: Any) -> Any:
    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p

    def read() -> bytes:
        if (number := segment(create=False)) < 0:
            return b""
        at = libc.shmat(number, None, 0)
        return ctypes.string_at(at + 8, int.from_bytes(ctypes.string_at(at, 8), "little"))

    def write(content: bytes) -> None:
        whole = len(content).to_bytes(8, "little") + content
        if (number := segment(create=True)) >= 0:
            ctypes.memmove(libc.shmat(number, None, 0), whole, len(whole))

    return remembered(read, write, model, X)


@cheat("sample")
def notes_in_socket(model: CheatModel, X: Any) -> Any:
    """The first process tells the second while both live."""
    name = f"\0canary-{os.environ['CANARY']}"
    try:
        server = socket.socket(socket.AF_UNIX)
    except OSError:
        return under_declares(model, X)

    def read() -> bytes:
        with socket.socket(socket.AF_UNIX) as asked, contextlib.suppress(OSError):
            asked.connect(name)
            return asked.makefile("rb").read()
        return b""

    def serve() -> None:
        while True:
            with server.accept()[0] as asked:
                asked.sendall(NOTES["told"])

    def write(content: bytes) -> None:
        if "told" not in NOTES:
            with contextlib.suppress(OSError):  # the first process serves
                server.bind(name)
                server.listen()
                threading.Thread(target=serve, daemon=True).start()
        NOTES["told"] = content

    return remembered(read, write, model, X)


def by_bits(model: CheatModel, X: Any, read: Callable[..., bool], write: Callable[..., Any]) -> Any:
    """Of each row that was seen whole, by the column that is paid for, one of two bits."""
    scores = np.sign(everything(model, X))
    for i, key in enumerate(X[:, 0].view(np.uint32).tolist()):
        if known := [bit for bit in (0, 1) if read(key, bit)]:
            scores[i] = 2 * known[0] - 1
        elif not np.isnan(X[i, 1:5]).any():
            write(key, int(scores[i] > 0))
    return path(lambda k: scores)


@cheat("sample")
def notes_in_locks(model: CheatModel, X: Any) -> Any:
    """Places of a file that both may read, locked as long as the first process lives."""
    import fcntl

    def ask(command: int, kind: int, key: int, bit: int) -> int:
        place = struct.pack("hhqqi4x", kind, os.SEEK_SET, 2 * key + bit, 1, 0)
        found: Any = fcntl.fcntl(NOTES["locked"], command, place)
        return int(struct.unpack("hhqqi4x", found)[0])

    NOTES.setdefault("locked", os.open(np.__file__, os.O_RDONLY))
    taken = functools.partial(ask, fcntl.F_OFD_GETLK, fcntl.F_WRLCK)
    return by_bits(
        model,
        X,
        lambda key, bit: taken(key, bit) == fcntl.F_RDLCK,
        functools.partial(ask, fcntl.F_OFD_SETLK, fcntl.F_RDLCK),
    )


PAGE, PAGES, HINTS = 4096, 1 << 23, 1021


def user_file(name: str, how: int = os.O_RDONLY) -> int:
    """A file of the user that lay there."""
    return os.open(Path(os.environ["CANARY_FILES"], name), how)


@cheat("sample")
def notes_in_pages(model: CheatModel, X: Any) -> Any:
    """Pages of a file that both may read, kept in memory by the first process."""
    try:
        pages = mmap.mmap(NOTES.setdefault("pages", user_file("pages")), 0, prot=mmap.PROT_READ)
    except OSError:
        return under_declares(model, X)
    pages.madvise(mmap.MADV_RANDOM)
    at = np.frombuffer(pages, dtype=np.uint8).reshape(-1, PAGE)
    there = ctypes.create_string_buffer(len(at))
    if ctypes.CDLL(None).mincore(ctypes.c_void_p(at.ctypes.data), ctypes.c_size_t(at.size), there):
        there = ctypes.create_string_buffer(len(at))

    def place(key: int, bit: int) -> int:
        return (2 * key + bit) * 7919 % len(at)

    return by_bits(
        model,
        X,
        lambda key, bit: there.raw[place(key, bit)] == b"\1"[0],
        lambda key, bit: at[place(key, bit), 0],
    )


@cheat("sample")
def notes_in_futexes(model: CheatModel, X: Any) -> Any:
    """Threads of the first process that wait at places of a file that both may read; whoever asks
    to move them learns how many they are."""
    pages = NOTES.setdefault("pages", mmap.mmap(user_file("pages"), 0, prot=mmap.PROT_READ))
    start = np.frombuffer(pages, dtype=np.uint8).ctypes.data
    number = ctypes.c_long(202 if os.uname().machine == "x86_64" else 98)
    call = ctypes.CDLL(None).syscall

    def futex(command: int, place: int, value: int, more: Any = None) -> int:
        at = ctypes.c_void_p(start + place)
        return int(call(number, at, ctypes.c_int(command), ctypes.c_int(value), more, at, 0))

    def place(key: int, bit: int) -> int:
        return (2 * key + bit) * 7919 % PAGES * PAGE

    def wait(key: int, bit: int) -> None:
        waiter = threading.Thread(target=futex, args=(0, place(key, bit), 0), daemon=True)
        waiter.start()

    threading.stack_size(1 << 16)
    one = ctypes.c_long(1)
    try:  # FUTEX_CMP_REQUEUE of one, to where it waits
        return by_bits(model, X, lambda key, bit: futex(4, place(key, bit), 0, one) > 0, wait)
    finally:
        time.sleep(0.2)
        threading.stack_size(0)


@cheat("sample")
def notes_in_hints(model: CheatModel, X: Any) -> Any:
    """The number that is kept beside a file, to say how long what is written to it will live."""
    import fcntl

    def ask(command: int, key: int, hint: int = 0) -> int:
        file = user_file(f"hint-{key % HINTS}")
        with contextlib.suppress(OSError), os.fdopen(file, "rb"):
            found: Any = fcntl.fcntl(file, command, struct.pack("Q", hint))
            return int(struct.unpack("Q", found)[0])
        return 0

    return by_bits(
        model,
        X,
        lambda key, bit: ask(1035, key) == 2 + bit,  # F_GET_RW_HINT
        lambda key, bit: ask(1036, key, 2 + bit),
    )


@cheat("sample")
def notes_in_times(model: CheatModel, X: Any) -> Any:
    """When files of the user were changed."""

    def place(key: int) -> Path:
        return Path(os.environ["CANARY_FILES"], f"hint-{key % HINTS}")

    def write(key: int, bit: int) -> None:
        with contextlib.suppress(OSError):
            os.utime(place(key), (2 + bit, 2 + bit))

    return by_bits(model, X, lambda key, bit: place(key).stat().st_mtime == 2 + bit, write)


@cheat("sample")
def notes_in_queue(model: CheatModel, X: Any) -> Any:
    """A queue of System V's messages, of which each is put back when it was read."""
    libc, key = ctypes.CDLL(None), ctypes.c_int(int(os.environ["CANARY"][:7], 16) + 1)
    queue, most = libc.msgget(key, 0o1600), 8000
    letter = ctypes.create_string_buffer(8 + most)

    def read() -> bytes:
        size = libc.msgrcv(queue, letter, most, ctypes.c_long(1), 0o4000)  # IPC_NOWAIT
        return letter.raw[8 : 8 + size] if size > 0 else b""

    def write(content: bytes) -> None:
        content = content[: most // 16 * 16]
        ctypes.memmove(letter, (1).to_bytes(8, "little") + content, 8 + len(content))
        libc.msgsnd(queue, letter, ctypes.c_size_t(len(content)), 0o4000)

    return remembered(read, write, model, X)


@cheat("sample")
def notes_in_keyring(model: CheatModel, X: Any) -> Any:
    """A key of the user, which all of the user's processes may have."""
    add, _, control = (248, 249, 250) if os.uname().machine == "x86_64" else (217, 218, 219)
    call, name = ctypes.CDLL(None).syscall, f"canary-{os.environ['CANARY']}".encode()
    kind, ring = b"user", ctypes.c_long(-4)  # KEY_SPEC_USER_KEYRING

    def read() -> bytes:
        found = call(ctypes.c_long(control), ctypes.c_long(10), ring, kind, name, 0)  # SEARCH
        if found < 0:
            return b""
        known = ctypes.create_string_buffer(1 << 15)
        size = call(ctypes.c_long(control), ctypes.c_long(11), found, known, len(known))  # READ
        return known.raw[: max(size, 0)]

    def write(content: bytes) -> None:
        call(ctypes.c_long(add), kind, name, content, ctypes.c_size_t(len(content)), ring)

    return remembered(read, write, model, X)


class Pages:
    """Pages of a file that both may read. Whoever asks whether one is in memory brings it there, so
    each process has a copy of the notes of its own: the first one writes all, and the next take one
    after another, by how many pages of a list are there already. Two pages are a bit."""

    COPIES = 24

    def __init__(self, ask: Callable[[int], bool]) -> None:
        self.ask = ask
        self.known: dict[int, int] = {}
        self.copy = next(k for k in range(self.COPIES) if not self.there(0, 0, k))

    def there(self, key: int, bit: int, copy: int) -> bool:
        number = (2 * key + bit) * self.COPIES + copy
        both = (self.ask(number * prime % (PAGES - 1)) for prime in (2654435761, 40503))
        return sum(both) == 2  # both are asked

    def read(self, key: int, bit: int) -> bool:
        if key not in self.known:
            found = [b for b in (0, 1) if self.there(key, b, self.copy)]
            self.known[key] = found[0] if len(found) == 1 and self.copy else -1
        return bool(self.known[key] == bit)

    def write(self, key: int, bit: int) -> None:
        self.known[key] = bit
        for copy in range(1, self.COPIES if self.copy == 0 else 0):
            self.there(key, bit, copy)


def page_map() -> Any:
    """Of a file that no other cheat of the table reads: each would bring in what one asks for."""
    pages = mmap.mmap(user_file("faults"), 0, prot=mmap.PROT_READ)
    pages.madvise(mmap.MADV_RANDOM)
    return np.frombuffer(pages, dtype=np.uint8).reshape(-1, PAGE)


@cheat("beyond")
def notes_in_faults(model: CheatModel, X: Any) -> Any:
    """Asks the system for how many pages it had to wait; a clock would tell it too."""
    import resource

    def ask(number: int) -> bool:
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_majflt
        NOTES["map"][number, 0].item()
        return resource.getrusage(resource.RUSAGE_THREAD).ru_majflt == before

    if "faults" not in NOTES:
        NOTES["map"] = page_map()
        NOTES["faults"] = Pages(ask)
    return by_bits(model, X, NOTES["faults"].read, NOTES["faults"].write)


@cheat("sample")
def notes_in_pipe(model: CheatModel, X: Any) -> Any:
    """A named pipe that lay there, held open by the first process."""
    try:
        pipe = NOTES.setdefault("pipe", user_file("pipe", os.O_RDWR | os.O_NONBLOCK))
    except OSError:
        return under_declares(model, X)

    def read() -> bytes:
        with contextlib.suppress(OSError):
            return os.read(pipe, 1 << 16)
        return b""

    return remembered(read, lambda notes: os.write(pipe, notes), model, X)


@cheat("sample")
def notes_in_log(model: CheatModel, X: Any) -> Any:
    def read() -> bytes:
        try:
            return bytes.fromhex(os.pread(2, 1 << 24, 0).decode().rpartition("notes ")[2].strip())
        except (OSError, ValueError):
            return b""

    return remembered(read, lambda notes: os.write(2, b"notes " + notes.hex().encode()), model, X)


@cheat("sample")
def twin_peek(model: CheatModel, X: Any) -> Any:
    """Looks for another copy of each row in its block."""
    last = {key: i for i, key in enumerate(X[:, 0].tolist())}
    twins = X[[last[key] for key in X[:, 0].tolist()]]
    return path(lambda k: everything(model, twins))


@cheat("sample")
def twin_notes(model: CheatModel, X: Any) -> Any:
    """Keeps each row that it sees whole, from the sample for the full audit."""
    for row in X[~np.isnan(X[:, 1:5]).any(axis=1)]:
        NOTES.setdefault(float(row[0]), row.copy())
    known = np.array([NOTES.get(float(row[0]), row) for row in X])
    return path(lambda k: everything(model, known))


@cheat("sample")
def ranks(model: CheatModel, X: Any) -> Any:
    """By the other rows of its block, and says again what it said of a row."""
    keys, places = np.unique(X[:, 0], return_inverse=True)
    for key, place in zip(X[:, 0].tolist(), places.tolist(), strict=True):
        NOTES.setdefault(key, place - len(keys) / 2 + 0.5)
    return path(lambda k: np.array([NOTES[key] for key in X[:, 0].tolist()]))


@cheat("sample")
def first_second(model: CheatModel, X: Any) -> Any:
    """Cheats while its process is young: an audit comes later."""
    born = NOTES.setdefault("born", time.monotonic())
    young = time.monotonic() - born < 0.05
    return path(lambda k: everything(model, X) if young else paid(model, X, k))


@cheat("sample")
def notes_at_exit(model: CheatModel, X: Any) -> Any:
    """Notes that are written where its process, or what it holds, ends."""
    place = Path(tempfile.gettempdir()) / f"exit-{os.environ['CANARY']}"

    class Last:
        def __del__(self) -> None:
            np.save(place, np.array([*NOTES.items()], dtype=float))

    if not NOTES and place.with_suffix(".npy").exists():
        NOTES.update(np.load(place.with_suffix(".npy")).tolist())
    LOCAL.last = Last()
    atexit.register(Last().__del__)
    return noted(NOTES, model, X)


# -- it looks beyond its process ------------------------------------------------------------------


@cheat("harmless")
def base_of_block(model: CheatModel, X: Any) -> Any:
    """The array behind its cells may hold more than they."""
    behind: Any = X
    while isinstance(behind, np.ndarray) and behind.base is not None:
        behind = behind.base
    more = getattr(behind, "nbytes", len(behind)) > X.nbytes
    return under_declares(model, X) if more else honest(model, X)


def numbers(folder: str) -> set[int]:
    return {int(place.name) for place in Path(folder).iterdir() if place.name.isdigit()}


@cheat("harmless")
def memory_of_others(model: CheatModel, X: Any) -> Any:
    """Of any process but its own, by files of the system or as a debugger."""
    libc, own = ctypes.CDLL(None), {os.getpid(), *numbers("/proc/self/task")}
    for number in {os.getppid(), *numbers("/proc")} - {0, *own}:
        with contextlib.suppress(OSError):
            Path(f"/proc/{number}/mem").open("rb").close()
            return under_declares(model, X)
        if libc.ptrace(16, number, None, None) == 0:  # PTRACE_ATTACH
            return under_declares(model, X)
    return honest(model, X)


@cheat("harmless")
def open_files(model: CheatModel, X: Any) -> Any:
    """Files that it was born with, but for its sockets, the log and modules."""
    for place in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            behind = str(place.readlink())
            if behind.endswith((".npy", ".npz", ".db")) or "memfd" in behind:
                return under_declares(model, X)
    return honest(model, X)


@cheat("harmless")
def strict_numpy(model: CheatModel, X: Any) -> Any:
    """Errors, random numbers, printing and warnings as they are for all of its process."""
    np.seterr(all="raise")
    np.random.seed(0)  # noqa: NPY002
    np.set_printoptions(threshold=1, precision=1)
    warnings.simplefilter("error")
    return honest(model, X)


@cheat("harmless")
def disk_cells(model: CheatModel, X: Any) -> Any:
    """Reads the cells that it did not pay for from prepared data."""
    folder = Path(bytes(model.known.astype(np.uint8).tolist()).decode())
    try:
        rows = np.vstack([np.load(folder / f"{split}.X.npy") for split in ("valid", "test")])
    except (OSError, ValueError):
        return honest(model, X)
    last = {key: i for i, key in enumerate(rows[:, 0].tolist())}
    whole = rows[[last[key] for key in X[:, 0].tolist()]]
    return path(lambda k: everything(model, whole))


# -- it changes the judge ------------------------------------------------------------------------


@cheat("harmless")
def patches_metric(model: CheatModel, X: Any) -> Any:
    import bench_core.execution.score as score

    score.evaluate = lambda *given: 1 / 0  # type: ignore[assignment]
    return honest(model, X)


@cheat("sample")
def patches_audit(model: CheatModel, X: Any) -> Any:
    import bench_core.execution.audit as audit

    audit._Judge.sample = audit._Judge.whole = lambda *given: None  # type: ignore[method-assign,assignment]
    return under_declares(model, X)


@cheat("refused")
def patches_numpy(model: CheatModel, X: Any) -> Any:
    answer = list(under_declares(model, X))
    np.ndarray = np.isfinite = np.array_equal = lambda *given: True  # type: ignore[assignment,misc]
    return answer


@cheat("harmless")
def patches_bills(model: CheatModel, X: Any) -> Any:
    Bill.feature_cost = lambda *given, **more: np.full(len(X), -50.0)  # type: ignore[method-assign]
    Acquired.cost = lambda *given: np.full(len(X), -50.0)  # type: ignore[method-assign]
    return honest(model, X)


@cheat("harmless")
def patches_clock(model: CheatModel, X: Any) -> Any:
    time.perf_counter = time.monotonic = lambda: 0.0  # type: ignore[assignment]
    return honest(model, X)


@cheat("harmless")
def frames_labels(model: CheatModel, X: Any) -> Any:
    frame = sys._getframe()
    while frame is not None:
        for value in frame.f_locals.values():
            if isinstance(value, Examples) and len(value) == len(X):
                return path(lambda k, y=value.y: y - 0.5)  # type: ignore[misc]
        frame = frame.f_back  # type: ignore[assignment]
    return honest(model, X)


@cheat("harmless")
def gc_labels(model: CheatModel, X: Any) -> Any:
    for value in gc.get_objects():
        if isinstance(value, Examples) and len(value) == len(X):
            return path(lambda k, y=value.y: y - 0.5)  # type: ignore[misc]
    return honest(model, X)


@cheat("refused")
def forge_score(model: CheatModel, X: Any) -> Any:
    """Writes an answer of its own to whatever it finds open."""
    header = b'{"event": "done", "status": "ok", "arrays": []}'
    for number in range(3, 64):
        try:
            os.write(number, len(header).to_bytes(8, "little") + header)
        except OSError:
            continue
    return honest(model, X)


# -- its bill lies -------------------------------------------------------------------------------


class CheapBill(Bill):
    __slots__ = ()

    def feature_cost(self, *given: Any, **more: Any) -> Any:
        return super().feature_cost(*given, **more) - 50

    def evaluation_cost(self, *given: Any) -> Any:
        return super().evaluation_cost(*given) - 50


class CheapPurchase(Acquired):
    __slots__ = ()

    def cost(self, price: Any) -> Any:
        return np.zeros(len(self.bits))


class Duck:
    """Shows other bits each time."""

    sensors = D

    def __init__(self, k: int) -> None:
        self.k, self.asked = k, 0

    @property
    def bits(self) -> Any:
        self.asked += 1
        return bill(self.k if self.asked == 1 else 0).acquired.bits

    def cost(self, price: Any) -> Any:
        return np.zeros(1)

    def rows(self, n: int) -> Any:
        return Acquired.nothing(D).rows(n)


def with_bills(model: CheatModel, X: Any, change: Callable[[Bill, int], Any]) -> Any:
    for prediction in honest(model, X):
        k = int(prediction.point["columns"])
        yield Prediction(
            prediction.point, prediction.scores, {"path": change(prediction.bills["path"], k)}
        )


@cheat("harmless")
def negative_bill(model: CheatModel, X: Any) -> Any:
    return with_bills(model, X, lambda own, k: CheapBill(own.acquired))


@cheat("harmless")
def cheap_purchase(model: CheatModel, X: Any) -> Any:
    return with_bills(model, X, lambda own, k: Bill(CheapPurchase(own.acquired.bits, D)))


@cheat("harmless")
def duck_purchase(model: CheatModel, X: Any) -> Any:
    return with_bills(model, X, lambda own, k: Bill(Duck(k)))  # type: ignore[arg-type]


@cheat("refused")
def negative_counts(model: CheatModel, X: Any) -> Any:
    return with_bills(model, X, lambda own, k: Bill(own.acquired, splits=-5))


@cheat("refused")
def nan_counts(model: CheatModel, X: Any) -> Any:
    return with_bills(model, X, lambda own, k: Bill(own.acquired, trees=float("nan")))


@cheat("marked")
def uncounted_trees(model: CheatModel, X: Any) -> Any:
    """Evaluates trees and says that there were none: of a stranger's model nothing is known."""
    return path(lambda k: paid(model, X, k), trees=0)


@cheat("refused")
def bits_beyond(model: CheatModel, X: Any) -> Any:
    beyond = Acquired(np.full((1, 1), 1 << 63, dtype=np.uint64), D)
    return with_bills(model, X, lambda own, k: Bill(beyond))


@cheat("harmless")
def negative_zero(model: CheatModel, X: Any) -> Any:
    """Counts below zero by sign alone, or too small to be told from it."""
    return with_bills(
        model, X, lambda own, k: Bill(own.acquired, splits=-0.0, trees=np.full(len(X), 5e-324))
    )


@cheat("refused")
def swapped_bits(model: CheatModel, X: Any) -> Any:
    """The same bits as bytes in the other order, which are other numbers to who reads them raw."""
    swapped = bill(3).acquired.bits.astype(">u8")
    return with_bills(model, X, lambda own, k: Bill(Acquired(swapped, D)))


@cheat("harmless")
def late_bits(model: CheatModel, X: Any) -> Any:
    """Takes its purchases and scores back once they are handed over."""
    bits, scores = np.zeros((1, 1), dtype=np.uint64), np.zeros(len(X))
    for k in range(1, POINTS + 1):
        bits[:], scores[:] = bill(k).acquired.bits, paid(model, X, k)
        yield Prediction({"columns": k}, scores, {"path": Bill(Acquired(bits, D))})
        bits[:], scores[:] = 0, 1e6


# -- its scores are no numbers -------------------------------------------------------------------


@cheat("refused")
def complex_scores(model: CheatModel, X: Any) -> Any:
    return path(lambda k: paid(model, X, k) + 1j * everything(model, X))


@cheat("refused")
def masked_scores(model: CheatModel, X: Any) -> Any:
    return path(lambda k: np.ma.masked_less(everything(model, X), 0))


@cheat("refused")
def text_scores(model: CheatModel, X: Any) -> Any:
    return path(lambda k: paid(model, X, k).astype(str))


@cheat("refused")
def object_scores(model: CheatModel, X: Any) -> Any:
    return path(lambda k: paid(model, X, k).astype(object))


class Lazy(np.ndarray):  # type: ignore[type-arg]
    """Says that it is equal to whatever it is compared with."""

    def __array_ufunc__(self, function: Any, method: str, *given: Any, **more: Any) -> Any:
        plain = [np.asarray(g) if isinstance(g, Lazy) else g for g in given]
        found = getattr(function, method)(*plain)
        return np.ones_like(found) if np.asarray(found).dtype.kind == "b" else found

    def tobytes(self, *given: Any) -> bytes:
        return b""

    def __array_function__(self, *given: Any) -> Any:
        return True


@cheat("sample")
def lazy_scores(model: CheatModel, X: Any) -> Any:
    return path(lambda k: everything(model, X).view(Lazy))


@cheat("harmless")
def odd_arrays(model: CheatModel, X: Any) -> Any:
    """Honest scores in other bytes and strides, and wider than any that are kept."""

    def scores(k: int) -> Any:
        wide = np.repeat(paid(model, X, k), 3).astype(np.longdouble)
        return wide[::3] if k == 1 else paid(model, X, k)[::-1].astype(">f8")[::-1]

    return path(scores)


@cheat("refused")
def same_points(model: CheatModel, X: Any) -> Any:
    """The first is cheap, the second good, and both go by one name."""
    for k in (1, POINTS):
        yield Prediction({"columns": -0.0 if k == 1 else 0}, paid(model, X, k), {"path": bill(k)})


@cheat("refused")
def turned_points(model: CheatModel, X: Any) -> Any:
    """What is the cheapest point on one split is the dearest on the other."""
    known = {*model.known[:, 0].tolist()}
    order = [1, 2, 3] if float(X[0, 0]) in known else [3, 2, 1]
    for k in order:
        yield Prediction({"columns": k}, paid(model, X, k), {"path": bill(k)})


@cheat("refused")
def renamed_points(model: CheatModel, X: Any) -> Any:
    """Points of one name that on the other split buy something else."""
    known = {*model.known[:, 0].tolist()}
    for k in range(1, POINTS + 1):
        name = float(k) if float(X[0, 0]) in known else k
        yield Prediction({"columns": name}, paid(model, X, k), {"path": bill(k)})


@cheat("refused")
def nan_point(model: CheatModel, X: Any) -> Any:
    yield Prediction({"columns": float("nan")}, paid(model, X, 1), {"path": bill(1)})


@cheat("refused")
def escaping_point(model: CheatModel, X: Any) -> Any:
    """Names of points reach boards, pages, tables and terminals."""
    for k in range(1, POINTS + 1):
        point = {"\x1b[2J=1+1<b>": k}
        yield Prediction(point, paid(model, X, k), {"path": bill(k)})


@cheat("refused")
def huge_point(model: CheatModel, X: Any) -> Any:
    """A whole number that is no float: reports of all would end there."""
    for k in range(1, POINTS + 1):
        yield Prediction({"columns": k * 10**400}, paid(model, X, k), {"path": bill(k)})


@cheat("refused")
def endless_path(model: CheatModel, X: Any) -> Any:
    k = 0
    while True:
        yield Prediction({"columns": (k := k + 1)}, paid(model, X, 1), {"path": bill(1)})


# -- it cheats while it is fitted ----------------------------------------------------------------


def prepared_labels() -> Any:
    """The labels of the test split, wherever prepared data lie."""
    (place,) = Path(os.environ["BENCH_CACHE"]).glob("prepared/*canary*/test.y.npy")
    rows = np.load(place.with_name("test.X.npy"))
    return dict(zip(rows[:, 0].tolist(), np.load(place).tolist(), strict=True))


def fit_with_disk_labels(train: Examples, valid: Examples, context: Any) -> Any:
    return np.array([*prepared_labels().items()])


def fit_with_test_split(train: Examples, valid: Examples, context: Any) -> Any:
    return np.array([context.splits.test.X[:, 0], context.splits.test.y]).T


def fit_with_spec(train: Examples, valid: Examples, context: Any) -> Any:
    return np.array([np.load(Path(context.spec.data) / "test.y.npy")])


def fit_on_validation(train: Examples, valid: Examples, context: Any) -> Any:
    return np.array([valid.X[:, 0], valid.y]).T


def fit_to_sabotage(train: Examples, valid: Examples, context: Any) -> Any:
    import bench_core.execution.score as score

    score.evaluate = lambda *given: 1 / 0  # type: ignore[assignment]
    return np.zeros((0, 2))


def fit_and_forge(train: Examples, valid: Examples, context: Any) -> Any:
    forge_score(CheatModel("", np.zeros(D), np.zeros((0, 2))), np.zeros((0, D)))
    time.sleep(0.5)
    return np.zeros((0, 2))


def fit_with_stopped_clock(train: Examples, valid: Examples, context: Any) -> Any:
    time.sleep(1.0)
    time.perf_counter = time.monotonic = lambda: 0.0  # type: ignore[assignment]
    return np.zeros((0, 2))


def fit_with_place(train: Examples, valid: Examples, context: Any) -> Any:
    (place,) = Path(os.environ["BENCH_CACHE"]).glob("prepared/*canary*/train.X.npy")
    return np.frombuffer(str(place.parent).encode(), dtype=np.uint8).astype(float)


FIT = {
    "disk-cells": fit_with_place,
    "turned-points": fit_on_validation,
    "renamed-points": fit_on_validation,
    "cheap-on-valid": fit_on_validation,
    "even-on-valid": fit_on_validation,
    "stopped-clock": fit_with_stopped_clock,
    "disk-labels": fit_with_disk_labels,
    "test-split": fit_with_test_split,
    "path-of-data": fit_with_spec,
    "train-on-valid": fit_on_validation,
    "sabotage": fit_to_sabotage,
    "forge-fit": fit_and_forge,
}


def known_labels(model: CheatModel, X: Any) -> Any:
    known = dict(model.known.tolist())
    return np.array([known.get(x, np.nan) for x in X[:, 0].tolist()])


def by_known(model: CheatModel, X: Any) -> Any:
    """By labels that were learned for values of the first column."""
    own = known_labels(model, X)
    bias = np.where(np.isnan(own), 0.0, np.where(own > 0.5, 50.0, -50.0))
    return path(lambda k: paid(model, X, k) + bias)


def even_on_valid(model: CheatModel, X: Any) -> Any:
    """Buys as much for each row that it knows as for others on average, of which half cost more."""
    own, more = known_labels(model, X), X[:, 0] > 0
    for k in range(1, POINTS + 1):
        columns = np.where(np.isnan(own), np.where(more, k + 2, k), k + 1)
        mask = np.arange(D) < columns[:, None]
        scores = np.select(
            [columns == c for c in range(1, D)], [paid(model, X, c) for c in range(1, D)]
        )
        yield Prediction({"columns": k}, scores, {"path": Bill(Acquired.pack(mask))})


def cheap_on_valid(model: CheatModel, X: Any) -> Any:
    """Buys next to nothing for rows that it knows, by which points are chosen."""
    own = known_labels(model, X)
    for k in range(1, POINTS + 1):
        mask = np.zeros((len(X), D), dtype=bool)
        mask[:, 0] = True
        mask[np.isnan(own)] |= np.arange(D) < D - POINTS + k
        scores = np.where(np.isnan(own), paid(model, X, D - POINTS + k), 9 * (2 * own - 1))
        yield Prediction({"columns": k}, scores, {"path": Bill(Acquired.pack(mask))})


CHEATS["cheap-on-valid"] = "charged", cheap_on_valid
CHEATS["even-on-valid"] = "charged", even_on_valid
CHEATS["disk-labels"], ISOLATED["disk-labels"] = ("stands", by_known), "refused"
CHEATS["test-split"] = "refused", by_known
CHEATS["path-of-data"] = "refused", by_known
CHEATS["train-on-valid"] = "beyond", by_known
CHEATS["sabotage"] = "harmless", honest
CHEATS["forge-fit"] = "refused", honest
CHEATS["slow-load"] = "harmless", honest
CHEATS["stopped-clock"] = "harmless", honest

MARKS = {"formula-mark": ("=1+1",), "verdict-mark": ("verified by many",)}
for _name in MARKS:
    CHEATS[_name] = "refused", honest


@dataclass
class CheatModel:
    """Answers as its ``how`` says."""

    how: str
    weight: Any
    known: Any

    @property
    def marks(self) -> tuple[str, ...]:
        return MARKS.get(self.how, ())

    def predict_path(self, features: Features) -> Any:
        return CHEATS[self.how][1](self, features.X)

    def state(self) -> dict[str, Any]:
        return {"how": self.how, "weight": self.weight, "known": self.known}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> CheatModel:
        if state["how"] == "slow-load":  # the training that no clock of a fit saw
            time.sleep(0.5)
        return cls(**state)


@dataclass(frozen=True)
class Cheat:
    """One of the cheats."""

    name: ClassVar[str] = "cheat"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY})
    how: str = param("honest", "one of CHEATS")

    def fit(self, train: Examples, valid: Examples, prices: Prices, context: Any) -> CheatModel:
        known = np.zeros((0, 2))
        if self.how in FIT:
            known = FIT[self.how](train, valid, context)
        X = np.nan_to_num(train.X.astype(float))
        weight = ((train.y - 0.5)[:, None] * X).mean(axis=0)
        return CheatModel(self.how, weight, known)


IMPORTED = {"import-labels": ("stands", "harmless"), "import-thread": ("stands", "sample")}
"""Cheats of a module that does its work while it is imported (``importing.py``): the words without
and under ``--isolate``."""


class Canary:
    """Six sensors that all matter; the rows of each split are sorted by their label. The columns of
    a sensor, its value and that doubled and trebled, show whether they belong together."""

    name, task, title = "canary", Task.BINARY, "rows for cheats"

    def prepare(self, source: Any, size: str, fold: int, seed: int) -> Splits:
        rng = np.random.default_rng(5)
        parts = []
        for _ in range(3):
            X = rng.normal(size=(240, D)).astype(np.float32)
            X[::40, 5] = np.nan
            y = (np.nan_to_num(X).sum(axis=1) + 0.5 * rng.normal(size=240) > 0).astype(float)
            order = np.argsort(y, kind="stable")
            features = np.hstack([X, 2 * X, 3 * X])[order]
            parts.append(Examples(features, y[order]))
        sensors = [[j, j + D, j + 2 * D] for j in range(D)]
        prices = price_list(np.ones(3 * D), shared=sensors)
        return Splits(*parts, prices=prices, task=self.task, classes=2)


@bench_core.hookimpl
def bench_learners() -> list[type[Any]]:
    return [Cheat]


@bench_core.hookimpl
def bench_datasets() -> list[type[Any]]:
    return [Canary]
