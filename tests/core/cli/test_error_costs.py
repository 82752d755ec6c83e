"""Costs of errors through the whole command: the answer is the model of least total cost, and what
is exported answers as it was judged."""

import json
import re
import subprocess
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.compiled_c import COMPILERS, compiled

import bench_core
from bench_core._io.files import from_cache
from bench_core.cli import main
from bench_core.datasets.cache import open_prepared
from bench_core.leaderboard.draws import Draws
from bench_core.results.store import Store
from bench_core.serving import load

CLASSES = {2: ("no", "yes"), 3: ("a", "b", "c")}
LEARN = ("-l", "gbrt,cegb,greedy-order", "--set", "gbrt.trees=12", "--set", "cegb.trees=12",
         "--set", "cegb.tradeoff=[0.1,1]", "--set", "greedy-order.trees=5", "--executor", "inline",
         "--audit", "off")  # fmt: skip


def table(k, rows=600):
    """Features that cost 1, 2 and 4 and tell more the more they cost; the last class is rare."""
    rng = np.random.default_rng(k)
    true = rng.choice(k, rows, p=[0.85, 0.15] if k == 2 else [0.5, 0.35, 0.15])
    noise = (2.0, 1.2, 0.7)
    cells = {f"f{j}": np.round(true + rng.normal(0, s, rows), 2) for j, s in enumerate(noise)}
    return pd.DataFrame(
        cells | {"loss": rng.integers(1, 40, rows), "label": np.array(CLASSES[k])[true]}
    )


MATRIX = {2: ((0, 3), (30, 1)), 3: ((0, 3, 5), (4, 0, 6), (40, 20, 0))}


@pytest.fixture(scope="module", params=[2, 3])
def done(request, tmp_path_factory):
    """A run with a matrix of costs on two or three classes, with its folder."""
    place, k = tmp_path_factory.mktemp("errors"), request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setenv("BENCH_CACHE", str(place / "cache"))
        table(k).to_csv("data.csv", index=False)
        (place / "costs.csv").write_text("f0,0.1\nf1,0.2\nf2,0.4\n")
        names = CLASSES[k]
        lines = [f"{n},{','.join(map(str, row))}" for n, row in zip(names, MATRIX[k], strict=True)]
        (place / "errors.csv").write_text("\n".join([f"true,{','.join(names)}", *lines]) + "\n")
        words = ("run", "--data", "data.csv", "--drop", "loss", "--costs", "costs.csv")
        with pytest.raises(SystemExit) as end:
            main((*words, "--label", "label", "--error-costs", "errors.csv", *LEARN))
        assert not end.value.code
    return k, place


@pytest.fixture
def again(done, bench, monkeypatch):
    monkeypatch.chdir(done[1])
    monkeypatch.setenv("BENCH_CACHE", str(done[1] / "cache"))
    return done[0], bench


def splits_of(model):
    return open_prepared(from_cache(model.about["provenance"]["data"]))


def exported(again, *words):
    _, bench = again
    bench("model", "export", "-o", "model", *words).ok()
    return load("model")


def test_a_row_pays_for_its_purchases_and_for_its_answer(again):
    k, bench = again
    model = exported(again, "1")
    frame = pd.read_csv(StringIO(bench("export", "1").out))
    about = model.about
    params = frame["params"].map(json.loads) == about["params"]
    same = params & (frame["point"].map(json.loads) == about["point"])
    rows = frame[same & (frame["learner"] == about["learner"])].set_index("split")
    test, valid = rows.loc["test"], frame[frame["split"] == "valid"]
    constant = valid[valid["point"].str.contains("constant")]["total_cost"].min()
    # some lower ones may not be sure to be below the constant
    assert valid["total_cost"].min() <= rows.loc["valid"]["total_cost"] < constant
    bench("model", "check", "model").ok()
    rows = splits_of(model).test
    answers = model.predict_features(rows.X)
    names = list(model.labels(answers.scores))
    total = [
        spent + MATRIX[k][int(y)][CLASSES[k].index(name)]
        for spent, y, name in zip(answers.spent, rows.y, names, strict=True)
    ]
    assert np.mean(total) == pytest.approx(test["total_cost"], rel=1e-9)
    assert np.mean(answers.spent) == pytest.approx(test["cost"], rel=1e-9)
    one = model.predict(dict(zip(model.names, rows.X[0], strict=True)))
    assert one.label == model.labels(one.score) == names[0]
    assert len({*names}) > 1


def test_a_model_of_free_features_may_beat_the_constant(bench):
    """Then the constant, which total costs are compared with, is on no frontier."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"free": rng.normal(size=400), "dear": rng.normal(size=400)})
    frame["ill"] = np.where(frame["free"] + 0.5 * rng.normal(size=400) > 0, "yes", "no")
    frame.to_csv("t.csv", index=False)
    Path("c.csv").write_text("free,0\ndear,9\n")
    run = ("run", "--data", "t.csv", "--label", "ill", "--costs", "c.csv", "--error-costs", "10")
    bench(*run, "-l", "cegb", "--set", "cegb.trees=20", "--executor", "inline").ok()
    values = next(Store("results/bench.db").values("last", split="valid"))
    assert {"constant": 1} in [dict(point) for point in values.settings]
    assert "cegb costs " in bench("report").words
    said = bench("best").ok().words
    assert "cegb: best at " in said
    assert "run it alone with: bench run " in said


def test_the_conclusion_has_the_parts_and_what_all_and_nothing_cost(again):
    _, bench = again
    words = bench("report", "1").words
    assert " for features, " in words
    assert " for errors, chosen on only 108 validation rows." in words
    assert "Buying everything costs " in words
    assert "buying nothing " in words
    assert "without a reference" not in words
    best = bench("best", "1")
    assert "least total_cost at any cost" in best.out
    lines = best.out.splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("learner "))
    first = lines[at + 1].split()[0]
    assert re.search(f"{first}(, a baseline,)? costs ", words)


@pytest.mark.skipif(not COMPILERS, reason="no gcc or clang")
def test_c_answers_as_the_harness_does(again, tmp_path):
    k, bench = again
    model = exported(again, "1")
    bench("model", "export", "1", "-o", "c", "--format", "c").ok()
    program = compiled(Path("c"), "serve_answers.c", tmp_path, ("-O2",), COMPILERS[0])
    cells = np.random.default_rng(0).normal(0.7, 1.5, (500, len(model.names))).astype(np.float32)
    cells.tofile(tmp_path / "rows")
    files = [str(tmp_path / "rows"), str(tmp_path / "out")]
    subprocess.run([program, *files], check=True)
    found = np.fromfile(tmp_path / "out", dtype=np.int32)
    expected = model.labels(model.predict_features(cells).scores)
    assert [CLASSES[k][c] for c in found] == expected.tolist()
    assert len({*found.tolist()}) > 1


def test_other_costs_of_errors_need_no_training(again):
    k, bench = again
    ended = bench("reprice", "1", "--error-costs", "0.001", "--executor", "inline").ok()
    assert " fit " not in ended.err
    assert "No model is sure to cost less; buying everything costs " in ended.words
    frame = pd.read_csv(StringIO(bench("export").out))
    rows = frame[(frame["split"] == "test") & (frame["cost"] == 0)]
    share = 1 - max(np.bincount(pd.Categorical(table(k)["label"]).codes)) / 600
    assert rows["total_cost"].min() == pytest.approx(0.001 * share, rel=0.3)
    # and the first run is as it was
    assert bench("reprice", "1", "--executor", "inline").status == 2


def test_learners_do_not_see_costs_of_errors(again):
    _, bench = again
    words = ("run", "--data", "data.csv", "--drop", "loss", "--costs", "costs.csv")
    ended = bench(*words, "--label", "label", *LEARN).ok()
    assert " fit " not in ended.err
    assert "wrong for" in ended.words  # the board of accuracy


def test_an_error_may_cost_what_its_row_says(again):
    k, bench = again
    words = ("run", "--data", "data.csv", "--costs", "costs.csv", "--label", "label", *LEARN)
    ended = bench(*words, "--error-costs", "column:loss").ok()
    assert "3 features" in ended.out  # the losses are none of them
    frame = pd.read_csv(StringIO(bench("export").out))
    model = exported(again)
    assert "loss" not in model.names
    splits = splits_of(model)
    loss, true = splits.test.price_columns[:, 0], splits.test.y
    train = splits.train
    mean = [sum(train.price_columns[train.y != answer, 0]) for answer in range(k)]
    constant = loss[true != int(np.argmin(mean))].sum() / len(true)
    free = frame[(frame["split"] == "test") & frame["point"].str.contains("constant")]
    assert free["total_cost"].to_numpy() == pytest.approx(constant, rel=1e-9)


@pytest.mark.parametrize("k", [2, 3])
def test_python_takes_a_frame_and_names_the_same_model(k, elsewhere):
    rows = table(k).drop(columns="loss")
    names = list(CLASSES[k])
    result = bench_core.run(
        X=rows.drop(columns="label"),
        y=rows["label"],
        costs={"f0": 0.1, "f1": 0.2, "f2": 0.4},
        error_costs=pd.DataFrame(MATRIX[k], index=names, columns=names),
        learners={"gbrt": {"trees": 12}, "constant": {}},
        executor="inline",
        audit="off",
    )
    assert result.best().learner in ("gbrt", "constant")
    assert " per row" in result.conclusion
    board = result.board()
    assert {"total_cost", "errors", "cost"} <= {*board.columns}


@pytest.mark.parametrize("positive", [None, "no"])
@pytest.mark.parametrize("k", [2, 3])
def test_an_estimator_answers_by_the_costs_of_errors_and_exports_it(k, positive, elsewhere):
    if k == 3 and positive:
        return
    rows, names = table(k, 3000), list(CLASSES[k])
    X, y = rows[["f0", "f1", "f2"]], rows["label"]
    costs = pd.DataFrame(MATRIX[k], index=names, columns=names)
    how = {"costs": {"f0": 0.1, "f1": 0.2, "f2": 0.4}, "parameters": {"trees": 12}}
    model = bench_core.BudgetedClassifier(
        "gbrt", **how, positive=positive, error_costs=costs, random_state=0
    ).fit(X[:800], y[:800])
    assert model.metric_.name == "total_cost"
    answers = model.predict(X[800:])
    # by hand: the answer of least cost under the probabilities
    expected = model.predict_proba(X[800:]) @ np.array(MATRIX[k])
    assert answers.tolist() == [names[c] for c in expected.argmin(axis=1)]
    served = model.export()
    assert served.labels(served.predict_rows(X[800:]).scores).tolist() == answers.tolist()

    def cost(answers):
        pairs = zip(y[800:], answers, strict=True)
        return np.mean([MATRIX[k][names.index(t)][names.index(a)] for t, a in pairs])

    blind = bench_core.BudgetedClassifier("gbrt", **how, random_state=0).fit(X[:800], y[:800])
    assert cost(answers) < cost(blind.predict(X[800:]))


def test_points_are_left_out_that_are_not_surely_below_the_best_constant(again):
    """By hand from the stored values: a paired one-sided test of each kept point."""
    frame = Store("results/bench.db").frame("1")
    info = Store("results/bench.db").info("1")
    draws = Draws(info, Store("results/bench.db"), frame, "data.csv")
    values = {v.trial.key: v for v in Store("results/bench.db").values("1", split="valid")}
    left_out = 0
    for v in values.values():
        at = next(k for k, point in enumerate(v.settings) if "constant" in point)
        rows = draws.points.iloc[draws.rows(0, v.trial.learner)]
        rows = rows[rows["params"].map(json.loads) == v.trial.params]
        kept = [json.loads(text) for text in rows["point"]]
        for k, point in enumerate(v.settings):
            gain = v.metric[at].astype(float) - v.metric[k]
            error = gain.std() / np.sqrt(len(gain))
            sure = k == at or gain.mean() >= 1.645 * error > 0
            assert (dict(point) in kept) == sure
            left_out += not sure
    assert left_out > 0


def test_next_to_total_costs_the_column_of_features_is_named_so(again, tmp_path):
    _, bench = again
    said = bench("report", "1")
    head = next(line for line in said.out.splitlines() if line.startswith("learner "))
    assert head.split()[:3] == ["learner", "features", "errors"]
    assert "features: mean cost per row" in said.words
    words = re.search(r": ([\d.]+) for features", said.words)[1]
    for name in ("features", "cost"):
        shown = bench("report", "1", "--columns", name).out
        assert re.search(rf"^\S+ +{re.escape(words)} *$", shown, re.M), shown
    for suffix in (".tex", ".html"):
        page = tmp_path / f"board{suffix}"
        bench("report", "1", "-o", str(page)).ok()
        assert re.search(r"\bfeatures\b.{0,300}\berrors\b", page.read_text(), re.S)
