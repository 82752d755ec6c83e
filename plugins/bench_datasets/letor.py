"""Public learning-to-rank sets in LETOR's format: MSLR-WEB10K and 30K, Istella-S.

MSLR (Microsoft, CC BY 4.0): 136 features, five folds. The authors of "Joint optimization of cascade
ranking models" (WSDM 2019) assigned its costs by the text that each feature reads: url, title,
anchor, body or complete document.

Istella-S (for non-commercial use): 220 features. No costs are published, so each costs 1. Its files
write an absent value as the largest float64, 1.797e308; here it is missing.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bench_core import SAMPLE, Note, Prices, Source, Splits, Task, provide_datasets
from bench_core.datasets.readers.svmlight import first_queries, read_svmlight

ROWS = {"quick": (12000, 4000, 6000), "standard": (60000, 15000, 25000)}
PARTS = ("train.txt", "vali.txt", "test.txt")  # of a fold


def _mslr_files(name: str) -> tuple[str, ...]:
    return tuple(f"{name}/Fold{fold}/{part}" for fold in range(1, 6) for part in PARTS)


def mslr_costs() -> NDArray[np.float64]:
    """The 136 assigned costs, in groups of five: body, anchor, title, url, complete document."""
    streams = [50, 20, 10, 10, 50]
    costs = 2 * streams + 5 * [1] + [50, 50, 20, 20, 50] + 10 * [20, 20, 10, 10, 20]
    costs += 6 * streams + 5 * [100, 50, 10, 10, 100] + 11 * [1]
    return np.array(costs, dtype=np.float64)


class Mslr10k:
    """A sample of 10000 queries of Microsoft's web search."""

    name: ClassVar[str] = "mslr-web10k"
    task: ClassVar[Task] = Task.RANKING
    title: ClassVar[str] = "Microsoft MSLR-WEB10K (136 priced features)"
    folds: ClassVar[int] = 5
    files: ClassVar[tuple[str, ...]] = _mslr_files(name)
    depends_on: ClassVar[tuple[str, ...]] = ("size", "fold")
    homepage: ClassVar[str] = "https://www.microsoft.com/en-us/research/project/mslr (a licence)"

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """The publisher's fold ``fold + 1``; ``quick`` and ``standard`` take the first queries."""
        names = self.files[3 * fold : 3 * fold + 3]
        return _splits(source, names, size, Prices.additive(mslr_costs()))


class Mslr30k(Mslr10k):
    """All 31531 queries of Microsoft's web search."""

    name: ClassVar[str] = "mslr-web30k"
    title: ClassVar[str] = "Microsoft MSLR-WEB30K (136 priced features)"
    files: ClassVar[tuple[str, ...]] = _mslr_files(name)


class IstellaS:
    """Istella-S: 33018 queries of a web search engine, irrelevant documents sampled."""

    name: ClassVar[str] = "istella-s"
    task: ClassVar[Task] = Task.RANKING
    title: ClassVar[str] = "Istella-S learning to rank (220 features, each costs 1)"
    files: ClassVar[tuple[str, ...]] = tuple(f"sample/{part}" for part in PARTS)
    depends_on: ClassVar[tuple[str, ...]] = ("size",)
    homepage: ClassVar[str] = "https://istella.ai/datasets/letor-dataset (a licence)"

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """The publisher's splits; ``quick`` and ``standard`` take the first queries."""
        prices = Prices.additive(np.ones(220))
        return _splits(source, self.files, size, prices, huge_is_missing=True)


def _splits(
    source: Source, names: Sequence[str], size: str, prices: Prices, huge_is_missing: bool = False
) -> Splits:
    parts, notes = [], []
    for split, name in enumerate(names):
        path = source.find(name)
        rows = read_svmlight(path, features=prices.features, huge_is_missing=huge_is_missing)
        examples = rows.examples()
        limit = ROWS.get(size, (len(examples),) * 3)[split]
        if len(examples) > limit:
            examples = first_queries(examples, limit)
            first = f"sample: the first {len(examples)} of {len(rows.y)} rows of {name}"
            notes.append(Note(SAMPLE, first))
        parts.append(examples)
    names = tuple(str(j + 1) for j in range(prices.features))
    train, valid, test = parts
    return Splits(train, valid, test, prices, feature_names=names, notes=tuple(notes))


bench_datasets = provide_datasets(Mslr10k, Mslr30k, IstellaS)
