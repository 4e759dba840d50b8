"""What the user declared, one record for all forms: the root of everything downstream.

Leaves stand in the order of the signature. A leaf is a tensor, a constant (a Python value that is part of the file) or
a scalar (a Python int or float that is an input of the file); tensors and scalars are *open*.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import torch

from anyshape.domain import Domain, Expr, Sizes, evaluate, format_expr
from anyshape.findings import DeclarationError, Finding
from anyshape.inputs.axis_messages import format_shape, made_otherwise
from anyshape.inputs.call_messages import structure_changes, too_many_names, unknown_output
from anyshape.inputs.calls import Array, BoundCall, Inputs, as_array, bind_inputs
from anyshape.inputs.structure import Absent

Kind = Literal["tensor", "constant", "scalar"]
Way = Literal["function", "words", "examples", "auto", "static"]


@dataclass(frozen=True)
class InputLeaf:
    """One leaf of the inputs.

    `axes` has the size of each axis as an expression of the dims, a Number where it is static. `value` is a constant's
    value; of an int scalar the expression that its value follows, of a float scalar its value in the example.
    """

    path: str
    name: str
    kind: Kind
    dtype: str
    axes: tuple[Expr, ...] = ()
    value: object = None

    @property
    def is_open_number(self) -> bool:
        """Whether the leaf is a Python number that is an input of the file."""
        return self.kind == "scalar"

    @property
    def file_dtype(self) -> str:
        """The dtype of the input in the file, of tensors and scalars alike."""
        return self.dtype

    @property
    def number(self) -> Expr | None:
        """What the value of an int scalar is, as an expression of the dims; None for everything else."""
        return self.value if self.kind == "scalar" and isinstance(self.value, Expr) else None

    def shape(self, sizes: Sizes) -> tuple[int, ...]:
        """The shape at these sizes."""
        return tuple(evaluate(axis, sizes) for axis in self.axes)


@dataclass(frozen=True)
class ValueParameter:
    """A parameter of a function of sizes that is no size: it varies freely, and its first choice is its default."""

    name: str
    choices: tuple[Any, ...]

    @property
    def default(self) -> Any:
        return self.choices[0]


class Make(Protocol):
    """Inputs at these sizes: the same for the same seed, torch's random numbers left as they were."""

    def __call__(self, sizes: Sizes, seed: int = 0, /) -> Inputs: ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Declared:
    """Domain, leaves, an example, and a way to make inputs at other sizes.

    `output_axes` has the names that the user gave to axes of outputs: {output: {axis: expression}}. `value_texts` has the
    declared values of inputs by name (`given`: what the user's function gives, and nothing else); `value_ranges(sizes)` has
    their lowest and highest. `unnamed` are dims of axes that the user declared without a name and without a range
    (`Dim.DYNAMIC`, `{"x": [0, 1]}`): their names are ours.
    """

    domain: Domain
    leaves: tuple[InputLeaf, ...]
    example: Inputs
    example_sizes: Mapping[str, int]
    make: Make
    source: Way
    signature: inspect.Signature
    bound: BoundCall
    values: tuple[ValueParameter, ...] = ()
    output_axes: Mapping[str, Mapping[int, Expr]] = field(default_factory=dict)
    output_names: tuple[str, ...] | None = None
    notes: tuple[Finding, ...] = ()
    unnamed: frozenset[str] = frozenset()
    value_texts: Mapping[str, str] = field(default_factory=dict)
    value_ranges: Callable[[Sizes], Mapping[str, tuple[float, float]]] = field(default=lambda sizes: {})

    @property
    def only_given_values(self) -> bool:
        """Whether no values but those of the user's function are legal."""
        return "given" in self.value_texts.values()

    @property
    def tensor_leaves(self) -> tuple[InputLeaf, ...]:
        return tuple(leaf for leaf in self.leaves if leaf.kind == "tensor")

    @property
    def open_leaves(self) -> tuple[InputLeaf, ...]:
        """The leaves that are inputs of the file: tensors and scalars."""
        return tuple(leaf for leaf in self.leaves if leaf.kind != "constant")

    @property
    def constants(self) -> dict[str, object]:
        """Path -> value of everything that is part of the file, arguments that were declared as None among it."""
        values: dict[str, object] = {leaf.path: leaf.value for leaf in self.leaves if leaf.kind == "constant"}
        return values | {each.path: None for each in self.bound.passed if isinstance(each.structure, Absent)}

    def flat(self, inputs: Any) -> list[Any]:
        """The leaves' values in leaf order, constants included. Raises DeclarationError on another structure."""
        bound = bind_inputs(self.signature, inputs)
        if bound.paths != self.bound.paths:
            raise DeclarationError(structure_changes(", ".join(self.bound.paths), ", ".join(bound.paths), "everywhere"))
        return bound.values

    def open_values(self, inputs: Any) -> list[Any]:
        """The values of the open leaves alone."""
        return [value for leaf, value in zip(self.leaves, self.flat(inputs), strict=True) if leaf.kind != "constant"]

    def rebuild(self, values: Sequence[Any]) -> Inputs:
        """Inputs with these values: of all leaves, or of the open ones, the constants then being the declared ones."""
        if len(values) == len(self.open_leaves):
            rest = iter(values)
            values = [leaf.value if leaf.kind == "constant" else next(rest) for leaf in self.leaves]
        return self.bound.rebuild(values)

    def call(self, module: Callable[..., Any], inputs: Inputs) -> Any:
        """The outputs of the module."""
        return module(*inputs.args, **inputs.kwargs)

    def elements(self, sizes: Sizes) -> int:
        """How many elements all inputs have together at these sizes."""
        return sum(math.prod(leaf.shape(sizes)) for leaf in self.open_leaves)

    def feeds(self, inputs: Any) -> dict[str, Array]:
        """What the file is fed: an array for each open leaf, by its name in the file."""
        values = self.open_values(inputs)
        return {leaf.name: as_array(value, leaf.dtype) for leaf, value in zip(self.open_leaves, values, strict=True)}

    def name_outputs(self, paths: Sequence[str]) -> tuple[str, ...]:
        """The outputs' names in the file: the user's, else their paths. Raises DeclarationError on one too many."""
        names = self.output_names or ()
        if len(names) > len(paths):
            raise DeclarationError(too_many_names(names, paths, "output"))
        inputs = [leaf.name for leaf in self.open_leaves]
        own = [f"output.{path}" if path in inputs else path for path in paths[len(names) :]]
        for name in self.output_axes:
            if name not in (*names, *own):
                raise DeclarationError(unknown_output(name, inputs, [*names, *own]))
        return (*names, *own)

    @property
    def paste(self) -> str:
        """The declaration as words, to paste into a call: `dynamic={"x": "batch seq 64"}`."""
        words = {leaf.path: " ".join(_word(axis) for axis in leaf.axes) for leaf in self.tensor_leaves if leaf.axes}
        scalars = {leaf.path: "value" for leaf in self.leaves if leaf.kind == "scalar"}
        inside = ", ".join(f'"{path}": "{text}"' for path, text in {**words, **scalars}.items())
        return f"dynamic={{{inside}}}"


def dtype_of(value: Any) -> str:
    """`float32` of a tensor; `int`, `float`, `bool`, `str` of a Python value."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype).removeprefix("torch.")
    return type(value).__name__


def check_values(leaves: Sequence[InputLeaf], values: Sequence[Any], sizes: Sizes) -> None:
    """Raise DeclarationError unless the values have exactly the declared shapes, dtypes and constants."""
    for leaf, value in zip(leaves, values, strict=True):
        expected, actual = _expected(leaf, sizes), _actual(leaf, value)
        if actual != expected:
            raise DeclarationError(made_otherwise(leaf.path, expected, actual, sizes))


def _word(axis: Expr) -> str:
    return format_expr(axis).replace(" ", "")


def _expected(leaf: InputLeaf, sizes: Sizes) -> str:
    if leaf.kind == "tensor":
        return f"{leaf.dtype}{format_shape(leaf.shape(sizes))}"
    if leaf.kind == "constant":
        return repr(leaf.value)
    return repr(evaluate(leaf.number, sizes)) if leaf.number is not None else "a float"


def _actual(leaf: InputLeaf, value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{dtype_of(value)}{format_shape(value.shape)}"
    return "a float" if leaf.kind == "scalar" and leaf.number is None and isinstance(value, float) else repr(value)
