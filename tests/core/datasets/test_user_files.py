"""A user's own files as a data set."""

import numpy as np
import pytest
from helpers.kit import every, prepared, refused, table

from bench_core.cli.options import as_flag
from bench_core.data import Task
from bench_core.datasets.pricing import with_costs
from bench_core.splits import CUT, Note


def test_one_file_is_split_60_20_20_by_whole_queries(tmp_path):
    splits = prepared(write(tmp_path, "all.svm", ranking(1000)))
    counts = []
    for part in (splits.train, splits.valid, splits.test):
        assert (part.queries.sizes == 3).all()
        counts.append(len(part.queries))
        by_query = part.X[:, 0].reshape(-1, 3)
        assert (by_query == by_query[:, :1]).all()
    assert sum(counts) == 1000
    np.testing.assert_allclose(counts, [600, 200, 200], atol=45)
    assert sorted(every(splits, "1")) == sorted(q for q in range(1000) for _ in range(3))
    assert Note(CUT, "split: 60/20/20, by a hash of the query") in splits.notes


def visits(patients, each=4):
    rows = [(p, v) for p in patients for v in range(each)]
    return "patient,a,ill\n" + "".join(f"p{p},{p + v / 8},{p % 2}\n" for p, v in rows)


def test_rows_of_a_patient_are_a_group_in_every_task(tmp_path):
    path = write(tmp_path, "all.csv", visits(range(60)))
    for task in ("binary", "regression"):
        splits = prepared(path, label="ill", query="patient", task=task)
        for part in (splits.train, splits.valid, splits.test):
            assert part.queries is None
            assert part.features.queries is None
            assert set(part.groups.sizes) == {4}
            assert (np.floor(part.X[:, 0]).reshape(-1, 4).std(axis=1) == 0).all()


@pytest.mark.parametrize("task", ["binary", "ranking"])
def test_rows_of_a_group_may_lie_apart_in_a_table(tmp_path, task):
    header, *rows = visits(range(60)).splitlines()
    apart = [
        rows[k] for k in sorted(range(240), key=lambda k: k % 4)
    ]  # a visit of each, four times
    paths = [write(tmp_path, "a.csv", "\n".join([header, *order])) for order in (rows, apart)]
    options = {"label": "ill", "query": "patient", "task": task}
    (sorted_rows, scattered) = (prepared(path, **options) for path in paths)
    for name in ("train", "valid", "test"):
        expected, part = getattr(sorted_rows, name), getattr(scattered, name)
        np.testing.assert_array_equal(part.X, expected.X)
        np.testing.assert_array_equal(part.y, expected.y)
        np.testing.assert_array_equal(part.units.sizes, expected.units.sizes)


def write(folder, name, text):
    path = folder / name
    path.write_text(text)
    return str(path)


def ranking(queries, start=0):
    """Three documents a query; the one feature is the query's number."""
    numbers = range(start, start + queries)
    return "".join(f"{i} qid:{q} 1:{q}\n" for q in numbers for i in range(3))


def labelled(path, label):
    """Sixty rows with this label, an expression of the row's number."""
    return table(path, "a,b,y", [f"{i},{i * i},{eval(label, {'i': i})}" for i in range(60)])


IN_TWO = "in {} are in {} too: if they are the same, results are too good; give each to one split"


def same_ids(*files, **options):
    """Notes on ids that are in several of these files."""
    notes = map(str, prepared(*files, **options).notes)
    return [note for note in notes if "are the same" in note]


def test_ids_that_occur_in_two_files_are_named(tmp_path):
    of = {"train": range(40), "valid": range(36, 46), "test": range(45, 60)}
    paths = [write(tmp_path, f"{name}.csv", visits(of[name])) for name in of]
    assert same_ids(*paths, label="ill", query="patient", task="binary") == [
        "4 of 10 ids of 'patient' " + IN_TWO.format("valid", "train"),
        "1 of 15 ids of 'patient' " + IN_TWO.format("test", "valid"),
    ]
    files = [write(tmp_path, f"{k}.svm", ranking(20, start)) for k, start in enumerate((0, 50, 15))]
    assert same_ids(*files) == ["5 of 20 ids of 'qid' " + IN_TWO.format("test", "train")]


def test_queries_numbered_from_one_or_without_ids_are_not_the_same(tmp_path):
    files = [write(tmp_path, f"{size}.svm", ranking(size, 1)) for size in (20, 8, 12)]
    assert not same_ids(*files)
    for size, path in zip((20, 8, 12), files, strict=True):
        write(tmp_path, f"{size}.svm", "0 1:1\n1 1:1\n2 1:1\n" * size)
        write(tmp_path, f"{path}.query", "3\n" * size)
    assert not same_ids(*files)


def test_a_querys_split_depends_on_its_id_alone(tmp_path):
    whole = prepared(write(tmp_path, "all.svm", ranking(200)))
    later = prepared(write(tmp_path, "later.svm", ranking(150, start=50)))
    for one, other in ((whole.train, later.train), (whole.test, later.test)):
        expected = {q for q in one.X[:, 0].tolist() if q >= 50}
        assert set(other.X[:, 0].tolist()) == expected


@pytest.mark.parametrize("given", ["test", "valid"])
def test_with_one_more_file_a_quarter_is_cut_off(given, tmp_path):
    train = write(tmp_path, "train.svm", ranking(1000))
    other = write(tmp_path, "other.svm", ranking(5, start=5000))
    splits = prepared(train, **{given: other})
    missing = "valid" if given == "test" else "test"
    assert len(getattr(splits, given)) == 15
    np.testing.assert_allclose(len(getattr(splits, missing)), 750, atol=130)
    assert len(splits.train) + len(getattr(splits, missing)) == 3000


def test_a_column_can_say_which_split(tmp_path):
    rows = ["train", "test", "Validation", "vali", "training", "dev"]
    text = "part,a,y\n" + "".join(f"{name},{i},{int(i > 2)}\n" for i, name in enumerate(rows))
    splits = prepared(write(tmp_path, "all.csv", text), split="part")
    assert splits.train.X[:, 0].tolist() == [0, 4]
    assert splits.valid.X[:, 0].tolist() == [2, 3, 5]
    assert splits.test.X[:, 0].tolist() == [1]


def test_the_test_file_may_have_more_or_fewer_features(tmp_path):
    train = write(tmp_path, "train.svm", "1 2:5\n0 1:1\n")
    wide = write(tmp_path, "wide.svm", "1 3:7\n0 1:1\n")
    splits = prepared(train, train, wide)
    assert splits.feature_names == ("1", "2", "3")
    np.testing.assert_array_equal(splits.train.X, [[0, 5, 0], [1, 0, 0]])
    np.testing.assert_array_equal(splits.test.X, [[0, 0, 7], [1, 0, 0]])
    narrow = prepared(wide, wide, train)
    np.testing.assert_array_equal(narrow.test.X, [[0, 5, 0], [1, 0, 0]])
    assert narrow.prices.features == 3


@pytest.mark.parametrize(
    ("label", "task", "classes"),
    [
        ("i % 2", Task.BINARY, 2),
        ("-1 if i % 3 else 1", Task.BINARY, 2),
        ("i % 5", Task.MULTICLASS, 5),
        ("i % 5 + 0.5", Task.REGRESSION, 0),
        ("i", Task.REGRESSION, 0),
        ("'abc'[i % 3]", Task.MULTICLASS, 3),
        ("'no' if i % 3 else 'yes'", Task.BINARY, 2),
    ],
)
def test_the_task_is_read_off_the_labels(label, task, classes, tmp_path):
    name = labelled(tmp_path / "all.csv", label)
    splits = prepared(name, name, name)
    assert (splits.task, splits.classes) == (task, classes)
    assert any(note.startswith(f"task: {task}") for note in splits.notes)


@pytest.mark.parametrize(
    ("label", "positive", "names", "third"),
    [
        ("'no' if i % 3 else 'yes'", "", ("no", "yes"), 1),
        ("'no' if i % 3 else 'yes'", "no", ("yes", "no"), 0),
        ("2 if i % 3 else 1", "1", ("2", "1"), 1),
        ("2 if i % 3 else 1", "1.0", ("2", "1"), 1),
        ("-1 if i % 3 else 1", "-1", ("1", "-1"), 0),
        ("i % 3 == 0", "False", ("1", "0"), 0),
    ],
)
def test_the_positive_class_has_number_one(label, positive, names, third, tmp_path):
    """``third``: the number of the class of every third row."""
    name = labelled(tmp_path / "all.csv", label)
    splits = prepared(name, name, name, positive=positive)
    assert splits.class_names == names
    for part in (splits.train, splits.valid, splits.test):
        assert part.y.tolist() == [1 - third if i % 3 else third for i in range(60)]
    shown = f"classes: {names[0]} is 0, {names[1]} is 1"
    assert (shown in splits.notes) == (names != ("0", "1"))


@pytest.mark.parametrize(
    ("cell", "offset", "other"),
    [
        ("1700000000 + 2 * i", 1_700_000_000, None),
        ("16777216.5 + i / 64", 16_777_210, None),
        ("-1700000000 - 2 * i", -1_700_001_000, None),
        ("1700000000 + 2 * i if i % 5 else 0", 0, ", so some become one"),
        ("i / 7", 0, None),
        ("10 ** 9 * (i + 1)", 0, None),
        ("5", 0, None),
        ("'' if i % 5 else i", 0, None),
    ],
)
def test_values_that_float32_merges_are_moved(cell, offset, other, tmp_path):
    cells = [eval(cell, {"i": i}) for i in range(100)]
    text = "a,t,y\n" + "".join(f"1,{x!r},{i % 2}\n".replace("''", "") for i, x in enumerate(cells))
    name = write(tmp_path, "all.csv", text)
    splits = prepared(name, name, name)
    exact = np.array([float("nan" if x == "" else x) - offset for x in cells])
    np.testing.assert_array_equal(splits.train.X[:, 1], exact.astype(np.float32))
    feature = f"t-{offset}" if offset else "t"
    assert splits.feature_names == ("a", feature)
    assert splits.columns == ("a", "t")
    assert splits.offsets == ((0.0, float(offset)) if offset else ())
    told = [note for note in splits.notes if "float32" in note]
    what = f": made {feature!r}" if offset else other
    wanted = f"column 't': float32 does not tell its values apart{what}"
    assert told == ([wanted] if what else [])
    priced = with_costs(splits, write(tmp_path, "costs.csv", "a,1\nt,5\n"))
    assert priced.prices.sensor.tolist() == [1, 5]


@pytest.mark.parametrize(
    ("name", "text", "names"),
    [
        ("rows.txt", "1 1:2\n0 1:3\n", ("1",)),
        ("rows.train", "# c\n1 qid:1 1:2\n0 qid:2 1:3\n", ("1",)),
        ("rows.dat", "a,y\n2,1\n3,0\n", ("a",)),
        ("rows", "a;y\n2;1\n3;0\n", ("a",)),
        ("rows.svm", "1\n0 1:3\n", ("1",)),
    ],
)
def test_the_format_is_recognised(name, text, names, tmp_path):
    path = write(tmp_path, name, text)
    assert prepared(path, path, path).feature_names == names


def test_columns_with_commas_are_left_out_as_they_are_or_several_at_once(tmp_path):
    rows = [f"{k % 7},{k % 5},n{k},m{k},{k // 2 % 2}" for k in range(90)]
    path = table(tmp_path / "road.csv", '"distance, km",speed,note 1,"a, b",y', rows)
    assert refused("", prepared, path).endswith("to leave out: drop=['note 1', 'a, b']")
    assert as_flag("drop", "", ["note 1", "a, b"]) == "--drop 'note 1,a, b'"
    assert prepared(path, drop=("note 1", "a, b")).feature_names == ("distance, km", "speed")
    for drop in (("note 1,speed", "a, b"), ("note 1,a, b,speed",), ("a, b , note 1,speed",)):
        assert prepared(path, drop=drop).feature_names == ("distance, km",)
    assert prepared(path, drop=("distance, km,note 1,a, b",)).feature_names == ("speed",)
    refused("drop: unknown|'distance'", prepared, path, drop=("distance,km,note 1",))


@pytest.mark.parametrize("end", ["weight", "init", "position", "base_margin"])
def test_side_cars_that_are_not_used_are_named(end, tmp_path):
    path = write(tmp_path, "rows.svm", "0 1:3\n1 1:4\n" * 30)
    assert not any("not used" in note for note in prepared(path).notes)
    (tmp_path / f"rows.svm.{end}").write_text("1\n" * 60)
    assert f"rows.svm.{end} is not used: all rows count alike" in prepared(path).notes


def test_values_of_svmlight_that_float32_merges_are_told(tmp_path):
    rows = "".join(f"{i % 2} 1:{i} 2:{1_700_000_000 + i} 3:{i * 10**9}\n" for i in range(60))
    splits = prepared(*[write(tmp_path, "a.svm", rows)] * 3)
    told = [note for note in splits.notes if "float32" in note]
    assert told == [
        "feature 2 of a.svm: float32 does not tell its values apart, so some become one"
    ]


def test_costs_of_a_file_that_counts_from_one_say_so(tmp_path):
    name = write(tmp_path, "a.svm", "1 1:5 2:1\n0 1:0 2:7\n" * 9)
    splits = prepared(name, name, name, index_base=0)
    costs = write(tmp_path, "costs.csv", "1,5\n2,1\n")
    refused("costs.csv|'0' has no cost|leave out index_base", with_costs, splits, costs)


@pytest.mark.parametrize(("unwritten", "value"), [("", 0.0), ("zero", 0.0), ("missing", np.nan)])
def test_cells_that_svmlight_does_not_write(unwritten, value, tmp_path):
    name = write(tmp_path, "a.svm", "1 2:5\n0 1:0 3:7\n" * 9)
    wide = write(tmp_path, "b.svm", "1 2:5 4:1\n0 1:0\n")
    splits = prepared(name, name, wide, unwritten=unwritten)
    v = value
    np.testing.assert_array_equal(splits.train.X[:2], [[v, 5, v, v], [0, v, 7, v]])
    np.testing.assert_array_equal(splits.test.X, [[v, 5, v, 1], [0, v, v, v]])
