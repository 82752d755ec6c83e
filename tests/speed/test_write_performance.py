"""The table of docs/reference/measurements.md shows the comparisons with a bar."""

import pytest
from paired import ratio, value
from write_performance import MOST, written

BEFORE = "# Performance\n<!-- speed -->\n| old |\n<!-- end -->\nLast words.\n"


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
    return {
        "datetime": "2026-01-02T03:04:05+00:00",
        "commit_info": {"id": "0123456789", "dirty": False},
        "machine_info": {"machine": "x86_64", "cpu": {"brand_raw": "Some CPU", "count": 2}},
        "benchmarks": [{"group": "sorting", "extra_info": side} for side in sides],
    }


def test_comparisons_with_a_bar_are_the_rows(run):
    text = written(BEFORE, [run])
    assert text.startswith("# Performance\n<!-- speed -->\n| work | peer |")
    assert text.endswith("<!-- end -->\nLast words.\n")
    row = "| sorting | numpy | 2 s | 4 s | 2x as fast (1.6 to 2.67) | 2.5x as fast, **missed** |"
    assert row in text
    assert "| sorting: memory |  | 1.5 GiB |  |  | 2 |\n" in text
    assert "labels kept" not in text
    assert "| old |" not in text
    assert "Measured 2026-01-02 on Some CPU, 2 cores, at 0123456." in text


def with_ours(run, **changes):
    """The run with a change of the figures of our side alone."""
    entry = run["benchmarks"][0]
    return run | {"benchmarks": [{**entry, "extra_info": entry["extra_info"] | changes}]}


def test_more_time_than_the_peer_is_shown_as_a_multiple_of_its_time(run):
    slow = with_ours(run, ratios={"numpy": ratio([5.0, 6.0, 7.0], [4.0] * 3, bar=2)})
    assert "| 1.5x the time (1.38 to 1.62) | 2x the time |" in written(BEFORE, [slow])


def test_figures_of_smaller_data_are_left_out(run):
    assert "sorting" not in written(BEFORE, [with_ours(run, scale=0.05)])


def test_the_later_run_counts_whatever_the_order_of_the_files(run):
    faster = {"numpy": ratio([1.0], [4.0], bar=0.4)}
    later = with_ours(run, ratios=faster) | {"datetime": "2026-03-04T03:04:05+00:00"}
    for runs in ([run, later], [later, run]):
        text = written(BEFORE, runs)
        assert "4x as fast (4 to 4)" in text
        assert "2x as fast (1.6 to 2.67)" not in text


def test_more_rows_than_the_table_takes_are_refused(run):
    made = [with_ours(run, work=f"work {k}") for k in range(MOST)]
    with pytest.raises(SystemExit, match="60 comparisons have a bar"):
        written(BEFORE, made)


def test_a_ratio_is_the_median_of_the_rounds_and_not_of_the_sides():
    found = ratio([1.0, 2.0, 9.0], [10.0, 4.0, 30.0], bar=0.25)
    assert found["median"] == 0.3  # the rounds: 0.1, 0.5, 0.3; of the medians: 0.2
    assert (found["q1"], found["q3"]) == pytest.approx((0.2, 0.4))
    assert (found["ours"], found["theirs"], found["met"]) == (2.0, 10.0, False)


def test_of_several_shapes_the_worst_is_shown(run):
    seconds = {"a tree, 10 x 5": 1.0, "a tree, 20 x 5": 3.0, "a tree, 30 x 5": 2.0}
    ratios = {work: {"numpy": ratio([took], [4.0], bar=0.4)} for work, took in seconds.items()}
    text = written(BEFORE, [with_ours(run, work=w, ratios=r, values={}) for w, r in ratios.items()])
    row = "| a tree, 20 x 5, the worst of 3 shapes | numpy | 3 s | 4 s | 1.33x as fast"
    assert f"{row} (1.33 to 1.33)" in text
    assert "10 x 5" not in text
