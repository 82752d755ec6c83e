"""Yahoo's learning-to-rank set 1 (Webscope C14B), 700 columns, 519 of them with a price; its
stand-in ``yahoo-sim`` (``sim.py``); and options of the papers for its grades.

The files need Yahoo's licence. The feature costs (700 lines, 10000 = not part of set 1) are in the
data folder, or fetched once from their authors' repository (MIT). A split costs 1/4 and a tree
nothing, so a tree of depth 4 costs 1.

``yahoo-subset`` has the sizes of a smaller problem in the papers on Greedy Miser (ICML 2012, after
Cronus, AISTATS 2012) and ADAPT (NIPS 2017): 141397, 146769 and 184968 rows, which add up to the
473134 of set 1's training split. So it is that split in three parts; the papers do not say which
documents are in which part. Our choice: consecutive queries in file order, cut at the query ends
nearest to these sizes.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from bench_core import (
    SAMPLE,
    STAND_IN,
    Download,
    Examples,
    InputError,
    Note,
    Prices,
    Source,
    Splits,
    Task,
    UsageError,
    param,
    provide_datasets,
    read_costs,
)
from bench_core.arrays import FloatArray, IntArray
from bench_core.datasets.publishers import fetch
from bench_core.datasets.readers.svmlight import first_queries, read_svmlight, some_queries
from bench_datasets.yahoo.sim import FEATURES, features, generate

ROWS = {
    "quick": (12000, 4000, 6000),
    "standard": (60000, 15000, 25000),
    "paper": (473134, 71083, 165660),
}
TRAIN, VALID, TEST = range(3)
COLUMNS = 700  # 519 of them with a price
UNUSED = 10000  # the cost of columns that are not part of set 1
SUBSET = (141397, 146769, 184968)
RECIPE = (
    "subset: the papers' parts are not published; here consecutive queries in file order, cut "
    "nearest to their sizes"
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
class Judgement:
    """Binarise grades and give irrelevant documents a multiplicity.

    These have label 0 (grade 0, or below ``relevant``), unless ``copied`` is a grade.
    """

    relevant: int = param(
        0, "0 keeps the grades; g labels a document 1 iff its grade is >= g", least=0, most=4
    )
    copies: int = param(1, "copies that each irrelevant document counts as (papers: 10)", least=1)
    copied: int = param(
        -1, "highest grade that is copied; -1: the documents labelled 0", least=-1, most=3
    )
    copied_in: Literal["all", "test"] = param("all", "splits in which negatives are copied")
    split: float = param(0.25, "price of evaluating one split")

    def judged(self, examples: Examples, split: int) -> Examples:
        """Apply these options to examples with grades 0..4 as labels; ``split`` is 0, 1 or 2."""
        grade = examples.y
        if self.relevant:
            examples = replace(examples, y=(grade >= self.relevant).astype(np.float64))
        if self.copies == 1 or (self.copied_in == "test" and split != TEST):
            return examples
        highest = self.copied if self.copied >= 0 else max(self.relevant - 1, 0)
        multiplicity = np.where(grade <= highest, self.copies, 1).astype(np.int64)
        return replace(examples, multiplicity=multiplicity)


@dataclass(frozen=True)
class Yahoo(Judgement):
    """Yahoo LTR set 1."""

    name: ClassVar[str] = "yahoo"
    task: ClassVar[Task] = Task.RANKING
    title: ClassVar[str] = "Yahoo learning-to-rank set 1 (519 priced features)"
    files: ClassVar[tuple[str, ...]] = (*SPLIT_FILES, COST_FILE)
    depends_on: ClassVar[tuple[str, ...]] = ("size",)
    homepage: ClassVar[str] = "Yahoo's Webscope, set C14B (a licence)"

    def complete(self, source: Source) -> bool:
        """True without the costs, which are fetched when needed."""
        return all(source.has(name) for name in self.files[:-1])

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Read the publisher's splits; ``quick`` and ``standard`` take the first queries."""
        paths = [source.find(name) for name in self.files[:-1]]
        cost = yahoo_costs(source)
        used = np.flatnonzero(cost < UNUSED)
        notes, splits = [], []
        for split, (examples, origin) in enumerate(self._parts(paths, used)):
            rows = len(examples) if size == "paper" else ROWS[size][split]
            if len(examples) > rows:
                taken = first_queries(examples, rows)
                first = f"sample: the first {len(taken)} of {len(examples)} rows of {origin}"
                notes.append(Note(SAMPLE, first))
                examples = taken
            splits.append(self.judged(examples, split))
        train, valid, test = splits
        return Splits(
            train, valid, test,
            prices=Prices.additive(cost[used], split=self.split, unit="feature evaluations"),
            feature_names=tuple(str(j + 1) for j in used),
            notes=tuple(notes),
        )  # fmt: skip

    def _parts(self, paths: Sequence[Path], used: IntArray) -> Iterator[tuple[Examples, str]]:
        """Train, valid and test as published, with their origin in words."""
        return ((_examples(path, used), path.name) for path in paths)


@dataclass(frozen=True)
class YahooSubset(Yahoo):
    """Set 1's training split in three, of the sizes in several papers."""

    name: ClassVar[str] = "yahoo-subset"
    title: ClassVar[str] = "Yahoo set 1, its training split in three (519 priced features)"
    files: ClassVar[tuple[str, ...]] = (SPLIT_FILES[0], COST_FILE)
    home: ClassVar[str] = Yahoo.name

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
    return read_svmlight(path, features=COLUMNS, columns=used).examples()


def yahoo_costs(source: Source) -> FloatArray:
    """The 700 costs, from the data folder or fetched into it."""
    path = source.find(COST_FILE) if source.has(COST_FILE) else fetch(COST, source.folder)
    return read_costs(path, features=COLUMNS).sensor


@dataclass(frozen=True)
class YahooSim(Judgement):
    """The generated stand-in for Yahoo set 1."""

    name: ClassVar[str] = "yahoo-sim"
    task: ClassVar[Task] = Task.RANKING
    title: ClassVar[str] = "Generated stand-in for Yahoo LTR set 1 (519 priced features)"
    stand_in_for: ClassVar[str] = "yahoo"
    depends_on: ClassVar[tuple[str, ...]] = ("size", "seed")
    version: ClassVar[int] = 2

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Generate the three splits at the profile's size; ``fold`` is ignored."""
        if size not in ROWS:
            raise UsageError(f"size {size!r}: yahoo-sim has quick, standard and paper")
        threads = min(4, os.cpu_count() or 1)
        train, valid, test = (
            self.judged(generate(seed, split, rows, threads), split)
            for split, rows in enumerate(ROWS[size])
        )
        cost = features()["price"].to_numpy(dtype=np.float64)
        return Splits(
            train, valid, test,
            prices=Prices.additive(cost, split=self.split, unit="feature evaluations"),
            feature_names=tuple(f"f{j}" for j in range(1, FEATURES + 1)),
            stand_in=True,
            notes=(
                Note(STAND_IN, "generated stand-in for yahoo: use it to check the installation"),
            ),
        )  # fmt: skip


bench_datasets = provide_datasets(Yahoo, YahooSubset, YahooSim)
