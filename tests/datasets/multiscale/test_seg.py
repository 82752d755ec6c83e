"""The SEG measure beside masks judged by hand and a flood fill over sets of pixels."""

import numpy as np
import pytest
from bench_datasets.multiscale.seg import Seg, jaccards, pictures
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bench_core import Examples, InputError, Queries

masks = st.tuples(st.integers(1, 9), st.integers(1, 9)).flatmap(
    lambda shape: st.tuples(arrays(bool, shape), arrays(bool, shape))
)


def picture(text):
    return np.array([[c == "#" for c in line.strip()] for line in text.strip().splitlines()])


def flooded(mask):
    """Objects as sets of pixels, in the order in which lines meet them."""
    left = {(int(i), int(j)) for i, j in np.argwhere(mask)}
    found = []
    for start in sorted(left):
        if start not in left:
            continue
        left.discard(start)
        one, border = {start}, [start]
        while border:
            i, j = border.pop()
            near = {(i + a, j + b) for a in (-1, 0, 1) for b in (-1, 0, 1)} & left
            left -= near
            one |= near
            border += near
        found.append(one)
    return found


def by_sets(called, truth):
    scores = []
    for reference in flooded(truth):
        matches = [s for s in flooded(called) if len(reference & s) > len(reference) / 2]
        assert len(matches) <= 1
        scores += [len(reference & s) / len(reference | s) for s in matches] or [0.0]
    return scores


def judge(called, truth):
    shape = truth.shape
    frames = Queries(np.array([0, truth.size]), np.array([shape[1]]))
    scores = np.where(called, 0.5, -0.5).reshape(-1)
    return Seg().values(scores, truth.reshape(-1).astype(float), frames)


TRUTH = picture("""
    ##......
    ##..###.
    ....###.
    #.......
    #....#..
""")


@pytest.mark.parametrize(
    ("called", "scores"),
    [
        (TRUTH, [1, 1, 1, 1]),
        (np.zeros_like(TRUTH), [0, 0, 0, 0]),
        (np.ones_like(TRUTH), [4 / 40, 6 / 40, 2 / 40, 1 / 40]),
        # half of an object is not more than half; 4 of 6 and one beside them; a stray object
        (
            picture("""
                #......#
                #...##..
                ....##..
                #...#...
                #.......
            """),
            [0, 4 / 7, 1, 0],
        ),
    ],
)
def test_scores_are_those_found_by_hand(called, scores):
    assert jaccards(called, TRUTH).tolist() == pytest.approx(scores)
    assert judge(called, TRUTH).mean == pytest.approx(np.mean(scores))


def test_a_score_that_is_no_number_is_refused():
    frames = Queries(np.array([0, 4]), np.array([2]))
    with pytest.raises(InputError, match="seg: the score of row 1"):
        Seg().values(np.array([1.0, np.nan, -1.0, -1.0]), np.array([1.0, 1.0, 0.0, 0.0]), frames)


@given(masks)
def test_scores_agree_with_sets_of_flooded_pixels(pair):
    called, truth = pair
    assert sorted(jaccards(called, truth)) == pytest.approx(sorted(by_sets(called, truth)))


def test_the_mean_is_over_the_objects_of_all_frames():
    """Frames of other shapes: one of two objects found whole, one object not found, none there."""
    frames = Queries(np.array([0, 6, 10, 12]), np.array([3, 2, 1]))
    y = np.array([1, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0], dtype=float)
    scores = np.array([1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 1, 0], dtype=float)
    found = Seg().values(scores, y, frames)
    assert found.values.tolist() == [0.5, 0.0, 0.0]
    assert found.weights.tolist() == [2.0, 1.0, 0.0]
    assert found.mean == pytest.approx(1 / 3)


def test_the_pixels_of_a_frame_are_its_lines():
    frames = Queries(np.array([0, 6, 10]), np.array([3, 2]))
    images = [image.tolist() for image in pictures(frames, np.arange(10))]
    assert images == [[[0, 1, 2], [3, 4, 5]], [[6, 7], [8, 9]]]


@pytest.mark.parametrize(
    ("groups", "fault"),
    [
        (None, "pixels of frames"),
        (Queries(np.array([0, 4])), "pixels of frames"),
        (Queries(np.array([0, 4]), np.array([3])), "widths"),
        (Queries(np.array([0, 4]), np.array([0])), "widths"),
    ],
)
def test_rows_that_are_no_pictures_are_refused(groups, fault):
    with pytest.raises(InputError, match=fault):
        Seg().values(np.ones(4), np.ones(4), groups)
    examples = Examples(np.ones((4, 1), np.float32), np.ones(4), groups=groups)
    assert fault in Seg().unsuitable(examples)
