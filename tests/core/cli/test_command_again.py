"""The command that `bench best` gives to train a winner again."""

from __future__ import annotations

import shlex

import pytest
from bench_reports.budgets import run_command

from bench_core.cli.options import STORE
from bench_core.plugins import load_registry

SETTINGS = ["thyroid.discount=false", "gbrt.trees=[3, 9]"]


@pytest.mark.parametrize(
    "request_", [{"suite": "thyroid"}, {"data": ["thyroid"]}], ids=["a suite", "no suite"]
)
def test_it_trains_on_the_data_set_with_the_options_of_the_run(
    request_: dict[str, object],
) -> None:
    asked = {**request_, "settings": SETTINGS}
    label, params = "thyroid(discount=False)", {"trees": 9}
    words = shlex.split(run_command(asked, label, "gbrt", params, load_registry(), STORE))
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
    words = shlex.split(run_command(asked, "digits", "miser", {"trees": 9}, load_registry(), STORE))
    given = [words[i + 1] for i, word in enumerate(words) if word == "--set"]
    assert given == [*kept, "miser.trees=9"]
    assert ("--reference" in words) == ("reference" in request_)
