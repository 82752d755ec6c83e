"""User, mount and network namespaces for one process (Linux): files out of sight, no network.

Mounts are locked in a second pair of namespaces, so that what runs there, with all rights in its
own, cannot take them away (user_namespaces(7), mount_namespaces(7)).
"""

import ctypes
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench_core.errors import UsageError

_USER, _MOUNT, _NETWORK = 0x1000_0000, 0x0002_0000, 0x4000_0000  # CLONE_NEW...
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 32, 4096, 1 << 14, 1 << 18  # MS_...
_KEPT, _RELATIVE_TIME = 2 | 4 | 8 | 1024 | 2048, (4096, 1 << 21)  # ST_..., and as MS_...
_PROBE = "import sys; sys.path[:] = {path!r}; from {module} import confine; confine([], [], [])"


_hidden: list[str] = []


def hidden() -> tuple[str, ...]:
    """What this process was told to hide, () where it is not confined."""
    return tuple(_hidden)


def confine(hidden: Sequence[str], shown: Sequence[str], places: Sequence[Sequence[str]]) -> None:
    """Move this process into its namespaces. Raises OSError where the system does not allow it.

    ``hidden`` are files and folders, ``shown`` files in them that can be read, ``places`` pairs of
    a folder and where it is to be seen, and written to.
    """
    _unshare(_USER | _MOUNT | _NETWORK)
    _mount(None, "/", _RECURSIVE | _PRIVATE)
    files = {path: os.open(path, os.O_PATH) for path in shown}
    folders = {at: os.open(path, os.O_PATH) for path, at in places}
    nothing = os.open(os.devnull, os.O_PATH)
    for path in sorted(map(Path, hidden)):
        if path.is_dir():
            _mount("tmpfs", str(path), 0, "tmpfs", "mode=0755")
        elif path.exists():
            _bind(nothing, path)
    for at, folder in folders.items():
        Path(at).mkdir(parents=True, exist_ok=True)
        _bind(folder, Path(at))
    for name, file in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
        _bind(file, Path(name))
        _mount(None, name, _REMOUNT | _BIND | _READ_ONLY | _flags(name))
    for handle in (*files.values(), *folders.values(), nothing):
        os.close(handle)
    _hidden[:] = hidden
    os.chdir(Path.cwd())  # what lies under a mount could be reached through it
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


def _flags(path: str) -> int:
    """Those of a mount, which a change of it must repeat."""
    found, (told, asked) = os.statvfs(path).f_flag, _RELATIVE_TIME
    return (found & _KEPT) | (asked if found & told else 0)


def _checked(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def check_possible() -> None:
    """Raise UsageError where this system does not allow such processes."""
    if not sys.platform.startswith("linux"):
        raise UsageError("--isolate needs Linux; leave it out")
    code = _PROBE.format(path=sys.path, module=__name__)
    tried = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    if tried.returncode:
        reason = tried.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no reason"]
        raise UsageError(
            f"--isolate: this system lets no process have namespaces of its own ({reason[0]}); "
            "allow unprivileged user namespaces, or leave it out"
        )
