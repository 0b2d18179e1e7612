import numpy as np
from numpy.typing import NDArray

def solve(
    H: NDArray[np.float64],
    f: NDArray[np.float64],
    A: NDArray[np.float64],
    bupper: NDArray[np.float64],
    blower: NDArray[np.float64],
) -> tuple[NDArray[np.float64], float, int, dict[str, object]]: ...
