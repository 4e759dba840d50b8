"""What the graph of any ONNX file declares of itself, as a contract that promises nothing.

The names of dims are kept where they are expressions that we can read; any other name becomes one dim of a name that
can be written, so that equal names stay equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from keyword import iskeyword
from typing import TYPE_CHECKING

from anyshape.domain import Dim, Domain, Expr, Number, Ref, dims_of, is_about, parse_expr
from anyshape.findings import DeclarationError, Finding, UsageError
from anyshape.records.contract import Contract, TensorPromise

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir


def contract_of_foreign(model: onnx.ModelProto | ir.Model) -> Contract:
    """Inputs, outputs and dims as the graph declares them, with status unknown and every dim from 1 without an end.

    An axis of an input without a name becomes a dim named after it (`x_0`); an axis of an output that mentions
    dims that no input has is None. An output whose rank the file does not declare has no axes. Raises UsageError on what
    is no tensor, and on inputs of unknown rank.
    """
    import onnx_ir as ir

    loaded = model if isinstance(model, ir.Model) else ir.from_proto(model)
    names = _Names()
    graph = loaded.graph
    for value in graph.inputs:  # names that read as they are come first: nobody else may take them
        names.reserve(value)
    inputs = [_tensor(value, names, is_input=True) for value in graph.inputs if value.name not in graph.initializers]
    dims = tuple(dict.fromkeys(name for tensor in inputs for axis in tensor.axes if axis for name in dims_of(axis)))
    outputs = [_known_only(_tensor(value, names, is_input=False), dims) for value in graph.outputs]
    return Contract(
        status="unknown",
        domain=Domain(tuple(Dim(name) for name in dims)),
        rules=(),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        opset=graph.opset_imports.get("", 0),
        versions={loaded.producer_name: loaded.producer_version or ""} if loaded.producer_name else {},
    )


def _tensor(value: ir.Value, names: _Names, is_input: bool) -> TensorPromise:
    name = value.name or ""
    if value.dtype is None or type(value.type).__name__ != "TensorType":
        raise UsageError(_not_a_tensor(value, "input" if is_input else "output"))
    if value.shape is None and is_input:
        raise UsageError(_no_rank(name))
    axes = [names.expr(name, axis, size, is_input) for axis, size in _sizes(value)]
    return TensorPromise(name, name, dtype_name(value.dtype), tuple(axes))


def dtype_name(dtype: ir.DataType) -> str:
    """As numpy and torch call it; `string` for texts."""
    name = dtype.numpy().name
    return "string" if name == "object" else name


def _sizes(value: ir.Value) -> Iterator[tuple[int, int | str | None]]:
    """Axis and size: a number, a name, or None. A negative number is how some exporters write that they do not know."""
    for axis, size in enumerate(value.shape or ()):
        if isinstance(size, int):
            yield axis, size if size >= 0 else None
        else:
            yield axis, size.value or None


def _known_only(tensor: TensorPromise, dims: tuple[str, ...]) -> TensorPromise:
    axes = (axis if axis is not None and is_about(axis, dims) else None for axis in tensor.axes)
    return TensorPromise(tensor.name, tensor.path, tensor.dtype, tuple(axes))


class _Names:
    """The dims of one file: which expression each of its names is."""

    def __init__(self) -> None:
        self._exprs: dict[str, Expr] = {}
        self._taken: set[str] = set()

    def reserve(self, value: ir.Value) -> None:
        for _, size in _sizes(value):
            if isinstance(size, str) and size not in self._exprs:
                expr = _readable(size)
                if expr is not None:
                    self._exprs[size] = expr
                    self._taken.update(dims_of(expr))

    def expr(self, tensor: str, axis: int, size: int | str | None, is_input: bool) -> Expr | None:
        if isinstance(size, int):
            return Number(size)
        if size is None:
            return Ref(self._free(f"{tensor}_{axis}")) if is_input else None
        if size not in self._exprs:
            readable = _readable(size)
            self._exprs[size] = Ref(self._free(size)) if readable is None else readable
        return self._exprs[size]

    def _free(self, text: str) -> str:
        """A name like the text that can be written, and that is not taken yet."""
        name = re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_") or "dim"
        name = f"_{name}" if name[0].isdigit() or iskeyword(name) else name
        number, free = 2, name
        while free in self._taken:
            free, number = f"{name}_{number}", number + 1
        self._taken.add(free)
        return free


def _readable(text: str) -> Expr | None:
    try:
        expr = parse_expr(text)
    except DeclarationError:
        return None
    return expr if dims_of(expr) else None


def _not_a_tensor(value: ir.Value, kind: str) -> Finding:
    return Finding(
        code="AS048",
        name="not-a-tensor",
        what=f"{kind} {value.name!r} of the file is {value.type or 'of no known type'}, not a tensor.",
        why="anyshape speaks of tensors only, not of sequences, maps and optional values.",
    )


def _no_rank(name: str) -> Finding:
    return Finding(
        code="AS048",
        name="not-a-tensor",
        what=f"the file does not say how many axes input {name!r} has.",
        why="without them there are no sizes to speak of.",
        fix="export it again with shapes for its inputs.",
    )
