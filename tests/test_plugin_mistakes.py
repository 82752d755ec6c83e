"""Mistakes of plugin authors: none is an internal error, each answer names the culprit, and ``bench
check`` finds them all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from helpers.cli_fixtures import bench, elsewhere  # noqa: F401 - fixtures
from helpers.commands import Run
from helpers.plugin_mistakes import CHECKED, MISTAKES, SOUND, Mistake

COMMAND = (
    *("run", "--data", "noisy", "--learners", "mine,constant", "--metric", "hinge"),
    *("--executor", "inline", "--no-progress", "-p", "mine", "--audit", "full"),
)


def module(folder: Path, text: str) -> None:
    (folder / "mine.py").write_text(text)
    (folder / "costs.toml").write_text('model = "whole"\ncosts = [1, 1, 1]\n')
    sys.modules.pop("mine", None)


def test_the_module_without_a_mistake_is_sound(tmp_path: Path, bench: Run) -> None:  # noqa: F811
    module(tmp_path, SOUND)
    ended = bench(*COMMAND, "--costs", "costs.toml")
    assert ended.status == 0, ended.err
    checked = bench("check", "-p", "mine")
    assert checked.status == 0, checked.out
    assert [line.split()[0] for line in checked.out.splitlines()[::2]] == [
        *("learner", "data", "metric", "cost")
    ]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_a_mistake_is_answered_by_its_name_and_is_no_internal_error(
    mistake: Mistake,
    tmp_path: Path,
    bench: Run,  # noqa: F811
) -> None:
    module(tmp_path, mistake.module)
    ended = bench(*COMMAND, *(("--costs", "costs.toml") if "whole" in mistake.says else ()))
    assert ended.status == mistake.status, ended.err
    missing = [word for word in mistake.says if word not in ended.out + ended.err]
    assert not missing, ended.out + ended.err


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_a_mistake_is_found_by_check_with_what_to_do(
    mistake: Mistake,
    tmp_path: Path,
    bench: Run,  # noqa: F811
) -> None:
    module(tmp_path, mistake.module)
    says = CHECKED.get(str(mistake), mistake.says)
    culprit = [name for name in says[:1] if name in ("mine", "noisy", "hinge", "whole")]
    ended = bench("check", "-p", "mine", *culprit)  # the others are checked by the test above
    assert ended.status in (1, 2), ended.out
    missing = [word for word in says if word not in ended.out + ended.err]
    assert not missing, ended.out + ended.err
    if ended.status == 1:  # of a module that does not load the one line says all
        assert ended.out.count("expected: ") == ended.out.count("to fix: ") > 0
