"""Linear and kernel methods: the l1 path, the RBF support vector machine, averaged kernels."""

from collections.abc import Callable

from bench_core import hookimpl, provide_learners
from bench_methods.linear.l1 import L1
from bench_methods.linear.svm import RBFSVM, AverageKernelSVM

bench_learners = provide_learners(L1, RBFSVM, AverageKernelSVM)


@hookimpl
def bench_warm_up(say: Callable[[str], None]) -> None:
    """Compile the two kernels where no earlier run has."""
    from bench_methods.linear.kernels import warm_up

    warm_up(say)
