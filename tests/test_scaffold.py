"""``bench new``: what it writes is sound, short, and works from installation to report."""

import re
import shlex
import sys
from pathlib import Path

import pytest
from helpers.fresh_environment import Environment, project, wheel
from helpers.pages import page

from bench_core.results.store import Store
from bench_core.scaffold import KINDS, tries

LISTED = {"policy": "learners", "dataset": "datasets", "cost-model": "costs"}


def name_of(kind):
    return f"my-{kind}-here"


@pytest.fixture(autouse=True)
def _forget_modules():
    for kind in KINDS:
        sys.modules.pop(name_of(kind).replace("-", "_"), None)


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[pytest.mark.slow] * (k == "report")) for k in KINDS]
)
def test_a_new_plugin_of_one_file_keeps_every_promise(kind, bench):
    made = bench("new", kind, name_of(kind))
    assert made.status == 0, made.err
    module = name_of(kind).replace("-", "_")
    lines = [line for line in Path(f"{module}.py").read_text().splitlines() if line.strip()]
    assert len(lines) < 40
    checked = bench("check", "-p", module)
    assert checked.status == 0, checked.out
    for command in (f"bench check -p {module}", *tries(kind, name_of(kind), module)):
        assert command in made.err


@pytest.mark.slow
def test_the_new_learner_is_served_by_the_program_of_the_guide(bench):
    bench("new", "learner", "mine").ok()
    guide = page("guide/serving.md")
    (method,) = re.findall(r"    def program\(self, point\).*?\n(?=\n\S)", guide, re.S)
    place = "    def state(self)"
    text = Path("mine.py").read_text().replace(place, f"{method}\n{place}")
    Path("mine.py").write_text(text)
    bench("check", "-p", "mine").ok()
    run = ("run", "--data", "breast-cancer", "--executor", "inline", "-l", "mine,gbrt")
    bench(*run, "-p", "mine", "--set", "gbrt.trees=20").ok()
    bench("model", "export", "--learner", "mine", "--budget", "5", "-p", "mine", "-o", "m").ok()
    assert "the same as when exported" in bench("model", "check", "m").ok().out


def test_all_python_of_a_new_learner_is_under_forty_lines(bench):
    made = bench("new", "learner", "top-k", "--package")
    files = list(Path("top-k").rglob("*.py"))
    assert sorted(path.name for path in files) == ["test_top_k.py", "top_k.py"]
    lines = [line for path in files for line in path.read_text().splitlines()]
    written = len([line for line in lines if line.strip()])
    assert written < 40
    guide = page("reference/plugins.md")
    assert f"A learner's package has {written} non-empty lines of Python, tests included" in guide
    whole = len(Path("top-k", "top_k.py").read_text().splitlines())
    assert f"`top_k.py`, a working learner of {whole} lines" in guide
    assert f"wrote top-k/top_k.py ({whole} lines)" in made.out


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["learner", "policy"])
def test_the_new_learner_stands_on_a_board_above_the_constant(kind, bench):
    bench("new", kind, name_of(kind))
    (line,) = tries(kind, name_of(kind), f"my_{kind}_here")
    ended = bench(*shlex.split(line)[1:], "--executor", "inline", "--no-progress")
    assert ended.status == 0, ended.err
    frame = Store("results/bench.db").frame("last")
    frame = frame[(frame["split"] == "test") & (frame["learner"] == name_of(kind))]
    constant = frame.loc[frame["point"] == '{"constant":1}', "accuracy"].max()
    assert frame["accuracy"].max() > constant + 0.2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("learner", "A_b"), "'A_b' is not a name: write lower-case words"),
        (("learner", "../up"), "'../up' is not a name"),
        (("learner", "class"), "there is another Python module 'class'"),
        (("learner", "numpy"), "there is another Python module 'numpy'"),
        (("learner", "gbrt"), "learner 'gbrt' already exists in budget-bench"),
        (("metrc", "x"), "metrc"),
    ],
)
def test_a_bad_name_is_one_line_and_writes_nothing(words, says, bench, tmp_path):
    ended = bench("new", *words)
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert says in ended.err
    assert [path for path in tmp_path.iterdir() if path.name != "cache"] == []


def test_nothing_is_overwritten(bench, tmp_path):
    (tmp_path / "costs.toml").write_text("mine")
    ended = bench("new", "cost-model", "bills")
    assert (ended.status, "costs.toml already exists" in ended.err) == (2, True)
    assert not (tmp_path / "bills.py").exists()
    assert bench("new", "metric", "bills", "--package").status == 0
    assert "bills/bills.py already exists" in bench("new", "metric", "bills", "--package").err


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """An environment with this project's wheel and nothing else of ours."""
    out = tmp_path_factory.mktemp("wheels")
    ours = wheel(project(tmp_path_factory.mktemp("ours")), out)
    return Environment.made(tmp_path_factory.mktemp("home"), ours)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_package_is_installed_listed_checked_run_audited_and_reported(kind, fresh):
    name = name_of(kind)
    folder = fresh.home / name
    made = fresh.bench("new", kind, name, "--package")
    assert made.returncode == 0, made.stderr
    assert (folder / ".github/workflows/check.yml").is_file()
    fresh.install(folder)
    listed = fresh.bench("list", LISTED.get(kind, f"{kind}s")).stdout
    assert name in [line.split()[0] for line in listed.splitlines()]
    (row,) = [line for line in fresh.bench("list", "plugins").stdout.splitlines() if name in line]
    assert row.split()[:3] == [name, name, "0.1.0"]
    assert row.split()[-1] == "loaded"
    commands = [f"bench check {name}", *tries(kind, name), "bench audit", "bench report -o b.html"]
    for line in commands:
        done = fresh.bench(*shlex.split(line)[1:], cwd=folder)
        assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "b.html").stat().st_size > 10_000
    tests = fresh.python("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=folder)
    assert tests.returncode == 0, tests.stdout
