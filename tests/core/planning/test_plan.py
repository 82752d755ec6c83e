import importlib
import math
import sys
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from helpers.kit import refused
from helpers.toys import Prefix

from bench_core import Task
from bench_core.api import plan
from bench_core.planning.plan import typical_seconds

PLUGINS = ("helpers.toys",)
PRICES = "2\n1\n2\n5\n10\n20\n"


def made(**options):
    return plan(plugins=PLUGINS, **options)


def test_a_fit_that_several_trials_stand_on_is_planned_once(home):
    p = made(data="toy-rank", learners="toy-stacked", settings="toy-stacked.shrink=[0.5, 0.25, 1]")
    names = [f.learner_name for f in p.fits]
    assert names == ["toy-prefix", "toy-stacked", "toy-stacked", "toy-stacked"]
    base = p.fits[0].key
    assert [list(f.needs.values()) for f in p.fits[1:]] == [[base]] * 3
    assert len(p.trials) == 3


def test_a_need_that_is_also_asked_for_is_one_fit(home):
    both = ["toy-stacked", "toy-prefix"]
    p = made(data="toy-rank", learners=both, settings="toy-prefix.tradeoff=0.0")
    assert [f.learner_name for f in p.fits] == ["toy-prefix", "toy-stacked"]


def test_a_suite_gives_grids_metrics_reference_and_claims(suite):
    p = made(suite="toys")
    assert (p.suite, p.title, p.profile) == ("toys", "Toys", "quick")
    assert p.metrics == ("ndcg@5", "precision@5")
    assert [claim["says"] for claim in p.extra["claims"]] == ["toys are cheap"]
    assert [t.learner for t in p.trials] == ["toy-prefix"] * 2 + ["toy-stacked"] * 2


def test_the_reference_is_on_the_board_even_where_it_was_not_asked_for(suite):
    p = made(suite="toys", learners="toy-stacked")
    assert {t.learner for t in p.trials} == {"toy-prefix", "toy-stacked"}


def test_a_stand_in_takes_the_place_of_absent_data_and_says_so(suite):
    p = made(suite="toys")
    assert [(d.name, d.stand_in, d.stand_in_for) for d in p.datasets] == [
        ("toy-rank", True, "toy-licensed")
    ]
    assert any(w.startswith("licensed.txt of toy-licensed was not found") for w in p.warnings)
    assert all(t.stand_in for t in p.trials)


def test_two_accountings_are_two_boards_of_the_same_fits(suite):
    suite.write_text('accounting = ["model", "path"]\n' + suite.read_text())
    p, path = made(suite="toys"), "toy-rank(accounting=path)"
    assert p.accounting == "model, path"
    assert [(d.name, d.accounting, d.same_as) for d in p.datasets] == [
        ("toy-rank", "model", ""),
        (path, "path", "toy-rank"),
    ]
    of = {name: [t for t in p.trials if t.dataset == name] for name in ("toy-rank", path)}
    assert [t.fit for t in of[path]] == [t.fit for t in of["toy-rank"]]
    assert {t.accounting for t in of[path]} == {"path"}
    assert len({t.key for t in p.trials}) == len(p.trials) == 2 * len(of[path])
    with_option = replace(p.datasets[0], name="letters(classes=26)").under("path")
    assert with_option.name == "letters(classes=26,accounting=path)"


def test_seeds_and_folds_multiply_the_trials(home):
    toy = {"data": "toy-rank", "learners": "toy-prefix", "settings": "toy-prefix.tradeoff=0.5"}
    p = made(**toy, seeds=[0, 3], folds=[0, 1])
    assert [(t.fold, t.seed) for t in p.trials] == [(0, 0), (0, 3), (1, 0), (1, 3)]
    assert len({t.fingerprint for t in p.trials}) == 4


def test_what_is_asked_for_twice_is_there_once(home):
    once = made(data="toy-rank", learners="toy-stacked", metrics="ndcg@5", seeds=3, folds=0)
    twice = made(
        data=["toy-rank", "toy-rank"],
        learners=["toy-stacked", "toy-stacked"],
        metrics=["ndcg@5", "ndcg@05"],
        seeds=np.array([3, 3]),
        folds=[0, 0],
    )
    assert twice.datasets == once.datasets
    assert [t.key for t in twice.trials] == [t.key for t in once.trials]


def test_titles_name_what_differs_within_a_grid(home):
    p = made(
        data="toy-rank",
        learners=["toy-prefix", "toy-stacked"],
        settings="toy-prefix.tradeoff=[0.5, 1]",
        seeds=[0, 7],
    )
    assert [t.title for t in p.trials] == [
        "toy-prefix tradeoff=0.5 on toy-rank",
        "toy-prefix tradeoff=1 on toy-rank",
        "toy-stacked on toy-rank",
        "toy-prefix tradeoff=0.5 on toy-rank, fold 0, seed 7",
        "toy-prefix tradeoff=1 on toy-rank, fold 0, seed 7",
        "toy-stacked on toy-rank, fold 0, seed 7",
    ]


def test_a_learner_that_stands_on_an_unsuitable_one_is_treated_as_unsuitable(home):
    stand = {"data": "digits", "settings": "toy-on-broken.base=toy-prefix"}
    does = "toy-prefix, which does binary, ranking, regression"
    line = f"toy-on-broken needs {does}; digits is multiclass"
    p = made(learners=["toy-broken", "toy-on-broken"], **stand)
    assert [t.learner for t in p.trials if t.key not in dict(p.skipped)] == ["toy-broken"]
    assert list(dict(p.skipped).values()) == [line]
    refused(f"nothing to run: {line}", made, learners="toy-on-broken", **stand)
    p = made(learners="all", **stand)
    assert "toy-on-broken" not in {t.learner for t in p.trials}
    assert f"skipped: {line}" in p.notes


def test_options_of_a_data_set_are_set_alike_and_show_in_its_name(home):
    p = made(data="toy-rank", learners="toy-prefix", settings="toy-rank.queries=7")
    assert p.datasets[0].name == "toy-rank(queries=7)"
    assert p.datasets[0].queries["train"] == 7


BELOW = ["toy-stacked.base.learner=toy-prefix", "toy-prefix.tradeoff=1"]


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (
            {"data": "toy-rank", "learners": "toy-stacked", "settings": BELOW},
            "'toy-prefix'|learners",
        ),
        ({"data": "toy-binary", "metrics": "seg"}, "seg does not apply"),
        ({"data": "toy-rank", "test": "x.svm"}, "test has no meaning with a registered"),
        ({"data": ""}, "data: '' is not a name, file or instance of a data set"),
        ({"data": "toy-rank", "suite": 5}, "suite: 5 is not text"),
        ({"data": "toy-rank", "workers": "two"}, "workers: 'two' is not a whole number >= 1"),
        (
            {"data": "toy-rank", "settings": ["toy-prefix.speed=1", "toy-prefix.tradeoff=1"]},
            "settings='toy-prefix.speed=1'|'speed'|known: seconds, tradeoff",
        ),
        (
            {"data": "toy-rank", "learners": {"toy-prefix": {"tradeof": [1, 2], "tradeoff": 1}}},
            "settings='toy-prefix.tradeof=[1, 2]'|did you mean tradeoff",
        ),
        (
            {"data": "toy-rank", "settings": ["toy-prefix.tradeoff=1", "toy-prefix.tradeoff.x=1"]},
            "settings='toy-prefix.tradeoff.x=1'|'tradeoff' is not a learner",
        ),
        ({"data": "toy-rank", "audit": "some"}, "audit: 'some' is not one of sample, full"),
        ({"data": "toy-rank", "profile": "huge"}, "unknown profile 'huge'"),
        ({"data": "toy-rank", "seeds": 1.5}, "seeds: 1.5 is not a whole number from 0"),
        ({"data": ["toy-rank", "toy-binary"], "costs": "c.csv"}, "costs applies to one data set"),
    ],
)
def test_a_contradiction_is_one_line(home, options, line):
    refused(line, made, **{"learners": "toy-prefix", **options})
    assert not (home / "results").exists()


def keys(**options):
    usual = {"plugins": PLUGINS, "settings": "toy-prefix.tradeoff=1"}
    p = plan(data="toy-rank", learners="toy-prefix", **{**usual, **options})
    return p.trials[0].fit, p.trials[0].key


def test_threads_workers_and_timeouts_do_not_enter_the_keys(home):
    assert keys() == keys(threads=3, workers=5, timeout=9, memory=1 << 40)


def test_a_further_metric_changes_the_score_key_alone(home):
    one, two = keys(metrics="ndcg@5"), keys(metrics=["ndcg@5", "precision@5"])
    assert one[0] == two[0]
    assert one[1] != two[1]


METRIC = """
import dataclasses
import numpy as np
from bench_core import MetricValues, Task, hookimpl

@dataclasses.dataclass(frozen=True)
class Constant:
    name = "constant"
    higher_is_better = True
    tasks = frozenset({Task.RANKING})

    def values(self, scores, y, queries=None, multiplicity=None):
        return MetricValues(np.full(len(y), VALUE), np.ones(len(y)))

@hookimpl
def bench_metrics():
    return [Constant()]
"""


@pytest.mark.parametrize("metrics", [("constant", "ndcg@5"), ("ndcg@5", "constant")])
def test_a_metric_of_a_plugin_that_was_rewritten_is_reckoned_anew(home, monkeypatch, metrics):
    monkeypatch.syspath_prepend(home)
    monkeypatch.delitem(sys.modules, "constant_metric", raising=False)
    found = []
    for value in ("0.25", "0.75"):
        (home / "constant_metric.py").write_text(METRIC.replace("VALUE", value))
        found.append(keys(metrics=metrics, plugins=("helpers.toys", "constant_metric")))
    assert found[0][1] != found[1][1]
    learners_see_it = metrics[0] == "constant"
    assert (found[0][0] != found[1][0]) == learners_see_it


def test_a_learner_that_was_rewritten_within_a_session_is_fitted_anew(home, monkeypatch):
    monkeypatch.syspath_prepend(home)
    monkeypatch.delitem(sys.modules, "rewritten", raising=False)
    found = []
    for value in ("first", "second"):
        (home / "rewritten.py").write_text(
            "import dataclasses\n"
            "from helpers import toys\n"
            "@dataclasses.dataclass(frozen=True)\n"
            "class Mine(toys.Prefix):\n"
            "    name = 'mine'\n"
            f"VALUE = {value!r}\n"
        )
        module = importlib.import_module("rewritten")
        found.append(made(data="toy-rank", learners=[module.Mine()]).fits[0].key)
    assert found[0] != found[1]


@pytest.mark.parametrize(
    ("name", "columns", "fitted_anew"), [("two.csv", "a,b", False), ("one.csv", "b,a", True)]
)
def test_equal_rows_under_another_name_have_results_of_their_own(name, columns, fitted_anew, home):
    """Of a file, or of columns, whose names a learner may read."""
    rows, planned = "".join(f"{i % 7},{i % 5},{i % 3 % 2}\n" for i in range(60)), []
    for file, names in (("one.csv", "a,b"), (name, columns)):
        (home / file).write_text(f"{names},label\n{rows}")
        planned.append(plan(data=file, learners="gbrt").trials[0])
    one, two = planned
    assert one.fingerprint == two.fingerprint
    assert (one.fit != two.fit) is fitted_anew
    assert one.key != two.key
    assert two.dataset == name


@pytest.mark.parametrize(
    "options",
    [
        {"settings": "toy-prefix.tradeoff=2"},
        {"settings": ["toy-prefix.tradeoff=1", "toy-rank.queries=9"]},
        {"seeds": 1},
        {"folds": 1},
        {"metrics": "precision@5"},
        {"costs": "costs.txt"},
    ],
)
def test_what_a_fit_depends_on_changes_its_key(home, options):
    (home / "costs.txt").write_text(PRICES)
    assert keys()[0] != keys(**options)[0]


def test_a_cost_file_reaches_the_trials(home):
    (home / "costs.txt").write_text(PRICES)
    p = made(data="toy-rank", learners="toy-prefix", costs="costs.txt")
    assert p.datasets[0].price_of_everything == 40.0
    assert p.datasets[0].cheapest_price == 1.0
    assert [c.feature_price().tolist() for c in p.costs.values()] == [[2, 1, 2, 5, 10, 20]]
    assert {*(f.costs for f in p.fits), *(t.costs for t in p.trials)} == {*p.costs}


def test_before_anything_was_timed_the_time_is_from_rows_columns_and_classes(
    home, tmp_path, monkeypatch
):
    typical = tmp_path / "typical.json"
    typical.write_text('{"one": [1, 2, 3, 4], "two": [3, 4, 5, 6], "three": [9, 9, 9, 9]}')
    monkeypatch.setattr("bench_core.planning.plan.TYPICAL", typical)
    p = made(data="toy-rank", learners="toy-prefix")
    (use,) = p.datasets
    train, rest = use.rows["train"], use.rows["valid"] + use.rows["test"]
    expected = {f.key: 3 + 4 * train * math.sqrt(use.features) / 1e6 for f in p.fits}
    expected |= {t.key: 5 + 6 * rest * math.sqrt(use.features) / 1e6 for t in p.trials}
    assert p.expected == pytest.approx(expected)  # of an unknown learner: the medians
    assert p.typical == expected.keys()
    assert (p.estimate.jobs, p.estimate.recorded) == (2 * 7, 0)
    uses = [replace(use, classes=3)]
    own = [replace(p.fits[0], learner_name="one")]
    assert typical_seconds(own, uses) == pytest.approx(
        {own[0].key: 1 + 2 * 3 * train * math.sqrt(use.features) / 1e6}
    )


def reference(plan):
    """The learner that savings on each data set are measured against."""
    (name,) = {use.reference for use in plan.datasets}
    return name


def test_a_learner_that_is_no_reference_by_its_role_is_one_only_if_it_is_named(home):
    p = made(data="toy-rank", learners=["toy-prefix", "toy-stacked"])
    assert reference(p) == ""
    p = made(data="toy-rank", learners=["toy-prefix"], reference="toy-stacked")
    assert reference(p) == "toy-stacked"
    assert next(t.learner for t in p.trials) == "toy-stacked"


def test_a_named_reference_takes_the_place_of_the_suites(suite):
    p = made(suite="toys", learners="toy-stacked", reference="toy-stacked")
    assert reference(p) == "toy-stacked"
    assert {t.learner for t in p.trials} == {"toy-stacked"}


def test_a_reference_may_be_given_as_an_object(home):
    from bench_methods.baselines import GreedyOrder

    p = made(data="toy-rank", learners=[GreedyOrder(trees=3)], reference="greedy-order")
    assert (reference(p), [t.learner for t in p.trials]) == ("greedy-order", ["greedy-order"])


def with_baselines(suite):
    suite.write_text('baselines = ["constant", "greedy-order"]\n' + suite.read_text())


def test_a_suites_baselines_are_on_every_board_of_it(suite):
    with_baselines(suite)
    p = made(suite="toys", learners="toy-stacked")
    learners = list(dict.fromkeys(t.learner for t in p.trials))
    assert learners == ["toy-prefix", "toy-stacked", "constant", "greedy-order"]
    assert p.baselines == ("constant", "greedy-order")
    assert reference(p) == "toy-prefix"


def test_a_baseline_that_was_asked_for_is_there_once_by_name_or_as_an_object(suite):
    from bench_methods.baselines import GreedyOrder

    with_baselines(suite)
    asked = [
        {"learners": "greedy-order", "settings": "greedy-order.trees=3"},
        {"learners": [GreedyOrder(trees=3)]},
    ]
    for options in asked:
        trials = made(suite="toys", **options).trials
        assert [t.params["trees"] for t in trials if t.learner == "greedy-order"] == [3]


def test_a_learner_with_a_trade_off_gets_the_default_grid_unless_one_fit_sweeps_it(home):
    swept = [t.params["tradeoff"] for t in made(data="toy-rank", learners="toy-prefix").trials]
    assert tuple(swept) == (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
    for learner, values in (("budget-prune", [None]), ("soft-cascade", [0.03, 0.3, 1.0, 3.0])):
        p = made(data="toy-binary", learners=learner)
        assert [t.params["tradeoff"] for t in p.trials] == values


def test_without_a_suite_the_reference_is_the_learner_of_that_role_and_never_a_baseline(home):
    def among(*learners):
        return reference(made(data="digits", learners=list(learners)))

    assert among("miser", "l1", "rbf-svm", "gbrt", "constant") == "gbrt"
    assert among("miser", "constant", "greedy-order") == ""
    assert among("miser", "rbf-svm", "constant") == ""
    assert among("forward-selection") == among("random-forest", "cost-tree") == ""


@pytest.mark.parametrize(
    ("named", "letters", "answers"),
    [
        ("", "gbrt", "best-single"),
        ("miser", "miser", "best-single"),
        ("cascade", "gbrt", "cascade"),
    ],
)
def test_each_task_has_its_reference(home, named, letters, answers):
    lines = [f"{x},{x % 2},{x % 3 / 2},{'ABC'[x % 3]}" for x in range(60)]
    (home / "calls.csv").write_text("\n".join(["words,big_score,small_score,letter", *lines]))
    (home / "datasets.toml").write_text(
        '[answers]\nfile = "calls.csv"\nchoose = ["*_score"]\ndrop = ["letter"]\n'
        '[letters-of]\nfile = "calls.csv"\ntask = "multiclass"\nlabel = "letter"\n'
    )
    learners = ["gbrt", "miser", "cascade", "best-single"]
    p = made(data=["answers", "letters-of"], learners=learners, reference=named, data_dir=str(home))
    assert {use.name: use.reference for use in p.datasets} == {
        "answers": answers,
        "letters-of": letters,
    }
    assert not [note for note in p.notes if "no saving" in note or "relative to" in note]


def test_a_note_tells_that_one_of_the_folds_in_the_users_file_is_run(home):
    lines = [f"{x},{x % 7},{x % 2}" for x in range(60)]
    (home / "mine.csv").write_text("\n".join(["a,b,label", *lines]))
    table = '[mine]\nfile = "mine.csv"\ntask = "binary"\n'
    given = {"data": "mine", "learners": "gbrt", "data_dir": str(home)}
    (home / "datasets.toml").write_text(f"{table}folds = 5\n")
    one = "mine: of its 5 folds the first is run; folds chooses others, 0 to 4"
    assert one in made(**given).notes
    every = made(**given, folds=range(5))
    assert {trial.fold for trial in every.trials} == {*range(5)}
    assert one not in every.notes
    (home / "datasets.toml").write_text(table)
    assert not [note for note in made(**given).notes if "folds" in note]


@dataclass(frozen=True)
class Another(Prefix):
    """Says that others are compared with it."""

    name: ClassVar[str] = "another"
    role: ClassVar[str] = "reference"
    tasks: ClassVar[frozenset[Task]] = frozenset(Task)


def test_a_plugin_of_that_role_takes_away_no_reference(home):
    p = made(data="digits", learners=[Another(), "gbrt", "miser"])
    assert reference(p) == "gbrt"
    assert [note for note in p.notes if "savings are relative to gbrt" in note]
    assert reference(made(data="digits", learners=[Another(), "miser"])) == "another"


def test_a_unit_trains_nothing_anew(home):
    lines = [f"{x},{x % 7},{x % 2}" for x in range(60)]
    (home / "rows.csv").write_text("\n".join(["a,b,label", *lines]))
    given = {"data": "rows.csv", "label": "label", "learners": ["gbrt", "cegb"]}
    plain, named = made(**given), made(**given, unit="euro")
    assert [fit.key for fit in named.fits] == [fit.key for fit in plain.fits]
    assert {trial.unit for trial in named.trials} == {"euro"}


BOTH, SEVERAL = '["toy-rank", "toy-binary"]', '["toy-rank", "letters", "miniboone"]'


def on(suite, datasets, head="", own=""):
    """Give the suite these data sets, a line, and tables of its own."""
    text = suite.read_text().replace('["toy-licensed"]', datasets)
    suite.write_text(head + text.replace("[[claims]]", f"{own}[[claims]]"))


def test_a_suite_of_several_data_sets_runs_on_those_that_are_there_and_says_so(suite):
    on(suite, SEVERAL)
    p = made(suite="toys")
    assert [d.name for d in p.datasets] == ["toy-rank"]
    assert p.absent == ("letters", "miniboone")
    (line,) = p.warnings
    assert line.startswith("skipped data sets, as their files are not in ")
    assert "letters (letter-recognition.data), miniboone (MiniBooNE_PID.txt)" in line
    assert "bench data fetch" in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("datasets", "options", "words"),
    [
        ('["toy-licensed"]', {"strict_data": True}, "files are not in|licensed.txt|show toy-lic"),
        (SEVERAL, {"strict_data": True}, "no file letter"),
        (SEVERAL, {"data": "miniboone"}, "no file MiniBooNE"),
        ('["letters", "miniboone"]', {}, "toys has no data|letters (letter-recognition.data)"),
        (BOTH, {"folds": 1}, "toy-binary|fold 0, not 1"),
    ],
)
def test_data_that_are_asked_for_are_not_skipped(suite, datasets, options, words):
    on(suite, datasets)
    refused(words, made, suite="toys", **options)


def test_where_a_suite_wants_no_stand_ins_absent_licensed_data_are_skipped(suite):
    on(suite, '["toy-licensed", "toy-binary"]', "stand_ins = false\n")
    p = made(suite="toys", metrics="accuracy")
    assert [d.name for d in p.datasets] == ["toy-binary"]
    assert p.absent == ("toy-licensed",)


ON = """
[on.toy-rank.toy-prefix]
tradeoff = 0.5
[on.toy-rank]
toy-stacked = false
"""


def test_folds_of_a_suite_are_those_that_the_data_set_has(suite):
    on(suite, BOTH, "folds = [0, 1, 2]\n")
    found = {(t.dataset, t.fold) for t in made(suite="toys").trials}
    assert found == {("toy-rank", 0), ("toy-rank", 1), ("toy-binary", 0)}
    suite.write_text(suite.read_text().replace("folds = [0, 1, 2]", "folds = [1]"))
    refused("toy-binary|fold 0, not 1", made, suite="toys")


def test_what_a_suite_says_of_one_data_set_holds_there_alone(suite):
    on(suite, BOTH, own=ON)
    found = {
        (t.dataset, t.learner, t.params.get("tradeoff"), t.params.get("shrink"))
        for t in made(suite="toys").trials
    }
    assert {f for f in found if f[0] == "toy-rank"} == {("toy-rank", "toy-prefix", 0.5, None)}
    assert ("toy-binary", "toy-prefix", 1.0, None) in found
    settled = made(suite="toys", data="toy-rank", settings="toy-prefix.tradeoff=0.25").trials
    assert [t.params["tradeoff"] for t in settled] == [0.25]


def test_a_learner_that_a_suite_leaves_out_runs_if_it_and_the_data_set_are_named(suite):
    on(suite, BOTH, own=ON)
    whole = made(suite="toys")
    assert whole.warnings == ()
    assert ("toy-rank", "toy-stacked") not in {(t.dataset, t.learner) for t in whole.trials}
    named = made(suite="toys", learners="toy-stacked")
    assert {t.dataset for t in named.trials if t.learner == "toy-stacked"} == {"toy-binary"}
    assert named.warnings == (
        "suite toys leaves toy-stacked out on toy-rank: name the data set too (data='toy-rank') "
        "to run it there",
    )
    both = made(suite="toys", data="toy-rank", learners="toy-stacked")
    assert {t.learner for t in both.trials} == {"toy-prefix", "toy-stacked"}
    assert both.warnings == (
        "suite toys leaves toy-stacked out on toy-rank; it was requested there, so it runs",
    )
