from __future__ import annotations

import subprocess
import sys

import pytest
from helpers.commands import Run

from bench_core.cli.app import SECTIONS

VERBS = [verb for verbs in SECTIONS.values() for verb in verbs]
HEAVY = {"numpy", "pandas", "numba", "sklearn", "scipy", "jinja2", "pluggy"}
OURS = {"bench_methods", "bench_trees", "bench_datasets", "bench_models"}


def loaded_by(*words: str) -> set[str]:
    """Top-level modules after a command."""
    code = (
        "import sys\nfrom bench_core.cli import main\n"
        f"try:\n    main({list(words)!r})\nexcept SystemExit:\n    pass\n"
        "print('LOADED', *sorted({m.split('.')[0] for m in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split("LOADED")[1].split())


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["best", "-h"], ["--version"]])
def test_help_loads_no_plugin_and_nothing_heavy(words: list[str]) -> None:
    loaded = loaded_by(*words)
    assert loaded & (HEAVY | OURS) == set()
    assert "rich" not in loaded


def test_help_is_a_verb_too(bench: Run) -> None:
    assert bench().out == bench("help").out == bench("--help").out
    assert bench("help", "report").out == bench("report", "--help").out
    assert "seconds without a unit" in " ".join(bench("help", "run").out.split())


def test_help_shows_every_verb_with_a_line_of_its_own(bench: Run) -> None:
    lines = bench("--help").out.splitlines()
    for verb in VERBS:
        (line,) = [line for line in lines if line.startswith(f"  {verb} ")]
        assert len(line.split(maxsplit=1)[1]) > 20


@pytest.mark.parametrize("verb", [v for v in VERBS if v not in ("data", "cost", "model")])
def test_each_verb_has_examples_and_shows_tracebacks_on_demand(bench: Run, verb: str) -> None:
    shown = bench(verb, "--help").out
    assert f"  bench {verb} " in shown
    assert "--debug" in shown


def test_a_short_option_means_the_same_in_every_verb(bench: Run) -> None:
    meanings: dict[str, set[str]] = {}
    for verb in VERBS:
        for line in bench(verb, "--help").out.splitlines():
            words = line.split()
            if len(words) > 1 and words[0].startswith("-") and words[1].startswith("--"):
                meanings.setdefault(words[0], set()).add(words[1])
    assert {short: names for short, names in meanings.items() if len(names) > 1} == {}


def test_the_shell_gets_a_completion_script(shell: Run) -> None:
    ended = shell(_BENCH_COMPLETE="bash_source")
    assert ended.status == 0
    assert "complete" in ended.out


def test_the_shell_completes_verbs(shell: Run) -> None:
    ended = shell(_BENCH_COMPLETE="bash_complete", COMP_WORDS="bench ex", COMP_CWORD="1")
    assert ended.out.split() == ["plain,export"]


def test_the_module_can_be_run_like_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench_core", "--version"], capture_output=True, text=True
    )
    assert done.stdout.startswith("bench ")


@pytest.mark.parametrize("verb", ["data", "model"])
def test_a_verb_of_several_commands_alone_shows_its_help(verb: str, bench: Run) -> None:
    alone = bench(verb)
    assert (alone.status, alone.err, alone.out) == (0, "", bench(verb, "--help").out)
