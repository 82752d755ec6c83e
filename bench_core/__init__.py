"""Budget Bench: a benchmark for machine learning under test-time budgets.

This module is the public surface: everything a plugin or a script may import. The names stand in
``__init__.pyi`` and are loaded on first use, so that ``import bench_core`` costs nothing.
"""

import lazy_loader

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
