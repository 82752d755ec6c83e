"""User, mount, network, IPC and process namespaces for one process (Linux): files out of sight, no
network, and, for a stranger's learner, nothing to write to that another process can read.

Mounts are locked in a second pair of namespaces, so that what runs there, with all rights in its
own, cannot take them away (user_namespaces(7), mount_namespaces(7)).
"""

import ctypes
import errno
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from bench_core._io.plugin_folders import code_folders
from bench_core.errors import UsageError

_USER, _MOUNT, _NETWORK = 0x1000_0000, 0x0002_0000, 0x4000_0000  # CLONE_NEW...
_IPC, _PROCESSES = 0x0800_0000, 0x2000_0000
_BIND, _RECURSIVE, _PRIVATE = 4096, 1 << 14, 1 << 18  # MS_...
_SET_ATTRIBUTES, _HERE, _BELOW, _READ_ONLY = 442, -100, 0x8000, 1  # mount_setattr(2)
_PROBE = (
    "import sys; sys.path[:] = {path!r}; from bench_core._io.namespaces import confine; "
    "from bench_core.execution.guard import enclosed; confine([], [], [], True); enclosed(); "
    "from bench_core._io.syscalls import filter_calls; filter_calls()"
)
_EMPTY = ("/var/tmp", "/run", "/dev", "/tmp")
_DEVICES = ("null", "zero", "full", "random", "urandom")
_ABOUT_THE_SYSTEM = "/sys/devices/system"
_STEADY = ("cpuinfo", "filesystems", "version")  # of /proc: what no process can change
_COUNTS = ("meminfo", "stat", "uptime")  # as they are when the process starts
NOT_POSSIBLE = 78
"""Exit status of a process that the system does not let be private."""
PRIVATE_SIZE = "1g"
"""What a process may write to its private folders together."""

_hidden: list[Sequence[str]] = []


def hidden() -> Sequence[str] | None:
    """What is hidden from this process, None where it is not confined."""
    return _hidden[-1] if _hidden else None


def confine(
    hidden: Sequence[str],
    shown: Sequence[str],
    places: Sequence[Sequence[str]],
    private: bool = False,
) -> None:
    """Move this process into its namespaces. Raises OSError where the system does not allow it.

    ``hidden`` are files and folders, ``shown`` files in them that can be read, ``places`` pairs of
    a folder and where it is to be seen, and written to. ``private``: nothing but those and private
    folders can be written to; folders for temporary files and devices are empty.
    """
    here = Path.cwd()
    _unshare(_USER | _MOUNT | _NETWORK | (_IPC if private else 0))
    _mount(None, "/", _RECURSIVE | _PRIVATE)
    files = {path: os.open(path, os.O_PATH) for path in shown}
    folders = {at: os.open(path, os.O_PATH) for path, at in places}
    nothing = os.open(os.devnull, os.O_PATH)
    if private:
        _make_private()
    for path in sorted(map(Path, hidden)):
        if path.is_dir():
            _mount("tmpfs", str(path), 0, "tmpfs", f"mode=0755,size={PRIVATE_SIZE}")
        elif path.exists():
            _bind(nothing, path)
    for at, folder in folders.items():
        Path(at).mkdir(parents=True, exist_ok=True)
        _bind(folder, Path(at))
        _let(at, write=True)
    for name, file in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
        _bind(file, Path(name))
        _let(name, write=False)
    for handle in (*files.values(), *folders.values(), nothing):
        os.close(handle)
    _hidden[:] = [hidden]
    here.mkdir(parents=True, exist_ok=True)
    os.chdir(here)  # what lies under a mount could be reached through it
    _unshare(_USER | _MOUNT)


def _make_private() -> None:
    """Make all that is mounted read-only and put private folders over ``_EMPTY``; folders of code
    keep what is written to them, such as compiled kernels, for this process."""
    temporary = Path(tempfile.gettempdir()).resolve()
    empty = [place for place in _EMPTY if Path(place).is_dir()]
    if temporary.parents[:-1] and not {*empty} & {str(f) for f in (temporary, *temporary.parents)}:
        empty.insert(0, str(temporary))
    code = {folder: os.open(folder, os.O_PATH) for folder in _code(empty)}
    devices = {f"/dev/{name}": os.open(f"/dev/{name}", os.O_PATH) for name in _DEVICES}
    system = os.open(_ABOUT_THE_SYSTEM, os.O_PATH)
    _let("/", write=False, below=True)
    _let("/proc", write=True)  # here namespaces are described
    _mount("tmpfs", _EMPTY[-1], 0, "tmpfs", f"mode=0755,size={PRIVATE_SIZE}")
    base = os.open(_EMPTY[-1], os.O_PATH)
    for number, place in enumerate(empty):
        own = _folder(base, f"empty{number}")
        _mount(own, place, _BIND)
    for name, device in devices.items():
        Path(name).touch()
        _bind(device, Path(name))
    _mount(_folder(base, "sys"), "/sys", _BIND)
    Path(_ABOUT_THE_SYSTEM).mkdir(parents=True)
    _mount(f"/proc/self/fd/{system}", _ABOUT_THE_SYSTEM, _BIND | _RECURSIVE)
    Path("/dev/shm").mkdir(exist_ok=True)
    Path("/dev/fd").symlink_to("/proc/self/fd")
    temporary.mkdir(parents=True, exist_ok=True)
    for number, (folder, handle) in enumerate(code.items()):
        Path(folder).mkdir(parents=True, exist_ok=True)
        upper, work = (_folder(base, f"{what}{number}") for what in ("upper", "work"))
        layers = f"lowerdir=/proc/self/fd/{handle},upperdir={upper},workdir={work},userxattr"
        try:
            _mount("overlay", folder, 0, "overlay", layers)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            _mirror(handle, upper, folder)
    for handle in (*code.values(), *devices.values(), base, system):
        os.close(handle)


def _mirror(handle: int, own: str, folder: str) -> None:
    """Put an own folder in place of one, with all that it holds, read-only: what has mounts below
    it that are locked, such as a hidden store, cannot be a layer of an overlay."""
    source = Path(f"/proc/self/fd/{handle}")
    names = [path.name for path in source.iterdir()]
    _mount(own, folder, _BIND)
    for name in names:
        with suppress(FileNotFoundError):  # gone since it was listed, as the journals of SQLite go
            _show(source / name, Path(folder, name))


def _show(there: Path, here: Path) -> None:
    """Let what is there be seen here."""
    if there.is_symlink():
        here.symlink_to(there.readlink())
        return
    if there.is_dir():
        here.mkdir()
    else:
        here.touch()
    _mount(str(there), str(here), _BIND | _RECURSIVE)


def _code(empty: Iterable[str]) -> list[str]:
    """The folders that code is imported from, and those of Python that an empty place would hide,
    without those that lie in another of them."""
    found = {Path(entry or ".").resolve() for entry in code_folders()}
    for folder in map(Path, (sys.prefix, sys.base_prefix)):
        found |= {folder for place in empty if Path(place) in folder.parents}
    folders = {folder for folder in found if folder.is_dir()}
    return sorted(str(folder) for folder in folders if folders.isdisjoint(folder.parents))


def _folder(base: int, name: str) -> str:
    path = Path(f"/proc/self/fd/{base}", name)
    path.mkdir(0o700)
    return str(path)


def enter_own_processes() -> None:
    """What this process forks from now on has a process namespace of its own."""
    _checked(ctypes.CDLL(None, use_errno=True).unshare(_PROCESSES), "a process namespace")


def show_own_processes() -> None:
    """Let this process, the first of its namespace, and what it forks see no process beyond it.
    What else /proc holds is empty, as counters of the system tell what others do, but for a few
    files: read-only, also for root."""
    _checked(ctypes.CDLL(None, use_errno=True).unshare(_MOUNT), "a mount namespace")
    _mount("proc", "/proc", 0, "proc")
    own = Path(tempfile.mkdtemp(dir=_EMPTY[-1]))
    (own / "folder").mkdir()
    (own / "file").touch()
    for name in _COUNTS:
        (own / name).write_bytes(Path("/proc", name).read_bytes())
    for path in Path("/proc").iterdir():
        if not path.name.isdigit() and not path.is_symlink():
            nothing = own / ("folder" if path.is_dir() else "file")
            source = path if path.name in _STEADY else own / path.name
            _mount(str(source if source.exists() else nothing), str(path), _BIND)
            _let(str(path), write=False)
    shutil.rmtree(own)
    _unshare(_USER | _MOUNT)


def _unshare(what: int) -> None:
    user, group = os.getuid(), os.getgid()
    _checked(ctypes.CDLL(None, use_errno=True).unshare(what), "namespaces")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def _bind(handle: int, at: Path) -> None:
    _mount(f"/proc/self/fd/{handle}", str(at), _BIND)


def _mount(source: str | None, at: str, flags: int, kind: str = "", options: str = "") -> None:
    texts = [text.encode() if text else None for text in (source, at, kind)]
    libc = ctypes.CDLL(None, use_errno=True)
    given = ctypes.c_ulong(flags), options.encode() or None
    _checked(libc.mount(*texts, *given), f"mount {at}")


def _let(path: str, write: bool, below: bool = False) -> None:
    """Make a mount, and all ``below``, writable or read-only (Linux 5.12)."""
    attributes = (ctypes.c_uint64 * 4)(0 if write else _READ_ONLY, _READ_ONLY if write else 0)
    numbers = _SET_ATTRIBUTES, _HERE, path.encode(), _BELOW if below else 0
    given = [n if isinstance(n, bytes) else ctypes.c_long(n) for n in numbers]
    libc = ctypes.CDLL(None, use_errno=True)
    made = libc.syscall(*given, attributes, ctypes.c_size_t(ctypes.sizeof(attributes)))
    _checked(made, f"rights of the mount {path}")


def _checked(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def check_possible() -> None:
    """Raise UsageError where this system does not allow such processes."""
    if not sys.platform.startswith("linux"):
        raise UsageError("--isolate needs Linux; leave it out")
    if reason := why_impossible():
        raise UsageError(
            f"--isolate: this system lets no process have namespaces of its own ({reason}); "
            "allow unprivileged user namespaces, or leave it out"
        )


def why_impossible() -> str:
    """Why this system lets no process be private, in one line; nothing where it does."""
    code = _PROBE.format(path=sys.path)
    tried = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, check=False)
    lines = tried.stderr.decode(errors="replace").strip().splitlines()
    return (lines or ["no reason"])[-1] if tried.returncode else ""
