"""How long a plan may take, from what was recorded."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_core.arrays import FloatArray
from bench_core.planning.foresight import Durations, foresee
from bench_core.planning.job_seconds import (
    PROBE,
    Kind,
    Machine,
    Size,
    in_table,
    job_seconds,
    job_units,
    machine_now,
    probe_seconds,
    size_of,
)
from bench_core.planning.job_seconds import _table as read_table
from bench_core.plugins import load_registry
from bench_core.results.records import FitSpec


def fits(number: int, learner: str = "one", dataset: str = "cars") -> list[FitSpec]:
    return [
        FitSpec(f"{learner}{i}", "", {}, learner, dataset, "", "mse", 0, "") for i in range(number)
    ]


SIZES = {"cars": Size(10, 10, 10, 200), "boats": Size(10_000, 10, 10, 60_000)}
ONE = Kind("cars", "one")
KNOWN = Durations({ONE: [(10.0, 1.0, 100.0)] * 5}, SIZES)


def test_the_work_is_shared_by_the_workers_and_no_shorter_than_its_longest_job() -> None:
    one, four, many = (foresee(KNOWN, fits(8), workers, 2) for workers in (1, 4, 50))
    assert one.wall[0] == pytest.approx(83, rel=0.05)
    assert four.wall[0] == pytest.approx(23, rel=0.05)
    assert many.wall[0] == pytest.approx(13, rel=0.05)
    assert {seen.core[0] for seen in (one, four, many)} == {one.core[0]}
    assert one.core[0] == pytest.approx(160, rel=0.05)  # two threads each
    assert (one.memory[0], four.memory[0]) == pytest.approx((100, 400))
    assert (one.jobs, one.recorded) == (8, 8)


def test_what_was_recorded_elsewhere_is_scaled_by_size_and_trusted_less() -> None:
    near, far = foresee(KNOWN, fits(4), 1, 1), foresee(KNOWN, fits(4, dataset="boats"), 1, 1)
    other = foresee(KNOWN, fits(4, learner="two"), 1, 1)
    assert far.core[0] / near.core[0] == pytest.approx(5.0, rel=0.15)  # 2e5 + 7.9e5 over 2e5
    spread = [seen.core[1] / seen.core[0] for seen in (near, far, other)]
    assert spread == sorted(spread)
    assert spread[0] < 1.3 < 1.6 < spread[1]
    assert (far.recorded, other.recorded) == (0, 0)


def test_without_any_record_a_job_takes_what_the_table_says_on_a_machine_of_this_speed() -> None:
    for learner in ("gbrt", "nobody"):
        guess = foresee(Durations({}, SIZES), fits(3, learner), 1, 1)
        slow = foresee(Durations({}, SIZES, Machine(slowness=3.0)), fits(3, learner), 1, 1)
        assert 0 < guess.core[0] < guess.core[1]
        assert slow.core == pytest.approx([3 * seconds for seconds in guess.core])
    assert foresee(KNOWN, [], 2, 1).wall == (0, 0)


def test_the_table_is_scaled_by_what_other_learners_took_here() -> None:
    alone = job_seconds(Kind("cars", "gbrt"), SIZES["cars"])
    known = Durations({Kind("cars", "gbrt"): [tuple(3 * alone)]}, SIZES)
    boats = Kind("boats", "miser")
    assert known.of(boats)[0] == pytest.approx(3 * job_seconds(boats, SIZES["boats"])[None])


def test_a_job_that_was_measured_takes_what_it_took_and_others_of_its_kind_in_proportion(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cars, boats = Size(1000, 30, 1, 6000), Size(4000, 30, 1, 6000)
    units = [job_units(Kind("cars", "one"), size)[0] for size in (cars, boats)]
    table = tmp_path / "table.csv"
    lines = ["job,learner,data set,units,seconds"]
    lines += [f"fit,one,cars,{units[0]},3", f"fit,one,cars,{units[1]},30", "trial,one,cars,1e4,2"]
    lines += ["fit,two,cars,1e6,1", "fit,two,boats,1e6,4", "fit,three,cars,1e6,9"]
    table.write_text("\n".join(lines) + "\n")
    monkeypatch.setattr("bench_core.planning.job_seconds.TABLE", table)
    monkeypatch.setattr("bench_core.planning.job_seconds._table", read_table.__wrapped__)

    def fit(dataset: str, learner: str, size: Size = cars) -> float:
        return float(job_seconds(Kind(dataset, learner), size)[0])

    assert (fit("cars", "one"), fit("cars", "one", boats)) == pytest.approx((3, 30))
    assert job_seconds(Kind("cars", "one"), cars)[1] == pytest.approx(2)
    nearest = job_units(ONE, Size(4500, 30))[0] / units[1] * 30
    assert fit("cars", "one", Size(4500, 30)) == pytest.approx(nearest)
    assert fit("planes", "two") == pytest.approx(2e-6 * units[0])  # the mean of 1 and 4
    rates = [(3 / units[0] * 30 / units[1]) ** 0.5, 2e-6, 9e-6]
    assert fit("cars", "nobody") == pytest.approx(np.median(rates) * units[0])
    assert in_table(Kind("cars", "one")) == (True, True)
    assert in_table(Kind("planes", "two")) == (True, False)
    assert in_table(Kind("cars", "nobody")) == (False, False)


def test_what_is_in_the_table_of_a_data_set_is_trusted_more_and_no_machine_wholly() -> None:
    sizes = {"letters": Size(12_000, 16, 1, 8000), "planes": Size(12_000, 16, 1, 8000)}
    ratios = [
        np.divide(*foresee(Durations({}, sizes), fits(3, *of), 1, 1).core[::-1])
        for of in (("gbrt", "letters"), ("gbrt", "planes"), ("nobody", "planes"))
    ]
    assert 1.3 < ratios[0] < 1.6 < ratios[1] < 2.5 < ratios[2]
    many = [fit for i in range(50) for fit in fits(1, f"learner{i}", "planes")]
    half, most = foresee(Durations({}, sizes), many, 1, 1).core
    assert most / half > 1.25  # what a probe does not tell concerns all jobs


def test_the_table_has_every_learner_that_fits_without_a_file() -> None:
    learners = load_registry(()).learners
    missing = {name for name in learners if not in_table(Kind("", name))[0]}
    assert missing == {"imported"}


def test_more_rows_features_classes_and_trees_take_longer() -> None:
    def seconds(trees: Any = 100, **more: int) -> FloatArray:
        rows = {"train": more.get("train", 500), "valid": more.get("judged", 50), "test": 50}
        size = size_of(more.get("features", 10), more.get("classes", 2), rows)
        return job_seconds(Kind.of("cars", "gbrt", {"trees": trees}), size)

    least = seconds()
    assert (seconds(classes=0) == least).all()
    for larger in (
        seconds(trees=500),
        seconds(train=5000),
        seconds(features=100),
        seconds(classes=9),
    ):
        assert larger[0] > 1.01 * least[0]
        assert larger[1] == least[1]
    assert seconds(judged=500)[1] > 1.01 * least[1]
    for trees in ("many", 0, None):  # whatever a learner calls so
        assert (seconds(trees) == least).all()


def test_trees_of_the_base_count_and_values_that_are_tried_one_by_one() -> None:
    def effort(**params: Any) -> float:
        return Kind.of("cars", "cstc", params).effort

    planned = {"class": "a:B", "fields": {"trees": 300}}
    stored = {"learner": "gbrt", "trees": 300}
    assert effort(base=planned) == effort(base=stored) == effort(trees=300) > 2
    assert effort(trees=100, base=stored) == 1
    assert effort(base=None, limits=[]) == effort() == 1
    assert effort(first=[1, 2, 3, 4], last=(1, 2)) == pytest.approx(8**0.5)


def test_features_do_not_matter_to_what_works_on_the_trees_of_a_base() -> None:
    def fit(features: int, **params: Any) -> float:
        kind = Kind.of("cars", "cstc", params)
        return float(job_seconds(kind, Size(10_000, features))[0])

    assert fit(500, base={"learner": "gbrt"}) == fit(5, base={"learner": "gbrt"})
    assert fit(5, base=None) < fit(500, base=None) < 100 * fit(5, base=None)


def test_other_load_and_what_is_not_compiled_yet_take_time_but_not_of_the_jobs() -> None:
    idle = foresee(KNOWN, fits(4), 2, 1)
    now = foresee(replace(KNOWN, machine=Machine(1.0, 3.0, 20.0)), fits(4), 2, 1)
    assert now.wall == pytest.approx([3 * (seconds + 20) for seconds in idle.wall])
    assert now.core == pytest.approx([seconds + 20 for seconds in idle.core])


def test_peaks_of_memory_that_were_not_recorded_differ_among_learners() -> None:
    some = [fit for i in range(20) for fit in fits(1, f"learner{i}")]
    one, many = (foresee(Durations({}, SIZES), jobs, 2, 1).memory for jobs in (some[:1], some))
    assert 450 < one[0] < 550 < one[1] < many[0] < many[1] < 1400


def test_what_uses_the_planning_machine_delays_nothing_elsewhere() -> None:
    idle = foresee(KNOWN, fits(4), 2, 1)
    busy = foresee(replace(KNOWN, machine=Machine(1.0, 3.0)), fits(4), 2, 1)
    assert busy.elsewhere.wall == pytest.approx(idle.wall)
    assert replace(busy.elsewhere, wall=idle.wall) == idle


@pytest.mark.parametrize(
    ("load", "waited", "running", "threads", "stretch"),
    [
        (0.0, 0.01, 0.0, 2, 1),  # idle
        (4.0, 0.0, inf, 2, 3),  # where the system does not say how long processes wait
        (1.0, 0.0, inf, 1, 1),
        (4.0, 2.0, 4.2, 2, 3),  # one processor's worth for 5 threads on 2: 2.5 times as long
        (9.0, 1.0, 9.0, 2, 2.5),  # most of the 9 stand back
        (1.8, 0.01, 0.0, 2, 1),  # what the load is of has ended
    ],
)
def test_contention_is_of_those_that_want_a_processor_over_the_cores(
    load: float,
    waited: float,
    running: float,
    threads: int,
    stretch: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where = "bench_core.planning.job_seconds"
    monkeypatch.setattr(f"{where}.available_cores", lambda: 2)
    monkeypatch.setattr(f"{where}.waited_seconds", lambda _: waited)
    monkeypatch.setattr(f"{where}.running_elsewhere", lambda: running)
    monkeypatch.setattr(f"{where}._slowness", lambda: 3.0)
    monkeypatch.setattr("time.process_time", lambda: 1.0)
    monkeypatch.setattr("os.getloadavg", lambda: (load, 0.0, 0.0), raising=False)
    machine = machine_now(threads)
    assert (machine.slowness, machine.contention) == pytest.approx((3, stretch))


def test_a_coarse_clock_makes_no_machine_infinitely_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.process_time", lambda: 1.0)
    assert probe_seconds() == PROBE


def test_p90_holds_nine_totals_in_ten_of_durations_drawn_like_those_recorded() -> None:
    rng = np.random.default_rng(1)
    recorded = rng.lognormal(0, 0.5, (40, 3))
    durations = Durations({ONE: [tuple(map(float, row)) for row in recorded]}, SIZES)
    limit = foresee(durations, fits(30), 1, 1).wall[1]
    totals = rng.lognormal(0, 0.5, (500, 30)).sum(axis=1)
    assert 0.85 <= np.mean(totals <= limit) <= 1
    assert limit <= 1.5 * np.quantile(totals, 0.9)


def test_the_same_plan_has_the_same_answer_and_seconds_by_key() -> None:
    assert foresee(KNOWN, fits(3), 1, 1) == foresee(KNOWN, fits(3), 1, 1)
    assert KNOWN.expected(fits(2)) == pytest.approx({"one0": 10.0, "one1": 10.0})


def test_memory_does_not_grow_with_the_number_of_jobs() -> None:
    left = fits(3000)
    tracemalloc.start()
    try:
        foresee(KNOWN, left, 1, 1)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
