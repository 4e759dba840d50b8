"""Whatever the user passes as a model -> a torch.nn.Module: functions, methods, partials and exported programs are wrapped.

A wrapper's forward is the user's own callable, so that the names of inputs, the lines in messages and the numbers in the
code are the user's. The modules and tensors that a function uses from outside belong to the wrapper: they are put into
eval mode, restored after each call, and have names in the file. What is no model gets a finding.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from types import FunctionType, MethodType, ModuleType
from typing import Any

import torch

from anyshape.findings import Finding, UsageError
from anyshape.modules.plain_access import attributes_of, is_a, items_of, keys_of, length_of

_TAKEN = "a model is a torch.nn.Module, a function or method of tensors, or what torch.export.export returns."
_DEPTH = 4


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


def as_module(model: Any) -> torch.nn.Module:
    """A module that computes what the model computes; a module comes back as it is.

    Raises UsageError (AS063) for what cannot be called with tensors: a path, a state_dict, a class, an ONNX model.
    """
    if isinstance(model, torch.nn.Module):
        _check_values(model)
        return model
    if isinstance(model, torch.export.ExportedProgram):
        return _module_of_program(model)
    function = inspect.getattr_static(model, "_torchdynamo_orig_callable", model)  # what torch.compile was given
    if isinstance(function, (type, torch.jit.ScriptFunction)) or not callable(function):
        raise UsageError(no_model(function))
    is_plain = isinstance(function, (FunctionType, MethodType, functools.partial))
    called = function if is_plain else _with_parameters(function)
    module = _module_of_callable(called)
    _check_values(module)
    return module


def _with_parameters(function: Any) -> Callable[..., Any]:
    """A callable whose parameters can be read. A function of C++, such as torch.tanh, has none: its first input is `input`."""
    try:
        inspect.signature(function)
    except (TypeError, ValueError):

        def call(input: Any, *others: Any, **options: Any) -> Any:  # noqa: A002 - torch's own name
            return function(input, *others, **options)

        call.__name__ = getattr(function, "__name__", "function")
        return call
    return function.__call__


def _check_values(module: torch.nn.Module) -> None:
    """Raises UsageError (AS031) where a parameter or buffer has no values: lazy before the first call, or on meta."""
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        if torch.nn.parameter.is_lazy(tensor):
            raise UsageError(no_values(name, is_lazy=True))
        if tensor.is_meta:
            raise UsageError(no_values(name, is_lazy=False))


def _module_of_program(program: torch.export.ExportedProgram) -> torch.nn.Module:
    """The program as a module; sizes other than those that it was exported for are refused by its own guards."""
    module = program.module()
    for name in ("train", "eval"):  # torch replaces both by functions that raise
        vars(module).pop(name, None)
    return module.eval()


def _module_of_callable(function: Callable[..., Any]) -> torch.nn.Module:
    kind = type(_name(function), (CallableModule,), {"forward": staticmethod(function)})
    module: torch.nn.Module = kind(dict(_held(function, _DEPTH)))
    return module


class CallableModule(torch.nn.Module):
    """A module whose forward is a callable of the user's; `held` are the values that it uses from outside."""

    def __init__(self, held: dict[str, Any]) -> None:
        super().__init__()
        self.held = {}
        for name, value in held.items():
            free = name if not hasattr(self, name) else f"{name}_"
            if isinstance(value, torch.nn.Module):
                self.add_module(free, value)
            elif isinstance(value, torch.nn.Parameter):
                self.register_parameter(free, value)
            elif isinstance(value, torch.Tensor):
                self.register_buffer(free, value, persistent=False)
            else:
                self.held[name] = value


def _name(function: Any) -> str:
    """`encode` of `encode`, of `model.encode`, and of `partial(encode, scale=2)`; a class's name for an object of it."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", type(function).__name__)
    return name if name.isidentifier() else "function"


def _held(function: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """The values from outside that a callable uses, by the names that it has for them."""
    if isinstance(function, functools.partial):
        for index, value in enumerate(function.args):
            yield from _named(f"argument_{index}", value)
        for name, value in function.keywords.items():
            yield from _named(name, value)
        yield from _held(function.func, depth)
    elif isinstance(function, MethodType):
        yield from _named("self", function.__self__)
        own = attributes_of(function.__self__)
        if own is not None and not is_a(function.__self__, torch.nn.Module):
            for name, value in own.items():
                yield from _named(name, value)
        yield from _held(function.__func__, depth)
    elif isinstance(function, FunctionType) and depth > 0:
        used = inspect.getclosurevars(inspect.unwrap(function))
        for name, value in {**used.globals, **used.nonlocals}.items():
            if is_a(value, (FunctionType, MethodType, functools.partial)):
                yield from _held(value, depth - 1)
            elif not is_a(value, (ModuleType, type)):
                yield from _named(name, value)


def _named(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The value, and the modules and tensors in it where it is a list, a tuple or a dict of them."""
    yield name, value
    if is_a(value, (list, tuple, dict)):
        keys = keys_of(value) if is_a(value, dict) else range(length_of(value))
        for key, item in zip(keys, items_of(value), strict=True):
            if is_a(item, (torch.nn.Module, torch.Tensor)):
                yield re.sub(r"\W", "_", f"{name}_{key}"), item
