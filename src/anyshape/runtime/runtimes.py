"""What runs ONNX files: RUNTIMES, each a name and a function that opens a file; and models with custom nodes, run in
pieces.

A runtime gives an `AnySession`: it has `inputs`, `outputs` and `run(feeds)`, and raises RuntimeRejected and RuntimeFailed.

`PiecedSession`, which runs a model with custom nodes, has the interface of `Session`. The Python function of a custom node gets
arrays of its own and may keep or change them; what it returns is checked against the file's types, because no runtime does it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from anyshape.findings import Finding, UsageError, check_choice
from anyshape.findings.finding import text_of_error
from anyshape.runtime.child_messages import Array, RunError, RuntimeFailed, RuntimeRejected
from anyshape.runtime.custom_node_plan import Call, Choice, Piece, Plan, plan_pieces
from anyshape.runtime.openvino_session import OpenvinoSession
from anyshape.runtime.session import CPU, Session, TensorInfo

if TYPE_CHECKING:
    import onnx


class AnySession(Protocol):
    """A loaded file."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]

    def run(self, feeds: Mapping[str, Array]) -> list[Array]: ...


class Opens(Protocol):
    """Opens a file. Raises RuntimeRejected."""

    def __call__(
        self,
        path: str | PathLike[str],
        operators: Mapping[str, Callable[..., Any]],
        /,
        *,
        threads: int = 0,
        optimize: bool = True,
        providers: Sequence[str] = (CPU,),
    ) -> AnySession: ...


@dataclass(frozen=True)
class Runtime:
    """`package` is what has to be installed, `extra` the extra of anyshape that installs it ("": it always is)."""

    name: str
    open: Opens
    package: str
    extra: str = ""


def _open_openvino(
    path: str | PathLike[str],
    operators: Mapping[str, Callable[..., Any]],
    *,
    threads: int = 0,
    optimize: bool = True,
    providers: Sequence[str] = (CPU,),
) -> AnySession:
    if operators:
        raise RuntimeRejected(f"OpenVINO has no operator {next(iter(operators))}", unsupported=True)
    return OpenvinoSession(path, threads=threads, optimize=optimize)


def open_session(
    model: str | PathLike[str] | bytes,
    operators: Mapping[str, Operator],
    *,
    threads: int = 0,
    optimize: bool = True,
    providers: Sequence[str] = (CPU,),
) -> Session | PiecedSession:
    """The model in one piece if there are no custom nodes to run. Raises RuntimeRejected."""
    if not operators:
        return Session(model, threads=threads, optimize=optimize, providers=providers)
    return PiecedSession(model, operators, threads=threads, optimize=optimize, providers=providers)


ONNXRUNTIME = Runtime("onnxruntime", open_session, "onnxruntime")
OPENVINO = Runtime("openvino", _open_openvino, "openvino", extra="openvino")
RUNTIMES = (ONNXRUNTIME, OPENVINO)


def runtime_called(name: str) -> Runtime:
    """The runtime of this name. Raises UsageError (AS060) for another word."""
    check_choice("runtime", name, [runtime.name for runtime in RUNTIMES])
    return next(runtime for runtime in RUNTIMES if runtime.name == name)


def check_runtime(name: str) -> Runtime:
    """The runtime of this name. Raises UsageError (AS060, or AS556 where its package is not installed)."""
    runtime = runtime_called(name)
    if find_spec(runtime.package) is None:
        raise UsageError(package_missing(runtime.package, runtime.extra))
    return runtime


def package_missing(package: str, extra: str) -> Finding:
    """AS556: an optional package is not installed."""
    return Finding(
        code="AS556",
        name="package-missing",
        what=f"this needs the package {package!r}, which is not installed.",
        fix=f'pip install "anyshape[{extra}]"',
        is_fix_untried=True,
    )


Operator = Callable[..., Any]


class PiecedSession:
    """A loaded model with custom nodes; runs any number of times."""

    def __init__(
        self,
        model: str | PathLike[str] | bytes,
        operators: Mapping[str, Operator],
        *,
        threads: int = 0,
        optimize: bool = True,
        providers: Sequence[str] = (CPU,),
    ) -> None:
        """`operators` are by node: `mylib::Scale`; the rest is as for `Session`. Raises RuntimeRejected."""
        folder = None if isinstance(model, bytes) else str(Path(fspath(model)).absolute().parent)
        proto = _read(model)
        self._operators = dict(operators)
        self._plan = plan_pieces(proto, operators)
        self._weights = _weights(proto, self._plan, folder)
        self._sessions = {
            piece.model: Session(
                piece.model, threads=threads, optimize=optimize, weights_in=folder, providers=providers
            )
            for piece in _pieces(self._plan)
        }
        taken = {tensor.name for tensor in proto.graph.initializer}
        self.inputs = tuple(_info(value) for value in proto.graph.input if value.name not in taken)
        self.outputs = tuple(_info(value) for value in proto.graph.output)

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        """The outputs in the file's order. Raises RuntimeFailed."""
        wanted = [info.name for info in self.inputs]
        if set(feeds) != set(wanted):
            raise RuntimeFailed(f"the model takes {', '.join(wanted)}, and was given {', '.join(feeds)}")
        return self._run(self._plan, {**self._weights, **feeds})

    def _run(self, plan: Plan, values: dict[str, Array]) -> list[Array]:
        for step in plan.steps:
            if isinstance(step, Piece):
                given = self._sessions[step.model].run({name: values[name] for name in step.inputs})
            elif isinstance(step, Choice):
                branch = step.then if bool(values[step.condition]) else step.otherwise
                given = self._run(branch, dict(values))
            else:
                given = self._call(step, values)
            values |= zip(step.outputs, given, strict=True)
        return [values[name] for name in plan.outputs]

    def _call(self, call: Call, values: Mapping[str, Array]) -> list[Array]:
        inputs = [None if name is None else values[name].copy() for name in call.inputs]
        try:
            result = self._operators[call.operator](*inputs, **call.attributes)
            given = [np.asarray(each) for each in (result if isinstance(result, (tuple, list)) else [result])]
        except RunError:
            raise
        except Exception as error:
            raise RuntimeFailed(
                f"operator {call.operator} raised {type(error).__name__}: {text_of_error(error)}"
            ) from error
        return _checked(call, given)


def _checked(call: Call, given: list[Array]) -> list[Array]:
    from onnx.helper import tensor_dtype_to_np_dtype

    if len(given) != len(call.outputs):
        raise RuntimeFailed(f"operator {call.operator} gave {len(given)} values, and the file has {len(call.outputs)}")
    for array, element_type in zip(given, call.dtypes, strict=True):
        if element_type and array.dtype != tensor_dtype_to_np_dtype(element_type):
            expected = tensor_dtype_to_np_dtype(element_type).name
            raise RuntimeFailed(f"operator {call.operator} gave {array.dtype.name}, and the file says {expected}")
    return given


def _read(model: str | PathLike[str] | bytes) -> onnx.ModelProto:
    import onnx

    try:
        if isinstance(model, bytes):
            return onnx.load_model_from_string(model)
        return onnx.load(fspath(model), load_external_data=False)
    except Exception as error:
        raise RuntimeRejected(str(error)) from error


def _weights(model: onnx.ModelProto, plan: Plan, folder: str | None) -> dict[str, Array]:
    """The weights that functions, rather than onnxruntime, read."""
    from onnx.numpy_helper import to_array

    read = set(_read_by_us(plan))
    found = [tensor for tensor in model.graph.initializer if tensor.name in read]
    return {tensor.name: to_array(tensor, folder or "") for tensor in found}


def _read_by_us(plan: Plan) -> list[str]:
    read = list(plan.outputs)
    for step in plan.steps:
        if isinstance(step, Call):
            read += [name for name in step.inputs if name is not None]
        elif isinstance(step, Choice):
            read += [step.condition, *_read_by_us(step.then), *_read_by_us(step.otherwise)]
    return read


def _pieces(plan: Plan) -> list[Piece]:
    found: list[Piece] = []
    for step in plan.steps:
        if isinstance(step, Piece):
            found.append(step)
        elif isinstance(step, Choice):
            found += [*_pieces(step.then), *_pieces(step.otherwise)]
    return found


def _info(value: onnx.ValueInfoProto) -> TensorInfo:
    from onnx.helper import tensor_dtype_to_np_dtype

    tensor = value.type.tensor_type
    shape = tuple(size.dim_value if size.HasField("dim_value") else size.dim_param or None for size in tensor.shape.dim)
    dtype = tensor_dtype_to_np_dtype(tensor.elem_type).name if tensor.elem_type else ""  # a file need not say it
    return TensorInfo(value.name, dtype, shape)
