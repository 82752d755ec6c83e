"""Feature steps of SAT12-ALL, in ASlib's layout and in ours."""

import numpy as np
import pytest
from bench_datasets.sat12 import ARFF, FOLDS, STEPS, Sat12, family_folds, published
from helpers.kit import every, parts, prepared_set, refused
from helpers.real_cases import needs

from bench_core.errors import InputError

FEATURES = [f"{step}{k}" for step, count in STEPS.items() for k in range(count)]
ORDER = [*reversed(STEPS)]  # the publisher's order of steps is another one


def publish(folder, n=24, **replaced):
    """Write n formulas of n / 2 families; the last is presolved, CG crashes on odd ones."""
    home = folder / "SAT12-ALL"
    home.mkdir()
    names = [f"Competition/{'abcdefghijklmnop'[k // 2]}{k}/f{k}.cnf" for k in range(n)]
    values, costs, status, truth = [], [], [], []
    for k, name in enumerate(names):
        solved, crash = k == n - 1, k % 2 == 1
        cells = [f"{k}.{j % 10}" for j in range(len(FEATURES))]
        at = sum(list(STEPS.values())[:3])
        if crash:
            cells[at : at + 10] = ["?"] * 10
        values.append(f"{name},1,{','.join(cells)}")
        price = {step: f"{k + s / 16}" for s, step in enumerate(STEPS)}
        price["CG"] = "16874.0" if k == 3 else price["CG"]
        costs.append(f"{name},1,{','.join('?' if solved else price[step] for step in ORDER)}")
        of = {"CG": "crash"} if crash else {}
        of = dict.fromkeys(STEPS, "presolved") if solved else of
        status.append(f"{name},1,{','.join(of.get(step, 'ok') for step in ORDER)}")
        truth.append(f"{name},{'SAT' if k % 3 else 'UNSAT'}")
    key = ["@ATTRIBUTE instance_id STRING"]
    again = [*key, "@attribute repetition NUMERIC"]
    kinds = "{ok,crash,presolved}"
    files = {
        ARFF[0]: ([*again, *(f"@ATTRIBUTE {name} NUMERIC" for name in FEATURES)], values),
        ARFF[1]: ([*again, *(f"@attribute {step} numeric" for step in ORDER)], costs),
        ARFF[2]: ([*again, *(f"@attribute {step} {kinds}" for step in ORDER)], status),
        ARFF[3]: ([*key, "@ATTRIBUTE satunsat {SAT,UNSAT}"], [*reversed(truth)]),
    }
    for name, (head, rows) in files.items():
        rows = replaced.get(name.rpartition("/")[2].removesuffix(".arff"), rows)
        (folder / name).write_text("\n".join(["@RELATION x", "% note", *head, "@DATA", *rows, ""]))


def prepared(folder, fold=0):
    return prepared_set(Sat12(), folder, fold=fold)


def test_steps_are_sensors_that_need_pre_and_cost_their_seconds(tmp_path):
    publish(tmp_path)
    splits = prepared(tmp_path)
    assert splits.price_columns == tuple(f"{step}_seconds" for step in STEPS)
    needed = {name: splits.prices.sensors_of(j).tolist() for j, name in enumerate(FEATURES)}
    for k, step in enumerate(STEPS, start=1):
        assert needed[f"{step}0"] == ([1] if step == "Pre" else [1, k])
    costs = splits.cost_model
    assert not costs.quoted.any()
    rows = splits.test
    # a row's number is in its first feature; it pays number + place of the step / 16
    number = np.floor(rows.X[:, 0].astype(float))
    wanted = number[:, None] + np.arange(len(STEPS)) / 16
    wanted[number == 3, [*STEPS].index("CG")] = 1200  # capped
    assert rows.price_columns.tolist() == wanted.tolist()


def test_presolved_rows_are_left_out_and_a_crash_is_paid(tmp_path):
    publish(tmp_path)
    splits = prepared(tmp_path)
    assert sorted(np.floor(every(splits, FEATURES[0])).tolist()) == [*range(23)]
    cg = FEATURES.index("CG0")
    paid = [*STEPS].index("CG")
    for part in parts(splits):
        crashed = np.floor(part.X[:, 0]) % 2 == 1
        assert np.isnan(part.X[crashed, cg]).all()
        assert (part.price_columns[crashed, paid] > 0).all()
        assert not np.isnan(part.X[~crashed, cg]).any()


def test_labels_are_matched_by_instance(tmp_path):
    publish(tmp_path)  # ground_truth.arff has the reverse order
    for part in (splits := prepared(tmp_path)).train, splits.test:
        assert part.y.tolist() == [float(int(x) % 3 != 0) for x in np.floor(part.X[:, 0])]


def test_families_are_not_divided_and_every_row_is_tested_once(tmp_path):
    publish(tmp_path)
    tested = []
    for fold in range(FOLDS):
        splits = prepared(tmp_path, fold)
        of = [{int(x) // 2 for x in part.X[:, 0]} for part in (splits.train, splits.valid)]
        test = [int(x) for x in splits.test.X[:, 0]]
        assert not of[0] & of[1]
        assert not {x // 2 for x in test} & (of[0] | of[1])
        tested += test
    assert sorted(tested) == [*range(23)]


def test_the_largest_family_comes_first_each_to_the_emptiest_part():
    family = ["b"] * 3 + ["a"] * 5 + ["c"] * 3 + [f"d{k:02}" for k in range(9)]
    folds = family_folds(family)
    assert [folds[name] for name in "abc"] == [1, 2, 3]
    assert [folds[f"d{k:02}"] for k in range(9)] == [4, 5, 6, 7, 8, 9, 10, 4, 5]


@pytest.mark.parametrize(
    ("replaced", "message"),
    [
        ({"feature_costs": ["a.cnf,1,2"]}, "feature_costs.arff, line 16: 3 cells for 12"),
        ({"ground_truth": ["a.cnf,SAT"]}, "ground_truth.arff: other instances"),
        ({"feature_values": []}, "feature_values.arff: no rows below @DATA"),
    ],
)
def test_other_files_are_refused_in_one_line(replaced, message, tmp_path):
    publish(tmp_path, **replaced)
    refused(message, prepared, tmp_path, error=InputError)


def test_the_converter_reads_what_the_table_says(tmp_path):
    """Rows of our table, written in ASlib's form, come back equal."""
    pd = pytest.importorskip("pandas")
    table = pd.read_csv(needs("rowprices/aslib") / "sat12-all.csv.gz", dtype=str)[:40]
    (tmp_path / "SAT12-ALL").mkdir()
    features = [n for n in table if not n.endswith(("_seconds", "_status"))][5:]
    columns = [
        {n: n for n in features},
        {f"{step}_seconds": step for step in ORDER},
        {f"{step}_status": step for step in ORDER},
        {"label": "satunsat"},
    ]
    for file, names in zip(ARFF, columns, strict=True):
        head = [f"@attribute {n} {'string' if 'st' in file else 'numeric'}" for n in names.values()]
        rows = table[["id", *names]].fillna("?").agg(",".join, axis=1)
        lines = ["@attribute instance_id string", *head, "@data", *rows]
        (tmp_path / file).write_text("\n".join(lines).replace("satunsat numeric", "satunsat {a}"))
    made = published(*(tmp_path / file for file in ARFF))
    for name in features:
        assert made[name].tolist() == pytest.approx(table[name].astype(float).tolist(), nan_ok=True)
    assert made["family"].tolist() == table["family"].tolist()
    assert made["label"].tolist() == table["label"].tolist()
    assert made["CG_status"].tolist() == table["CG_status"].tolist()


def test_parts_and_medians_are_those_of_the_reference():
    folder = needs("rowprices")
    splits = prepared(folder, 4)
    paid = np.concatenate([part.price_columns for part in parts(splits)])
    assert len(paid) == 1594
    assert every(splits).mean() == pytest.approx(0.593, abs=5e-4)
    pre, basic, sp = (paid[:, [*STEPS].index(step)] for step in ("Pre", "Basic", "sp"))
    assert pre.mean() == pytest.approx(5.2, abs=0.1)
    assert (pre + basic + sp).mean() == pytest.approx(8.2, abs=0.05)
    assert np.median(pre + basic + sp) == pytest.approx(0.54, abs=0.005)
    assert paid.sum(axis=1).mean() == pytest.approx(42.8, abs=0.1)


def test_our_table_has_the_family_folds_of_the_converter():
    pd = pytest.importorskip("pandas")
    table = pd.read_csv(
        needs("rowprices/aslib") / "sat12-all.csv.gz", usecols=["family", "family_fold"]
    )
    assert table["family"].map(family_folds(table["family"].tolist())).equals(table["family_fold"])
