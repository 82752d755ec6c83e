"""What a user installs: the wheel and its command; and a package without one of its plugins."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from helpers import fresh_environment

from bench_core.plugins import OURS, installed

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    source = fresh_environment.project(tmp_path_factory.mktemp("source"))
    return fresh_environment.wheel(source, tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_every_package_and_the_suites(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    top = {n.split("/")[0] for n in names if ".dist-info/" not in n}
    expected = {p.parent.name for p in ROOT.glob("**/bench_*/py.typed") if ".venv" not in p.parts}
    assert top == expected
    shipped = {n for n in names if n.startswith("bench_core/_suites/")}
    assert shipped == {f"bench_core/_suites/{p.name}" for p in (ROOT / "suites").glob("*.toml")}
    for package in top:
        assert f"{package}/py.typed" in names


def test_the_wheel_holds_every_source_file_of_the_packages(wheel):
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


def test_the_licence_travels_with_the_wheel(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert any(n.endswith("/licenses/LICENSE") for n in names)


@pytest.mark.slow
def test_the_wheel_runs_a_suite_in_a_fresh_environment(wheel, tmp_path):
    fresh = fresh_environment.Environment.made(tmp_path, wheel)
    ran = fresh.bench("run", "--no-progress")
    assert ran.returncode == 0, ran.stderr
    assert "no data given; running suite quickstart: real data, about" in ran.stderr
    assert "generated data" not in ran.stderr + ran.stdout
    (answer,) = [x for x in ran.stdout.splitlines() if x.startswith("budget-boosting costs")]
    assert answer in " ".join((ROOT / "README.md").read_text("utf-8").split())
    for learner in ("gbrt", "miser", "cegb"):
        assert learner in ran.stdout


SCRIPT = """
import sys
from importlib.abc import MetaPathFinder

class Deleted(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if f"{name}.".startswith(f"{sys.argv[1]}."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Deleted())
from bench_core.plugins import load_registry
print(*(plugin.module for plugin in load_registry().plugins if plugin.error))
"""
MODULES = sorted({point.value for point in installed() if point.dist and point.dist.name == OURS})


@pytest.mark.parametrize("module", MODULES[::24])
def test_without_one_plugin_the_others_load(module):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, module], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [module]


def test_methods_do_not_load_without_the_models_they_share():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, "bench_models"], capture_output=True, text=True, check=True
    )
    assert len(done.stdout.split()) > 10
