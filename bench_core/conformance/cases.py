"""Checks of plugins as cases, small generated tasks for them, and the models fitted on those.

A check is a function that raises if the plugin breaks a promise. The first part of its docstring is
the promise. The paragraph that begins with "Remedy:" explains how to fix the plugin.

Each task has ten features, some of them relevant, and missing values. Prices include a shared
sensor, a discounted group, a derived feature, splits and trees. Arrays are read-only.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from bench_core.arrays import Array
from bench_core.costs.model import DiscountGroup, Prices, price_list
from bench_core.data import Examples, Queries, Task
from bench_core.errors import BenchError, one_line
from bench_core.execution.contract import ContractError, fault_of
from bench_core.execution.fitting import fit_in_process
from bench_core.metrics import default_metric
from bench_core.parameters import resolved
from bench_core.plugins import load_registry
from bench_core.results.store_files import StateError
from bench_core.splits import Splits

Check = Callable[..., None]

# if one of these fails, other checks of the same plugin and task are meaningless
FIRST = ("check_members", "check_contract", "check_splits", "check_values", "check_bills")


class ConformanceError(AssertionError):
    """A plugin breaks a promise; the message describes the observed behaviour."""


def expect(holds: Any, seen: str) -> None:
    """Raise ConformanceError with the observation ``seen`` unless the promise ``holds``."""
    if not holds:
        raise ConformanceError(seen)


def checks_of(module: ModuleType) -> list[Check]:
    """Return the checks defined in a module, its functions ``check_...``, in order."""
    return [check for name, check in vars(module).items() if name.startswith("check_")]


def promise_of(check: Check) -> tuple[str, str]:
    """Return the promise of a check, and its remedy."""
    expected, _, remedy = (check.__doc__ or "").partition("Remedy:")
    return one_line(expected), one_line(remedy)


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A check with the plugin and other arguments; ``on`` names the task, if any."""

    subject: str
    check: Check
    arguments: tuple[Any, ...]
    on: str = ""

    @property
    def name(self) -> str:
        """Name such as ``check_state (binary)``."""
        return f"{self.check.__name__} ({self.on})" if self.on else self.check.__name__

    def __str__(self) -> str:
        """Name with the plugin, for ids of tests."""
        return f"{self.subject.partition(' (')[0]}: {self.name}"

    def fault(self) -> str:
        """Return three lines (observed, expected, remedy), or "" if the check passes."""
        try:
            self.check(*self.arguments)
        except (ConformanceError, ContractError, StateError, BenchError) as error:
            seen = str(error)
        except Exception as error:  # raised by the plugin: add its location
            seen = fault_of(error) or f"{type(error).__name__}: {error}"
        else:
            return ""
        expected, remedy = promise_of(self.check)
        return f"{self.name}: {one_line(seen)}\n  expected: {expected}\n  to fix: {remedy}"

    def __call__(self) -> None:
        """Run the check; raise ConformanceError with these lines if it fails."""
        if fault := self.fault():
            raise ConformanceError(f"{self.subject}: {fault}")


def examine(cases: Iterable[Case]) -> Iterator[tuple[Case, str]]:
    """Yield each case with its fault. If one of ``FIRST`` fails, later cases on that plugin and
    task are skipped."""
    # plugin and task
    given_up: set[tuple[str, str]] = set()
    for case in cases:
        if (case.subject, case.on) not in given_up:
            fault = case.fault()
            if fault and case.check.__name__ in FIRST:
                given_up.add((case.subject, case.on))
            yield case, fault


def run_all(cases: Iterable[Case]) -> None:
    """Run cases; raise ConformanceError with the lines of all that fail."""
    if faults := [fault for _, fault in examine(cases) if fault]:
        raise ConformanceError("\n".join(faults))


FEATURES = 10
CLASSES = 3


def prices() -> Prices:
    """Features 2 and 3 share a sensor, 4 and 5 are a discounted group, 9 is derived."""
    return price_list(
        # price of each feature alone
        np.array([1.0, 1, 4, 4, 8, 6, 16, 2, 2, 0]),
        shared=[[2, 3]],
        discounted=[DiscountGroup((4, 5), (5.0, 3.0))],
        derived={9: [0, 7]},
        split=0.25,
        tree=0.5,
        unit="units",
    )


def task_splits(task: Task, rows: int = 400, seed: int = 0) -> Splits:
    """Return three splits for a kind of task."""
    rng = np.random.default_rng([seed, list(Task).index(task)])
    train, valid, test = (_part(task, n, rng) for n in (rows, rows // 2, rows // 2))
    names = tuple(f"f{j}" for j in range(FEATURES))
    return Splits(train, valid, test, prices(), feature_names=names).complete(task)


def _part(task: Task, n: int, rng: np.random.Generator) -> Examples:
    X = rng.normal(size=(n, FEATURES))
    X[:, 9] = X[:, 0] + X[:, 7]  # derived: free once both are bought
    X[:, 1] = np.round(X[:, 1])  # few different values
    # features 0, 1, 2 and 6 are relevant
    signal = X[:, 0] + 0.7 * X[:, 2] * (X[:, 1] > 0) + 0.5 * X[:, 6] + 0.3 * rng.normal(size=n)
    X[rng.random(X.shape) < 0.03] = np.nan
    labels = {
        Task.REGRESSION: signal,
        Task.RANKING: np.clip(np.round(signal + 1), 0, 4),
        Task.BINARY: np.digitize(signal, [0.0]).astype(np.float64),
        Task.MULTICLASS: np.digitize(signal, [-0.6, 0.6]).astype(np.float64),
    }
    queries = drawn_queries(n, rng) if task == Task.RANKING else None
    return Examples(sealed(X.astype(np.float32)), sealed(labels[task]), queries)


def drawn_queries(n: int, rng: np.random.Generator) -> Queries:
    """Return queries of 1 to 11 rows with ``n`` rows in total."""
    sizes: list[int] = []
    while sum(sizes) < n:
        sizes.append(min(int(rng.integers(1, 12)), n - sum(sizes)))
    return Queries.from_sizes(np.array(sizes))


def sealed(array: Array) -> Array:
    """Return the array, or a contiguous copy, as read-only, as in the harness."""
    array = np.ascontiguousarray(array)
    array.setflags(write=False)
    return array


def with_copies(examples: Examples) -> tuple[Examples, Examples]:
    """Return rows with multiplicities, and as physical copies (queries are kept together)."""
    rng = np.random.default_rng([0, 1])
    copies = rng.integers(1, 4, len(examples))  # (n,) copies per row
    rows = np.repeat(np.arange(len(examples)), copies)
    queries = examples.queries
    if queries is not None:
        queries = Queries.from_sizes(np.add.reduceat(copies, queries.boundaries[:-1]))
    weighted = replace(examples, multiplicity=copies)
    physical = Examples(sealed(examples.X[rows]), sealed(examples.y[rows]), queries)
    return weighted, physical


def fitted(learner: Any, splits: Splits) -> Any:
    """Return the model of a learner on a task, cached for read-only checks."""
    return (_fitted if isinstance(learner, Hashable) else fit)(learner, splits)


def fit(learner: Any, splits: Splits, seed: int = 0, threads: int = 1) -> Any:
    """Fit a learner on a task."""
    splits = splits.complete()
    metric = default_metric(splits.task)
    return fit_in_process(with_learners(learner), splits, metric, seed, threads)


def with_learners(learner: Any) -> Any:
    """Resolve names of learners among the learner's parameters."""
    return resolved(learner, lambda name: load_registry().learner(name))


_fitted = lru_cache(maxsize=2)(fit)
