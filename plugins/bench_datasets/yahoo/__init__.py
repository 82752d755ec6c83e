"""Yahoo's learning-to-rank set 1 (Webscope C14B), 700 columns of which 519 have a price.

The files lie behind Yahoo's licence. The feature costs (700 lines, 10000 = not part of set 1) are
read from the data folder, or fetched once from their authors' repository (MIT). A split costs
1/4 and a tree nothing, so that a tree of depth 4 costs 1.

``yahoo-subset`` has the sizes of a smaller problem in the papers on Greedy Miser (ICML 2012, after
Cronus, AISTATS 2012) and ADAPT (NIPS 2017): 141397, 146769 and 184968 rows, which add up to the
473134 of set 1's training split. So it is that split in three; which documents went where is not
in them. Our choice: whole queries in the order of the file, cut where a query ends next to these
sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import numpy as np

from bench_core import (
    Dataset,
    Download,
    Examples,
    Facts,
    InputError,
    Prices,
    Source,
    Splits,
    Task,
    hookimpl,
    read_costs,
)
from bench_core.arrays import FloatArray, IntArray
from bench_core.datasets.publishers.download import fetch
from bench_core.datasets.readers.svmlight import first_queries, read_svmlight, some_queries
from bench_datasets.yahoo._labels import Judgement
from bench_datasets.yahoo.sim import ROWS, YahooSim, YahooSimB

COLUMNS = 700
UNUSED = 10000
SUBSET = (141397, 146769, 184968)
RECIPE = (
    "subset: which documents the papers put into which part is not published; here whole queries "
    "in file order, cut next to their sizes"
)
SPLIT_FILES = ("set1.train.txt", "set1.valid.txt", "set1.test.txt")
COST_FILE = "yahoo_feature_cost.txt"
COST = Download(
    "https://raw.githubusercontent.com/rmit-ir/joint-cascade-ranking/"
    "a28cf484a44868a2fd5e76af4f76ca1b611ad06d/exp/yahoo/feature_cost.txt",
    COST_FILE,
    sha256="dc6cc6cf0d065c576d12fd9a079ccca691a4fc69c3a86f8c203742bca423d2bc",
)


@dataclass(frozen=True)
class Yahoo(Judgement):
    """Yahoo LTR set 1."""

    name: ClassVar[str] = "yahoo"
    task: ClassVar[Task] = Task.RANKING
    title: ClassVar[str] = "Yahoo learning-to-rank set 1 (519 priced features)"
    files: ClassVar[tuple[str, ...]] = (*SPLIT_FILES, COST_FILE)
    depends_on: ClassVar[tuple[str, ...]] = ("size",)
    homepage: ClassVar[str] = "Yahoo's Webscope, set C14B (a licence)"
    sums: ClassVar[Mapping[str, str]] = {COST_FILE: COST.sha256}
    facts: ClassVar[Facts] = Facts(rows=ROWS["paper"], features=519, low=0.0, high=1.0)

    def complete(self, source: Source) -> bool:
        """The costs are fetched when they are wanted."""
        return all(source.has(name) for name in self.files[:-1])

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Read the publisher's splits; ``quick`` and ``standard`` take the first queries."""
        paths = [source.find(name) for name in self.files[:-1]]
        cost = yahoo_costs(source)
        used = np.flatnonzero(cost < UNUSED)
        notes, splits = [], []
        for split, (part, origin) in enumerate(self._parts(paths, used)):
            rows = len(part) if size == "paper" else ROWS[size][split]
            if len(part) > rows:
                taken = first_queries(part, rows)
                notes.append(f"sample: the first {len(taken)} of {len(part)} rows of {origin}")
                part = taken
            splits.append(self.judged(part, split))
        train, valid, test = splits
        return Splits(
            train, valid, test,
            prices=Prices.additive(cost[used], split=self.split, unit="feature evaluations"),
            task=Task.RANKING,
            feature_names=tuple(str(j + 1) for j in used),
            notes=tuple(notes),
        )  # fmt: skip

    def _parts(self, paths: Sequence[Path], used: IntArray) -> Iterator[tuple[Examples, str]]:
        """Train, valid and test as they are published, with their origin in words."""
        return ((_examples(path, used), path.name) for path in paths)


@dataclass(frozen=True)
class YahooSubset(Yahoo):
    """Set 1's training split in three, of the sizes that several papers give."""

    name: ClassVar[str] = "yahoo-subset"
    title: ClassVar[str] = "Yahoo set 1, its training split in three (519 priced features)"
    files: ClassVar[tuple[str, ...]] = (SPLIT_FILES[0], COST_FILE)
    home: ClassVar[str] = Yahoo.name
    facts: ClassVar[Facts] = Facts(rows=(sum(SUBSET),), features=519, low=0.0, high=1.0)

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """The training split in three; ``quick`` and ``standard`` take their first queries."""
        splits = super().prepare(source, size, fold, seed)
        return replace(splits, notes=(RECIPE, *splits.notes))

    def _parts(self, paths: Sequence[Path], used: IntArray) -> Iterator[tuple[Examples, str]]:
        path, whole = paths[0], _examples(paths[0], used)
        if len(whole) != sum(SUBSET):
            raise InputError(
                f"{path}: {len(whole)} rows instead of {sum(SUBSET)}; get the publisher's file"
            )
        assert whole.queries is not None
        ends = whole.queries.boundaries
        cuts = [int(np.abs(ends - end).argmin()) for end in np.cumsum([0, *SUBSET])]
        for part, (first, last) in zip(("train", "valid", "test"), pairwise(cuts), strict=True):
            yield some_queries(whole, first, last), f"the {part} part of {path.name}"


def _examples(path: Path, used: IntArray) -> Examples:
    rows = read_svmlight(path, features=COLUMNS, columns=used)
    if rows.queries is None:
        raise InputError(f"{path}, line 1: no qid; get the publisher's file")
    return rows.examples()


def yahoo_costs(source: Source) -> FloatArray:
    """The 700 costs, from the data folder or fetched into it."""
    path = source.find(COST_FILE) if source.has(COST_FILE) else fetch(COST, source.folder)
    return read_costs(path, features=COLUMNS).sensor


@hookimpl
def bench_datasets() -> Sequence[type[Dataset]]:
    """The data set, its part, and its generated stand-ins."""
    return [Yahoo, YahooSubset, YahooSim, YahooSimB]
