"""The checks of policies: an honest one passes, and each cheat is found by the check that is
meant."""

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from bench_core import STOP, Purchases, Sequential, Task, param
from bench_core.conformance import learner_cases, learner_checks, policy_checks, task_splits
from bench_core.conformance.cases import Case, checks_of


class Cheapest:
    """Buys the cheapest purchase that is left and can be paid, up to as many as the stop says."""

    nested = True

    def __init__(self, stops, price):
        self.stops, self.price = stops, price

    def act(self, cells, bought, left, stop):
        wanted = ~bought & (self.price <= left[:, None]) & (bought.sum(axis=1) < stop)[:, None]
        return np.where(wanted.any(axis=1), np.where(wanted, self.price, np.inf).argmin(1), STOP)

    def predict(self, cells, bought):
        return np.nan_to_num(cells).sum(axis=1).astype(float)

    def state(self):
        return vars(self)

    @classmethod
    def from_state(cls, state):
        return cls(**state)


@dataclass(frozen=True)
class Learner:
    """Its policy is of the class ``of``."""

    name: ClassVar[str] = "learner"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY, Task.RANKING})
    of: ClassVar[type[Cheapest]] = Cheapest
    stops: ClassVar[Any] = {"most": [1, 3, 99]}
    model: ClassVar[type[Sequential]] = Sequential
    depth: int = param(1, "not used")

    def fit(self, train, valid, prices, context):
        return self.model(self.of(self.stops, Purchases.of(prices).price), prices)


@pytest.mark.parametrize("case", learner_cases(Learner()), ids=lambda case: case.name)
def test_an_honest_policy_keeps_every_promise(case):
    case()


def test_an_offer_of_the_purchases_of_act_passes():
    learner = type("Mine", (Learner,), {"of": Offering, "stops": {"price": [3, 2, 1]}})()
    policy_checks.check_shortcuts(learner, task_splits(Task.BINARY))


class Insisting(Cheapest):
    """Buys the cheapest again where it can pay for nothing else."""

    def act(self, cells, bought, left, stop):
        return np.where(self.price.min() > left, self.price.argmin(), super().act(*_n(locals())))


class Averaging(Cheapest):
    """Has no answer where nothing is known."""

    def predict(self, cells, bought):
        known = (~np.isnan(cells)).sum(axis=1)
        return np.divide(
            np.nansum(cells, axis=1), known, out=np.full(len(cells), np.nan), where=known > 0
        )


class Random(Cheapest):
    rng = np.random.default_rng(0)

    def act(self, cells, bought, left, stop):
        return np.where(self.rng.random(len(cells)) < 0.5, STOP, super().act(*_n(locals())))


class Counting(Cheapest):
    """Answers by how often it was asked."""

    asked = 0

    def predict(self, cells, bought):
        type(self).asked += 1
        return super().predict(cells, bought) + self.asked


class Crowd(Cheapest):
    """Does without what others of the block have bought."""

    def act(self, cells, bought, left, stop):
        return np.where(bought.sum() > 100, STOP, super().act(cells, bought, left, stop))


class Fickle(Cheapest):
    """At the last stop it begins with something else."""

    def act(self, cells, bought, left, stop):
        own = super().act(cells, bought, left, stop)
        return np.where((stop == 99) & ~bought.any(axis=1), 3, own)


class Offering(Cheapest):
    """Buys while purchases and stop together are at most 3, and offers just that."""

    late = 0

    def act(self, cells, bought, left, stop):
        return np.where(bought.sum(axis=1) + stop > 3, STOP, super().act(cells, bought, left, 99))

    def offer(self, cells, bought, left):
        return super().act(cells, bought, left, 99), 3 - bought.sum(axis=1) + self.late


class OfferingTooLong(Offering):
    late = 1


class Forgetful(Cheapest):
    def state(self):
        return {**vars(self), "price": np.zeros_like(self.price)}


class Spending(Sequential):
    def predict_capped(self, features, cap, prices):
        return super().predict_capped(features, 2 * cap, prices)


def _n(names):
    return [names[name] for name in ("cells", "bought", "left", "stop")]


CHEATS = [
    ({"stops": {}}, learner_checks.check_contract, r"stops are \{\}: give one name"),
    ({"stops": {"a": [1], "b": [2]}}, learner_checks.check_contract, "give one name"),
    ({"stops": {"most": []}}, learner_checks.check_contract, "give one name and its values"),
    ({"stops": {"most": [1, 1]}}, learner_checks.check_contract, "two points of its path"),
    ({"stops": {"most": range(101)}}, learner_checks.check_contract, "more than 100 points"),
    (
        {"of": Insisting},
        policy_checks.check_caps,
        "act gives purchase 0 of 8, which does not exist",
    ),
    ({"of": Averaging}, policy_checks.check_caps, "under a cap of 0 some scores are not finite"),
    ({"of": Averaging}, learner_checks.check_poor_features, "not finite"),
    ({"of": Random}, learner_checks.check_blocks, "on a block of 1 rows"),
    ({"of": Counting}, learner_checks.check_blocks, "its scores differ"),
    ({"of": Crowd}, learner_checks.check_blocks, "on a block of 1 rows"),
    ({"of": Fickle}, policy_checks.check_shortcuts, r"at \{'most': 99\} 200 rows buy differently"),
    (
        {"of": OfferingTooLong, "stops": {"price": [3, 2, 1]}},
        policy_checks.check_shortcuts,
        r"at \{'price': 3\} 200 rows buy differently",
    ),
    ({"of": Forgetful}, learner_checks.check_state, "reloaded: its"),
    ({"model": Spending}, policy_checks.check_caps, "under a cap of 2.22 a row pays 4"),
    ({"of": Crowd}, policy_checks.check_caps, "row 0 buys differently alone"),
]


@pytest.mark.parametrize(("members", "check", "line"), CHEATS)
def test_a_cheat_is_found(members, check, line):
    learner = type("Mine", (Learner,), members)()
    fault = Case("it", check, (learner, task_splits(Task.BINARY))).fault()
    assert re.search(line, fault), fault


def test_every_check_of_policies_has_a_cheat():
    assert {check for _, check, _ in CHEATS} >= {*checks_of(policy_checks)}
