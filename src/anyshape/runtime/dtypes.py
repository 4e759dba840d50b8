"""Element types that numpy does not know: bfloat16 and the eight-bit floats, as `ml_dtypes` arrays.

`ml_dtypes` is imported only when such a type is met, so that ordinary models do not pay for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

# TensorProto.DataType, by the name that both `ml_dtypes` and onnxruntime (without its underscores) use.
EXTENDED = {"bfloat16": 16, "float8_e4m3fn": 17, "float8_e4m3fnuz": 18, "float8_e5m2": 19, "float8_e5m2fnuz": 20}

_ORT_NAMES = {
    "float": "float32",
    "double": "float64",
    "string": "object",
    **{name.replace("_", ""): name for name in EXTENDED},
}


def dtype_called(name: str) -> np.dtype[Any]:
    """The dtype of that name (`float32`, `bfloat16`, `object` for strings); the inverse of `dtype.name`."""
    if name in EXTENDED:
        import ml_dtypes

        name = getattr(ml_dtypes, name)
    dtype: np.dtype[Any] = np.dtype(name)
    return dtype


def dtype_of_ort_type(ort_type: str) -> str | None:
    """`tensor(float)` -> `float32`; None for what is not a tensor (sequences, maps, optionals)."""
    if not (ort_type.startswith("tensor(") and ort_type.endswith(")")):
        return None
    element = ort_type[len("tensor(") : -1]
    return _ORT_NAMES.get(element, element)


def raw(array: Array) -> Array:
    """The array's bytes, flat and contiguous, without a copy where it is contiguous already."""
    return np.asarray(array, order="C").reshape(-1).view(np.uint8)


def from_raw(data: bytes | bytearray | memoryview, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """The inverse of `raw`; shares memory with `data`."""
    return np.frombuffer(data, dtype=np.uint8).view(dtype).reshape(shape)
