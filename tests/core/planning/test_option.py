"""One field of a request is an option of the command, an argument of Python, its help, its check
and its part of the command that repeats a run."""

import ast
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import bench_core
from bench_core import UsageError
from bench_core.api.arguments import RunOptions, in_python, taking
from bench_core.cli import options
from bench_core.errors import option
from bench_core.planning.invocation import command
from bench_core.planning.request import PROFILES, TASKS, RunRequest, declared, options_of, whole


@dataclass(frozen=True, slots=True)
class Patient(RunRequest):
    stop_after: int = declared(
        0, "Rounds without progress, for {data}.", whole(1, 9), metavar="ROUNDS"
    )


def test_one_field_is_all_that_an_option_needs() -> None:
    seen: list[Any] = []

    @click.command()
    @options.request_options(Patient)
    def run(store: Path, data_dir: Path | None, **given: Any) -> None:
        seen.append(Patient(**given))

    shown = CliRunner().invoke(run, ["--help"]).output
    assert "--stop-after ROUNDS" in shown
    assert "Rounds without progress, for --data." in " ".join(shown.split())
    assert CliRunner().invoke(run, ["--stop-after", "4"]).exit_code == 0
    assert seen[0].stop_after == 4
    assert command({"suite": "letters", "stop_after": 4}, Patient) == (
        "bench run --suite letters --stop-after 4"
    )
    refused = CliRunner().invoke(run, ["--stop-after", "40"]).output
    assert "--stop-after" in refused
    assert "'40' is not a whole number from 1 to 9" in refused

    @taking(Patient)
    def python(**given: Any) -> Patient:
        """Run."""
        return Patient(**given)

    assert signature(python).parameters["stop_after"].default == 0
    assert "Rounds without progress, for data." in str(python.__doc__)
    with pytest.raises(UsageError, match=r"^--stop-after: 40 is not"):
        python(stop_after=40)
    with in_python(Patient), pytest.raises(UsageError, match=r"^stop_after: 40 is not"):
        python(stop_after=40)


def test_the_signature_of_run_has_every_option_and_its_documentation_too() -> None:
    taken = signature(bench_core.run).parameters
    for name, described in options_of(RunRequest).items():
        assert taken[name].default == described.default
        assert f"\n    {name} : default" in str(bench_core.run.__doc__)
    assert RunOptions.__optional_keys__ == set(options_of(RunRequest))  # for type checkers
    assert list(taken)[:2] == ["X", "y"]
    assert signature(bench_core.plan).parameters == signature(bench_core.run).parameters
    with pytest.raises(TypeError, match="unknown argument 'learner': did you mean learners"):
        bench_core.run(learner="gbrt")


@pytest.mark.parametrize(
    ("name", "like", "value", "shell", "python"),
    [
        ("task", "", None, "--task", "task"),
        ("task", "", "binary", "--task binary", "task='binary'"),
        ("suite", "NAME", None, "--suite NAME", "suite=NAME"),
        ("set", "", "gbrt.trees=3", "--set gbrt.trees=3", "settings='gbrt.trees=3'"),
        ("fresh", "", True, "--fresh", "fresh=True"),
        ("plugin", "", "mine", "-p mine", "plugins='mine'"),
        ("debug", "", None, "--debug", "--debug"),
    ],
)
def test_a_front_spells_options(name: str, like: str, value: Any, shell: str, python: str) -> None:
    assert option(name, value, like) == shell
    with in_python():
        assert option(name, value, like) == python
    assert option(name, value, like) == shell


def test_every_option_that_a_message_names_is_one() -> None:
    known = {described.word for described in options_of(RunRequest).values()}
    named = set()
    for path in Path(bench_core.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "option":
                named |= {a.value for a in node.args[:1] if isinstance(a, ast.Constant)}
    assert len(named) > 15
    assert named <= known


def test_words_that_stand_for_enumerations_are_these() -> None:
    from bench_core.data import Task

    assert set(TASKS) == set(Task)
    assert PROFILES[0] == "quick"
