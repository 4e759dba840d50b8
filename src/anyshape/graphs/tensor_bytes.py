"""The bytes of a tensor as an ONNX file holds them, without a copy where its memory has that form already."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from anyshape.runtime.dtypes import raw

if TYPE_CHECKING:
    import onnx_ir as ir


def bytes_of(tensor: ir.TensorProtocol) -> bytes | memoryview:
    """Little-endian, row after row: a view of the tensor's own memory if it is contiguous. Not for strings.

    Elements of less than a byte are packed, which takes a copy.
    """
    if tensor.dtype.bitwidth < 8 or sys.byteorder == "big":
        return tensor.tobytes()
    return raw(tensor.numpy()).data
