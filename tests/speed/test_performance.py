"""The table of docs/reference/measurements.md shows the comparisons with a bar."""

import re

import pytest
from paired import ratio, value
from performance import MOST, printed


def cells(run):
    """The table without blanks that only fill columns."""
    return [re.sub("  +", " | ", line) for line in printed(run)]


@pytest.fixture
def run():
    """Ours takes 1, 2, 3 s where the peer takes 4 s."""
    compared = ratio([1.0, 2.0, 3.0], [4.0, 4.0, 4.0], bar=0.4)
    free = {**compared, "bar": None, "met": None}
    shared = {"work": "sorting", "scale": 1.0, "ratios": {}}
    memory = value(1.5, "GiB", 2)
    sides = [
        {**shared, "side": "ours", "ratios": {"numpy": compared}, "values": {"memory": memory}},
        {**shared, "side": "ours, labels kept", "ratios": {"numpy": free}},
        {**shared, "side": "numpy"},
    ]
    return {"benchmarks": [{"extra_info": side} for side in sides]}


def test_comparisons_with_a_bar_are_the_rows(run):
    assert cells(run) == [
        "work | peer | ours | peer's | ours is (quartiles) | bar",
        "sorting | numpy | 2 s | 4 s | 2x as fast (1.6 to 2.67) | 2.5x as fast, missed",
        "sorting: memory | 1.5 GiB | 2",
    ]


def test_more_time_than_the_peer_is_shown_as_a_multiple_of_its_time(run):
    run["benchmarks"][0]["extra_info"]["ratios"]["numpy"] = ratio([5.0, 6.0, 7.0], [4.0] * 3, bar=2)
    assert cells(run)[1].endswith("| 1.5x the time (1.38 to 1.62) | 2x the time")


def test_figures_of_smaller_data_are_left_out(run):
    for entry in run["benchmarks"]:
        entry["extra_info"]["scale"] = 0.05
    assert len(cells(run)) == 1


def test_more_rows_than_the_table_takes_are_refused(run):
    (entry, *_) = run["benchmarks"]
    run["benchmarks"] = [
        {**entry, "extra_info": {**entry["extra_info"], "work": f"work {k}"}} for k in range(MOST)
    ]
    with pytest.raises(SystemExit, match="60 comparisons have a bar"):
        cells(run)


def test_a_ratio_is_the_median_of_the_rounds_and_not_of_the_sides():
    found = ratio([1.0, 2.0, 9.0], [10.0, 4.0, 30.0], bar=0.25)
    assert found["median"] == 0.3  # the rounds: 0.1, 0.5, 0.3; of the medians: 0.2
    assert (found["q1"], found["q3"]) == pytest.approx((0.2, 0.4))
    assert (found["ours"], found["theirs"], found["met"]) == (2.0, 10.0, False)


def test_of_several_shapes_the_worst_is_shown(run):
    (entry, *_) = run["benchmarks"]
    seconds = {"a tree, 10 x 5": 1.0, "a tree, 20 x 5": 3.0, "a tree, 30 x 5": 2.0}
    run["benchmarks"] = [
        entry | {"extra_info": {**entry["extra_info"], "work": work, "values": {}} | made}
        for work, took in seconds.items()
        for made in [{"ratios": {"numpy": ratio([took], [4.0], bar=0.4)}}]
    ]
    assert cells(run)[1:] == [
        "a tree, 20 x 5, the worst of 3 shapes | numpy | 3 s | 4 s | 1.33x as fast (1.33 to 1.33)"
        " | 2.5x as fast, missed"
    ]
