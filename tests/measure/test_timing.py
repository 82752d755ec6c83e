"""Measuring extractors, under a clock that the extractors themselves move on."""

import gc
import json

import numpy as np
import pytest
from bench_measure import timing
from bench_measure.timing import Extractor, cost_document, measure
from helpers.kit import refused

from bench_core.costs.cost_file import read_costs
from bench_core.errors import InputError


class Clock:
    """CPU seconds, as the extractors say."""

    def __init__(self):
        self.now = 0.0
        self.slower = 0.0  # each second makes all later ones longer by this share

    def process_time(self):
        return self.now

    def spend(self, seconds):
        self.now += seconds * (1 + self.slower * self.now)


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(timing.time, "process_time", made.process_time)
    return made


def costly(clock, cost, result=1.0):
    def extract(item):
        clock.spend(cost(item))
        return result

    return extract


def test_the_median_and_quartiles_over_items_are_told_in_milliseconds(clock):
    seconds = [0.001, 0.002, 0.003, 0.004, 0.010]
    measured = measure([Extractor("e", costly(clock, lambda s: s))], seconds, repeats=3)
    timing = measured.extract["e"]
    found = timing.low, timing.median, timing.high, timing.mean
    assert found == pytest.approx((2, 3, 4, 4))
    assert timing.count == 15


def test_short_calls_are_repeated_until_the_clock_can_tell(clock):
    calls = []

    def quick(item):
        calls.append(item)
        clock.spend(1e-6)
        return 0.0

    measured = measure([Extractor("quick", quick)], ["x"], repeats=1)
    assert measured.extract["quick"].median == pytest.approx(1e-3)
    assert len(calls) > 200  # a timing lasts 0.2 ms at least


def test_a_machine_that_slows_down_favours_none(clock):
    clock.slower = 0.5
    same = {name: costly(clock, lambda item: 0.01) for name in "abcd"}
    measured = measure([Extractor(n, f) for n, f in same.items()], range(10), repeats=10)
    medians = [t.median for t in measured.extract.values()]
    spread = max(t.high - t.low for t in measured.extract.values())
    assert max(medians) - min(medians) < spread / 4


def test_features_are_named_by_what_the_extractors_return():
    extractors = [
        Extractor("number", lambda item: 3),
        Extractor("one", lambda item: [3.0]),
        Extractor("vector", lambda item: np.zeros((2, 2))),
        Extractor("named", lambda item: {"a": 1, "b": float("nan")}),
        Extractor("raw", lambda item: "text", {"length": len}),
    ]
    assert measure(extractors, ["x"], repeats=1).features == {
        "number": ("number",),
        "one": ("one",),
        "vector": ("vector_1", "vector_2", "vector_3", "vector_4"),
        "named": ("a", "b"),
        "raw": ("length",),
    }


def file_of(folder, extractors, repeats=1, **how):
    """The cost file of these extractors, and its document."""
    document = cost_document(measure(extractors, ["x"], repeats=repeats), **how)
    (folder / "costs.json").write_text(json.dumps(document))
    return folder / "costs.json", document


def test_the_cost_file_lets_features_of_one_extractor_share_its_price(clock, tmp_path):
    outputs = {
        "cat": lambda raw: clock.spend(0.001) or 1.0,
        "dog": lambda raw: clock.spend(0.003) or 1.0,
    }
    extractors = [
        Extractor("plain", costly(clock, lambda item: 0.005)),
        Extractor("pair", costly(clock, lambda item: 0.007, [1, 2])),
        Extractor("raw", costly(clock, lambda item: 0.040, "anything"), outputs),
    ]
    path, document = file_of(tmp_path, extractors, repeats=3)
    names = ("plain", "pair_1", "pair_2", "cat", "dog")
    prices = read_costs(path, names)
    expected = {"plain": 5, "pair_1": 7, "pair_1 pair_2": 7, "cat": 41, "dog": 43, "cat dog": 44}
    for wanted, cost in expected.items():
        sensors = {s for n in wanted.split() for s in prices.sensors_of(names.index(n)).tolist()}
        assert prices.sensor[[*sensors]].sum() == pytest.approx(cost), wanted
    assert prices.unit == "CPU ms"
    assert document["measured"]["extractors"]["raw"]["median"] == pytest.approx(40)
    assert document["measured"]["outputs"]["dog"]["quartiles"] == pytest.approx([3, 3])
    assert "cores" in document["measured"]["machine"]


def test_numbered_features_are_those_of_an_svmlight_file(clock, tmp_path):
    extractors = [
        Extractor("a", costly(clock, lambda item: 0.001, [1, 2])),
        Extractor("b", costly(clock, lambda item: 0.002)),
    ]
    path, _ = file_of(tmp_path, extractors, numbered=True)
    assert read_costs(path, features=3).feature_price() == pytest.approx([1, 1, 2])


def failing(item):
    raise RuntimeError("no luck")


@pytest.mark.parametrize(
    ("extract", "outputs", "why"),
    [
        (failing, {}, "'e' failed on here.txt (RuntimeError: no luck"),
        (lambda item: None, {}, "'e' returned nothing"),
        (lambda item: "text", {}, "returned str, not numbers"),
        (lambda item: [], {}, "returned 0 numbers"),
        (lambda item: 1, {"o": lambda raw: [1, 2]}, "output 'o' returned 2 numbers; return one"),
        (lambda item: 1, {"o": failing}, "failed on here.txt"),
        (lambda item: [1] * (1 + len(item)), {}, "9 features for the first item and 10"),
    ],
)
def test_an_extractor_that_does_not_work_is_named(extract, outputs, why):
    extractors, items = [Extractor("e", extract, outputs)], ["here.txt", "there.txt"]
    refused(why, measure, extractors, items, error=InputError)


def test_progress_ends_at_all_timings_and_garbage_is_collected_again():
    heard = []
    extractors = [Extractor(n, lambda item: 1) for n in "ab"]
    measure(extractors, [1, 2, 3], repeats=4, progress=lambda *told: heard.append(told))
    assert [done for done, _ in heard] == list(range(1, 25))
    assert {total for _, total in heard} == {24}
    assert gc.isenabled()
