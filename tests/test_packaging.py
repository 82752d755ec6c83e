"""What a user installs: the wheel, its top-level names, its data, its command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PARTS = ("bench_core", "plugins", "reports", "suites", "pyproject.toml", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by pip from a copy, so that nothing is left in the checkout."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for part in PARTS:
        here = ROOT / part
        if here.is_dir():
            shutil.copytree(here, source / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(here, source / part)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(out), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return next(out.glob("*.whl"))


def test_the_wheel_holds_every_package_and_the_suites(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    top = {n.split("/")[0] for n in names if ".dist-info/" not in n}
    expected = {p.parent.name for p in ROOT.glob("**/bench_*/py.typed") if ".venv" not in p.parts}
    assert top == expected
    shipped = {n for n in names if n.startswith("bench_core/_suites/")}
    assert shipped == {f"bench_core/_suites/{p.name}" for p in (ROOT / "suites").glob("*.toml")}
    for package in top:
        assert f"{package}/py.typed" in names


def test_the_wheel_holds_every_source_file_of_the_packages(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    homes = [ROOT, ROOT / "plugins", ROOT / "reports"]
    expected = {
        path.relative_to(home).as_posix()
        for home in homes
        for package in home.glob("bench_*")
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert expected <= names


def test_the_licence_travels_with_the_wheel(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert any(n.endswith("/licenses/LICENSE") for n in names)


@pytest.mark.slow
def test_the_wheel_runs_a_suite_in_a_fresh_environment(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", str(wheel)], check=True)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    ran = subprocess.run(
        [tmp_path / "env/bin/bench", "run", "--suite", "quickstart", "--no-progress"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    for learner in ("gbrt", "miser", "cegb"):
        assert learner in ran.stdout
