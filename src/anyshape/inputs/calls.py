"""A call of the user's module: inputs bound to the parameters of forward, flat, and as the arrays that a file is fed.

numpy has no bfloat16 and no eight-bit floats; those travel as `ml_dtypes` arrays, bit for bit.

Paths begin with the parameter's name, in the order of the signature, whichever way an argument was passed; `rebuild`
passes it the same way again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from anyshape.findings import DeclarationError
from anyshape.inputs.call_messages import (
    argument_given_twice,
    duplicate_name,
    input_without_values,
    missing_argument,
    too_many_arguments,
    unexpected_argument,
    unknown_container,
)
from anyshape.inputs.structure import Structure
from anyshape.inputs.tree import Leaves, flatten
from anyshape.modules.structural_copy import moved_to_cpu

Array = np.ndarray[Any, np.dtype[Any]]

_BITS = {1: torch.uint8, 2: torch.int16}
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


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


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a module is called with: `module(*args, **kwargs)`."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Passed:
    """One argument: by which keyword it is passed (None: by position), its path, and its structure."""

    keyword: str | None
    path: str
    structure: Structure


@dataclass(frozen=True)
class BoundCall:
    """Inputs bound to a signature: leaves with their paths, and how to pass them again."""

    leaves: Leaves
    passed: tuple[Passed, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(path for path, _ in self.leaves)

    @property
    def values(self) -> list[Any]:
        return [value for _, value in self.leaves]

    def rebuild(self, leaves: Sequence[Any]) -> Inputs:
        """Inputs of the same structure with these leaves, in fresh containers."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        start = 0
        for argument in self.passed:
            count = argument.structure.count
            value = argument.structure.rebuild(leaves[start : start + count])
            start += count
            if argument.keyword is None:
                args.append(value)
            else:
                kwargs[argument.keyword] = value
        return Inputs(tuple(args), kwargs)


def as_inputs(value: Any) -> Inputs:
    """A tensor is one positional input, a tuple positional ones, a dict keywords; Inputs stay what they are."""
    if isinstance(value, Inputs):
        return Inputs(tuple(value.args), dict(value.kwargs))
    try:
        if isinstance(value, Mapping):
            return Inputs((), {str(key): item for key, item in value.items()})
        return Inputs(tuple(value) if isinstance(value, tuple) else (value,))
    except Exception as error:  # of the container's own code
        raise DeclarationError(unknown_container("", value)) from error


def read_signature(module: Callable[..., Any]) -> inspect.Signature:
    """The parameters of forward, without self; of a scripted module from its schema."""
    module = getattr(module, "_orig_mod", module)  # torch.compile hides the signature behind a wrapper
    if isinstance(module, torch.jit.ScriptModule):
        return _script_signature(module)
    return inspect.signature(module.forward if isinstance(module, torch.nn.Module) else module)


def _script_signature(module: torch.jit.ScriptModule) -> inspect.Signature:
    forward: Any = module.forward
    arguments = forward.schema.arguments[1:]
    parameters = [
        inspect.Parameter(
            argument.name,
            inspect.Parameter.KEYWORD_ONLY if argument.kwarg_only else inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=argument.default_value if argument.has_default_value() else inspect.Parameter.empty,
        )
        for argument in arguments
    ]
    return inspect.Signature(parameters)


def bind_inputs(signature: inspect.Signature, inputs: Any) -> BoundCall:
    """Inputs bound to a signature, leaves in its order; tensors of an accelerator are copied to the CPU, as the module is."""
    given = as_inputs(inputs)
    _check_arguments(signature, given)
    bound = signature.bind(*given.args, **given.kwargs).arguments
    leaves: Leaves = []
    passed: list[Passed] = []
    for name, value in bound.items():
        for keyword, path, argument in _arguments(signature.parameters[name], value, given):
            found, structure = flatten(argument, path)
            leaves.extend((where, moved_to_cpu(leaf)) for where, leaf in found)
            passed.append(Passed(keyword, path, structure))
    for path, leaf in leaves:
        if isinstance(leaf, torch.Tensor) and (form := _without_values(leaf)):
            raise DeclarationError(input_without_values(path, form))
    _check_paths([path for path, _ in leaves])
    return BoundCall(leaves, tuple(passed))


def _without_values(tensor: torch.Tensor) -> str:
    """What a tensor is that has no values of its own, in words; "" for others."""
    if tensor.is_meta:
        return "a tensor on the meta device"
    return "a fake tensor" if isinstance(tensor, torch._subclasses.FakeTensor) else ""


def _arguments(parameter: inspect.Parameter, value: Any, given: Inputs) -> list[tuple[str | None, str, Any]]:
    """(keyword or None, path, value) of everything that this parameter takes."""
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return [(None, f"{parameter.name}.{index}", item) for index, item in enumerate(value)]
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return [(key, f"{parameter.name}.{key}", item) for key, item in value.items()]
    return [(parameter.name if parameter.name in given.kwargs else None, parameter.name, value)]


def _check_arguments(signature: inspect.Signature, given: Inputs) -> None:
    parameters = list(signature.parameters.values())
    text = str(signature.replace(return_annotation=inspect.Signature.empty, parameters=[_bare(p) for p in parameters]))
    positional = [parameter.name for parameter in parameters if parameter.kind in _POSITIONAL]
    kinds = {parameter.kind for parameter in parameters}
    if len(given.args) > len(positional) and inspect.Parameter.VAR_POSITIONAL not in kinds:
        raise DeclarationError(too_many_arguments(len(given.args), len(positional), text))
    by_position = positional[: len(given.args)]
    by_name = [p.name for p in parameters if p.kind in (_POSITIONAL[1], inspect.Parameter.KEYWORD_ONLY)]
    for name in given.kwargs:
        if name in by_name and name in by_position:
            raise DeclarationError(argument_given_twice(name, text))
        if name not in by_name and inspect.Parameter.VAR_KEYWORD not in kinds:
            raise DeclarationError(unexpected_argument(name, by_name, text))
    needed = [p.name for p in parameters if p.default is p.empty and p.kind not in _VARIABLE]
    missing = [name for name in needed if name not in by_position and name not in given.kwargs]
    if missing:
        raise DeclarationError(missing_argument(missing, [*by_position, *given.kwargs], text))


def _bare(parameter: inspect.Parameter) -> inspect.Parameter:
    """Without its annotation: a message shows names and defaults."""
    return parameter.replace(annotation=inspect.Parameter.empty)


def _check_paths(paths: Sequence[str]) -> None:
    seen: set[str] = set()
    for path in paths:
        if path in seen:
            raise DeclarationError(duplicate_name(path, "one input", "another"))
        seen.add(path)
