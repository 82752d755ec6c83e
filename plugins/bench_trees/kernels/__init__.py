"""Every compiled function of the engine, with the data structure that it works on.

A kernel calls no kernel of another file, because numba's cache looks at the caller's file alone.
Arguments that belong together are NamedTuples. Names without an underscore are called from Python
and compiled ahead by ``bench_trees.warm_up``.
"""
