"""A small run, for tests that kill it: ``python run_toys.py STORE [LEARNER or SETTING]...``; a line
for each event."""

import sys

import bench_core

SETTINGS = (
    "toy-prefix.tradeoff=[0.0, 0.1, 0.5, 1.0]",
    "toy-prefix.seconds=0.1",
    "toy-stacked.shrink=[0.5, 0.25]",
    "toy-stacked.base.seconds=0.1",
)
FEW = (
    "toy-prefix.tradeoff=[0.0, 0.5]",
    "toy-prefix.seconds=0.1",
    "toy-stacked.shrink=0.5",
    "toy-stacked.base.seconds=0.1",
)

if __name__ == "__main__":
    store, *words = sys.argv[1:]
    learners = [word for word in words if "=" not in word]
    bench_core.run(
        data="toy-rank",
        learners=learners or ["toy-prefix", "toy-stacked"],
        settings=() if learners else [word for word in words if "=" in word] or SETTINGS,
        plugins="helpers.toys",
        workers=2,
        audit="off" if words else "sample",  # half of the work
        store=store,
        on_event=lambda event: print(event.kind, event.title, flush=True),
    )
