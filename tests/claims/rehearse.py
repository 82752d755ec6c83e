"""Figures of a suite's claims on a stand-in: shows how claims are measured, and settles none.

    python tests/claims/rehearse.py cronus-yahoo STORE RUN [MEASURE]...

Least rows and trees are those of the run; of ``MEASURE`` all are taken that read what is bought.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from bench_claims.claims import PURCHASES, read_claims
from bench_claims.verdicts import settle

from bench_core.planning.suites import find_suite
from bench_core.plugins import load_registry
from bench_core.results.store import Store


def main(suite: str, path: str, run: str, *measures: str) -> None:
    """Print a line for each claim: its name, the word, the figure and how it was measured."""
    store = Store(path)
    info = store.info(run)
    (use,) = ({**use, "stand_in": False} for use in info.datasets)
    frame = store.frame(info.run).assign(stand_in=False)
    for claim in read_claims(find_suite(suite, load_registry()).extra["claims"]):
        if claim.measure in (measures or PURCHASES):
            here = replace(claim, dataset=use["name"], rows=0, trees=0)
            found = settle(here, replace(info, datasets=(use,)), frame, store)
            print(claim.id, found.word, found.shown, found.how, sep=" | ")


if __name__ == "__main__":
    main(*sys.argv[1:])
