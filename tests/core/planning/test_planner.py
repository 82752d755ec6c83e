"""What a plan says of data and the store, what is left to do, and what keys depend on."""

import json
import shutil
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import ClassVar

import pytest
from helpers import example
from helpers.kit import refused
from helpers.stores import FIT, TRIAL
from helpers.toys import Prefix

import bench_core
from bench_core import InputError, UsageError
from bench_core._io import machine
from bench_core.api import plan
from bench_core.planning import keys, planner
from bench_core.planning.plan import (
    Plan,
    about_run,
    expected_seconds,
    fits_left,
    trials_left,
    trials_skipped,
)
from bench_core.planning.planner import make_plan
from bench_core.planning.request import RunRequest
from bench_core.plugins import load_registry
from bench_core.results.store import Store

PLUGINS = ("helpers.toys",)
FEW = ("toy-prefix.tradeoff=[0.5, 1.0]",)


def made(**options):
    return plan(plugins=PLUGINS, **options)


def changed(suite, *changes):
    text = suite.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    suite.write_text(text)


TWO_TASKS = ('["toy-licensed"]', '["toy-rank", "toy-binary"]')
METRICS = '["ndcg@5", "precision@5"]'


def test_a_suites_metrics_judge_what_they_can_in_the_order_of_the_suite(suite):
    metrics = '["accuracy", "ndcg@3", "mse", "log_loss", "precision@3"]'
    changed(suite, TWO_TASKS, (METRICS, metrics))
    p = made(suite="toys")
    assert {d.name: d.metrics for d in p.datasets} == {
        "toy-rank": ("ndcg@3", "precision@3"),
        "toy-binary": ("accuracy", "log_loss"),
    }
    assert p.metrics == ("accuracy", "ndcg@3", "log_loss", "precision@3")
    assert {f.dataset: f.metric for f in p.fits} == {"toy-rank": "ndcg@3", "toy-binary": "accuracy"}
    assert p.higher_is_better == {
        "accuracy": True, "ndcg@3": True, "log_loss": False, "precision@3": True
    }  # fmt: skip


def test_where_no_metric_of_a_suite_judges_the_data_the_usual_one_does_and_says_so(suite):
    changed(suite, TWO_TASKS, (METRICS, '["ndcg@3"]'))
    p = made(suite="toys")
    assert [d.metrics for d in p.datasets] == [("ndcg@3",), ("accuracy",)]
    note = "toy-binary: no metric of the suite applies to binary; using accuracy instead"
    assert p.notes.count(note) == 1


def test_a_misspelt_metric_is_told_before_any_data_is_looked_for(suite):
    there = {"data": "miniboone", "learners": "gbrt"}
    refused("MiniBooNE", made, **there)
    refused("metrics: unknown metric 'acuracy'", made, **there, metrics="acuracy")
    changed(suite, ('["toy-licensed"]', '["miniboone"]'), ("precision@5", "precison@5"))
    refused("toys.toml, key 'metrics'|'precison'", made, suite="toys")


def test_a_file_that_is_no_store_is_told_before_any_data_is_looked_for(home):
    (home / "notes.txt").write_text("not a store")
    refused("notes.txt: not a results store", made, data="nowhere.csv", store="notes.txt")


def test_data_are_looked_for_in_the_folder_that_the_request_names(suite, home):
    (home / "elsewhere").mkdir()
    (home / "elsewhere" / "licensed.txt").write_text("x")
    assert [d.name for d in made(suite="toys").datasets] == ["toy-rank"]
    found = made(suite="toys", data_dir="elsewhere").datasets
    assert [(d.name, d.title) for d in found] == [("toy-licensed", "licensed queries")]


def heard(**options):
    """The lines that planning says, each with whether it is a warning."""
    lines = []
    request = RunRequest(plugins=PLUGINS, **options)
    registry = load_registry(PLUGINS)
    make_plan(request, registry, lambda line, warning: lines.append((line, warning)))
    return lines


def test_warnings_and_notes_are_told_once_each(suite):
    lines = heard(suite="toys", seeds=(0, 1))
    assert [warning for _, warning in lines] == [True, False, False]
    assert lines[0][0].startswith("licensed.txt of toy-licensed was not found")
    assert lines[1][0] == "toy-rank: made of random numbers"
    assert lines[2][0].startswith("toy-rank: fewer than 500 validation queries")


def test_notes_wait_until_the_plan_is_made_and_warnings_do_not(suite):
    lines = []
    request = RunRequest(suite="toys", plugins=PLUGINS, folds=(0, 9))
    registry = load_registry(PLUGINS)
    with pytest.raises(UsageError, match="folds 0 to 1, not 9"):
        make_plan(request, registry, lambda line, warning: lines.append((line, warning)))
    assert [warning for _, warning in lines] == [True]


def test_what_the_store_has_is_finished_unless_all_is_to_be_done_anew(home):
    small = {"data": "toy-rank", "learners": "toy-prefix", "settings": FEW}
    more = {**small, "learners": ["toy-prefix", "toy-stacked"]}
    bench_core.run(plugins=PLUGINS, executor="inline", **more)
    p = made(**small)
    assert p.finished == {t.key for t in p.trials}
    assert p.finished_fits == {f.key for f in p.fits}
    assert len(p.fits) == 2
    further = made(**{**small, "settings": "toy-prefix.tradeoff=[0.5, 2.0]"})
    assert (len(further.finished), len(further.finished_fits)) == (1, 1)
    fresh = made(**small, fresh=True)
    assert (fresh.finished, fresh.finished_fits) == (set(), set())
    assert (fresh.estimate.jobs, fresh.estimate.recorded) == (4, 4)  # by what was recorded
    shutil.rmtree(home / "results/bench.fits")
    p = made(**small)
    assert (len(p.finished), p.finished_fits) == (2, set())


def test_a_fit_that_the_store_does_not_know_is_not_finished_though_its_file_is_there(home):
    small = {"data": "toy-rank", "learners": "toy-prefix", "settings": FEW}
    bench_core.run(plugins=PLUGINS, executor="inline", **small)
    for path in (home / "results").glob("bench.db*"):
        path.unlink()
    bench_core.run(plugins=PLUGINS, executor="inline", data="toy-binary", learners="toy-stacked")
    assert made(**small).finished_fits == set()


def test_the_run_is_named_by_suite_or_data_and_by_what_decides_its_results(suite):
    def run(**options):
        return str(made(**{"data": "toy-rank", "learners": "toy-prefix", **options}).run)

    both = run(data=["toy-rank", "toy-binary"])
    assert both.startswith("toy-rank+toy-binary-quick-")
    assert run(data="toy-rank", settings="toy-rank.queries=7").startswith("toy-rank_queries_7_-qu")
    assert run(suite="toys", data=(), profile="paper").startswith("toys-paper-")
    suite.write_text(f'{suite.read_text()}\n[profiles.brief]\nsize = "standard"\n')
    assert run(suite="toys", data=(), profile="brief").startswith("toys-brief-")
    assert run() == run(workers=3) != run(metrics="ndcg@3")


def with_executor(suite, executor):
    suite.write_text(f'executor = "{executor}"\n{suite.read_text()}')


def test_a_suite_says_where_its_trials_run_unless_the_request_does(suite):
    usual = made(suite="toys")
    assert usual.executor == "local"
    with_executor(suite, "dask=my_cluster:cluster")
    there = made(suite="toys")
    assert there.executor == "dask=my_cluster:cluster"
    assert made(suite="toys", executor="local").executor == "local"
    assert (there.run, there.fits, there.trials) == (usual.run, usual.fits, usual.trials)


def test_a_run_goes_where_its_suite_says(suite, monkeypatch):
    with_executor(suite, "dask=tcp://host:8786")
    asked = []

    def on_cluster(plan, request, *rest):
        asked.append(request.executor)
        raise InputError("no scheduler there")

    monkeypatch.setattr("bench_core.execution.dask.on_cluster", on_cluster)
    with pytest.raises(InputError, match="no scheduler there"):
        bench_core.run(suite="toys", plugins=PLUGINS, on_event=lambda event: None)
    assert asked == ["dask=tcp://host:8786"]
    more = {"settings": FEW, "learners": "toy-prefix", "on_event": lambda event: None}
    bench_core.run(suite="toys", plugins=PLUGINS, executor="inline", **more)
    assert Store("results/bench.db").info().request["executor"] == "inline"


def test_the_reference_is_scored_on_training_rows_up_to_a_number_of_them(home, monkeypatch):
    learners = ["toy-stacked", "toy-prefix"]
    asked = {"data": "toy-rank", "learners": learners, "reference": "toy-stacked"}
    p = made(**asked)
    rows = p.datasets[0].rows["train"]
    assert p.datasets[0].reference == "toy-stacked"
    for most, splits in ((rows, ("train", "valid", "test")), (rows - 1, ("valid", "test"))):
        monkeypatch.setattr(planner, "CHEAP_TRAINING_ROWS", most)
        found = {t.learner: t.splits for t in made(**asked).trials}
        assert found == {"toy-stacked": splits, "toy-prefix": ("valid", "test")}


def test_a_trial_says_whether_learners_trained_on_other_prices_than_it_is_billed_by(home):
    (home / "costs.txt").write_text("2\n1\n2\n5\n10\n20\n")
    (home / "query.json").write_text(json.dumps({"model": "per-query", "per_query": ["f6"]}))
    for costs, name, surrogate in (
        ("", "sensor", False),
        ("costs.txt", "sensor", False),
        ("query.json", "per-query", True),
    ):
        trials = made(data="toy-rank", learners="toy-stacked", costs=costs).trials
        assert [(t.cost_model, t.surrogate) for t in trials] == [(name, surrogate)]


@dataclass(frozen=True)
class Mine(Prefix):
    name: ClassVar[str] = "mine"
    version: ClassVar[str] = "7.1"


def test_a_learners_version_is_that_of_its_distribution_or_its_own(home):
    @dataclass(frozen=True)
    class Trees(Prefix):
        name: ClassVar[str] = "gbrt"
        version: ClassVar[str] = "0.1"

    @dataclass(frozen=True)
    class Newer(Mine):
        version: ClassVar[str] = "7.2"

    def versions(*learners):
        trials = made(data="toy-rank", learners=[*learners]).trials
        return {t.learner: t.learner_version for t in trials}

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


def test_only_learners_that_say_so_have_keys_of_libraries_and_processor(monkeypatch):
    here = keys.DescribedLearner(OfLibraries()).key(), keys.DescribedLearner(Prefix()).key()
    assert f"scipy {version('scipy')}" in here[0]["numerics"]
    monkeypatch.setattr(machine, "kernels", lambda: "BLAS other, SIMD none")
    machine.versions.cache_clear()
    there = keys.DescribedLearner(OfLibraries()).key(), keys.DescribedLearner(Prefix()).key()
    machine.versions.cache_clear()
    assert here[0] != there[0]
    assert here[1] == there[1]


def test_shipped_learners_declare_a_processor_but_those_that_sum_in_an_order_of_their_own():
    learners = load_registry(()).learners
    undeclared = {name for name in learners if "cpu" not in getattr(learners[name], "numerics", ())}
    assert undeclared == {"adapt-lin", "adapt-lstsq", "and-or"}  # their bases declare their own


def test_a_trial_says_what_it_depends_on_and_on_which_code(home):
    (trial,) = made(learners="gbrt", data="toy-binary", reference="").trials
    assert len(trial.code) == 16
    (forest,) = made(learners="random-forest", data="toy-binary").trials
    assert forest.libraries.startswith("scikit-learn ")
    assert forest.code != trial.code


def fit(key, *needs, learner="one"):
    needs = {f"learner of {need}": need for need in needs}
    return replace(FIT, key=key, title=key, learner_name=learner, dataset="rows", needs=needs)


def trial(key, of, learner="one"):
    return replace(TRIAL, key=key, title=key, fit=of, learner=learner, dataset="rows")


USE = example.use("rows", rows={"train": 3}, unit="ms")


def planned(fits, trials, **more):
    return Plan(
        suite="", title="", profile="quick", accounting="path", metrics=("m",),
        higher_is_better={"m": True}, datasets=(USE,), run="r", fits=tuple(fits),
        trials=tuple(trials), **more,
    )  # fmt: skip


def test_a_trial_is_left_that_is_neither_finished_nor_skipped():
    trials = [trial(key, "f") for key in ("new", "done", "odd", "done and odd")]
    p = planned(
        [fit("f")],
        trials,
        finished=frozenset({"done", "done and odd"}),
        skipped=(("done and odd", "too wide"), ("odd", "too long")),
    )
    assert trials_left(p) == [trials[0]]
    assert trials_skipped(p) == [(trials[2], "too long")]


def chain(**more):
    """Two fits on a base, one of them below a third, and one that stands alone."""
    fits = [fit("base"), fit("alone"), fit("low", "base"), fit("top", "low"), fit("side", "base")]
    trials = [trial(f"score {f.key}", f.key) for f in fits[1:]]
    return planned(fits, trials, **more)


@pytest.mark.parametrize(
    ("finished", "fitted", "left"),
    [
        ((), (), "base alone low top side"),
        (("low",), (), "base alone low top side"),  # its trial is done; top still stands on it
        (("low", "top"), (), "base alone side"),
        (("low", "top", "side"), (), "alone"),
        (("alone", "side"), ("low",), "top"),  # the base of what is fitted is not needed
        (("alone", "top"), ("base",), "low side"),
        (("alone", "low", "top", "side"), (), ""),
    ],
)
def test_fits_are_left_that_a_trial_needs_each_after_what_it_stands_on(finished, fitted, left):
    done = frozenset(f"score {key}" for key in finished)
    p = chain(finished=done, finished_fits=frozenset(fitted))
    assert [f.key for f in fits_left(p)] == left.split()


def test_a_job_takes_the_median_of_its_learner_on_its_data():
    times = [("rows", 1.0, 0.1), ("rows", 3.0, 0.3), ("rows", 8.0, 0.2), ("boats", 100.0, 100.0)]
    recorded = [(dataset, "one", *seconds) for dataset, *seconds in times]
    jobs = [fit("a"), fit("b", learner="other"), trial("c", "a"), trial("d", "b", "other")]
    assert expected_seconds(jobs, recorded) == {"a": 3.0, "c": 0.2}


@pytest.mark.parametrize(("workers", "wall"), [(1, 9.0), (2, 5.0), (9, 5.0)])
def test_jobs_are_shared_by_workers_but_never_cut(workers, wall):
    known = {"base": 5.0, "alone": 3.0, "low": 1.0}
    assert chain(expected=known, workers=workers).estimate == (9, 3, 9.0, wall)


def test_what_is_kept_about_a_run_is_json_with_its_request_and_learners_by_name():
    p = planned([fit("a")], [trial("x", "a")], notes=("a note",))
    kept = about_run(p, RunRequest(learners=("gbrt", Prefix()), seeds=(3,), costs="c.csv"))
    again = json.loads(json.dumps(kept))
    assert again["request"]["learners"] == ["gbrt", "toy-prefix"]
    assert (again["request"]["seeds"], again["request"]["costs"]) == ([3], "c.csv")
    (use,) = again["datasets"]
    assert (use["name"], use["rows"], use["unit"]) == ("rows", {"train": 3}, "ms")
    assert (again["profile"], again["notes"]) == ("quick", ["a note"])
    assert not {"fits", "trials", "run"} & again.keys()


def test_notes_on_small_data_are_cautions_and_others_are_not(suite):
    registry = load_registry(PLUGINS)
    request = RunRequest(plugins=PLUGINS, suite="toys")
    plan = make_plan(request, registry, lambda line, warning: None)
    (use,) = {use.name: use for use in plan.datasets if use.name == "toy-rank"}.values()
    kinds = {note.text.partition(":")[0]: note.kind for note in use.notes}
    assert kinds["fewer than 500 validation queries"] == "caution"
    assert kinds["made of random numbers"] != "caution"


def test_a_first_board_leaves_out_what_takes_long_but_not_the_reference(home, monkeypatch):
    monkeypatch.setattr("bench_core.planning.planner.SLOW", 1.0)
    monkeypatch.setattr(
        "bench_core.planning.planner.typical_time",
        lambda name, use, fit: {"cegb": 90.0, "gbrt": 90.0, "budget-rf": 0.8}.get(name, 0.3),
    )
    lines = []
    p = plan(data="breast-cancer", on_event=lambda event: lines.append(event.message))
    names = {trial.learner for trial in p.trials}
    assert {"gbrt", "miser"} <= names
    assert not names & {"cegb", "budget-prune"}  # the latter stands on budget-rf
    (line,) = [line for line in lines if "left out: a fit of cegb" in line]
    assert "on breast-cancer takes about 2 minutes; to run it, name it: learners=" in line
    assert "cegb" in {
        t.learner for t in plan(data="breast-cancer", learners=["cegb", "gbrt"]).trials
    }
