"""A small run, for tests that kill it: ``python run_toys.py STORE [LEARNER]...``; a line
for each event."""

import sys

import bench_core
from bench_core.planning.request import RunRequest
from bench_core.results.store import Store

SETTINGS = (
    "toy-prefix.tradeoff=[0.0, 0.1, 0.5, 1.0]",
    "toy-prefix.seconds=0.1",
    "toy-stacked.shrink=[0.5, 0.25]",
    "toy-stacked.base.seconds=0.1",
)

TOYS = RunRequest(
    data=("toy-rank",),
    learners=("toy-prefix", "toy-stacked"),
    settings=SETTINGS,
    plugins=("helpers.toys",),
)
PLACE = ["fit_seconds", "predict_seconds", "peak_rss_mb", "machine", "created_at"]
PLACE += ["threads", "workers"]


def export(store):
    """The rows of a store without what depends on when and where they were made."""
    return Store(store).frame().drop(columns=PLACE)


def run(store, *learners, **more):
    """Run these learners, by default those of the settings."""
    how = {
        "workers": 2,
        "audit": "off",
        "on_event": lambda event: print(event.kind, event.title, flush=True),
    }
    return bench_core.run(
        data="toy-rank",
        learners=list(learners) or ["toy-prefix", "toy-stacked"],
        settings=() if learners else SETTINGS,
        plugins="helpers.toys",
        store=store,
        **{**how, **more},
    )


if __name__ == "__main__":
    run(*sys.argv[1:])
