"""Fits and trials: what each is specified by, and what its key depends on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import pytest
from helpers.toys import Prefix

from bench_core._io import machine
from bench_core.api import plan
from bench_core.planning import keys, planner
from bench_core.plugins import load_registry

PLUGINS = ("helpers.toys",)


def made(**options: Any) -> Any:
    return plan(plugins=PLUGINS, **{"data": "toy-rank", **options})


def test_the_reference_is_scored_on_training_rows_up_to_a_number_of_them(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"learners": ["toy-stacked", "toy-prefix"], "reference": "toy-stacked"}
    p = made(**asked)
    rows = p.datasets[0].rows["train"]
    assert p.reference == "toy-stacked"
    for most, splits in ((rows, ("train", "valid", "test")), (rows - 1, ("valid", "test"))):
        monkeypatch.setattr(planner, "CHEAP_TRAINING_ROWS", most)
        found = {t.learner: t.splits for t in made(**asked).trials}
        assert found == {"toy-stacked": splits, "toy-prefix": ("valid", "test")}


def test_a_trial_says_whether_learners_trained_on_other_prices_than_it_is_billed_by(
    home: Path,
) -> None:
    (home / "costs.txt").write_text("2\n1\n2\n5\n10\n20\n")
    (home / "query.json").write_text(json.dumps({"model": "per-query", "per_query": ["f6"]}))
    for costs, name, surrogate in (
        ("", "sensor", False),
        ("costs.txt", "sensor", False),
        ("query.json", "per-query", True),
    ):
        trials = made(learners="toy-stacked", costs=costs).trials
        assert [(t.cost_model, t.surrogate) for t in trials] == [(name, surrogate)]


def test_a_learner_stops_early_by_the_primary_metric(home: Path) -> None:
    p = made(learners="toy-stacked", metrics=["precision@3", "ndcg@5"])
    assert {f.metric for f in p.fits} == {"precision@3"}
    assert [t.metrics for t in p.trials] == [("precision@3", "ndcg@5")]


@dataclass(frozen=True)
class Mine(Prefix):
    name: ClassVar[str] = "mine"
    version: ClassVar[str] = "7.1"


def test_a_learners_version_is_that_of_its_distribution_or_its_own(home: Path) -> None:
    @dataclass(frozen=True)
    class Trees(Prefix):
        name: ClassVar[str] = "gbrt"
        version: ClassVar[str] = "0.1"

    @dataclass(frozen=True)
    class Newer(Mine):
        version: ClassVar[str] = "7.2"

    def versions(*learners: Any) -> dict[str, str]:
        return {t.learner: t.learner_version for t in made(learners=list(learners)).trials}

    ours = version("budget-bench")
    assert versions("gbrt", "toy-stacked", Mine()) == {
        "gbrt": ours,
        "toy-stacked": "",
        "mine": "7.1",
    }
    assert versions(Trees()) == {"gbrt": "0.1"}  # not the registered one of that name
    assert versions(Newer()) == {"mine": "7.2"}


@dataclass(frozen=True)
class OfLibraries(Prefix):
    numerics: ClassVar[tuple[str, ...]] = ("scipy", "cpu")


def test_only_learners_that_say_so_have_keys_of_libraries_and_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = keys.learner_key(OfLibraries()), keys.learner_key(Prefix())
    assert f"scipy {version('scipy')}" in here[0]["numerics"]
    monkeypatch.setattr(machine, "kernels", lambda: "BLAS other, SIMD none")
    machine.versions.cache_clear()
    there = keys.learner_key(OfLibraries()), keys.learner_key(Prefix())
    machine.versions.cache_clear()
    assert here[0] != there[0]
    assert here[1] == there[1]


def test_shipped_learners_declare_a_processor_but_those_that_sum_in_an_order_of_their_own() -> None:
    learners = load_registry(()).learners
    undeclared = {name for name in learners if "cpu" not in getattr(learners[name], "numerics", ())}
    assert undeclared == {"adapt-lin", "adapt-lstsq", "and-or"}  # their bases declare their own


def test_a_trial_says_what_it_depends_on_and_on_which_code(home: Path) -> None:
    (trial,) = made(learners="gbrt", data="toy-binary", reference="").trials
    assert len(trial.code) == 16
    (forest,) = made(learners="random-forest", data="toy-binary").trials
    assert forest.libraries.startswith("scikit-learn ")
    assert forest.code != trial.code
