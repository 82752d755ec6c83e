"""Mistakes of plugin authors: none is an internal error, and each answer names the culprit."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from helpers.cli_fixtures import bench, elsewhere  # noqa: F401 - fixtures
from helpers.commands import Run
from helpers.plugin_mistakes import MISTAKES, SOUND, Mistake

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
