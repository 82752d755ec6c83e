"""Arrays, frames and mappings as a run's data: every form gives the same run, and what cannot be
used is one line that speaks of keywords."""

import re
from dataclasses import dataclass, replace
from inspect import signature
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from helpers.kit import every, prepared, refused
from helpers.toys import Prefix, ToyBinary
from scipy.sparse import csr_array
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer

import bench_core
from bench_core import (
    MetricValues,
    Queries,
    SensorPrices,
    Splits,
    Task,
)
from bench_core.api.arguments import costs_of, request_of
from bench_core.datasets.pricing import with_costs
from bench_core.datasets.table_options import TableOptions
from bench_core.datasets.user_arrays import array_splits
from bench_core.splits import SPLITS

N = 60
NAMES = ["a", "b", "c"]
RNG = np.random.default_rng(7)
X = RNG.normal(size=(N, 3)).round(3)
X[3, 1] = np.nan
Y = (X[:, 0] > 0).astype(int)
FRAME = pd.DataFrame(X, columns=NAMES)
IDS = np.repeat(np.arange(12), 5)
TOYS = {
    "learners": {"toy-prefix": {"tradeoff": 0.1}},
    "plugins": "helpers.toys",
    "executor": "inline",
    "progress": False,
}


def run(*args, **options):
    return bench_core.run(*args, **(TOYS | options))


def plan(*args, **options):
    return bench_core.plan(*args, **(TOYS | options))


FORMS = {
    "arrays": (X, Y),
    "lists": (X.tolist(), Y.tolist()),
    "nullable": (pd.DataFrame(X).convert_dtypes(), pd.Series(Y).astype("Int64")),
    "objects": (X.astype(object), Y.astype(object)),
    "a column as y": (X, pd.DataFrame({"outcome": Y}, index=range(100, 100 + N))),
    "another index": (pd.DataFrame(X, index=range(100, 100 + N)), pd.Series(Y)),
    "sparse": (csr_array(X), Y),
}


def assert_same(one, two):
    """Equal cells and labels in every part."""
    for name in SPLITS:
        np.testing.assert_array_equal(getattr(one, name).X, getattr(two, name).X)
        np.testing.assert_array_equal(getattr(one, name).y, getattr(two, name).y)


def test_a_plan_shows_itself_in_one_line():
    line = repr(plan(X, Y))
    assert re.fullmatch(r"Plan\(\S+: \d+ of \d+ trials to do on data(, about \d+ s)?\)", line)


@pytest.mark.parametrize("form", FORMS)
def test_the_same_numbers_are_the_same_data(form):
    kept = array_splits(*FORMS[form])
    assert_same(kept, array_splits(X, Y))
    assert kept.task == Task.BINARY


def test_names_come_with_the_columns():
    assert array_splits(X, Y).feature_names == ("x0", "x1", "x2")
    for table in (FRAME, FRAME.to_dict("series"), FRAME.to_records(index=False)):
        assert array_splits(table, Y).feature_names == ("a", "b", "c")
    labelled = FRAME.assign(ill=Y)
    assert array_splits(labelled, "ill").feature_names == ("a", "b", "c")


def _mixed():
    """Columns of every kind that a frame has, with missing cells."""
    texts = np.array(["red", "green", "blue"], dtype=object)[np.arange(N) % 3]
    codes = [["1", "2", "30"][j % 3] for j in range(N)]  # categories that read as numbers
    return {
        "number": np.where(np.arange(N) % 7 == 0, np.nan, X[:, 0]),
        "colour": np.where(np.arange(N) % 5 == 0, None, texts),
        "count": [None if j % 11 == 0 else j % 4 for j in range(N)],
        "member": [None if j % 13 == 0 else j % 2 == 0 for j in range(N)],
        "grade": pd.Categorical(codes),
        "ill": np.where(Y, "yes", "no"),
        "visit": np.repeat(np.arange(12), 5),
    }


def _in_polars(columns):
    grade = pl.Series([*columns["grade"]], dtype=pl.Categorical)
    return pl.DataFrame(
        {**{name: [*cells] for name, cells in columns.items()}, "grade": grade}, strict=False
    ).with_columns(pl.col("number").fill_nan(None))


VISITS = TableOptions(drop=("visit",))
LIBRARIES = {
    "polars": _in_polars,
    "polars, lazy": lambda columns: _in_polars(columns).lazy(),
    "arrow": lambda columns: pa.Table.from_pandas(pd.DataFrame(columns), preserve_index=False),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_of_any_library_is_its_pandas_twin(library):
    twin, other = pd.DataFrame(_mixed()), LIBRARIES[library](_mixed())
    wanted, kept = (array_splits(frame, "ill", options=VISITS) for frame in (twin, other))
    assert kept.names == wanted.names
    assert "colour=red" in kept.names
    assert "grade=30" in kept.names
    assert_same(kept, wanted)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_served_model_takes_a_frame_of_any_library(library, home):
    twin, other = pd.DataFrame(_mixed()), LIBRARIES[library](_mixed())
    options = {"learners": {"gbrt": {"trees": 60, "min_rows": 1}}, "drop": "visit", "plugins": ()}
    result = run(other, "ill", **options)
    model = result.best().model()
    one, two = (model.predict_rows(frame) for frame in (twin, other))
    assert one.scores.tolist() == two.scores.tolist()
    assert one.spent.tolist() == two.spent.tolist()
    assert len(set(one.scores.tolist())) > 2


def test_labels_and_queries_are_series_of_any_library():
    plain = array_splits(X, IDS % 3, queries=IDS)
    columns = {f"x{j}": pl.Series(X[:, j]) for j in range(3)}
    made = array_splits(columns, pl.Series(IDS % 3), queries=pl.Series(IDS))
    assert_same(made, plain)
    for name in SPLITS:
        sizes = (getattr(one, name).queries.sizes.tolist() for one in (made, plain))
        assert next(sizes) == next(sizes)


def test_cells_that_a_sparse_matrix_does_not_store_are_missing_on_demand():
    at = np.repeat(np.arange(N), 2), np.tile([0, 1], N)  # the third column is not stored
    sparse = csr_array((np.tile([0.0, 2.0], N), at), shape=(N, 3))  # and zeros are
    for unwritten, gap in (("", 0.0), ("zero", 0.0), ("missing", np.nan)):
        [data] = request_of({"unwritten": unwritten}, sparse, Y).data
        [splits] = data.splits
        for one in (splits.train, splits.valid, splits.test):
            np.testing.assert_array_equal(one.X, np.tile([0.0, 2.0, gap], (len(one), 1)))


def test_ids_of_rows_are_groups_in_every_task():
    test = X[:10] + 1, Y[:10], IDS[:10]
    splits = array_splits(X, Y, IDS, test=test)
    same = array_splits(X, Y, IDS, test=test, options=TableOptions(task="binary"))
    assert [part.queries is None for part in (splits.test, same.test)] == [False, True]
    assert same.test.units.sizes.tolist() == splits.test.queries.sizes.tolist() == [5, 5]
    notes = [str(note) for note in same.notes if "ids of 'queries'" in str(note)]
    assert sum(int(note.split()[0]) for note in notes) == 2  # in train or validation
    groups = Queries(np.arange(0, N + 1, 5)), Queries(np.array([0, 5, 10]))
    numbered = array_splits(X, Y, groups[0], test=(*test[:2], groups[1]))
    assert not [note for note in numbered.notes if "ids of" in str(note)]


def test_rows_of_a_query_are_put_together_and_stay_in_one_split():
    order = RNG.permutation(N)
    splits = array_splits(X[order], IDS[order] % 3, queries=IDS[order])
    assert splits.task == Task.RANKING
    for part in (splits.train, splits.valid, splits.test):
        assert set(part.queries.sizes) == {5}
    same = array_splits(X, IDS % 3, queries=Queries(np.arange(0, N + 1, 5)))
    rows = np.concatenate([p.X for p in (splits.train, splits.valid, splits.test)])
    others = np.concatenate([p.X for p in (same.train, same.valid, same.test)])
    assert sorted(map(tuple, np.nan_to_num(rows))) == sorted(map(tuple, np.nan_to_num(others)))


@pytest.mark.parametrize("transformed", [False, True])
def test_weights_of_rows_are_their_copies_in_every_split(transformed):
    weight = np.arange(1, N + 1)
    rows = pd.DataFrame({"number": np.arange(N, dtype=float) ** 2})
    columns = ColumnTransformer([("as it is", "passthrough", ["number"])])
    asked = {"transformer": columns} if transformed else {}
    made = (
        request_of({}, rows, Y, np.arange(N) % 20, sample_weight=weight, **asked).data[0].splits[0]
    )
    for part in (made.train, made.valid, made.test):
        assert part.multiplicity.tolist() == (np.sqrt(part.X[:, 0]) + 1).round().tolist()


def test_parts_may_be_given_and_columns_named():
    table = FRAME.assign(y=Y, part=["train"] * 40 + ["valid"] * 10 + ["test"] * 10)
    by_column = array_splits(table, "y", split="part")
    rows = [slice(0, 40), slice(40, 50), slice(50, 60)]
    pairs = [(FRAME[r], Y[r]) for r in rows]
    by_pairs = array_splits(*pairs[0], valid=pairs[1], test=pairs[2])
    frames = [FRAME.assign(y=Y)[r] for r in rows]
    by_frames = array_splits(frames[0], "y", valid=frames[1], test=frames[2][["y", *NAMES[::-1]]])
    for splits in (by_column, by_pairs, by_frames):
        for name, r in zip(("train", "valid", "test"), rows, strict=True):
            np.testing.assert_array_equal(getattr(splits, name).X, X[r].astype(np.float32))
            np.testing.assert_array_equal(getattr(splits, name).y, Y[r])


@pytest.mark.parametrize(
    ("labels", "positive"), [(("a", "b"), "a"), ((1, 2), 1), ((1, 2), np.float64(1)), ((0, 1), 0)]
)
def test_the_positive_class_of_rows_in_memory(labels, positive):
    y = np.array(labels)[np.arange(N) % 2]
    request = request_of({"positive": positive}, X, y)
    splits = request.data[0].splits[0]
    usual = array_splits(X, y)
    np.testing.assert_array_equal(splits.train.y, 1 - usual.train.y)
    assert splits.class_names == usual.class_names[::-1]


def test_a_run_on_arrays_is_found_again_by_their_content(home):
    first = run(X, Y, costs=[1, 2, 3])
    again = run(X.copy(), Y.copy(), costs={"x0": 1, "x1": 2, "x2": 3})
    assert (again.run, again.reused) == (first.run, 1)
    other = X.copy()
    other[0, 0] += 1
    assert run(other, Y, costs=[1, 2, 3]).reused == 0
    assert set(first.frame()["dataset"]) == {"data"}


def test_workers_of_their_own_open_data_by_its_path(home):
    result = run(FRAME, Y, costs={"a": 1, "b": 2, "c": 3}, executor="local", name="visits")
    assert result.counts == {"ok": 1}
    assert set(result.frame()["dataset"]) == {"visits"}


def test_splits_are_taken_as_they_are(home):
    splits = array_splits(X, Y)
    splits = Splits(splits.train, splits.valid, splits.test, splits.prices)
    made = plan(splits, costs=[1, 2, 3], name="mine")
    assert (made.datasets[0].name, made.datasets[0].task) == ("mine", "binary")
    assert made.datasets[0].rows["train"] == len(splits.train)


def test_a_mapping_of_learners_sets_their_parameters(home):
    made = plan(
        X, Y, learners={"toy-prefix": {"tradeoff": [0.1, np.float64(2)]}, "toy-stacked": {}}
    )
    tried = [trial.params["tradeoff"] for trial in made.trials if trial.learner == "toy-prefix"]
    assert tried == [0.1, 2.0]
    same = plan(X, Y, learners="toy-prefix", settings={"toy-prefix.tradeoff": 0.5})
    assert [trial.params["tradeoff"] for trial in same.trials] == [0.5]


def test_a_data_set_may_be_an_instance(home):
    assert plan(data=ToyBinary()).datasets[0].name == "toy-binary"


def test_no_command_repeats_a_run_on_objects(home, capsys):
    from bench_core.planning.request import command

    result = run(X, Y, costs=[1, 2, 3])
    assert result.info.request["data"] == ["data (from Python)"]
    assert command(result.info.request) == ""
    assert command(bench_core.run(data="toy-binary", **TOYS).info.request).startswith("bench run")
    text = result.report(home / "board.md").read_text()
    assert "repeated by" not in text
    assert "bench report" in text


def test_a_run_on_arrays_is_audited_and_billed_anew_without_them(home):
    run(X, Y, costs=[1, 2, 3])
    (home / "other.csv").write_text("x0,10\nx1,20\nx2,30\n")
    how = {"plugins": ["helpers.toys"], "executor": "inline"}
    assert bench_core.audit(**how).counts == {"ok": 1}
    billed = bench_core.reprice(costs="other.csv", **how)
    assert billed.board()["cost"].iloc[0] == 10 * bench_core.load_run("1").board()["cost"].iloc[0]


def test_help_of_reprice_names_only_arguments_that_it_takes():
    text = bench_core.reprice.__doc__
    assert "data : default ()\n        Data sets of the run." in text
    assert "suite" not in text


def test_notes_and_warnings_reach_a_caller_who_wants_no_display(home, capsys):
    @dataclass(frozen=True)
    class Local(Prefix):
        name: ClassVar[str] = "local"

    with pytest.warns(UserWarning, match="Local cannot be imported by another process"):
        result = run(X, Y, learners=[Local()], executor="local")
    assert capsys.readouterr().err == ""
    assert result.notes[1].endswith("; --task (in Python task=) changes it")


def test_a_metric_may_be_an_object_and_its_values_count(home):
    for most, share in ((-np.inf, 0.0), (np.inf, 1.0)):
        result = run(X, Y, metrics=["auc", Within(most=most)])
        assert result.counts == {"ok": 1}
        assert {*result.frame()["within"]} == {share}
    with pytest.warns(UserWarning, match=r"metric within cannot be .* in a module of plugins="):
        run(X, Y, metrics=Within(), executor="local")


def test_progress_is_lines_where_there_is_no_terminal(home, capsys):
    run(X, Y, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith("[2/2] ok score toy-prefix on data") for line in lines)


WORDS = np.where(X[:, 0] > 0.3, "low", np.where(X[:, 2] > 0, "mid", "high")).astype(object)
WORDS[7] = None
KINDS = {
    "objects": pd.Series(WORDS),
    "categories": pd.Series(WORDS, dtype="category"),
    "strings": pd.Series(WORDS, dtype="string"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_of_text_is_one_sensor_as_in_a_file(kind, tmp_path):
    made = array_splits(FRAME.assign(level=KINDS[kind]), Y)
    file = tmp_path / "x.csv"
    FRAME.assign(level=WORDS, y=Y).to_csv(file, index=False)
    same = prepared(file)
    assert made.names == same.names
    assert set(made.names) == {*NAMES, "level=low", "level=mid", "level=high"}
    assert made.origins == same.origins == (*NAMES, *["level"] * 3)
    assert made.prices.sensors == 4
    assert_same(made, same)
    assert [np.isnan(every(made, name)).sum() for name in made.names[3:]] == [1, 1, 1]


def test_a_text_of_a_frame_is_a_value_even_if_a_file_would_call_it_missing():
    words = np.resize(["NA", "null", "x"], len(FRAME))
    made = array_splits(FRAME.assign(level=words), Y)
    assert set(made.names) == {*NAMES, "level=NA", "level=null", "level=x"}
    assert not any(np.isnan(every(made, name)).any() for name in made.names[3:])


def test_a_text_column_has_one_cost_and_a_note():
    frame = FRAME.assign(level=KINDS["objects"])
    splits = array_splits(frame, Y)
    for given in ({"a": 1, "b": 1, "c": 1, "level": 5}, [1, 1, 1, 5]):
        priced = with_costs(splits, costs_of(given))
        assert priced.prices.sensor.tolist() == [1, 1, 1, 5]
    made = plan(frame, Y, costs=given)
    assert [n for n in made.notes if "column 'level' holds text" in n and "one sensor" in n]


def test_what_files_can_be_given_data_in_memory_can(tmp_path):
    file, frame = tmp_path / "x.csv", FRAME.assign(id=np.arange(N))
    frame.assign(y=Y).to_csv(file, index=False)
    ways = [{"share": 0.3}, {"share": (0.1, 0.3)}, {"cv": 4}]
    for way in ways:
        options = {"drop": "id", "groups": "a,b:5", **way}
        (made,) = request_of(_options(**options), frame, Y, None, "d").data
        way["share"] = (*np.broadcast_to(way.get("share", 0.25), 2).tolist(),)
        for fold in range(way.get("cv", 1)):
            same = prepared(file, fold=fold, drop=("id",), groups=("a,b:5",), **way)
            splits = made.prepare(None, "", fold, 0)
            np.testing.assert_array_equal(splits.test.X, same.test.X)
            assert splits.names == tuple(NAMES)
            assert splits.prices.sensor.tolist() == same.prices.sensor.tolist()
            assert sorted(splits.prices.sensor) == [1, 5]
    assert made.folds == len(made.splits) == 4


def _options(**changed):
    """What ``run`` hands on, with these changes."""
    known = {p.name: p.default for p in signature(bench_core.run).parameters.values()}
    own = {"X", "y", "queries", "sample_weight", "name", "request", "on_event", "progress"}
    return {name: value for name, value in (known | changed).items() if name not in own}


def _splits(**changed):
    return replace(array_splits(X, Y), **changed)


class Within:
    """The share of rows whose score is at most ``most``."""

    higher_is_better, tasks = True, frozenset({Task.BINARY})

    def __init__(self, name="within", most=0.0):
        self.name, self.most = name, most

    def values(self, scores, y, queries=None, multiplicity=None):
        return MetricValues((scores <= self.most).astype(float), np.ones(len(y)))


WRONG = {
    "nothing": ((), {}, "nothing to run: give X and y, suite=NAME or data="),
    "no y": ((X,), {}, "y is missing: give the label of each row"),
    "index_base": ((X, Y), {"index_base": 0}, "index_base cannot be used with X"),
    "query": ((X, Y), {"query": Y}, "query cannot be used with X: write queries=..."),
    "label with X": ((FRAME.assign(ill=Y),), {"label": "ill"}, "label|X|y='ill'"),
    "a file as X": (("x.csv",), {"label": "y"}, "X is a file's name: give it as data='x.csv'"),
    "two columns as y": ((X, FRAME[["a", "b"]]), {}, "y is a DataFrame; give one value for each"),
    "costs of one of three": ((FRAME, Y), {"costs": {"a": 1}}, "costs|'b' and 1 more"),
    "unwritten": ((X, Y), {"unwritten": "missing"}, "unwritten cannot be used with X"),
    "y without X": ((), {"y": Y}, "y is given without X"),
    "a class as data": ((), {"data": [Splits]}, "is not a name, file or instance of a data set"),
    "valid without X": ((), {"valid": (X, Y)}, "valid is given as data without X, the features"),
    "test beside files": ((), {"data": "x.csv", "test": FRAME}, "test is given as data without X"),
    "split without X": ((), {"split": ["train"] * N}, "split is given as data without X"),
    "one dimension": ((X[:, 0], Y), {}, "X has shape (60,); give a table (n, d)"),
    "ragged": (([[1, 2], [3]], [0, 1]), {}, "X: its rows have different lengths"),
    "a row as X": (({"a": 1, "b": "yes"}, Y), {}, "X is one row; give a table: [X]"),
    "too many copies": (
        (FRAME, Y),
        {"sample_weight": np.full(N, 1e9)},
        "sample_weight: more than 2147483647 copies in all",
    ),
    "no queries": ((FRAME, Y), {"task": "ranking"}, "X: ranking needs queries: the id of each"),
    "test without queries": (
        (FRAME, Y),
        {"queries": np.arange(N) // 4, "test": (FRAME, Y)},
        "test has no queries, which X has; give (X, y, queries)",
    ),
    "a series as X": ((FRAME["a"], Y), {}, "X is one column or row; give a table: X.to_frame()"),
    "numbers as text": ((FRAME.assign(n=["1", "2.5"] * 30), Y), {}, "pandas.to_numeric reads them"),
    "text in one part": (
        (FRAME.assign(c="a"), Y),
        {"test": (FRAME, Y)},
        "column 'c' holds numbers here and text elsewhere; use one",
    ),
    "no grades": (
        (X, np.where(np.arange(N) == 7, 2000, Y)),
        {"queries": IDS},
        "y, row 7: label 2000|scale|0..1000|task='regression'",
    ),
    "no learners": ((X, Y), {"learners": []}, "learners is empty: give at least one"),
    "two columns of a name": ((FRAME.set_axis([*"aab"], axis=1), Y), {}, "X|'a'|rename one"),
    "short y": ((X, Y[:5]), {}, "y has 5 values for 60 rows"),
    "y in another order": ((FRAME, pd.Series(Y)[::-1]), {}, "y's index|y.loc[X.index]"),
    "a price of no column": (
        (FRAME, Y),
        {"costs": {"a": 0, "b": 0, "c": 0, "aa": 3}},
        "every cost is 0|not used: aa (did you mean a?)",
    ),
    "dates as y": ((X, pd.date_range("2024-01-01", periods=N)), {}, "y holds dates: give numbers"),
    "a function as metric": ((X, Y), {"metrics": lambda a, b: 1}, "has no higher_is_better, name"),
    "no metric": ((X, Y), {"metrics": object()}, "is given, which has no higher_is_better"),
    "a class as metric": ((X, Y), {"metrics": Within}, "; expected an instance instead"),
    "a metric's name": ((X, Y), {"metrics": Within("auc")}, "'auc' is built in: rename yours"),
    "y in another order of a repeated index": (
        (FRAME.set_axis(np.arange(N) // 2), pd.Series(Y, index=np.arange(N)[::-1] // 2)),
        {},
        "y's index has another order than X's; give y.to_numpy()",
    ),
    "unknown metric": ((X, Y), {"metrics": "within10"}, "; one of your own: plugins=MODULE"),
    "ids as groups": ((X, Y), {"groups": IDS}, "groups=[['a', 'b']]; ids of rows are queries"),
    "five folds": ((X, Y), {"folds": 5}, "not 5: choose by folds, or divide into 5 by cv=5"),
    "half a weight": ((X, Y), {"sample_weight": np.full(N, 0.5)}, "sample_weight|whole numbers"),
    "unknown column": ((FRAME.assign(ill=Y), "il"), {}, "y: unknown|'il'|did you mean ill?"),
    "column of an array": ((X, "ill"), {}, "y='ill' names a column, and X has no names"),
    "a whole bunch": ((load_breast_cancer(),), {}, "give X.data and X.target as X and y"),
    "sizes of queries": ((X, Y), {"queries": np.full(12, 5)}, "queries|12|60|numpy.repeat"),
    "another width": ((X, Y), {"test": (X[:, :2], Y)}, "test: no column 'x2', which X has"),
    "no pair": ((X, Y), {"test": X}, "test is a ndarray; give a pair (X, y)"),
    "unknown split": ((X, Y), {"split": ["trian"] * N}, "'trian' is not a split|train, valid"),
    "drop and Splits": ((_splits(),), {"drop": "a"}, "drop cannot be used with Splits"),
    "suite and X": ((X, Y), {"suite": "quickstart"}, "suite cannot be used with X"),
    "costs as a number": ((X, Y), {"costs": 3}, "costs is a int; give a mapping"),
    "prices of others": ((X, Y), {"costs": SensorPrices.additive(np.ones(4))}, "costs|4 features"),
    "wrong splits": ((_splits(feature_names=("a",)),), {}, "X: prices or names are not for 3"),
    "a registered name": ((X, Y), {"name": "letters"}, "'letters' is the name of a registered"),
    "a name of two lines": ((X, Y), {"name": "a\nb"}, "name must be a word that names the data"),
    "learners as numbers": ((X, Y), {"learners": {"toy-prefix": 3}}, "'toy-prefix' is given 3"),
    "unknown learner": ((X, Y), {"learners": "misr"}, "learners: unknown learner 'misr'"),
    "a learner inside": (
        (X, Y),
        {"learners": {"toy-stacked": {"base": Prefix()}}},
        "base cannot be an instance; give a name or a table",
    ),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_cannot_be_used_is_one_line_that_speaks_python(kind, home):
    args, options, wanted = WRONG[kind]
    assert "--" not in refused(wanted, run, *args, **options)
    assert not (home / "results").exists()


@pytest.mark.parametrize(
    ("name", "meant"),
    {
        "prices": "did you mean costs?",
        "random_state": "did you mean seeds?",
        "weights": "did you mean sample_weight?",
        "sample_weights": "did you mean sample_weight",
        "budget": "result.best(60)",
    }.items(),
)
def test_an_unknown_argument_names_the_one_that_was_meant(name, meant):
    refused(f"unknown argument '{name}'|{meant}", run, X, Y, **{name: 1})


def test_a_price_of_no_column_is_warned_of(home):
    with pytest.warns(UserWarning, match=r"price not used: ab \(did you mean b\?\)"):
        plan(FRAME, Y, costs={"a": 1, "b": 2, "c": 3, "ab": 3})


def test_a_request_is_refused_in_the_words_of_python(home):
    from bench_core.api import RunRequest

    request = RunRequest(data=("nowhere",))
    refused("data='nowhere': unknown", bench_core.run, request=request, progress=False)


@pytest.mark.parametrize(
    ("given", "text"), [([["a", "b"]], "a,b"), ([("a", "b:5")], "a,b:5"), ("a,b:5", "a,b:5")]
)
def test_a_list_of_columns_is_a_group_of_a_run(given, text):
    asked = request_of({"groups": given}, FRAME, Y)
    assert asked.groups == (text,)
    assert sorted(asked.data[0].splits[0].prices.sensor) == [1, 5 if ":" in text else 1]
    assert request_of({"groups": given, "data": "a.csv"}).groups == (text,)


@pytest.mark.parametrize("alone", ["a", ["a", "b"], [["a"], "b,c"]])
def test_a_group_of_one_column_is_refused(alone):
    refused("'a' is one column|groups=[['a', 'b']]", request_of, {"groups": alone}, FRAME, Y)


PRICED = pd.DataFrame({"test": ["b", "c", "a"], "fee": [5.0, 2.5, 11.0]})
AS_COSTS = {
    "mapping": {"b": 5, "c": np.float32(2.5), "a": 11},
    "content of a file": {"costs": PRICED, "tree": 0.5},
    "series": PRICED.set_index("test")["fee"],
    "series in a mapping": {"costs": PRICED.set_index("test")["fee"], "unit": "cost"},
    "series in order": pd.Series([11, 5, 2.5]),
    "series of numbers": pd.Series([5, 2.5, 11], index=[1, 2, 0]),
    "frame": PRICED,
    "frame with its old index": PRICED.sort_values("fee").reset_index(),
    "frame with an index of names": PRICED.set_index("test"),
    "frame of one row": pd.DataFrame([[5, 2.5, 11]], columns=["b", "c", "a"]),
    "frame of texts": PRICED.assign(fee=["5,00 €", "2,50 €", "11,00 €"]),
    "records": PRICED.to_dict("records"),
    "columns": PRICED.to_dict("list"),
    "arrays of columns": {"test": PRICED["test"].to_numpy(), "fee": PRICED["fee"].to_numpy()},
    "pairs": [("b", 5), ("c", 2.5), ("a", 11)],
    "array of pairs": PRICED.to_numpy(),
    "list": [11, 5, 2.5],
    "array": np.array([[11], [5], [2.5]]),
    "numbers from 0": {0: 11, 1: 5, 2: 2.5},
    "numbers from 1": {1: 11, 2: 5, 3: 2.5},
    "polars": pl.DataFrame(PRICED.to_dict("list")),
    "polars series": pl.Series([11.0, 5.0, 2.5]),
    "lazy frame": pl.LazyFrame(PRICED.to_dict("list")),
    "frame with notes": PRICED.set_index("test").assign(by="x"),
    "model": SensorPrices.additive(np.array([11.0, 5.0, 2.5])),
    "arrow": pa.table(PRICED.to_dict("list")),
}


@pytest.mark.parametrize("form", AS_COSTS)
def test_costs_go_by_name_in_every_form(form):
    priced = with_costs(array_splits(FRAME, Y), costs_of(AS_COSTS[form]))
    assert priced.prices.feature_price().tolist() == [11, 5, 2.5]


@pytest.mark.parametrize("form", ["series in order", "list", "numbers from 0", "numbers from 1"])
def test_costs_of_arrays_go_by_number(form):
    priced = with_costs(array_splits(FRAME.to_numpy(), Y), costs_of(AS_COSTS[form]))
    assert priced.prices.feature_price().tolist() == [11, 5, 2.5]


@pytest.mark.parametrize(
    ("costs", "line"),
    [
        ({"a": 1, "b": None, "c": 3}, "costs: feature 'b' has no price; write one"),
        ({"a": 1, "b": {"fee": 2}, "c": 3}, "feature 'b' costs {'fee': 2}, not a number"),
        ({"test": ["a", "b"], "fee": [1]}, "costs: test and fee differ in length; complete them"),
        (PRICED.iloc[:0], "costs: no costs in this file"),
        (PRICED.assign(days=7), "'Betrag' or 'days'|title price"),
    ],
)
def test_costs_that_are_not_clear_are_refused(costs, line):
    frame = costs.rename(columns={"fee": "Betrag"}) if isinstance(costs, pd.DataFrame) else costs
    refused(line, lambda: with_costs(array_splits(FRAME, Y), costs_of(frame)))
