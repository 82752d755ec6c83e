"""The SEG measure: coverage of the reference objects by segmented objects.

M. Maska et al., "A benchmark for comparison of cell tracking algorithms", Bioinformatics 30 (2014),
as used in section 5.2 of the CEGB paper. A reference object R is matched by the segmented object S
that covers more than half of it, |R and S| > |R| / 2. There is at most one. It scores the Jaccard
index |R and S| / |R or S|, or 0 without a match. SEG is the mean over all reference objects of all
frames. A segmented object without a match costs nothing; accuracy, reported with SEG, counts such
pixels.

Departure: objects are the connected sets of pixels (8 neighbours) of class 1, both in the labels
and in the prediction, not numbered instances. Two objects that touch are one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bench_core import Examples, InputError, MetricValues, Queries, Task
from bench_core.arrays import BoolArray, FloatArray, Int32Array, IntArray


@dataclass(frozen=True, slots=True)
class Seg:
    """Mean Jaccard index of reference objects and the segments that cover over half of them."""

    name: ClassVar[str] = "seg"
    higher_is_better: ClassVar[bool] = True
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY})

    def unsuitable(self, examples: Examples) -> str:
        """Its rows must be pixels of pictures."""
        return _fault(examples.groups)

    def values(
        self,
        scores: FloatArray,
        y: FloatArray,
        queries: Queries | None = None,
        multiplicity: IntArray | None = None,
    ) -> MetricValues:
        """Each frame's mean over its objects, weighted by their number; class 1 is a score > 0.

        Frames without an object are not judged.
        """
        fault = _fault(queries)
        if queries is None or fault:
            raise InputError(f"seg judges pictures: {fault}")
        if multiplicity is not None:
            raise InputError("seg: pixels of a frame have no copies; leave the multiplicity out")
        if (unknown := np.isnan(scores)).any():
            raise InputError(
                f"seg: the score of row {int(unknown.argmax())} (counted from 0) is NaN: a model "
                "must give every row a number"
            )
        count, total = np.zeros(len(queries)), np.zeros(len(queries))
        both = zip(pictures(queries, scores > 0), pictures(queries, y > 0), strict=True)
        for j, (called, truth) in enumerate(both):
            found = jaccards(called, truth)
            count[j], total[j] = len(found), found.sum()
        mean = np.divide(total, count, out=np.zeros_like(total), where=count > 0)
        return MetricValues(mean, count)


def _fault(frames: Queries | None) -> str:
    """Reason why these rows do not form pictures, or ""; drawn pixels have no tags."""
    if frames is None or frames.tags is None:
        return "its rows are not the pixels of frames"
    if (frames.tags < 1).any() or (frames.sizes % frames.tags).any():
        return "the tags of its groups are not the widths of frames"
    return ""


def pictures(frames: Queries, values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield values (n,) by frame as images (height, width). Tags are the widths; pixels are stored
    line by line."""
    assert frames.tags is not None
    for j, width in enumerate(frames.tags.tolist()):
        yield values[frames.boundaries[j] : frames.boundaries[j + 1]].reshape(-1, width)


def jaccards(called: BoolArray, truth: BoolArray) -> FloatArray:
    """The score (r,) of each of the r objects of ``truth``, both (height, width)."""
    reference, size = objects(truth)
    found, area = objects(called)
    inside = reference > 0
    pair, overlap = np.unique(
        reference[inside].astype(np.int64) * len(area) + found[inside], return_counts=True
    )
    r, s = np.divmod(pair, len(area))
    match = (s > 0) & (2 * overlap > size[r])  # more than half of R
    r, s, overlap = r[match], s[match], overlap[match]
    scores = np.zeros(len(size) - 1)
    scores[r - 1] = overlap / (size[r] + area[s] - overlap)
    return scores


def objects(mask: BoolArray) -> tuple[Int32Array, IntArray]:
    """Numbers from 1 of the connected sets of pixels (height, width), 0 elsewhere, and the pixels
    of each number (r + 1,)."""
    from scipy import ndimage

    number, _ = ndimage.label(mask, structure=np.ones((3, 3), dtype=bool))
    return number, np.bincount(number.reshape(-1))
