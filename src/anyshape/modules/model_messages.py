"""Findings about what was given as a model and is none."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from os import PathLike
from typing import Any

import torch

from anyshape.findings import Finding

_TAKEN = "a model is a torch.nn.Module, a function or method of tensors, or what torch.export.export returns."


def no_model(value: Any) -> Finding:
    """AS063: the value, by the name that users have for it, and what to give instead."""
    given, fix = _given(value)
    return Finding(code="AS063", name="not-a-module", what=f"the model is {given}.", why=_TAKEN, fix=fix)


def no_values(name: str, *, is_lazy: bool) -> Finding:
    """AS031: a parameter or buffer without values, which is lazy or on the meta device."""
    if is_lazy:
        why = "a lazy module gets its shapes from its first call."
        fix = "call the model once before the export: model(x)"
    else:
        why = "tensors on the meta device have a shape and no values."
        fix = "model.to_empty(device='cpu'), and then model.load_state_dict(...)"
    return Finding(
        code="AS031",
        name="parameter-without-values",
        what=f"{name!r} of the model has no values.",
        why=why,
        fix=fix,
        is_fix_untried=True,
    )


def _arguments(kind: type) -> str:
    """`...` for a class whose instances cannot be made without arguments."""
    try:
        parameters = inspect.signature(kind).parameters.values()
    except (TypeError, ValueError):
        return "..."
    rest = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return "..." if any(each.default is each.empty and each.kind not in rest for each in parameters) else ""


def _given(value: Any) -> tuple[str, str]:
    """What was given, as an end of the sentence `the model is ...`, and what to do."""
    if value is None:
        return "None", "return the module: a function that builds one may lack its `return`."
    if isinstance(value, (str, PathLike)):
        load = f"model = Net(); model.load_state_dict(torch.load({str(value)!r}))"
        return f"a path, {str(value)!r}, not a module", load
    if isinstance(value, type):
        return f"the class {value.__name__}, not an instance of it", f"{value.__name__}({_arguments(value)})"
    if isinstance(value, torch.jit.ScriptFunction):
        return "a function that torch.jit.script or torch.jit.trace compiled", "give the Python function itself."
    if isinstance(value, torch.Tensor):
        return "a tensor, not a module", "anyshape.export(model, inputs, path): the model comes first."
    if isinstance(value, Mapping) and any(isinstance(each, torch.Tensor) for each in value.values()):
        given = f"a dict of {len(value)} tensors (a state_dict?), not a module"
        return given, "model = Net(); model.load_state_dict(state_dict)"
    if type(value).__module__.split(".")[0] in ("onnx", "onnx_ir"):
        return "an ONNX model already", "anyshape check m.onnx --model model.py      compares it with its PyTorch model"
    return f"of the type {type(value).__module__}.{type(value).__qualname__}", "give a torch.nn.Module."
