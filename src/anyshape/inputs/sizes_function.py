"""A function of sizes as the user wrote it: its parameters, their ranges (`anyshape.dim(1, 64, multiple=8)`), and a call of it.

It is a default value or an annotation, never a size: a function that computes with it fails at once.

A parameter is taken for a size when its default is an int, a range, or missing; probing decides in the end, since only
what some axis follows is a dim.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

import numpy as np

from anyshape.domain import Compare, Condition, Dim, Number, Ref
from anyshape.findings import DeclarationError
from anyshape.findings.arguments import wrong_argument
from anyshape.inputs.call_messages import function_refuses, returns_nothing, unknown_parameter, unreadable_range
from anyshape.inputs.calls import BoundCall, bind_inputs
from anyshape.modules.user_code import make_source, source_of_error

_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True)
class DimRange:
    """From min to max (None: no upper end), in steps of multiple; `example` is the size of the example."""

    min: int = 1
    max: int | None = None
    multiple: int = 1
    example: int | None = None


# `min` and `max` are what the user reads at the call: dim(min=2, max=64). Any, since it stands in for an int.
def dim(min: int = 1, max: int | None = None, *, multiple: int = 1, example: int | None = None) -> Any:  # noqa: A002
    """The range of a parameter of a function of sizes: `def inputs(batch=anyshape.dim(1, 64)): ...`."""
    return DimRange(min, max, multiple, example)


@dataclass(frozen=True)
class Parameter:
    """One parameter: its range where one is written, and its default where `given` is True."""

    name: str
    range: DimRange | None
    rules: tuple[Condition, ...]
    default: Any
    given: bool

    @property
    def may_be_size(self) -> bool:
        return not self.given or type(self.default) is int

    @property
    def dim(self) -> Dim:
        if self.range is None:
            return Dim(self.name, declared=bool(self.rules))
        return Dim(self.name, self.range.min, self.range.max, self.range.multiple, declared=True)


class FunctionError(DeclarationError):
    """The function of sizes raised at some sizes."""


@dataclass(frozen=True)
class SizesFunction:
    """The user's function with its parameters read, and the signature that its inputs must fit."""

    function: Callable[..., Any]
    parameters: tuple[Parameter, ...]
    forward: inspect.Signature

    def call(self, arguments: Mapping[str, Any]) -> BoundCall:
        """The inputs that the function gives, bound.

        Raises FunctionError with the user's own line, and DeclarationError where the function returns None.
        """
        name = getattr(self.function, "__name__", "the function").replace("<lambda>", "the lambda")
        try:
            given = self.function(**arguments)
        except Exception as error:
            refusal = function_refuses(arguments, error, source_of_error(error), name)
            raise FunctionError(refusal) from error
        if given is None:
            code = getattr(self.function, "__code__", None)
            source = make_source(code.co_filename, code.co_firstlineno) if code is not None else None
            taken = f"({', '.join(self.forward.parameters)})"
            raise DeclarationError(returns_nothing(name, source, taken))
        return bind_inputs(self.forward, given)


def read_function(
    function: Callable[..., Any], forward: inspect.Signature, example_sizes: Mapping[str, Any]
) -> SizesFunction:
    """The function's parameters; `example_sizes` stand in for its defaults."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:  # of C, or with a signature of its own making
        why = "a function of sizes is a Python function with a parameter for each size."
        raise DeclarationError(wrong_argument("inputs", function, why, "inputs=lambda batch=3: ...")) from error
    names = [name for name, parameter in signature.parameters.items() if parameter.kind not in _VARIABLE]
    for name in example_sizes:
        if name not in names:
            raise DeclarationError(unknown_parameter(name, names))
    hints = _hints(function)
    parameters = [_read(signature.parameters[name], hints.get(name), example_sizes) for name in names]
    return SizesFunction(function, tuple(parameters), forward)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Annotations as objects, also where the file keeps them as text."""
    target = function if inspect.isroutine(function) else getattr(function, "func", type(function).__call__)
    outer = inspect.getclosurevars(target).nonlocals if inspect.isfunction(target) else {}
    names = {**getattr(target, "__globals__", {}), **outer}
    return {name: _hint(name, hint, names) for name, hint in getattr(target, "__annotations__", {}).items()}


def _hint(name: str, hint: Any, names: dict[str, Any]) -> Any:
    """The annotation; one that only a type checker can read stays text, unless it may hold a range."""
    if not isinstance(hint, str):
        return hint
    try:
        return _hint(name, eval(hint, names), names)
    except DeclarationError:
        raise
    except Exception as error:
        if "range" in hint or "dim" in hint:
            raise DeclarationError(unreadable_range(name, hint, error)) from error
        return None


def _read(parameter: inspect.Parameter, hint: Any, example_sizes: Mapping[str, Any]) -> Parameter:
    written = hint if isinstance(hint, DimRange) else None
    rules: tuple[Condition, ...] = ()
    for extra in get_args(hint)[1:] if get_origin(hint) is Annotated else (hint,):
        if isinstance(extra, range):
            written, rules = _from_range(parameter.name, extra)
        elif isinstance(extra, DimRange):
            written = extra
    default = parameter.default
    if isinstance(default, DimRange):
        written, default = default, parameter.empty
    if default is parameter.empty and written is not None and written.example is not None:
        default = written.example
    default = example_sizes.get(parameter.name, default)
    if isinstance(default, np.integer):
        default = int(default)
    if written is not None and type(default) is not int:  # n: Annotated[int, range(1, 9)] = None
        default = parameter.empty
    given = default is not parameter.empty
    return Parameter(parameter.name, written, rules, default if given else None, given)


def _from_range(name: str, sizes: range) -> tuple[DimRange, tuple[Condition, ...]]:
    """range(8, 65, 8) has multiples of 8; range(1, 64, 2) has the odd sizes, which is a rule."""
    if not sizes or sizes.step < 0:
        return DimRange(max(sizes.start, 0), sizes.start - 1), ()
    if sizes.start % sizes.step == 0:
        return DimRange(sizes[0], sizes[-1], sizes.step), ()
    steps = (Ref(name) - sizes.start) % sizes.step
    return DimRange(sizes[0], sizes[-1]), (Compare("==", steps, Number(0)),)


def size_parameters(parameters: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """The parameters that may be sizes."""
    return tuple(parameter for parameter in parameters if parameter.may_be_size)
