"""Names for arrays, by element type."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
Float32Array = NDArray[np.float32]
IntArray = NDArray[np.int64]
Int32Array = NDArray[np.int32]
UInt32Array = NDArray[np.uint32]
BitArray = NDArray[np.uint64]
"""Packed sets of sensors, 64 to a number (see ``Acquired``)."""
