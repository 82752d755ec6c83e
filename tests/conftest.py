"""Fixtures of all tests."""

import os
import signal
from pathlib import Path

import pytest
from helpers.cli_fixtures import bench, elsewhere, material, on_terminal, ran, shell
from hypothesis import settings

from bench_core.metrics.evaluation import given_metrics

__all__ = ["bench", "elsewhere", "material", "on_terminal", "ran", "shell"]

# an example that first compiles a kernel takes seconds, and more on a busy machine
settings.register_profile("random", settings.get_profile("default"), deadline=None)
settings.register_profile("default", settings.get_profile("random"), derandomize=True)
settings.load_profile("default")  # --hypothesis-profile=random loads another one later

# what a shell starts in the background ignores Ctrl-C, and so would what tests start and interrupt
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# what tests start in a process of its own finds the helpers too
_PATHS = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, _PATHS))


@pytest.fixture(autouse=True)
def _no_metrics_of_other_tests():
    """A metric that a test gives as an object is unknown to the next test of the process."""
    yield
    given_metrics.clear()


@pytest.fixture(scope="session")
def real_data():
    """The folder of real data sets, or a skip that says how to name one."""
    default = Path(__file__).parents[1].parent / "shared" / "data"
    folder = Path(os.environ.get("BENCH_TEST_DATA", default))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}: set BENCH_TEST_DATA to the folder that holds it")
    return folder


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Each process takes tests in a row, so that few fixtures of modules are made by more."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


@pytest.fixture(scope="session")
def root():
    """The project's folder."""
    return Path(__file__).parents[1]
