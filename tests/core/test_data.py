import numpy as np
import pytest
from helpers.kit import refused

from bench_core import Examples, Features, Queries, find_class, remember_class
from bench_core.datasets.user_files import FileData
from bench_core.errors import one_line


def test_features_hold_no_labels_and_no_multiplicity():
    rows = Examples(np.zeros((2, 3), np.float32), np.array([0.0, 1.0]), None, np.array([1, 10]))
    assert set(Features.__dataclass_fields__) == {"X", "queries", "prices"}
    assert not isinstance(rows, Features)
    assert rows.features.X is rows.X
    assert rows.features.prices is None


def test_queries_from_sizes_cover_their_rows():
    queries = Queries.from_sizes(np.array([2, 1, 3]))
    assert queries.boundaries.tolist() == [0, 2, 3, 6]
    assert queries.index().tolist() == [0, 0, 1, 2, 2, 2]
    assert queries.select(1, 3).boundaries.tolist() == [0, 1, 4]


def test_queries_from_ids_are_consecutive_rows_of_equal_ids():
    assert Queries.from_ids(["q9", "q9", "q2"]).boundaries.tolist() == [0, 2, 3]
    assert Queries.from_ids([]).boundaries.tolist() == [0]
    with pytest.raises(ValueError, match="rows of a query are apart; sort the rows by query"):
        Queries.from_ids([1, 2, 1])


@pytest.mark.parametrize("bad", [[1, 2], [0, 2, 2], [0, 3, 1], []])
def test_boundaries_that_do_not_rise_from_zero_are_refused(bad):
    refused("rise strictly", Queries, np.array(bad, dtype=np.int64), error=ValueError)


def test_arrays_of_different_lengths_are_refused():
    refused("y (n,)", Examples, np.zeros((3, 1), np.float32), np.zeros(2), error=ValueError)
    with pytest.raises(ValueError, match="queries cover 2 rows of 3"):
        Examples(np.zeros((3, 1), np.float32), np.zeros(3), Queries(np.array([0, 2])))


def test_without_multiplicity_every_row_weighs_one():
    assert Examples(np.zeros((2, 1), np.float32), np.zeros(2)).weights.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("tags", [[4], [3, 2, 1], [[3], [2]]])
def test_there_is_a_tag_of_every_query(tags):
    refused("tags must be (2,)", Queries, np.array([0, 6, 10]), np.array(tags), error=ValueError)


def test_selected_queries_keep_their_tags():
    some = Queries(np.array([0, 6, 10, 11]), np.array([3, 2, 7])).select(1, 3)
    assert some.boundaries.tolist() == [0, 4, 5]
    assert some.tags.tolist() == [2, 7]
    assert Queries(np.array([0, 6, 10])).select(1, 2).tags is None


def test_models_do_not_see_the_groups_that_metrics_see():
    groups = Queries(np.array([0, 2]), np.array([2]))
    rows = Examples(np.zeros((2, 1), np.float32), np.zeros(2), groups=groups)
    assert rows.features.queries is None
    assert rows.units is groups
    queries = Queries(np.array([0, 2]))
    assert Examples(rows.X, rows.y, queries).units is queries
    for wrong in ({"queries": queries, "groups": groups}, {"groups": Queries(np.array([0, 3]))}):
        refused("groups cover", Examples, rows.X, rows.y, **wrong, error=ValueError)


def test_a_class_is_found_again_by_its_name():
    found = find_class("bench_models.path_of_models:PathOfModels")
    assert found.__name__ == "PathOfModels"
    assert remember_class(found) == "bench_models.path_of_models:PathOfModels"


def test_a_class_that_no_import_finds_is_kept_for_this_process():
    class Here:
        pass

    assert find_class(remember_class(Here)) is Here


@pytest.mark.parametrize("spelling", ["not_there:Model", "math:Model", "math:pi"])
def test_one_that_is_not_there_is_a_line_with_the_remedy(spelling):
    refused(f"{spelling}:|; install its plugin, or name its module", find_class, spelling)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("class ±1 – 雪", "class ±1 – 雪"),
        ("one\n two\tthree\r\n", "one two three"),
        ("\x1b]0;owned\x07\x1b[2Jyes", r"\x1b]0;owned\x07\x1b[2Jyes"),
        ("right\u202eleft", r"right\u202eleft"),
        ("caf\udce9.csv", r"caf\udce9.csv"),
    ],
)
def test_what_could_act_on_a_terminal_is_shown_escaped(text, line):
    assert one_line(text) == line


def test_a_line_is_cut_to_a_length():
    assert one_line("abcdef", 4) == "abc…"
    assert one_line("abcd", 4) == "abcd"


def test_a_file_whose_name_is_no_text_has_a_name_that_can_be_written():
    data = FileData("some/caf\udce9.csv", test="te\x1bst.csv")
    assert data.name.encode() == rb"caf\udce9.csv"
    assert data.title.encode() == rb"caf\udce9.csv, te\x1bst.csv"
