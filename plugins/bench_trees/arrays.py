"""Array types by element type, and the one type that kernels are compiled for."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]
UInt8Array = NDArray[np.uint8]
UInt32Array = NDArray[np.uint32]
UInt64Array = NDArray[np.uint64]
Int32Array = NDArray[np.int32]
Int64Array = NDArray[np.int64]
Float32Array = NDArray[np.float32]
Float64Array = NDArray[np.float64]


def frozen(array: NDArray[Any], dtype: type[Any]) -> NDArray[Any]:
    """A read-only C-ordered plain array: one compiled kernel serves arrays and memory maps."""
    view = np.ascontiguousarray(array, dtype).view(np.ndarray)
    view.flags.writeable = False
    return view


def grown(array: NDArray[Any], length: int) -> NDArray[Any]:
    """The array, extended by zeros where shorter than ``length``. The zeros take no time or memory
    until written."""
    if len(array) >= length:
        return array
    longer = np.zeros((max(length, 2 * len(array)), *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
