"""Compares a file with the eager model, by onnxruntime alone."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import torch

from features.feature import Case


def differs(case: Case, path: Path) -> str:
    """The first difference between the file and eager in words; empty where there is none."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    model = case.model.module() if isinstance(case.model, torch.export.ExportedProgram) else case.model
    for args, kwargs in copy.deepcopy(((case.args, case.kwargs), *case.others)):  # calls may write into caches
        flat = _flatten((args, kwargs))
        shapes = [tuple(value.shape) for value in flat]
        if len(flat) != len(names):
            return f"{len(names)} inputs in the file, {len(flat)} tensors in the call"
        feed = {name: value.detach().numpy().copy() for name, value in zip(names, flat, strict=True)}
        with torch.no_grad():
            wanted = [value.detach().numpy() for value in _flatten(model(*args, **kwargs))]
        try:
            given = session.run(None, feed)
        except Exception as error:
            return f"at {shapes} the file raises: {str(error)[:200]}"
        if len(given) != len(wanted):
            return f"at {shapes} {len(given)} outputs, eager has {len(wanted)}"
        for one, other in zip(given, wanted, strict=True):
            if (
                one.shape != other.shape
                or one.dtype != other.dtype
                or not np.allclose(one, other, 1e-3, 1e-4, equal_nan=True)
            ):
                return f"at {shapes}: {one.dtype}{one.shape} differs from eager's {other.dtype}{other.shape}"
    return ""


def _flatten(value: Any) -> list[torch.Tensor]:
    """The tensors of nested containers, and of caches in the order of their layers: key, value."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [tensor for item in value.values() for tensor in _flatten(item)]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _flatten(item)]
    if hasattr(value, "cross_attention_cache"):
        return _flatten(value.self_attention_cache) + _flatten(value.cross_attention_cache)
    if hasattr(value, "layers"):
        tensors = [(layer.keys, layer.values, getattr(layer, "cumulative_length", None)) for layer in value.layers]
        return [tensor for layer in tensors for tensor in layer if isinstance(tensor, torch.Tensor)]
    return []
