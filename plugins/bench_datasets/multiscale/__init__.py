"""``multiscale``: pixels under an image pyramid, where evaluating a split is what costs.

S. Peter, F. Diego, F. Hamprecht, B. Nadler, "Cost efficient gradient boosting", NIPS 2017, section
5.2. Every pixel of a frame is a row: does it belong to an animal? Its features are fast filters on
the frame averaged over blocks of 1, 2, 4 and 8 pixels a side. Filters are computed for whole
frames and cost next to nothing, so features are free. What costs is to evaluate splits: alpha eps_m
each, alpha = 1, where eps_m is small for a coarse feature since all pixels of a block share the
answer. Segmentations are judged by the ``seg`` measure.

The paper's forty frames of flies are not public: generated ones stand in for them (``_drawn``,
``docs/multiscale.md``), or a user's own take their place (``_folder``).

Departures
- eps_m is 1 / (pixels that share the value). The printed formula has their number itself, which
  makes coarse splits the more expensive ones, against the aim: ``eps = "printed"``.
- The paper trains on twenty frames and tests on twenty. Here validation takes four of the first.
- In larger frames a part of the training pixels is drawn; ``pixels`` of each frame.
- The paper does not name its filters; ours are in ``_pyramid``.
- A coarse split is charged its share even where a finer one before it has parted the block.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench_core import Dataset, Metric, hookimpl
from bench_datasets.multiscale.dataset import Multiscale
from bench_datasets.multiscale.seg import Seg


@hookimpl
def bench_datasets() -> Sequence[type[Dataset]]:
    """The data set of this plugin."""
    return [Multiscale]


@hookimpl
def bench_metrics() -> Sequence[Metric]:
    """The measure of its segmentations."""
    return [Seg()]
