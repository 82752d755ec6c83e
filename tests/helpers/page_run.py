"""A run of two data sets, one under two accountings, with values per query and a known winner: for
the page's tests."""

from functools import cache

import numpy as np
import pandas as pd
from bench_reports.page import page as whole_page

from bench_core.leaderboard.assembly import boards
from helpers import example
from helpers.valued_run import ValuedRun, learner_of

COSTS = (1.0, 3.0, 10.0, 30.0)
SKILLS = {
    "gbrt": (0.55, 0.65, 0.80, 0.90),
    "miser": (0.60, 0.80, 0.99, 1.00),
    "constant": (0.50, 0.50, 0.50, 0.50),
}


@cache
def run():
    """On ``a`` miser is better at every cost; on ``b`` gbrt and miser are equal, but by accounting
    ``model`` miser costs twenty times as much. Constant is a baseline."""
    rng = np.random.default_rng(3)
    made = ValuedRun(baselines=("constant",), ordered=("gbrt",))
    for name in ("a", "b"):
        for learner, skills in SKILLS.items():
            skills = SKILLS["gbrt"] if name == "b" and learner == "miser" else skills
            made.add(learner, *learner_of(rng, skills, COSTS, 150), dataset=name)
            if name == "b":
                costs = [(20 if learner == "miser" else 1) * cost for cost in COSTS]
                by_model = {"dataset": "b(accounting=model)", "accounting": "model"}
                made.add(learner, *learner_of(rng, skills, costs, 150), **by_model)
    return made


def page(made=None):
    """The complete page, by default of ``run``."""
    made = made or run()
    return whole_page(made.info, boards(made.info, made.frame, made), made.frame, (), made)


@cache
def known_page():
    """The page of ``run``, made once."""
    return page()


def capped(**about):
    """Info and frame of one learner with caps of 5 and 20; one of two seeds lacks the first."""

    def point(seed, quality, cost, cap):
        figures = {"accuracy": quality, "cost": cost, "cost_p95": cost, "cost_max": cost}
        of = {"point": '{"trees": 2}', "evaluation_cost": 0.0, "cap": cap, **figures}
        trial = example.trial("d", "gbrt", {}, seed=seed) | of
        return [trial | {"split": split} for split in ("valid", "test")]

    points = [(seed, 0.9, 30.0, np.nan) for seed in (0, 1)]
    points += [(0, 0.85, 5.0, 5.0), (0, 0.88, 20.0, 20.0), (1, 0.86, 20.0, 20.0)]
    uses = (example.use("d", metrics=("accuracy",), **about),)
    info = example.info(datasets=uses, metrics=("accuracy",))
    return info, pd.DataFrame([row for one in points for row in point(*one)])


def large_run(learners, sets, points=20):
    """Curves of so many points."""
    rng = np.random.default_rng(7)
    made = ValuedRun(reference="learner-2", baselines=("learner-0", "learner-1"))
    for name in (f"data-set-{s}" for s in range(sets)):
        for k in range(learners):
            cost = np.sort(10 ** rng.uniform(-0.5, 2, points))
            skill = rng.uniform(0.8, 0.95) - 0.4 * np.exp(-rng.uniform(0.3, 1.5) * cost**0.5)
            made.add(f"learner-{k}", *learner_of(rng, skill, cost, 12), dataset=name)
    return made
