"""A small run, for tests that kill it: ``python run_toys.py STORE``; a line for each event."""

from __future__ import annotations

import sys

import bench_core

SETTINGS = (
    "toy-prefix.tradeoff=[0.0, 0.1, 0.5, 1.0]",
    "toy-prefix.seconds=0.1",
    "toy-stacked.shrink=[0.5, 0.25]",
    "toy-stacked.base.seconds=0.1",
)

if __name__ == "__main__":
    bench_core.run(
        data="toy-rank",
        learners=sys.argv[2:] or ["toy-prefix", "toy-stacked"],
        settings=() if sys.argv[2:] else SETTINGS,
        plugins="helpers.toys",
        workers=2,
        store=sys.argv[1],
        on_event=lambda event: print(event.kind, event.title, flush=True),
    )
