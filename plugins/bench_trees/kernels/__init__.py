"""Every compiled function of the engine, with the data structure that it works on.

A file is named after the structure, or with ``_kernels`` after the module whose inner loops it
holds. A kernel calls no kernel of another file, because numba's cache looks at the caller's file
alone; the exception is ``prefetch``, which generates one instruction in place: a change of it needs
an empty cache. Arguments that belong together are NamedTuples. Names without an underscore are
called from Python and compiled ahead by ``bench_trees.warm_up``.
"""
