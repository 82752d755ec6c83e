"""Yahoo's learning-to-rank set 1 (Webscope C14B), 700 columns of which 519 have a price.

The files lie behind Yahoo's licence. The feature costs (700 lines, 10000 = not part of set 1) are
read from the data folder, or fetched once from their authors' repository (MIT). A split costs
1/4 and a tree nothing, so that a tree of depth 4 costs 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bench_core import (
    Dataset,
    Download,
    Facts,
    InputError,
    Prices,
    Source,
    Splits,
    Task,
    hookimpl,
    param,
)
from bench_core.formats.costfiles import read_costs
from bench_core.formats.download import fetch
from bench_core.formats.svmlight import first_queries, read_svmlight
from bench_plugins.datasets.grades import Judgement
from bench_plugins.datasets.yahoo_sim import ROWS, YahooSim, YahooSimB

COLUMNS = 700
UNUSED = 10000
COST_FILE = "yahoo_feature_cost.txt"
COST = Download(
    "https://raw.githubusercontent.com/rmit-ir/joint-cascade-ranking/"
    "a28cf484a44868a2fd5e76af4f76ca1b611ad06d/exp/yahoo/feature_cost.txt",
    COST_FILE,
    sha256="dc6cc6cf0d065c576d12fd9a079ccca691a4fc69c3a86f8c203742bca423d2bc",
)


@dataclass(frozen=True)
class Yahoo:
    """Yahoo LTR set 1."""

    name: ClassVar[str] = "yahoo"
    task: ClassVar[Task] = Task.RANKING
    title: ClassVar[str] = "Yahoo learning-to-rank set 1 (519 priced features)"
    folds: ClassVar[int] = 1
    files: ClassVar[tuple[str, ...]] = (
        "set1.train.txt",
        "set1.valid.txt",
        "set1.test.txt",
        COST_FILE,
    )
    stand_in_for: ClassVar[str] = ""
    version: ClassVar[int] = 1
    code: ClassVar[tuple[str, ...]] = ("bench_plugins.datasets.grades",)
    depends_on: ClassVar[tuple[str, ...]] = ("size",)
    homepage: ClassVar[str] = "Yahoo's Webscope, set C14B (a licence)"
    sums: ClassVar[Mapping[str, str]] = {COST_FILE: COST.sha256}
    facts: ClassVar[Facts] = Facts(rows=ROWS["paper"], features=519, low=0.0, high=1.0)

    relevant: int = param(0, "0 keeps the grades; g labels a document 1 iff its grade is >= g")
    copies: int = param(1, "how many copies each irrelevant document stands for (papers: 10)")
    copied: int = param(-1, "highest grade that is copied; -1: the documents labelled 0")
    copied_in: Literal["all", "test"] = param("all", "splits in which negatives are copied")

    def __post_init__(self) -> None:
        self._judgement()

    def complete(self, source: Source) -> bool:
        """The costs are fetched when they are wanted."""
        return all(source.has(name) for name in self.files[:3])

    def _judgement(self) -> Judgement:
        return Judgement(self.relevant, self.copies, self.copied, self.copied_in)

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Read the publisher's splits; ``quick`` and ``standard`` take the first queries."""
        paths = [source.find(name) for name in self.files[:3]]
        cost = yahoo_costs(source)
        used = np.flatnonzero(cost < UNUSED)
        judge, notes, splits = self._judgement(), [], []
        for split, path in enumerate(paths):
            rows = read_svmlight(path, features=COLUMNS, columns=used)
            if rows.queries is None:
                raise InputError(f"{path}, line 1: no qid; get the publisher's file")
            part = rows.examples()
            if size != "paper" and len(part) > ROWS[size][split]:
                part = first_queries(part, ROWS[size][split])
                notes.append(f"sample: the first {len(part)} of {len(rows)} rows of {path.name}")
            splits.append(judge(part, split))
        train, valid, test = splits
        return Splits(
            train, valid, test,
            prices=Prices.additive(cost[used], split=0.25, unit="feature evaluations"),
            task=Task.RANKING,
            feature_names=tuple(str(j + 1) for j in used),
            notes=tuple(notes),
        )  # fmt: skip


def yahoo_costs(source: Source) -> NDArray[np.float64]:
    """The 700 costs, from the data folder or fetched into it."""
    path = source.find(COST_FILE) if source.has(COST_FILE) else _fetch(source)
    return read_costs(path, features=COLUMNS).sensor


def _fetch(source: Source) -> Path:
    return fetch(COST, Path(getattr(source, "folder", ".")))


@hookimpl
def bench_datasets() -> Sequence[type[Dataset]]:
    """The data set and its generated stand-ins."""
    return [Yahoo, YahooSim, YahooSimB]
