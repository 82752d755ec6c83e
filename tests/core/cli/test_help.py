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
    assert bench("help").out == bench("--help").out
    assert bench("help", "report").out == bench("report", "--help").out
    assert "seconds without a unit" in " ".join(bench("help", "run").out.split())


def test_help_shows_every_verb_with_a_line_of_its_own(bench: Run) -> None:
    lines = bench("--help").out.splitlines()
    for verb in VERBS:
        (line,) = [line for line in lines if line.startswith(f"  {verb} ")]
        assert len(line.split(maxsplit=1)[1]) > 20


def test_the_verbs_of_data_teach_by_examples_and_a_line_each(bench: Run) -> None:
    shown = bench("data", "--help").out
    for verb in ("fetch", "import", "verify"):
        assert f"  bench data {verb} " in shown
        assert "--data-dir" in bench("data", verb, "--help").out


COMMON = ("-p, --plugin", "-q, --quiet", "-v, --verbose", "--debug", "-o, --output")
IGNORED = {
    "best": ("-q", "-v"),
    "publish": ("-o", "-v"),
    "remove": ("-p", "-o", "-v"),
    "compare": ("-p", "-q", "-v"),
    "export": ("-p", "-v"),
    "features": ("-p", "-q", "-v"),
    "log": ("-p", "-q", "-v"),
    "claims": ("-v",),
    "list": ("-v",),
    "show": ("-q", "-v"),
    "work": ("-o",),
    "rerun": ("-o",),
    "merge": ("-p", "-o", "-v"),
    "check": ("-o", "-v"),
    "new": ("-o", "-p", "-v"),
}
"""Common options that a verb has no use for, and therefore does not take."""


@pytest.mark.parametrize("verb", [v for v in VERBS if v not in ("data", "cost", "model")])
def test_each_verb_has_examples_and_those_common_options_of_use_to_it(
    bench: Run, verb: str
) -> None:
    shown = bench(verb, "--help").out
    assert f"  bench {verb} " in shown
    for option in COMMON:
        assert (option in shown) == (option[:2] not in IGNORED.get(verb, ()))


def test_a_short_option_means_the_same_in_every_verb(bench: Run) -> None:
    meanings: dict[str, set[str]] = {}
    for verb in VERBS:
        for line in bench(verb, "--help").out.splitlines():
            words = line.split()
            if len(words) > 1 and words[0].startswith("-") and words[1].startswith("--"):
                meanings.setdefault(words[0], set()).add(words[1])
    assert {short: names for short, names in meanings.items() if len(names) > 1} == {}


def test_no_verb_at_all_shows_the_help(bench: Run) -> None:
    assert bench().out == bench("--help").out


def test_help_tells_how_to_complete_and_what_the_exit_status_means(bench: Run) -> None:
    shown = bench("--help").out
    assert "_BENCH_COMPLETE=bash_source bench" in shown
    assert "130 interrupted" in shown


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
