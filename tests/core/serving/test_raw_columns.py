"""Models of tables with text: rows of raw cells get the scores and bills of the benchmark."""

import csv
import json
import subprocess
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers.compiled_c import COMPILERS, SAFE, assert_same, compiled, served, write_c
from helpers.kit import refused
from helpers.policy_cases import policy_folder, random_policy
from helpers.program_cases import PROGRAMS, folder_of
from helpers.raw_cases import encoded, raw_and_features
from scipy.sparse import csr_array
from sklearn.metrics import accuracy_score

import bench_core
from bench_core import Sequential, UsageError
from bench_core.cli.app import main
from bench_core.costs.model import SensorPrices
from bench_core.encoding import ColumnEncoding
from bench_core.serving import Predictor, load
from bench_core.serving.folder import Folder, read_folder, write_folder
from bench_core.serving.predictor import meaning_of
from bench_core.serving.program import constant_program
from bench_core.serving.raw_rows import RawColumns

PRICES = {"age": 1.0, "income": 2.0, "city": 5.0, "job": 3.0, "seen_at": 0.5, "signup": 5.0}


def people(rows, seed):
    """Loans with two columns of text, one of dates, missing cells, and one that nobody can use."""
    rng = np.random.default_rng(seed)
    city = rng.choice(["Ulm", "Bonn", "Kiel", "Jena", ""], rows)
    job = rng.integers(0, 40, rows)
    age, income = rng.integers(18, 80, rows), rng.normal(30, 9, rows).round(2)
    seen = 1_700_000_000 + rng.integers(0, 600, rows)
    worth = 2 * (city == "Ulm") + 2 * (job % 3 == 0) + (age - 45) / 15 + (income - 30) / 9
    worth += (seen - 1_700_000_300) / 300 + rng.normal(0, 0.5, rows)
    signup = rng.integers(19000, 19700, rows)  # days
    worth += (age > 60) * (signup - 19350) / 100
    frame = pd.DataFrame({"id": [f"C{seed}-{k}" for k in range(rows)], "age": age})
    frame["income"] = np.where(rng.random(rows) < 0.05, np.nan, income)
    frame["city"], frame["job"] = city, [f" job {k}" if k else "?" for k in job]
    frame["seen_at"] = seen
    frame["signup"] = [str(date.fromordinal(719163 + day)) if day % 9 else "" for day in signup]
    return frame.assign(outcome=np.where(worth > 1.5, "repaid", "default"))


def command(*words):
    with pytest.raises(SystemExit) as end:
        main(words)
    return end.value.code or 0


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The folder with tables and models, and the raw test rows as text."""
    folder = tmp_path_factory.mktemp("loans")
    tables = {"train": people(700, 0), "valid": people(300, 1), "test": people(250, 2)}
    tables["test"].loc[:4, "city"] = "Oslo"  # of no training row
    tables["test"].loc[5:9, "job"] = "astronaut"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("BENCH_CACHE", str(folder / "cache"))
        patch.setenv("BENCH_STORE", str(folder / "store.db"))
        for name, table in tables.items():
            table.to_csv(f"{name}.csv", index=False)
        Path("costs.json").write_text(json.dumps(PRICES))
        words = ("--label", "outcome", "--drop", "id", "--dates", "--costs", "costs.json")
        words += ("-d", "train.csv", "--valid", "valid.csv", "--test", "test.csv")
        words += ("-l", "cegb", "--set", "cegb.trees=30", "--set", "cegb.tradeoff=0.1")
        assert command("run", *words, "--executor", "inline") == 0
        assert command("model", "export", "-o", "model") == 0
        assert command("model", "export", "-o", "c", "--format", "c") == 0
        yield folder, pd.read_csv("test.csv", dtype=str, keep_default_na=False)


def cells_of(row):
    """A row of text as a service holds it: numbers as numbers, None where there is nothing."""
    values = {name: row[name] or None for name in ("city", "job")}
    values |= {k: float(row[k]) if row[k] else None for k in ("age", "income", "seen_at")}
    days = row["signup"] and date.fromisoformat(row["signup"]).toordinal() - 719163
    return values | {"signup": days if row["signup"] else None}


def test_raw_rows_get_the_quality_and_bills_of_the_benchmark(exported):
    model, rows = load("model"), [cells_of(row) for _, row in exported[1].iterrows()]
    assert model.names == tuple(PRICES)
    assert model.classes == ("default", "repaid")
    found = []
    for row in rows:
        asked = []
        found.append(
            model.predict(lambda names, a=asked, r=row: a.extend(names) or map(r.get, names))
        )
        assert len({*asked}) == len(asked)
        assert {*asked} <= PRICES.keys()
        assert found[-1].bought == tuple(asked)
        assert found[-1].spent == pytest.approx(sum(PRICES[name] for name in asked))
    label = np.where(np.array([one.score for one in found]) > 0, "repaid", "default")
    test = model.about["test"]  # as the run measured it
    assert accuracy_score(exported[1]["outcome"], label) == pytest.approx(
        test["quality"], abs=1e-12
    )
    assert np.mean([one.spent for one in found]) == pytest.approx(test["cost"], rel=1e-12)
    assert len({one.spent for one in found}) > 2
    together = model.predict_rows(rows)
    assert together.scores.tolist() == [one.score for one in found]
    assert together.spent.tolist() == [one.spent for one in found]


def test_tables_of_all_kinds_are_encoded_as_by_the_run(exported):
    model, rows = load("model"), [cells_of(row) for _, row in exported[1].iterrows()]
    expected = model.predict_rows(rows)
    assert {k for row in rows for k, cell in row.items() if cell is None} >= {"income", "signup"}
    with Path("test.csv").open(newline="") as file:
        texts = [*csv.DictReader(file)]
    frame, typed = pd.read_csv("test.csv"), pd.DataFrame(rows)
    dates = pl.read_csv("test.csv", try_parse_dates=True)
    assert dates.schema["signup"] == pl.Date
    tables = [texts, frame, exported[1], frame[[*model.names]].to_numpy()]
    tables += [typed, typed.astype({"city": "category"}), typed.convert_dtypes(), {**typed}]
    tables += [typed[typed.columns[::-1]].assign(more=0), typed[[*model.names]].to_numpy()]
    for table in (*tables, dates, pl.read_csv("test.csv")):
        found = model.predict_rows(table)
        assert found.scores.tolist() == expected.scores.tolist()
        assert found.spent.tolist() == expected.spent.tolist()
    for k, row in enumerate(texts[:40]):
        lists = model.predict(lambda names, r=row: [r[name] for name in names])
        for way in (row, frame.iloc[k], lambda names, r=row: {name: r[name] for name in names}):
            one = model.predict(way)
            assert (one.score, one.spent, one.bought) == (lists.score, lists.spent, lists.bought)
        assert lists.score == expected.scores[k]


def test_what_is_no_row_of_the_table_is_one_line(exported):
    model, row = load("model"), cells_of(exported[1].iloc[20])
    refused("'income' needs numbers|'x'", model.predict_rows, [row | {"income": "x"}])
    refused("needs dates|'2020' is not a date", model.predict_rows, [row | {"signup": "2020"}])
    words = "column 'city' needs text (|'Kiel'|is not text"
    for number in (True, np.bool_(False), 7, 1.5):
        refused(words, model.predict, row | {"city": number})
        refused(words, model.predict_rows, [row | {"city": number}, row])
    assert model.predict(row | {"city": None}).score == model.predict(row | {"city": np.nan}).score
    late = "needs dates|1748822400000 may be seconds or milliseconds; give a date, or days since"
    for number in (1748822400000, 1748822400000.0):  # as JSON of pandas writes dates
        refused(late, model.predict_rows, [row | {"signup": number}])
        refused(late, model.predict, row | {"signup": number})
    refused("the row has no column '|'; give None where it is", model.predict, {})
    refused("predict takes a row as a mapping,|not a list", model.predict, [row])
    refused("not a DataFrame; predict_rows takes tables", model.predict, exported[1])
    with pytest.raises(UsageError, match="X has no column 'city', which the model may ask for"):
        model.predict_rows([{k: v for k, v in row.items() if k != "city"}])
    with pytest.raises(UsageError, match=r"'age', .* rows as an array: numpy.asarray\(X\)"):
        model.predict_rows([{f"own__{k}": v for k, v in row.items()}])
    refused("X must be (n, 6)", model.predict_rows, np.zeros((2, 9)))
    with pytest.raises(UsageError, match=r"X is sparse; give X.toarray\(\), with NaN"):
        model.predict_rows(csr_array(np.zeros((2, 6))))


def test_the_original_table_is_replayed_with_the_runs_own_columns(exported, capsys):
    for table in ("test.csv", "test.parquet"):
        if table.endswith("parquet"):
            pytest.importorskip("pyarrow")
            exported[1].replace("", None).astype(
                {"age": float, "income": float, "seen_at": float, "signup": "datetime64[s]"}
            ).to_parquet(table)
        assert command("model", "check", "model", "-d", table) == 0
        figures = [line.split()[-2:] for line in capsys.readouterr().out.splitlines()[2:5]]
        assert [before for before, _ in figures] == [after for _, after in figures]


def test_dates_and_decimal_commas_are_read_as_by_the_run(bench):
    frame = people(300, 3)
    frame["signup"] = [f"2024-{1 + k % 12:02d}-{1 + k % 28:02d}" for k in range(300)]
    frame["born"] = [f"{1 + k % 28}.{1 + k % 5}.{1950 + k % 50}" for k in range(300)]
    frame["seen"] = [f"{1 + k % 5}/{1 + k % 28}/{2000 + k % 7}" for k in range(300)]
    number = pd.to_datetime(frame["seen"], format="%m/%d/%Y").astype("datetime64[s]")
    frame["late"] = [k % 12 > 5 for k in range(300)]
    frame["late"] ^= (frame["income"] > 30) ^ (frame["born"].str[-2:] > "80") ^ (number.dt.day > 9)
    frame["income"] = frame["income"].map("{:.2f}".format).str.replace(".", ",")
    frame["income"] = frame["income"].replace("nan", "")
    frame[["income", "signup", "born", "seen", "late"]].to_csv("all.csv", index=False, sep=";")
    words = ("--dates", "--decimal", ",", "-l", "gbrt", "--set", "gbrt.trees=25")
    assert bench("run", "-d", "all.csv", *words, "--executor", "inline").status == 0
    assert bench("model", "export", "-o", "model").status == 0
    assert bench("model", "check", "model", "-d", "all.csv").status == 0
    model, days = load("model"), pd.to_datetime(frame["signup"])
    forms = {"income": ",", "signup": "Y-M-D", "born": "D.M.Y", "seen": "M/D/Y"}
    assert {own.name: own.format for own in model.encodings} == forms
    with Path("all.csv").open(newline="") as file:
        texts = [*csv.DictReader(file, delimiter=";")]
    typed = frame.assign(
        income=frame["income"].str.replace(",", ".").replace("", None).astype(float),
        born=pd.to_datetime(frame["born"], format="%d.%m.%Y"),
        seen=number,
    )
    read = model.predict_rows(texts).scores
    assert read.tolist() == model.predict_rows(typed).scores.tolist()
    assert len({*read}) > 20
    rows = [row.to_dict() | {"seen": pd.NaT} for _, row in typed[:9].iterrows()]
    none = model.predict_rows([row | {"seen": None} for row in rows]).scores
    assert model.predict_rows(rows).scores.tolist() == none.tolist()
    assert [model.predict(row).score for row in rows] == pytest.approx(none)
    number = (days - pd.Timestamp("1970-01-01")).dt.days
    columns = [number, days, days.astype("datetime64[ns]"), days.dt.date, days.tolist()]
    found = [model.predict_rows({**dict(typed.items()), "signup": c}).scores for c in columns]
    for one in found:
        assert one.tolist() == read.tolist()


def test_a_table_and_prices_that_are_not_utf8_are_those_in_utf8(bench):
    """By the options of ``run`` and by ``datasets.toml``."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"Größe": rng.integers(150, 200, 300), "Ort": ["Köln", "Ulm", "Öhringen"] * 100}
    )
    fällig = np.where(frame["Größe"] + 20 * (frame["Ort"] == "Köln") > 180, "ja", "nö")
    frame.insert(0, "fällig", fällig)
    prices = "Merkmal;Preis (€)\nGröße;1,5\nOrt;2\n"
    learner = ("-l", "gbrt", "--set", "gbrt.trees=9", "--executor", "inline")
    for name, encoding in (("utf8", "utf-8"), ("own", "cp1252"), ("key", "cp1252")):
        frame.to_csv(f"{name}.csv", index=False, encoding=encoding)
        Path("prices.csv").write_text(prices, encoding=encoding)
        words = ("--label", "fällig", "--costs", "prices.csv")
        if encoding != "utf-8":
            said = bench("run", "-d", f"{name}.csv", *words, *learner).err
            assert "line 1: not text in UTF-8; " in said
            assert "such as --encoding cp1252" in said
            words += ("--encoding", encoding)
        if name == "key":
            assert bench("init", "key.csv", *words).status == 0
            words = ()
        data = "key" if name == "key" else f"{name}.csv"
        assert bench("run", "-d", data, *words, *learner).status == 0
        assert bench("model", "export", "--budget", "inf", "-o", f"{name}-model").status == 0
        assert bench("model", "check", f"{name}-model", "-d", f"{name}.csv").status == 0
    models = [load(f"{name}-model") for name in ("utf8", "own", "key")]
    assert models[0].features == ("Größe", "Ort")
    utf8, *others = (model.predict_rows(frame).scores.tolist() for model in models)
    assert others == [utf8, utf8]


def test_show_tells_columns_and_what_a_score_is(exported, capsys):
    assert command("model", "show", "model") == 0
    shown = capsys.readouterr().out
    assert "score = log-odds of repaid (class 1); default is class 0" in shown
    assert "city=" not in shown
    assert "city" in shown


@pytest.mark.skipif(not COMPILERS, reason="no gcc or clang")
def test_compiled_c_encodes_raw_cells(exported, tmp_path):
    program = compiled(exported[0] / "c", "serve_texts.c", tmp_path, SAFE, COMPILERS[0])
    model, texts = load("model"), exported[1][[*PRICES]]
    lines = "".join("\t".join(row) + "\n" for row in texts.to_numpy())
    done = subprocess.run([program], input=lines, capture_output=True, text=True)
    found = np.array([line.split() for line in done.stdout.splitlines()], dtype=float)
    expected = model.predict_rows([cells_of(row) for _, row in texts.iterrows()])
    assert np.allclose(found[:, 0], expected.scores, rtol=1e-9, atol=1e-9)
    assert np.allclose(found[:, 1], expected.spent, rtol=1e-9)
    assert found[:, 2].max() == 1


WRITTEN = {
    "Y-M-D": ["%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S.%fZ", "%Y-%m-%d %H:%M:%S+0530"],
    "D.M.Y": ["%d.%m.%Y", "%Y-%m-%d"],
    "D/M/Y": ["%d/%m/%Y"],
    "M/D/Y": ["%m/%d/%Y"],
}
NO_DATES = ["2023-02-29", "2100-02-29", "2024-13-01", "2024-00-10", "0000-01-01", "2024-1-32"]
NO_DATES += ["2024-02-01 24:00", "2024-02-01 10:00.5", "2024-02-01 1:60", "2024-02-01Z", "24-02-01"]
NO_DATES += ["2024-02-01 10:00 x", "1.2.2024x", "1.2/2024", "1.2.24", "x", "20240201", "2024", "-1"]


@pytest.mark.skipif(not COMPILERS, reason="no gcc or clang")
@pytest.mark.parametrize("format", WRITTEN)
def test_dates_are_read_alike_in_python_and_c(format, tmp_path):
    folder = encoded(folder_of(PROGRAMS["chain"]))
    own = ColumnEncoding("day", format=format, offset=4.0)
    assert folder.encodings[-1].name == folder.names[-1]
    folder = replace(folder, encodings=(*folder.encodings[:-1], own))
    write_c(tmp_path / "c", folder)
    header = (tmp_path / "c" / "bench_model.h").read_text()
    assert '"day": days since 1970-01-01 minus 4, by bench_encode_day' in header
    assert '   0 "c": text, by bench_encode_c,' in header
    assert 'The value of "c" for a text in UTF-8;' in header
    rng, cases = np.random.default_rng(1), {"": np.nan, "NA": np.nan, " None ": np.nan}
    for second in rng.integers(-50 * 365 * 86400, 200 * 365 * 86400, 300).tolist():
        for written in WRITTEN[format]:
            when = datetime.fromtimestamp(second, UTC)
            text = when.strftime(written)
            when = datetime.strptime(text, written.replace("+0530", "%z"))
            if when.tzinfo is None:
                when = when.replace(tzinfo=UTC)
            cases[f" {text}\t"] = (when - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() / 86400
    program = compiled(tmp_path / "c", "encode_days.c", tmp_path, SAFE, COMPILERS[0])
    lines = "".join(f"{text}\n" for text in (*cases, *NO_DATES))
    done = subprocess.run([program], input=lines, capture_output=True, text=True)
    found = np.array([line.split() for line in done.stdout.splitlines()], dtype=np.float32)
    expected = np.float32(np.array([*cases.values()]) - 4.0)
    assert np.array_equal(found[: len(cases), 0], expected, equal_nan=True)
    assert np.array_equal(own.codes([*cases]), expected, equal_nan=True)
    assert not found[: len(cases), 1].any()
    assert np.isnan(found[len(cases) :, 0]).all()
    assert found[len(cases) :, 1].all()
    for text in NO_DATES:
        refused("is not a date such as 2024-02-01", own.codes, [text], error=ValueError)


NUMBERS = [
    "1,5",
    " -0,25 ",
    "+3",
    "1.234",
    "1.234,50",
    "12 345,6",
    "1\u00a0234\u202f567,8",
    "1'000",
]
NUMBERS += ["1,5e3", "2E-2", "", "NA", "None"]
NO_NUMBERS = ["1,5,2", "1,", "1.23,5", "12345.678,9", "1 23", "x", "1,5x", "-", "1,5 e3"]
NO_NUMBERS += ["1.5", "12.34", "1234.567", "1.5e3"]  # as 1.402 is 1402


@pytest.mark.skipif(not COMPILERS, reason="no gcc or clang")
def test_decimal_commas_are_read_alike_in_python_and_c(tmp_path):
    folder = encoded(folder_of(PROGRAMS["chain"]))
    own = ColumnEncoding("day", format=",")
    write_c(tmp_path / "c", replace(folder, encodings=(*folder.encodings[:-1], own)))
    assert '"day": a number, by bench_encode_day' in (tmp_path / "c/bench_model.h").read_text()
    program = compiled(tmp_path / "c", "encode_days.c", tmp_path, SAFE, COMPILERS[0])
    lines = "".join(f"{text}\n" for text in (*NUMBERS, *NO_NUMBERS))
    done = subprocess.run([program], input=lines.encode(), capture_output=True)
    found = np.array([line.split() for line in done.stdout.splitlines()], dtype=np.float32)
    expected = [1.5, -0.25, 3, 1234, 1234.5, 12345.6, 1234567.8, 1000, 1500]
    expected = np.float32([*expected, 0.02, np.nan, np.nan, np.nan])
    assert np.array_equal(own.codes(NUMBERS), expected, equal_nan=True)
    assert np.array_equal(found[: len(NUMBERS), 0], expected, equal_nan=True)
    assert found[:, 1].tolist() == [0] * len(NUMBERS) + [1] * len(NO_NUMBERS)
    for text in NO_NUMBERS:
        refused("is not a number", own.codes, [text], error=ValueError)


def folders():
    for name in ("gated", "chain", "support", "vectors"):
        yield folder_of(PROGRAMS[name])
    for seed in range(2):
        policy = random_policy(seed, evaluation=seed % 2 == 1)
        yield policy_folder(policy, Sequential(policy, policy.prices).program({"at": 1.0}))


def code(model, name, cell):
    """The number that stands for a cell of a column."""
    return RawColumns(model.encodings).code(model.names.index(name), cell)


@pytest.mark.parametrize("folder", [*folders()])
def test_every_walk_of_raw_rows_is_that_of_features(folder, tmp_path):
    raw, X = raw_and_features(len(folder.names), 60, 3)
    plain, model = Predictor(folder), Predictor(encoded(folder))
    for cap in (None, 0.4 * folder.costs.everything):
        expected, found = plain.predict_rows(X, cap=cap), model.predict_rows(raw, cap=cap)
        assert np.array_equal(found.scores, expected.scores, equal_nan=True)
        assert np.array_equal(found.spent, expected.spent)
        for row, spent in zip(raw[:20], expected.spent, strict=False):
            asked = []
            one = model.predict(lambda n, a=asked, r=row: a.extend(n) or [*map(r.get, n)], cap=cap)
            assert one.spent == pytest.approx(spent)
            assert len({*asked}) == len(asked)
    if COMPILERS:
        codes = np.array(
            [[code(model, name, row[name]) for name in model.names] for row in raw], np.float32
        )
        found = served(encoded(folder), tmp_path, SAFE, COMPILERS[0], 0.0, codes)
        assert_same(folder, found, None, X)


def test_sensors_that_the_model_never_buys_have_the_names_of_their_columns_too():
    """Features c=x, c=y and n0 of sensor 0, n1 of sensor 1; nothing is read."""
    prices = SensorPrices(
        sensor=np.array([2.0, 1.0]),
        start=np.array([0, 1, 2, 3, 4], dtype=np.int32),
        needed=np.array([0, 0, 0, 1], dtype=np.int32),
        multiplier=np.ones(4),
    )
    columns = (ColumnEncoding("c", ("x", "y"), one_hot=True), *map(ColumnEncoding, ("n0", "n1")))
    names = tuple(f for own in columns for f in own.features)
    program = constant_program(np.zeros(1), len(names))
    model = Predictor(Folder(program, prices, names, {"task": "regression"}, columns))
    table = {"c": ["x"], "n0": [1.0], "n1": [2.0]}
    assert model.predict_rows(table).sensors == ("c + n0", "n1")


def test_columns_survive_the_folder_and_must_make_the_features(tmp_path):
    folder = encoded(folder_of(PROGRAMS["chain"]))
    write_folder(tmp_path / "m", folder)
    assert read_folder(tmp_path / "m").encodings == folder.encodings
    kinds = json.loads((tmp_path / "m" / "model.json").read_text())["columns"]
    assert [own["kind"] for own in kinds[:3]] == ["one-hot", "codes", "number"]
    write_folder(tmp_path / "m", replace(folder, encodings=folder.encodings[1:]))
    refused("columns do not make the features", load, tmp_path / "m")


def test_data_that_differ_in_their_texts_alone_are_trained_apart(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for stem in ("a", "b"):
        cells = [f"{stem}{k % 20:02d}" for k in range(300)]
        X, y = pd.DataFrame({"t": cells}), [k % 20 < 10 for k in range(300)]
        how = {"store": "s.db", "learners": {"gbrt": {"trees": 2}}, "progress": False}
        run = bench_core.run(X, y, executor="inline", name="same", **how)
        assert command("model", "export", "--store", "s.db", "-o", stem) == 0
        assert code(load(stem), "t", f"{stem}00") >= 0
        assert run.run


@pytest.mark.parametrize(
    ("about", "meaning"),
    [
        ({"task": "binary", "classes": 2}, "score = log-odds of 1 (class 1); 0 is class 0"),
        ({"task": "ranking"}, "score: within a query, the largest comes first"),
        ({"task": "regression", "classes": 0}, "score = the predicted label"),
    ],
)
def test_what_a_score_is_depends_on_the_task(about, meaning):
    assert meaning_of(about) == meaning
