"""Linear and kernel methods: the l1 path, the RBF support vector machine, averaged kernels."""

from bench_core import provide_learners
from bench_methods.linear.l1 import L1
from bench_methods.linear.svm import RBFSVM, AverageKernelSVM

bench_learners = provide_learners(L1, RBFSVM, AverageKernelSVM, family="linear models")
