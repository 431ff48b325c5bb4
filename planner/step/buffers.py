"""Arrays that blocks of points are written into, one block after another.

New arrays of hundreds of kilobytes come from the operating system, which faults their pages in at
the first write; on many machines that takes longer than the arithmetic of a sweep.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Into = Callable[[str, DTypeLike], NDArray[Any] | None]
"""Returns the array that a figure, by name and type, is to be written into; None for a new one."""


def fresh(_name: str, _dtype: DTypeLike = float) -> None:
    """Let every figure have a new array, as NumPy does where `out` is None."""


class Buffers:
    """Arrays by name that one block of points after another is written into.

    A block overwrites the one before: what is to outlive it must be copied.
    """

    def __init__(self) -> None:
        self._arrays: dict[tuple[str, np.dtype[Any]], NDArray[Any]] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays [byte]."""
        return sum(array.nbytes for array in self._arrays.values())

    def shaped(self, shape: tuple[int, ...]) -> Into:
        """Return what gives each figure of a block its array, of `shape`."""
        size = int(np.prod(shape))

        def into(name: str, dtype: DTypeLike) -> NDArray[Any]:
            key = (name, np.dtype(dtype))
            array = self._arrays.get(key)
            if array is None or array.size < size:
                array = self._arrays[key] = np.empty(size, dtype)
            return array[:size].reshape(shape)

        return into


def prefixed(into: Into, prefix: str) -> Into:
    """Return the same with every name after `prefix`, for figures of one name beside each other."""
    return lambda name, dtype: into(f"{prefix}{name}", dtype)
