"""Whether this machine has compiled kernels, found without numba where that can be.

Importing numba takes as long as planning thousands of trials.
"""

import os
import sys
from pathlib import Path


def compiled_before() -> bool:
    """Whether numba's cache has kernels of the meter, which every run compiles or finds there.

    Unless told otherwise, numba looks beside the source first, if it can write there. Where that
    has none, numba is asked.
    """
    told = any(name.startswith("NUMBA_CACHE") for name in os.environ)
    asked = "bench_core.costs.meter" in sys.modules or Path(".numba_config.yaml").exists()
    beside = Path(__file__).with_name("__pycache__")
    if not (told or asked) and os.access(beside, os.W_OK) and any(beside.glob("meter.*.nbi")):
        return True
    from bench_core.costs import meter

    return meter.compiled_before()
