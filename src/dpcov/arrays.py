"""Names for arrays of float64, so that a signature says what an array stands for."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Of any shape."""

Matrix = Array
"""With two dimensions."""

Vector = Array
"""With one dimension."""
