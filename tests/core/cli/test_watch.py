"""``bench model watch``: the log of a service next to the export of its model."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.pages import called

from bench_core import BudgetedClassifier
from bench_core.serving import load
from bench_core.serving.spending import compare_spending

RUN = (
    "--data train.csv --valid valid.csv --test test.csv --label ill --costs costs.csv --caps 6 "
    "--learners cegb --set cegb.trees=20 --audit off"
)


def table(seed, n=300):
    """Two tests of one blood sample, one with a blank in its name, a city and an age."""
    rng = np.random.default_rng(seed)
    cells = {"age": rng.integers(20, 80, n), "city": rng.choice(["Ulm", "Bonn", "Jena"], n)}
    cells |= {"free T4": rng.normal(size=n).round(2), "tsh": rng.normal(size=n).round(2)}
    near = (cells["age"] > 40) & (cells["free T4"] + cells["tsh"] > 0)
    ill = (cells["age"] > 70) | near | ((cells["city"] == "Ulm") & (cells["tsh"] > 0))
    return pd.DataFrame(cells).assign(ill=np.where(ill, "yes", "no"))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The folder of a run."""
    place = tmp_path_factory.mktemp("watch")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setenv("BENCH_CACHE", str(place / "cache"))
        for seed, name in enumerate(("train", "valid", "test")):
            table(seed).to_csv(f"{name}.csv", index=False)
        costs = "feature,price,group\nage,1,\ncity,1,\nfree T4,5,b\ntsh,5,b\n"
        Path("costs.csv").write_text(costs)
        called(f"bench run {RUN}")
    return place


@pytest.fixture
def answers(place, bench, monkeypatch):
    """Function that exports a model and returns its answers to the test rows of its run."""
    monkeypatch.chdir(place)
    monkeypatch.setenv("BENCH_CACHE", str(place / "cache"))

    def answers(*words):
        bench("model", "export", *words, "-o", "model").ok()
        model = load("model")
        return [model.predict(row) for row in table(2).to_dict("records")]

    return answers


def write(answers, name="log.csv"):
    pd.DataFrame([answer.log() for answer in answers]).to_csv(name, index=False)


CAP = ("--budget", "6", "--budget-kind", "cap")


@pytest.mark.parametrize("words", [("--budget", "inf"), ("--budget", "5"), CAP])
def test_an_export_expects_what_its_test_rows_spend(answers, words):
    made = answers(*words)
    spending = load("model").about["spending"]
    spent = [answer.spent for answer in made]
    assert spending["rows"] == len(made) == 300
    assert spending["mean"] == pytest.approx(np.mean(spent))
    assert spending["deviation"] == pytest.approx(np.std(spent))
    assert spending["capped"] == np.mean([answer.stopped == "cap" for answer in made])
    assert (spending["capped"] > 0) == (words == CAP)
    for name, share in spending["bought"].items():
        assert share == pytest.approx(np.mean([name in answer.bought for answer in made])), name
    assert {name for answer in made for name in answer.bought} <= {*spending["bought"]}


def test_the_answers_that_were_expected_raise_no_alarm(answers, bench):
    write(answers("--budget", "inf"))
    assert ",age 'free T4' tsh,0\n" in Path("log.csv").read_text()
    ended = bench("model", "watch", "model", "log.csv").ok()
    assert "300 answers in log.csv, next to model" in ended.out
    for line in ended.out.splitlines()[2:-1]:
        assert line.split()[-1] == line.split()[-2], line  # in the log as in the export
    assert ended.out.splitlines()[-1] == "as expected"


def test_a_row_that_pays_more_raises_an_alarm(answers, bench):
    made = answers("--budget", "inf")
    bought = {name for answer in made for name in answer.bought}
    columns = {"spent": 20.0, **{name: [int(name != "age")] * 300 for name in bought}, "note": "x"}
    pd.DataFrame(columns).to_csv("log.csv", index=False)
    ended = bench("model", "watch", "model", "log.csv")
    assert ended.status == 1
    alarms = [line for line in ended.out.splitlines() if line.endswith(" ALARM")]
    assert alarms[0].startswith("mean cost")
    assert any(line.startswith("age") and "0.0%" in line for line in alarms)
    assert not any(line.startswith("capped") for line in ended.out.splitlines())
    assert f"ALARM: {len(alarms)} figures changed" in ended.out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("spend\n1\n", "log.csv: no column 'spent'; write a row of answer.log()"),
        ("spent\n", "log.csv: no rows"),
        ("spent\n1\nx\n", "log.csv, line 3, column 'spent' holds text ('x')"),
        ("spent,capped\n1,7\n", "log.csv, line 2, column 'capped': 7 is not 0 or 1"),
        ("spent,age\n1,2\n", "log.csv, line 2, column 'age': 2 is not 0 or 1"),
        (
            "spent,bought\n1,age\n1,agee\n",
            "log.csv, line 3: unknown column of the model 'agee'",
        ),
        ("spent,bought\n1,NA\n", "log.csv, line 2: unknown column of the model 'NA'"),
        ("spent,bought\n1,age 'x\n", 'log.csv, line 2: "age \'x": No closing quotation'),
    ],
)
def test_a_wrong_log_is_one_line(text, words, answers, bench):
    answers("--budget", "inf")
    Path("log.csv").write_text(text)
    bench("model", "watch", "model", "log.csv").refused(words)


BEFORE = {"rows": 100, "mean": 10.0, "deviation": 2.0}


@pytest.mark.parametrize(
    ("rows", "mean", "alarm"),
    [
        (4, 12.0, False),  # 3 standard errors are 6 * sqrt(1/4 + 1/100) = 3.06
        (4, 13.1, True),
        (100, 10.8, False),  # 0.85
        (100, 9.1, True),
        (10**6, 10.55, False),  # 0.60, for the export has 100 rows
        (10**6, 10.65, True),
    ],
)
def test_an_alarm_needs_more_than_chance(rows, mean, alarm):
    (figure,) = compare_spending(BEFORE, np.full(rows, mean), [])
    assert (figure.expected, figure.logged) == (10.0, pytest.approx(mean))
    assert figure.alarm is alarm


def test_an_alarm_needs_a_change_of_five_percent():
    before = {"rows": 10**6, "mean": 10.0, "deviation": 2.0}
    spent = np.full(10**6, 10.49)  # 3 standard errors are 0.0085
    few = np.arange(10**6) < 249_000
    figures = compare_spending(before, spent, [("a", 0.2, few), ("b", 0.3, few)])
    assert [figure.alarm for figure in figures] == [False, False, True]
    assert compare_spending(before, spent + 0.02, [])[0].alarm


def test_a_share_of_few_answers_may_differ_by_chance():
    share = ("a", 0.5, np.array([True, True, True, True]))
    (_, figure) = compare_spending(BEFORE, np.full(4, 10.0), [share])
    assert (figure.logged, figure.alarm) == (1.0, False)  # four heads


def test_an_estimator_exports_its_expectation_of_the_validation_part():
    data = table(0)
    X, y = data.drop(columns=["ill"]), data["ill"]
    costs = {"age": 1.0, "city": 1.0, "free T4": 5.0, "tsh": 5.0}
    model = BudgetedClassifier("cegb", costs=costs, parameters={"trees": 10})
    about = model.fit(X, y).export().about
    assert about["spending"]["mean"] == pytest.approx(about["valid"]["cost"])
    assert {*about["spending"]["bought"]} <= {*X.columns}
    assert about["spending"]["capped"] == 0


def test_an_expectation_rests_on_rows_from_the_whole_split(monkeypatch):
    data = table(0, 600)
    model = BudgetedClassifier("cegb", parameters={"trees": 5}, validation_fraction=0.5)
    model.fit(data[["age", "tsh"]], data["ill"])
    whole = model.export().about["spending"]
    monkeypatch.setattr("bench_core.serving.spending.MOST", 100)
    some = model.export().about["spending"]
    assert (some["rows"], whole["rows"] > 200) == (100, True)
    assert some["mean"] == pytest.approx(whole["mean"], abs=0.3)
