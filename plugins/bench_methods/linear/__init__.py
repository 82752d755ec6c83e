"""Linear and kernel methods: the l1 path, the RBF support vector machine, averaged kernels."""

from collections.abc import Callable, Sequence

from bench_core import BudgetedLearner, hookimpl
from bench_methods.linear.l1 import L1
from bench_methods.linear.svm import RBFSVM, AverageKernelSVM


@hookimpl
def bench_learners() -> Sequence[type[BudgetedLearner]]:
    """The linear method, then the kernel methods."""
    return [L1, RBFSVM, AverageKernelSVM]


@hookimpl
def bench_warm_up(say: Callable[[str], None]) -> None:
    """Compile the two kernels where no earlier run has."""
    from bench_methods.linear.kernels import warm_up

    warm_up(say)
