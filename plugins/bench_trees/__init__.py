"""A tree engine for learning under feature costs: plain arrays in, flat ensembles out.

    bins = find_bins(X)                                   # quantile edges, float32
    codes = bins.codes(X, threads=2)                      # uint8 (d, n), feature-major
    penalty = Penalty.plain(coupled=price)                # or any sharing of sensors
    ensemble = boost(codes, bins, y, loss="squared", settings=Settings(), penalty=penalty)

The names are listed in ``__init__.pyi`` and loaded on first use: importing this package imports
neither numba nor numpy.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
