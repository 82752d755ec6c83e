"""What kernels are made with; see ``bench_core.traversal.calling``."""

from bench_core.traversal.calling import calling, inner, inner_dividing

__all__ = ["calling", "inner", "inner_dividing"]
