"""One field of a request is an option of the command, an argument of Python, its help, its check
and its part of the command that repeats a run; what is refused, and how many cores are used."""

import ast
import os
from dataclasses import asdict, dataclass
from inspect import signature
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from helpers.kit import refused

import bench_core
from bench_core.cli import options
from bench_core.cli.app import bench as group
from bench_core.cli.run import run_command
from bench_core.datasets.table_options import TASKS
from bench_core.errors import option
from bench_core.option_fields import chosen, declared, listed, options_of, whole_number
from bench_core.planning.request import DURATION, MEMORY, PROFILES, RunRequest, command, cores_for
from bench_core.plugins import load_registry


@dataclass(frozen=True, slots=True)
class Patient(RunRequest):
    stop_after: int = declared(
        0, "Rounds without progress, for {data}.", whole_number(1, 9), metavar="ROUNDS"
    )


def test_one_field_is_all_that_an_option_needs():
    seen = []

    @click.command()
    @options.request_options(Patient)
    def run(store, data_dir, **given):
        seen.append(Patient(**given))

    shown = CliRunner().invoke(run, ["--help"]).output
    assert "--stop-after ROUNDS" in shown
    assert "Rounds without progress, for --data." in " ".join(shown.split())
    assert CliRunner().invoke(run, ["--stop-after", "4"]).exit_code == 0
    assert seen[0].stop_after == 4
    assert command({"suite": "letters", "stop_after": 4}, Patient) == (
        "bench run --suite letters --stop-after 4"
    )
    shown = CliRunner().invoke(run, ["--stop-after", "40"]).output
    assert "--stop-after" in shown
    assert "'40' is not a whole number from 1 to 9" in shown

    refused("stop_after: 40 is not", Patient, stop_after=40)


def test_the_signature_of_run_has_every_option_and_its_documentation_too():
    taken = signature(bench_core.run).parameters
    for name, described in options_of(RunRequest).items():
        assert taken[name].default == described.default
        assert f"\n    {name} : default" in str(bench_core.run.__doc__)
    assert list(taken)[:2] == ["X", "y"]
    assert signature(bench_core.plan).parameters == signature(bench_core.run).parameters
    refused("unknown argument 'learner': did you mean learners", bench_core.run, learner="gbrt")
    refused("unknown argument 'worker': did you mean workers", bench_core.audit, worker=1)


@pytest.mark.parametrize(
    ("name", "like", "value", "shell", "python"),
    [
        ("task", "", None, "--task", "task"),
        ("task", "", "binary", "--task binary", "task='binary'"),
        ("suite", "NAME", None, "--suite NAME", "suite=NAME"),
        ("settings", "", "gbrt.trees=3", "--set gbrt.trees=3", "settings='gbrt.trees=3'"),
        ("fresh", "", True, "--fresh", "fresh=True"),
        ("plugins", "", "mine", "-p mine", "plugins='mine'"),
        ("keep_column", "", ["a", "b, c"], "--keep-column 'a,b, c'", None),
    ],
)
def test_a_message_names_arguments_and_the_command_line_its_options(
    name, like, value, shell, python
):
    assert option(name, value, like) == (python or f"{name}={value}")
    assert options.as_flag(name, like, value) == shell


def test_every_option_that_a_message_names_is_one():
    # the others are those of verbs and methods that choose a point
    known = {*options_of(RunRequest), "budget", "budget_kind", "keep", "quality"}
    named = set()
    for path in Path(bench_core.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "option":
                named |= {a.value for a in node.args[:1] if isinstance(a, ast.Constant)}
    assert len(named) > 15
    assert named <= known


def test_words_that_stand_for_enumerations_are_these():
    from bench_core.data import Task

    assert set(TASKS) == set(Task) - {Task.CHOICE}  # which ``choose`` asks for
    assert PROFILES[0] == "quick"


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"seeds": (3, 2**32)}, "seeds: 4294967296 is not a whole number from 0 to 4294967295"),
        ({"seeds": (-1,)}, "seeds: -1 is not a whole number"),
        ({"folds": (-1,)}, "folds: -1 is not a whole number"),
        ({"task": "sorting"}, "task: 'sorting' is not one of ranking, regression, binary"),
        ({"index_base": 2}, "index_base: 2 is not a whole number from 0 to 1"),
        ({"index_base": -1}, "index_base: -1 is not a whole number from 0 to 1"),
        ({"workers": -1}, "workers: -1 is not a whole number >= 1"),
        ({"timeout": -0.5}, "timeout: -0.5 is not a duration, such as 90s"),
        ({"memory": float("nan")}, "memory: nan is not an amount of memory"),
        ({"memory": 300}, "memory: 300 is not an amount of memory from 256MiB on"),
    ],
)
def test_what_is_out_of_its_range_is_refused(options, line):
    assert refused(line, RunRequest, **options).startswith(line)


@pytest.mark.parametrize(
    ("options", "jobs", "workers", "threads"),
    [
        ({}, 100, 8, 1),
        ({}, 3, 3, 2),
        ({}, 1, 1, 8),
        ({}, 0, 1, 8),  # everything is finished
        ({"threads": 3}, 100, 2, 3),
        ({"threads": 9}, 100, 1, 9),
        ({"workers": 5}, 100, 5, 1),
        ({"workers": 5}, 1, 5, 1),
        ({"workers": 20}, 100, 20, 1),
        ({"workers": 2, "threads": 7}, 100, 2, 7),
        ({"executor": "inline"}, 100, 1, 8),
        ({"executor": "inline", "threads": 2, "workers": 4}, 100, 1, 2),
    ],
)
def test_eight_cores_are_shared_by_workers_and_their_threads(
    options, jobs, workers, threads, monkeypatch
):
    allowed = {0: set(range(8))}  # those of the process itself, which has the number 0
    monkeypatch.setattr(os, "sched_getaffinity", allowed.__getitem__, raising=False)
    assert cores_for(RunRequest(**options), jobs) == (workers, threads)


REGISTRY = load_registry()


def asked(monkeypatch, *words):
    """The request that ``bench run`` hands to the engine."""
    seen = []

    class StopError(Exception):
        pass

    def catch(request, registry, notify):
        seen.append(request)
        raise StopError

    monkeypatch.setattr("bench_core.execution.orchestration.carried_out", catch)
    monkeypatch.setattr("bench_core.execution.orchestration.registry_of", lambda request: REGISTRY)
    with pytest.raises(StopError), group.make_context("bench", ["run", *words]) as context:
        group.invoke(context)
    return seen[0]


@pytest.mark.usefixtures("elsewhere")
def test_without_options_a_run_is_local_audited_by_sample_and_kept_in_results(monkeypatch):
    got = asked(monkeypatch)
    # the command and the Python interface agree, but for the suite of a run without data
    assert got == RunRequest(store=got.store, suite="quickstart")
    assert {name: value for name, value in asdict(got).items() if value} == {
        "suite": "quickstart",
        "index_base": 1,
        "keep": 0.99,
        "timeout": 86400.0,
        "audit": "sample",
        "store": str(Path("results/bench.db")),
    }


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ("-l miser,cegb --learners gbrt -l miser", "learners", ("miser", "cegb", "gbrt")),
        ("--set a.b=[0.1,1] --set a.c=3", "settings", ("a.b=[0.1,1]", "a.c=3")),
        ("--seeds 0-2,7 --seeds 1", "seeds", (0, 1, 2, 7)),
    ],
)
def test_lists_are_given_by_comma_range_or_repetition(words, field, value, monkeypatch):
    assert getattr(asked(monkeypatch, *words.split()), field) == value


@pytest.mark.parametrize("seeds", ["2-0", "0-2,7-5", "0-99999999"])
def test_a_range_of_no_numbers_or_of_too_many_is_refused(seeds, monkeypatch):
    with pytest.raises(click.BadParameter, match="a whole number from 0"):
        asked(monkeypatch, "--seeds", seeds)


def test_every_field_of_a_request_has_its_option():
    assert {option.name for option in run_command.params} >= set(options_of(RunRequest))


def test_environment_variables_stand_for_options(monkeypatch):
    monkeypatch.setenv("BENCH_STORE", "other.db")
    monkeypatch.setenv("BENCH_DATA", "data")
    got = asked(monkeypatch)
    assert (got.store, got.data_dir) == ("other.db", "data")


def test_durations_and_amounts_of_memory_have_units():
    durations = {"90": 90, "90s": 90, "1.5m": 90, "2 h": 7200, "1D": 86400}
    assert {text: DURATION.read(text) for text in durations} == durations
    sizes = {"1024": 1024, "1k": 1024, "1KiB": 1024, "1kB": 1000, "2GB": 2e9, "1.5m": 1.5 * 2**20}
    assert {text: MEMORY.read(text) for text in sizes} == sizes


@pytest.mark.parametrize("text", ["", "x", "-3s", "3 parsecs", "1e400", "nan"])
def test_what_is_no_duration_is_refused_with_an_example(text):
    refused("10m", DURATION.of_text, text, error=ValueError)


@pytest.mark.parametrize(
    "executor", ["dask=", "dask=host:8786", "dask=my_cluster", "inline=tcp://a"]
)
def test_what_names_no_cluster_is_refused_before_anything_is_imported(executor):
    refused("executor:|is not local, inline, dask, dask=tcp", RunRequest, executor=executor)


THERE = ("a", "visits, 2024.csv", "p,q,r", "f(x,y")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b", ("a", "b")),
        (" a , b ,", ("a", "b")),
        ("visits, 2024.csv", ("visits, 2024.csv",)),
        ("a,visits, 2024.csv,b", ("a", "visits, 2024.csv", "b")),
        ("p,q,r,p,q", ("p,q,r", "p", "q")),
        ("visits,2024.csv", ("visits", "2024.csv")),
        ("ndcg@5(empty=skip,gain=linear),mse", ("ndcg@5(empty=skip,gain=linear)", "mse")),
        ("f(x,y", ("f(x,y",)),
        ("", ()),
    ],
)
def test_a_name_that_exists_may_hold_commas(text, names):
    assert listed(text, THERE.__contains__) == names


def test_a_file_with_a_comma_is_one_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seen = []

    @click.command()
    @options.request_option("data")
    def run(data):
        seen.append(data)

    Path("visits, 2024.csv").touch()
    for text in ("visits, 2024.csv", "./visits, 2024.csv", str(tmp_path / "visits, 2024.csv")):
        assert CliRunner().invoke(run, ["-d", text]).exit_code == 0
        assert seen.pop() == (text,)
    CliRunner().invoke(run, ["-d", "letters,digits", "-d", "cube"])
    assert seen.pop() == ("letters", "digits", "cube")


def test_names_of_a_run_may_hold_commas():
    known = ["visits, 2024.csv", "letters"]
    assert chosen("data set", ["letters,visits, 2024.csv", "letters"], known) == tuple(known[::-1])
    says = "'visits'|did you mean visits, 2024.csv?"
    refused(says, chosen, "data set", ["visits,2024.csv"], known)
