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


def test_the_wheel_holds_every_file_of_the_packages_the_suites_and_the_licence(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    packages = [
        path.parent for path in ROOT.glob("**/bench_*/py.typed") if ".venv" not in str(path)
    ]
    expected = {
        path.relative_to(package.parent).as_posix()
        for package in packages
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    expected |= {f"bench_core/_suites/{path.name}" for path in (ROOT / "suites").glob("*.toml")}
    assert len(packages) > 5
    assert {name for name in names if ".dist-info/" not in name} == expected
    assert any(name.endswith("/licenses/LICENSE") for name in names)


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


def failing_without(module):
    command = [sys.executable, "-c", SCRIPT, module]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize("module", MODULES[::24])
def test_without_one_plugin_the_others_load(module):
    assert failing_without(module) == [module]


def test_methods_do_not_load_without_the_models_they_share():
    assert len(failing_without("bench_models")) > 10
