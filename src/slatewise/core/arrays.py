"""Names of array types, for annotations."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Singles: TypeAlias = NDArray[np.float32]
Ints: TypeAlias = NDArray[np.int64]
Shorts: TypeAlias = NDArray[np.int32]
Bytes: TypeAlias = NDArray[np.int8]
Words: TypeAlias = NDArray[np.uint64]
Bools: TypeAlias = NDArray[np.bool_]
