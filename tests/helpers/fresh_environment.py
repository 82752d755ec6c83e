"""Wheels, and a fresh environment that has them; libraries come from the tests' environment."""

import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
PARTS = ("bench_core", "plugins", "reports", "suites", "pyproject.toml", "README.md", "LICENSE")
ISOLATION = ["--no-build-isolation"] if find_spec("hatchling") else []  # without a download


def wheel(source, out):
    """The wheel of a project, built into ``out``."""
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", *ISOLATION]
    before = set(out.glob("*.whl"))
    subprocess.run([*command, "-w", str(out), str(source)], check=True, capture_output=True)
    (made,) = set(out.glob("*.whl")) - before
    return made


def project(folder):
    """A copy of this project, so that nothing is left in the checkout."""
    for part in PARTS:
        here = ROOT / part
        if here.is_dir():
            shutil.copytree(here, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(here, folder / part)
    return folder


@dataclass(frozen=True)
class Environment:
    """An environment at ``home/env``; commands run in ``home`` or a folder of it."""

    home: Path

    @classmethod
    def made(cls, home, *wheels):
        """A new environment with these wheels."""
        venv.create(home / "env", with_pip=True)
        (site,) = (home / "env" / "lib").glob("python*/site-packages")
        libraries = [path for path in sys.path if Path(path).name == "site-packages"]
        (site / "libraries.pth").write_text("\n".join(libraries))
        made = cls(home)
        made.install(*wheels)
        return made

    def install(self, *what):
        """Install wheels or projects, without their dependencies and without a download."""
        more = ["-q", "--no-deps", "--force-reinstall", *ISOLATION]
        done = self.python("-m", "pip", "install", *more, *map(str, what))
        assert done.returncode == 0, done.stderr

    def bench(self, *words, cwd=None):
        """Run the command."""
        return self._run([str(self.home / "env/bin/bench"), *words], cwd)

    def python(self, *words, cwd=None):
        """Run the interpreter."""
        return self._run([str(self.home / "env/bin/python"), *words], cwd)

    def _run(self, words, cwd):
        own = {"PATH": os.environ["PATH"], "HOME": str(self.home), "COLUMNS": "200"}
        return subprocess.run(
            words, cwd=cwd or self.home, env=own, capture_output=True, text=True, timeout=600
        )
