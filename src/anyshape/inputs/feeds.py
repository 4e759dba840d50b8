"""Values of inputs as the arrays that a file is fed.

numpy has no bfloat16 and no eight-bit floats; those travel as `ml_dtypes` arrays, bit for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

Array = np.ndarray[Any, np.dtype[Any]]

_BITS = {1: torch.uint8, 2: torch.int16}


def as_array(value: Any, dtype: str) -> Array:
    """A tensor or a Python number as an array of this dtype."""
    if not isinstance(value, torch.Tensor):
        return np.asarray(value, dtype=dtype)
    plain = value.detach().cpu().resolve_conj().resolve_neg()
    if plain.is_complex():  # runtimes have no complex numbers: pairs, on a last axis of 2
        return torch.view_as_real(plain).numpy()
    if dtype != "bfloat16" and not dtype.startswith("float8"):
        return plain.numpy()
    import ml_dtypes

    return plain.contiguous().view(_BITS[plain.element_size()]).numpy().view(getattr(ml_dtypes, dtype))
