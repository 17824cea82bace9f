"""The types of the arrays that kernels accept: what they contain, and how wide it is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]
Keys = Words
#: Numbers of rows, of groups and of values: all fit into 32 bits.
Rows = npt.NDArray[np.int32]
Labels = Rows
Codes = Rows
