"""Looks of learners."""

from itertools import combinations

import numpy as np
import pytest
from bench_reports.palette import COLOURS, DASHES, MARKS, css, look

from bench_core.planning.resolve_learners import FIRST
from bench_core.planning.suites import find_suite
from bench_core.plugins import load_registry

REGISTRY = load_registry()


def oklab(colour):
    """By Ottosson (2020), "A perceptual color space for image processing"."""
    rgb = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    rgb = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    lms = rgb @ np.array(
        [
            [0.4122214708, 0.2119034982, 0.0883024619],
            [0.5363325363, 0.6806995451, 0.2817188376],
            [0.0514459929, 0.1073969566, 0.6299787005],
        ]
    )
    return np.cbrt(lms) @ np.array(
        [
            [0.2104542553, 1.9779984951, 0.0259040371],
            [0.7936177850, -2.4285922050, 0.7827717662],
            [-0.0040720468, 0.4505937099, -0.8086757660],
        ]
    )


@pytest.mark.parametrize(("ground", "least"), [(0, 0.1), (1, 0.09)])
def test_any_two_colours_are_told_apart(ground, least):
    found = [oklab(pair[ground]) for pair in COLOURS]
    assert min(np.linalg.norm(a - b) for a, b in combinations(found, 2)) > least
    assert f"--c15: light-dark({COLOURS[15][0]}, {COLOURS[15][1]});" in css()


def test_the_look_of_an_unknown_learner_is_of_its_name_alone():
    looks = {look(f"learner-{k}") for k in range(2000)}
    own = {look(name).colour for name in ("gbrt", "miser", "cegb", "budget-boosting")}
    assert {one.colour for one in looks} == set(range(len(COLOURS))) - own
    assert {one.dash for one in looks} == set(
        range(1, len(DASHES))
    )  # solid lines are of known names
    assert {one.mark for one in looks} == set(range(len(MARKS)))


def methods(suite):
    made = find_suite(suite, REGISTRY)
    names = dict.fromkeys([*made.learners, made.reference])
    return [look(name) for name in names if name and name not in made.baselines]


@pytest.mark.parametrize("suite", sorted(REGISTRY.suite_files))
def test_no_two_learners_of_a_shipped_suite_look_alike(suite):
    found = methods(suite)
    assert len({(one.colour, one.dash) for one in found}) == len(found)


@pytest.mark.parametrize("suite", ["quickstart", "all-real", "cegb", "miser-yahoo"])
def test_learners_that_often_share_a_board_have_colours_of_their_own(suite):
    found = methods(suite)
    assert len({one.colour for one in found}) == len(found)
    first = {look(name).colour for name in FIRST}
    assert len(first) == len(FIRST)


@pytest.mark.parametrize("ground", [0, 1])
def test_the_learners_to_start_with_and_an_imported_model_are_far_apart(ground):
    names = [name for name in ("imported", *FIRST) if name != "greedy-order"]  # that is grey
    found = [oklab(COLOURS[look(name).colour][ground]) for name in names]
    assert min(np.linalg.norm(a - b) for a, b in combinations(found, 2)) > 0.125


def test_baselines_differ_by_dash_and_mark():
    names = ("constant", "random-order", "cheapest-first", "greedy-order")
    assert len({look(name).dash for name in names}) == 4
    assert len({look(name).mark for name in names}) == 4
