"""Budget Bench: a benchmark for machine learning under test-time budgets.

This module is the public surface: everything a plugin or a script may import. The names stand in
``__init__.pyi`` and are loaded on first use, so that ``import bench_core`` costs nothing.
"""

import os

import lazy_loader

if not os.access(__path__[0], os.W_OK):
    # numba keeps kernels beside their source or in the home, which may be read-only too
    from bench_core._io.files import cache_folder

    os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder() / "kernels"))

_threads = os.environ.get("NUMBA_NUM_THREADS", "1")
if not (_threads.isdecimal() and int(_threads)):
    del os.environ["NUMBA_NUM_THREADS"]  # numba would not start; our kernels do not use its threads

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
