"""Loaders of publishers' formats, on small files made here in those formats."""

import gzip
from functools import partial

import numpy as np
import pytest
from bench_datasets.letor import IstellaS, Mslr10k, Mslr30k, mslr_costs
from bench_datasets.letters import Letters
from bench_datasets.medical import HEART, PIMA, Heart, Hepatitis, Pima
from bench_datasets.physics import Hepmass1000, HepmassNot1000, MiniBooNE
from bench_datasets.spambase import Spambase
from helpers.kit import all_cells, every, parts, prepared_set, refused, sizes

from bench_core import Acquired, Task
from bench_core.errors import InputError

prepared = partial(prepared_set, size="paper")


def letor(path, queries, features, seed, third=""):
    """Three documents a query, of whole numbers; ``third`` is feature 3 of each, if given."""
    rng = np.random.default_rng(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as out:
        for query in range(queries):
            for _ in range(3):
                cells = [f"{j + 1}:{rng.integers(100)}" for j in range(features)]
                cells[2] = f"3:{third}" if third else cells[2]
                out.write(f"{rng.integers(5)} qid:{seed * 1000 + query} {' '.join(cells)}\n")


@pytest.mark.parametrize("dataset", [Mslr10k(), Mslr30k()])
def test_mslr_reads_the_fold_that_is_asked_for(dataset, tmp_path):
    for fold in range(1, 6):
        for k, part in enumerate(("train", "vali", "test")):
            at = tmp_path / dataset.name / f"Fold{fold}" / f"{part}.txt"
            letor(at, queries=fold + k, features=136, seed=10 * fold + k)
    assert len(dataset.files) == 15
    assert sizes(prepared(dataset, tmp_path, fold=0)) == [3, 6, 9]
    third = prepared(dataset, tmp_path, fold=2)
    assert sizes(third) == [9, 12, 15]
    assert third.task is Task.RANKING
    first = (tmp_path / dataset.name / "Fold3" / "train.txt").read_text().split("\n")[0].split()
    assert third.train.X[0].tolist() == [float(cell.split(":")[1]) for cell in first[2:]]
    assert third.train.y[0] == float(first[0])


def test_mslr_costs_are_those_of_their_authors(real_data):
    published = np.loadtxt(real_data / "feature-costs" / "mslr_feature_cost.txt")
    np.testing.assert_array_equal(mslr_costs(), published)


def istella(folder, third):
    for k, part in enumerate(("train", "vali", "test")):
        letor(folder / "sample" / f"{part}.txt", 2 + k, 220, k, third)


@pytest.mark.parametrize("largest", ["1.79769313486231570815e+308", "1.79769313486e+308"])
def test_istellas_largest_float64_is_a_missing_value(largest, tmp_path):
    istella(tmp_path, third=largest)
    splits = prepared(IstellaS(), tmp_path)
    assert sizes(splits) == [6, 9, 12]
    for part in parts(splits):
        assert np.isnan(part.X[:, 2]).all()
        assert np.isfinite(np.delete(part.X, 2, axis=1)).all()
        assert part.queries is not None
    assert splits.prices.feature_price().tolist() == [1.0] * 220
    assert splits.task is Task.RANKING


def miniboone(path, signal, background):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(signal + background, 50)).round(4)
    rows[3] = -999.0
    lines = [" ".join(f"{v:g}" for v in row) for row in rows]
    path.write_text(f" {signal} {background}\n" + "\n".join(lines) + "\n")
    return rows


def test_miniboone_has_the_papers_proportions_and_no_sentinel(tmp_path):
    rows = miniboone(tmp_path / "MiniBooNE_PID.txt", 400, 600)
    splits = prepared(MiniBooNE(), tmp_path)
    assert sizes(splits) == [350, 150, 500]
    X, y = all_cells(splits), every(splits)
    missing = np.isnan(X).any(axis=1)
    assert missing.sum() == 1
    signal = {tuple(row) for row in rows[:400].astype(np.float32)}
    assert all(
        (tuple(x) in signal) == (label == 1) for x, label in zip(X, y, strict=True) if x[0] == x[0]
    )
    assert y[missing].tolist() == [1.0]
    assert sizes(prepared(MiniBooNE(), tmp_path, seed=1)) == [350, 150, 500]
    assert not np.array_equal(prepared(MiniBooNE(), tmp_path, seed=1).test.y, splits.test.y)


def hepmass(path, rows, features, seed):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(rows, features + 1)).astype(np.float32)
    table[:, 0] = np.arange(rows) % 2
    head = ",".join(["# label", *(f"f{j}" for j in range(features))])
    lines = [",".join(f"{v:.9e}" for v in row) for row in table]
    with gzip.open(path, "wt") as out:
        out.write(head + "\n" + "\n".join(lines) + "\n")
    return table


@pytest.mark.parametrize(
    ("dataset", "stem", "features"),
    [(Hepmass1000(), "1000", 27), (HepmassNot1000(), "not1000", 28)],
)
def test_hepmass_divides_seven_and_three_and_a_half_as_the_papers(
    dataset, stem, features, tmp_path
):
    train = hepmass(tmp_path / f"{stem}_train.csv.gz", 70, features, 0)
    test = hepmass(tmp_path / f"{stem}_test.csv.gz", 35, features, 1)
    splits = prepared(dataset, tmp_path)
    assert sizes(splits) == [35, 14, 56]
    np.testing.assert_array_equal(splits.test.X[21:], test[:, 1:])
    np.testing.assert_array_equal(splits.test.y[21:], test[:, 0])
    taken = np.concatenate([splits.train.X, splits.valid.X, splits.test.X[:21]])
    assert sorted(map(tuple, taken)) == sorted(map(tuple, train[:, 1:]))


def uci_hepatitis(folder, real):
    """The publisher's form, from the table in which it is passed on: class first, 1 = dies."""
    X = np.genfromtxt(real / "hepatitis" / "hepatitis.csv", delimiter=",", skip_header=1)
    y = np.genfromtxt(real / "hepatitis" / "hepatitis_target.csv", skip_header=1)
    lines = []
    for x, label in zip(X, y, strict=True):
        cells = ["?" if v == -1 else f"{v:g}" for v in x]
        lines.append(",".join(["1" if label else "2", *cells]))
    (folder / "hepatitis.data").write_text("\n".join(lines) + "\n")


def test_both_forms_of_hepatitis_are_one_data_set(real_data, tmp_path):
    uci_hepatitis(tmp_path, real_data)
    table, publishers = prepared(Hepatitis(), real_data), prepared(Hepatitis(), tmp_path)
    assert sum(sizes(table)) == 155
    assert every(table).sum() == 32
    for a, b in zip(parts(table), parts(publishers), strict=True):
        np.testing.assert_array_equal(a.X, b.X)
        np.testing.assert_array_equal(a.y, b.y)
    assert np.isnan(table.train.X).any()


def paid_for(prices, tests, *names):
    """What these tests cost together."""
    bought = np.zeros((1, prices.sensors), dtype=bool)
    for name in names:
        bought[0, prices.sensors_of(list(tests).index(name))] = True
    return pytest.approx(Acquired.pack(bought).cost(prices.sensor)[0])


def heart(folder):
    lines = [f"{30 + k},1,4,{k},?,0,2,108,1,1.5,2,3.0,?,{k % 5}" for k in range(50)]
    (folder / "processed.cleveland.data").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("tests", "price"),
    [
        (("chol", "fbs"), 7.27 + 5.20 - 2.10),
        (("thalach", "thal"), 102.90 + 1.00),
        (("exang", "oldpeak"), 87.30 + 1.00),
        (("slope", "exang", "oldpeak"), 87.30 + 2.00),
        (("thal", "exang", "ca"), 102.90 + 87.30 + 100.90),
        (tuple(HEART), 600.57 - 2.10 - 101.90 - 2 * 86.30),
    ],
)
def test_of_one_examination_of_the_heart_the_common_part_is_paid_once(tests, price, tmp_path):
    heart(tmp_path)
    assert paid_for(prepared(Heart(), tmp_path).prices, HEART, *tests) == price
    alone = sum(HEART[name] for name in tests)
    assert paid_for(prepared(Heart(discount=False), tmp_path).prices, HEART, *tests) == alone


def test_pimas_second_blood_test_is_cheaper(tmp_path):
    lines = [f"{k},{80 + k},{60 + k},0,0,30.5,0.{k + 1:02d},{20 + k},{k % 2}" for k in range(60)]
    (tmp_path / "pima-indians-diabetes.data").write_text("\n".join(lines) + "\n")
    splits = prepared(Pima(), tmp_path)
    assert splits.prices.everything == pytest.approx(sum(PIMA.values()) - 2.10)
    alone = splits.prices.feature_price()
    assert alone[1] == pytest.approx(17.61)
    assert alone[4] == pytest.approx(22.78)
    assert np.isnan(splits.train.X[:, 3]).all()
    assert not np.isnan(splits.train.X[:, 0]).any()
    assert not np.isnan(prepared(Pima(zeros=True), tmp_path).train.X).any()


LETTERS = "letter-recognition.data"
WRONG = [  # data set, file, its text, words of the refusal
    (Heart(), "processed.cleveland.data", ("1," * 13 + "9\n") * 20, "line 1: label"),
    (Pima(), "pima-indians-diabetes.data", ("1," * 8 + "2\n") * 20, "line 1: label"),
    (Hepatitis(), "hepatitis.data", ("3" + ",1" * 19 + "\n") * 20, "line 1: label"),
    (Spambase(), "spambase.data", ("0," * 57 + "7\n") * 4601, "line 1"),
    (Letters(), LETTERS, "A" + ",1" * 16 + "\n", "1 rows where the publisher's file has 2"),
    (Letters(), LETTERS, "A" + ",1" * 15 + "\n", "16 cells a line where|file has 17"),
    (Letters(), LETTERS, ("A" + ",1" * 16 + "\nb" + ",1" * 16), "line 2: 'b' is not a capital"),
    (Letters(), LETTERS, ("A" + ",1" * 16 + "\nB" + ",x" * 16), "line 2, column '2'"),
]


@pytest.mark.parametrize(("dataset", "file", "text", "words"), WRONG)
def test_a_file_that_is_not_the_publishers_is_refused(
    dataset, file, text, words, tmp_path, monkeypatch
):
    monkeypatch.setattr("bench_datasets.letters.ROWS", (1, 1, 0))
    (tmp_path / file).write_text(text)
    refused(f"{file}|{words}", prepared, dataset, tmp_path, error=InputError)
