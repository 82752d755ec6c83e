"""Commands that are shown to be pasted: they repeat what was done, and hold nothing that a terminal
or a shell would obey."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from bench_reports.best import run_command

from bench_core.cli.options import STORE as USUAL
from bench_core.planning.invocation import command, shell_line
from bench_core.plugins import load_registry

FILE, LABEL, STORE = "=cmd| calc\x1b[31m!A0.csv", "lab\x1b[31m", "a  b\x07'\u202e\n.db"
REQUEST = {"data": [FILE], "label": LABEL, "learners": ["gbrt"]}
HOSTILE = [*("two  blanks", "", "it's", "\x1b[2J", "\\\x1b'\"$(x)`y`", "\u202eabc")]
HOSTILE += ["a\nb\tc", "é\x07", "!!\x1b", "\x1b1f"]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_shell_reads_the_words_that_were_given(shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"no {shell} here")
    line = shell_line(HOSTILE)
    assert line.isprintable()
    script = f"printf '%s\\0' {line}"
    done = subprocess.run([shell, "-c", script], capture_output=True, check=True)
    given = [word.encode("utf-8", "surrogateescape") for word in HOSTILE]
    assert done.stdout.split(b"\0")[:-1] == given


def test_commands_that_are_printed_hold_no_control_characters() -> None:
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
def test_it_trains_on_the_data_set_with_the_options_of_the_run(
    request_: dict[str, object],
) -> None:
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
def test_it_sets_the_reference_as_the_run_did(request_: dict[str, object], kept: list[str]) -> None:
    settings = ["gbrt.trees=8", "cegb.trees=8", "miser.trees=[8, 9]"]
    asked = {**request_, "settings": settings}
    words = shlex.split(run_command(asked, "digits", "miser", {"trees": 9}, load_registry(), USUAL))
    given = [words[i + 1] for i, word in enumerate(words) if word == "--set"]
    assert given == [*kept, "miser.trees=9"]
    assert ("--reference" in words) == ("reference" in request_)


def test_the_command_that_trains_a_setting_again_names_what_is_swept_by_default() -> None:
    request = {"data": ["breast-cancer"]}
    params = {"tradeoff": 0.3, "trees": 300}
    registry = load_registry()
    assert registry.learners["cegb"]().tradeoff == 0.3  # so that it need not differ
    command = run_command(request, "breast-cancer", "cegb", params, registry, Path("x.db"))
    assert "cegb.tradeoff=0.3" in shlex.split(command)
    assert "cegb.trees=300" not in shlex.split(command)
