"""Weights of a file that have a name of the module's, and other numbers than the module has under it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import torch

from anyshape.verify.tensors import to_array

_SEPARATORS = re.compile(r"\W|_")


def find_wrong_weights(model: Any, module: torch.nn.Module) -> frozenset[str]:
    """The names in the file. A weight that was stored under a name of the exporter's own is not looked at."""
    from onnx import numpy_helper

    known = {_plain(name): tensor for name, tensor in (*module.named_parameters(), *module.named_buffers())}
    wrong = []
    for stored in model.graph.initializer:
        tensor = known.get(_plain(stored.name))
        if tensor is not None and not _is_same(numpy_helper.to_array(stored), tensor):
            wrong.append(stored.name)
    return frozenset(wrong)


def may_be_folded(module: torch.nn.Module) -> bool:
    """Whether an exporter may have folded a normalization into the weights of what stands before it."""
    return any(isinstance(each, torch.nn.modules.batchnorm._NormBase) for each in module.modules())


def _is_same(stored: Any, tensor: torch.Tensor) -> bool:
    """Half precision is rounded here and there; anything beyond that is another number."""
    if tuple(stored.shape) != tuple(tensor.shape):
        return False
    expected = to_array(tensor)
    if expected.dtype.kind not in "fiub" or stored.dtype.kind not in "fiub":
        return True
    return bool(np.allclose(stored.astype(np.float64), expected.astype(np.float64), rtol=1e-6, equal_nan=True))


def _plain(name: str) -> str:
    return _SEPARATORS.sub("", name)
