"""The file and the module in double precision: is a slight difference the formula's, or only rounding?

    float y = ReduceSum(x)    ->    double y = ReduceSum(x)

A long sum of equal numbers, a coordinate among hundreds of pixels: the runtime rounds otherwise than torch, and no
measure of the module can show how far. Where the file in doubles is within one noise floor of the module in doubles,
its formula is right: a file may differ by 8 noise floors, so this test is 8 times as strict as the usual one, and a file with a
wrong formula still fails. Half precision and
bfloat16 stay what they are: a file that rounds where the module does not is wrong, too. For the same reason it is not
used for a module that computes in doubles itself.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anyshape.runtime import ChildRunner
from anyshape.runtime.child_messages import Array, RunError, RuntimeRejected
from anyshape.verify.compare import OutputTolerance, epsilon, widen
from anyshape.verify.request import file_bytes, graphs_of
from anyshape.verify.tolerance import FACTOR

_FLOAT, _DOUBLE = 1, 11
_TYPED = ("to", "dtype", "output_datatype")
_MOST_BYTES = 1 << 28
_MOST_ELEMENTS = 1 << 20  # for the reference evaluator, which is plain Python
SLIGHT = 100.0
"""In tolerances: a difference that may be rounding."""


@contextmanager
def double_by_default() -> Iterator[None]:
    """Within this, the default dtype is float64."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class Float64Copy:
    """Made and started when it is first asked; a file that has none (too large, not to be run in doubles) answers None.

    Where onnxruntime has no kernel for doubles, onnx's own reference evaluator answers to inputs that are not large.
    """

    def __init__(self, path: str, hire: Callable[[str], ChildRunner]) -> None:
        self._path = path
        self._hire = hire
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._runner: ChildRunner | None = None
        self._referee: Any = None
        self._is_hopeless = file_bytes(path) > _MOST_BYTES

    def run(self, feeds: Mapping[str, Array], limit_s: float) -> list[Array] | None:
        """What the file answers when it computes in doubles."""
        wide = {name: array.astype(np.float64) if array.dtype == np.float32 else array for name, array in feeds.items()}
        try:
            return None if self._is_hopeless else self._run(wide, limit_s)
        except (RunError, ValueError):
            self._is_hopeless = True
            return None

    def _run(self, wide: dict[str, Array], limit_s: float) -> list[Array] | None:
        if self._referee is not None:
            return self._ask_referee(wide)
        try:
            return (self._runner or self._start()).submit(wide).result(limit_s)
        except RuntimeRejected as rejected:
            if not rejected.unsupported:
                raise
        self._referee = _referee(self._copy())
        return self._ask_referee(wide)

    def _ask_referee(self, wide: dict[str, Array]) -> list[Array] | None:
        if sum(array.size for array in wide.values()) > _MOST_ELEMENTS:
            return None
        try:
            return [np.asarray(array) for array in self._referee.run(None, wide)]
        except Exception as error:  # it is plain Python, and has its gaps
            raise ValueError("the reference evaluator does not run the file") from error

    def _start(self) -> ChildRunner:
        self._folder = tempfile.TemporaryDirectory(prefix="anyshape-")
        write_in_doubles(self._path, self._copy())
        self._runner = self._hire(str(self._copy()))
        return self._runner

    def _copy(self) -> Path:
        return Path(self._folder.name if self._folder is not None else "") / "float64.onnx"

    def close(self) -> None:
        """End the child and remove the copy."""
        if self._runner is not None:
            self._runner.close()
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self) -> Float64Copy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _referee(path: Path) -> Any:
    from onnx.reference import ReferenceEvaluator

    try:
        return ReferenceEvaluator(str(path))
    except Exception as error:
        raise ValueError("the reference evaluator does not read the file") from error


def rounding_of_file(
    expected: Sequence[Array],
    actual: Sequence[Array],
    doubles: tuple[Sequence[Array], Sequence[Array]],
    tolerances: Sequence[OutputTolerance],
) -> list[Array]:
    """How far the file's rounding alone moves each element; `doubles` are the module's and the file's answers.

    Zeros for an output that is not of single precision, and for one of which the two answers in doubles differ anywhere.
    """
    outputs = zip(expected, actual, *doubles, tolerances, strict=True)
    return [_rounding(*each) for each in outputs]


def _rounding(expected: Array, actual: Array, exact: Array, float64_copy: Array, allowed: OutputTolerance) -> Array:
    nothing = np.zeros(expected.shape)
    arrays = (expected, actual, exact, float64_copy)
    if expected.dtype != np.float32 or any(each.shape != expected.shape or each.dtype.kind != "f" for each in arrays):
        return nothing
    limit = allowed.tolerance.limit(widen(expected), epsilon(expected))
    if not np.isfinite(exact).all() or not (np.abs(exact - widen(float64_copy)) <= limit / FACTOR).all():
        return nothing
    distance = np.abs(widen(actual) - widen(expected))
    return np.where(distance <= SLIGHT * limit, distance, 0.0)


def write_in_doubles(path: str, target: Path) -> None:
    """A copy of a file in which everything that is float is double. Raises ValueError for one that cannot be copied."""
    import onnx

    try:
        model = onnx.load(path)
    except Exception as error:
        raise ValueError(f"{path} is not to be read") from error
    for graph in graphs_of(model):
        for tensor in getattr(graph, "initializer", ()):
            _double_tensor(tensor)
        for value in (*graph.input, *graph.output, *graph.value_info) if isinstance(graph, onnx.GraphProto) else ():
            _double_type(value.type)
        for node in graph.node:
            _double_node(node)
    onnx.save(model, target)


def _double_node(node: Any) -> None:
    from onnx import helper, numpy_helper

    for attribute in node.attribute:
        if attribute.HasField("t"):
            _double_tensor(attribute.t)
        if attribute.name in _TYPED and attribute.i == _FLOAT:
            attribute.i = _DOUBLE
        if attribute.name in ("value_float", "value_floats"):
            numbers = np.asarray(helper.get_attribute_value(attribute), np.float64)
            attribute.CopyFrom(helper.make_attribute("value", numpy_helper.from_array(numbers)))
    if node.op_type == "ConstantOfShape" and not node.attribute:
        node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(np.zeros(1))))


def _double_tensor(tensor: Any) -> None:
    from onnx import numpy_helper

    if tensor.data_type == _FLOAT:
        array = numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _double_type(kind: Any) -> None:
    if kind.HasField("sequence_type"):
        _double_type(kind.sequence_type.elem_type)
    elif kind.HasField("optional_type"):
        _double_type(kind.optional_type.elem_type)
    elif kind.tensor_type.elem_type == _FLOAT:
        kind.tensor_type.elem_type = _DOUBLE
