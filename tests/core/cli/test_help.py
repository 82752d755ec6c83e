import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from bench_reports.best import run_command
from helpers.commands import QUICK

from bench_core.cli import app
from bench_core.cli.app import SECTIONS
from bench_core.cli.options import STORE as USUAL
from bench_core.planning.request import command, shell_line
from bench_core.plugins import load_registry

VERBS = [verb for verbs in SECTIONS.values() for verb in verbs]
HEAVY = {"numpy", "pandas", "numba", "sklearn", "scipy", "jinja2", "pluggy"}
OURS = {"bench_methods", "bench_trees", "bench_datasets", "bench_models"}


def loaded_by(*words):
    """Top-level modules after a command."""
    code = (
        "import sys\nfrom bench_core.cli import main\n"
        f"try:\n    main({list(words)!r})\nexcept SystemExit:\n    pass\n"
        "print('LOADED', *sorted({m.split('.')[0] for m in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split("LOADED")[1].split())


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["best", "-h"], ["--version"]])
def test_help_loads_no_plugin_and_nothing_heavy(words):
    loaded = loaded_by(*words)
    assert loaded & (HEAVY | OURS) == set()
    assert "rich" not in loaded


def test_a_list_of_learners_loads_no_library_that_trains_or_tabulates():
    loaded = loaded_by("list", "learners")
    assert "bench_methods" in loaded
    assert loaded & {*HEAVY, "llvmlite", "matplotlib", "lightgbm"} <= {"numpy", "pluggy"}


def test_help_is_a_verb_too(bench):
    assert bench().out == bench("help").out == bench("--help").out
    assert bench("help", "report").out == bench("report", "--help").out
    assert "seconds without a unit" in " ".join(bench("help", "run").out.split())


def test_help_shows_every_verb_with_a_line_of_its_own(bench):
    lines = bench("--help").out.splitlines()
    for verb in VERBS:
        (line,) = [line for line in lines if line.startswith(f"  {verb} ")]
        assert len(line.split(maxsplit=1)[1]) > 20


@pytest.mark.parametrize("verb", [v for v in VERBS if v not in ("data", "cost", "model")])
def test_each_verb_has_examples_and_shows_tracebacks_on_demand(bench, verb):
    shown = bench(verb, "--help").out
    assert f"  bench {verb} " in shown
    assert "--debug" in shown


def commands_of(group):
    """Each command of a group, and of the groups in it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield from commands_of(command) if isinstance(command, click.Group) else [command]


def test_each_verb_of_one_run_takes_it_by_name_too():
    of_run = [c for c in commands_of(app.bench) if "run" in {p.name for p in c.params}]
    assert len(of_run) > 9
    assert all("--run" in [o for p in c.params for o in p.opts] for c in of_run)


def single_valued(command, words=()):
    """Each option of a command, and of the commands of a group, that has one value."""
    context = click.Context(command)
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        yield from single_valued(command.get_command(context, name), (*words, name))
    for param in command.params:
        if isinstance(param, click.Option) and not (param.is_flag or param.multiple):
            yield *words, param.opts[0], "one", param.opts[-1], "two"


def test_no_option_takes_the_last_of_two_values(bench):
    every = [*single_valued(app.bench)]
    assert {words[0] for words in every} >= {"run", "model", "cost", "claims"}
    for words in every:
        assert f"{words[-2]} is given 2 values, but takes one: keep one" in bench(*words).err, words


def test_an_option_of_several_values_and_an_equal_value_may_be_repeated(bench, material):
    twice = ("-l", "toy", "--set", "toy.columns=1", "--label", "label") * 2
    bench("plan", *QUICK, *twice).ok()


def test_a_short_option_means_the_same_in_every_verb(bench):
    meanings = {}
    for verb in VERBS:
        for line in bench(verb, "--help").out.splitlines():
            words = line.split()
            if len(words) > 1 and words[0].startswith("-") and words[1].startswith("--"):
                meanings.setdefault(words[0], set()).add(words[1])
    assert {short: names for short, names in meanings.items() if len(names) > 1} == {}


def test_the_shell_completes_verbs(shell):
    ended = shell(_BENCH_COMPLETE="bash_complete", COMP_WORDS="bench ex", COMP_CWORD="1")
    assert ended.out.split() == ["plain,export"]


@pytest.mark.parametrize("verb", ["data", "model"])
def test_a_verb_of_several_commands_alone_shows_its_help(verb, bench):
    alone = bench(verb)
    assert (alone.status, alone.err, alone.out) == (0, "", bench(verb, "--help").out)


FILE, LABEL, STORE = "=cmd| calc\x1b[31m!A0.csv", "lab\x1b[31m", "a  b\x07'\u202e\n.db"
REQUEST = {"data": [FILE], "label": LABEL, "learners": ["gbrt"]}
HOSTILE = [*("two  blanks", "", "it's", "\x1b[2J", "\\\x1b'\"$(x)`y`", "\u202eabc")]
HOSTILE += ["a\nb\tc", "é\x07", "!!\x1b", "\x1b1f"]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_shell_reads_the_words_that_were_given(shell):
    if not shutil.which(shell):
        pytest.skip(f"no {shell} here")
    line = shell_line(HOSTILE)
    assert line.isprintable()
    script = f"printf '%s\\0' {line}"
    done = subprocess.run([shell, "-c", script], capture_output=True, check=True)
    given = [word.encode("utf-8", "surrogateescape") for word in HOSTILE]
    assert done.stdout.split(b"\0")[:-1] == given


def test_commands_that_are_printed_hold_no_control_characters():
    store = Path(STORE)
    lines = [
        command(REQUEST),
        run_command(REQUEST, "x", "gbrt", {"trees": 9}, load_registry(), store),
    ]
    for line in lines:
        assert line.isprintable()
        assert r"$'=cmd| calc\x1b[31m!A0.csv'" in line
        assert r"$'lab\x1b[31m'" in line
    for line in lines[1:]:
        assert r"--store $'a  b\x07\'\u202e\n.db'" in line


SETTINGS = ["thyroid.discount=false", "gbrt.trees=[3, 9]"]


@pytest.mark.parametrize(
    "request_", [{"suite": "thyroid"}, {"data": ["thyroid"]}], ids=["a suite", "no suite"]
)
def test_it_trains_on_the_data_set_with_the_options_of_the_run(request_):
    asked = {**request_, "settings": SETTINGS}
    label, params = "thyroid(discount=False)", {"trees": 9}
    words = shlex.split(run_command(asked, label, "gbrt", params, load_registry(), USUAL))
    assert words[words.index("--data") + 1] == "thyroid"
    given = [words[i + 1] for i, word in enumerate(words) if word == "--set"]
    assert given == ["thyroid.discount=false", "gbrt.trees=9"]


@pytest.mark.parametrize(
    ("request_", "kept"),
    [
        ({"suite": "quickstart"}, ["gbrt.trees=8"]),
        ({"suite": "quickstart", "reference": "constant"}, []),
        ({"data": ["digits"], "reference": "gbrt"}, ["gbrt.trees=8"]),
        ({"data": ["digits"]}, []),
    ],
    ids=["of a suite", "another", "asked for", "none"],
)
def test_it_sets_the_reference_as_the_run_did(request_, kept):
    settings = ["gbrt.trees=8", "cegb.trees=8", "miser.trees=[8, 9]"]
    asked = {**request_, "settings": settings}
    words = shlex.split(run_command(asked, "digits", "miser", {"trees": 9}, load_registry(), USUAL))
    given = [words[i + 1] for i, word in enumerate(words) if word == "--set"]
    assert given == [*kept, "miser.trees=9"]
    assert ("--reference" in words) == ("reference" in request_)


def test_the_command_that_trains_a_setting_again_names_what_is_swept_by_default():
    request = {"data": ["breast-cancer"]}
    params = {"tradeoff": 0.3, "trees": 300}
    registry = load_registry()
    assert registry.learners["cegb"]().tradeoff == 0.3  # so that it need not differ
    command = run_command(request, "breast-cancer", "cegb", params, registry, Path("x.db"))
    assert "cegb.tradeoff=0.3" in shlex.split(command)
    assert "cegb.trees=300" not in shlex.split(command)
