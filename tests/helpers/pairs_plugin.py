"""A data set of two files, published by the server at ``PAIRS_AT``."""

import os
from typing import ClassVar

import numpy as np

from bench_core import Download, Examples, Prices, Splits, Task, hookimpl

FILES = ("train.csv", "test.csv")
AT = os.environ.get("PAIRS_AT", "http://127.0.0.1:9")


class Pairs:
    """One feature, equal to its label."""

    name: ClassVar[str] = "pairs"
    task: ClassVar[Task] = Task.BINARY
    title: ClassVar[str] = "Pairs"
    files: ClassVar[tuple[str, ...]] = FILES
    downloads: ClassVar[tuple[Download, ...]] = (
        Download(f"{AT}/pairs.zip", "pairs.zip", members={name: name for name in FILES}),
    )
    homepage: ClassVar[str] = "https://pairs.example"
    sums: ClassVar[dict[str, str]] = {
        "train.csv": "f2332a5cffe9ab34f2820a1b942693b1ac1b60de3f8145fd78b4586204ff0aaf"
    }

    def prepare(self, source, size, fold, seed):  # type: ignore[no-untyped-def]
        train, test = (
            np.loadtxt(source.find(name), delimiter=",", ndmin=2, dtype=np.float32)
            for name in FILES
        )
        parts = [Examples(t[:, :1], t[:, 1].astype(float)) for t in (train, train, test)]
        return Splits(*parts, prices=Prices.additive(np.ones(1)), task=self.task, classes=2)


class Bundled(Pairs):
    """Needs no files."""

    name: ClassVar[str] = "bundled-pairs"
    files: ClassVar[tuple[str, ...]] = ()
    downloads: ClassVar[tuple[Download, ...]] = ()


class Same(Pairs):
    """Another view of the same files."""

    name: ClassVar[str] = "same-pairs"
    home: ClassVar[str] = "pairs"


class Licensed(Pairs):
    """May not be downloaded."""

    name: ClassVar[str] = "licensed-pairs"
    downloads: ClassVar[tuple[Download, ...]] = ()


@hookimpl
def bench_datasets():  # type: ignore[no-untyped-def]
    return [Pairs, Bundled, Licensed, Same]
