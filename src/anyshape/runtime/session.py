"""onnxruntime and its execution providers: the only module of the package that imports it, and that lazily.

Its exceptions are translated here, once, into `RuntimeRejected` and `RuntimeFailed`.

For a bfloat16 file, its message names only the first operator without a kernel on the CPU. To find all of them, each operator
that reads or gives bfloat16 is loaded alone, as a model of one node.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

import numpy as np

from anyshape.findings import Finding, UsageError, nearest_choice
from anyshape.runtime.child_messages import (
    EXTENDED,
    Array,
    RuntimeFailed,
    RuntimeRejected,
    dtype_called,
    dtype_of_ort_type,
    from_raw,
)
from anyshape.runtime.custom_node_plan import every_node

CPU = "CPUExecutionProvider"
_QUIET = 4  # only fatal messages: whatever matters reaches us as an exception
_WEIGHTS_FOLDER = "session.model_external_initializers_file_folder_path"
_SPINNING = "session.intra_op.allow_spinning"
_ONE_NODE = '<ir_version: 8, opset_import: ["" : 17]> one (float[n] x) => (float[n] y) { y = Identity(x) }'
_OUT_OF_MEMORY = ("bad_alloc", "failed to allocate", "bad allocation", "allocate memory", "out of memory")
_BFLOAT16 = 16
NO_TELEMETRY = ("ORT_DISABLE_TELEMETRY", "1")


def import_onnxruntime() -> Any:
    """The package without its telemetry, unless the user has set the variable that decides about it.

    From version 1.31 on it writes to ~/.cache/Microsoft and to the folder for temporary files, and sends data over the network.
    """
    os.environ.setdefault(*NO_TELEMETRY)
    import onnxruntime

    return onnxruntime


def check_providers(wanted: Sequence[str] | None) -> tuple[str, ...]:
    """The providers in this order, CPU alone for None.

    Raises UsageError for one that this onnxruntime does not have (AS422), and for one that does not start here (AS424):
    onnxruntime itself would run the file on the CPU, with a line in its log.
    """
    if wanted is None:
        return (CPU,)
    available = available_providers()
    for each in wanted:
        if each not in available:
            raise UsageError(_unknown(each, available))
    started = [CPU] if set(wanted) <= {CPU} else started_providers(wanted)
    for each in wanted:
        if each not in started:
            raise UsageError(not_started(each, started))
    return tuple(wanted)


def not_started(name: str, started: Sequence[str]) -> Finding:
    """AS424: the provider is part of this build of onnxruntime, and cannot run here."""
    return Finding(
        code="AS424",
        name="provider-not-started",
        what=f"onnxruntime has the execution provider {name!r}, but cannot start it here.",
        why=f"it would run the file with {', '.join(started)} instead: a device, a driver or a library is missing.",
        fix=f"providers={list(started)!r}",
        alternative="onnxruntime.set_default_logger_severity(0) before the call shows the reason in its log.",
    )


def _unknown(name: str, available: Sequence[str]) -> Finding:
    near = nearest_choice(name, available)
    return Finding(
        code="AS422",
        name="unknown-provider",
        what=f"onnxruntime has no execution provider {name!r} here.",
        why=f"it has {', '.join(available)}.",
        fix=f"providers=[{(near or CPU)!r}]",
        alternative="install the build of onnxruntime for that device, such as onnxruntime-gpu for CUDA.",
    )


@dataclass(frozen=True)
class TensorInfo:
    """An input or output as the file declares it; a dim is an int, a name, or None where the file has nothing."""

    name: str
    dtype: str
    shape: tuple[int | str | None, ...]


class Session:
    """A loaded model, on the CPU unless other providers are given; runs any number of times."""

    def __init__(
        self,
        model: str | PathLike[str] | bytes,
        *,
        threads: int = 0,
        optimize: bool = True,
        weights_in: str | None = None,
        providers: Sequence[str] = (CPU,),
        spinning: bool = True,
    ) -> None:
        """`threads` is for one operator; 0 leaves it to onnxruntime. Raises RuntimeRejected.

        With `optimize` False every node runs as it stands in the file. `weights_in` is the folder of the weights that lie
        outside a model given as bytes. With `spinning` False idle threads sleep, which keeps measurements apart.
        """
        onnxruntime = import_onnxruntime()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = _QUIET
        options.intra_op_num_threads = threads
        if not optimize:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        if weights_in is not None:
            options.add_session_config_entry(_WEIGHTS_FOLDER, weights_in)
        if not spinning:
            options.add_session_config_entry(_SPINNING, "0")
        source = model if isinstance(model, bytes) else fspath(model)
        try:
            self._session = onnxruntime.InferenceSession(source, options, providers=list(providers))
        except Exception as error:
            raise RuntimeRejected(str(error), unsupported=type(error).__name__ == "NotImplemented") from error
        missing = [each for each in providers if each not in self._session.get_providers()]
        if missing:  # onnxruntime only warns
            raise RuntimeRejected(f"onnxruntime did not start {missing[0]}")
        self.inputs = tuple(_info(value) for value in self._session.get_inputs())
        self.outputs = tuple(_info(value) for value in self._session.get_outputs())

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        """The outputs in the file's order. Raises RuntimeFailed."""
        try:
            if any(info.dtype in EXTENDED for info in (*self.inputs, *self.outputs)):
                results = self._run_extended(feeds)
            else:
                results = self._session.run(None, dict(feeds))
        except Exception as error:
            raise RuntimeFailed(str(error) or type(error).__name__, memory=is_out_of_memory(error)) from error
        return [_as_array(info, result) for info, result in zip(self.outputs, results, strict=True)]

    def _run_extended(self, feeds: Mapping[str, Array]) -> list[Any]:
        """Run the model through OrtValues: onnxruntime takes no numpy arrays of these types."""
        values = {name: _to_ort(np.asarray(array)) for name, array in feeds.items()}
        names = [info.name for info in self.outputs]
        return [_from_ort(value) for value in self._session.run_with_ort_values(names, values)]


def write_optimized(source: str, target: str) -> None:
    """Write `source` as onnxruntime's own optimizer changes it for the CPU to `target`. Raises RuntimeRejected.

    At the level "extended": nodes are fused to operators of the domain com.microsoft, and run on every processor. The level
    above it chooses layouts for the processor of this machine.
    """
    onnxruntime = import_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _QUIET
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = target
    try:
        onnxruntime.InferenceSession(source, options, providers=[CPU])
    except Exception as error:
        raise RuntimeRejected(str(error)) from error


def available_providers() -> list[str]:
    """The execution providers of the onnxruntime that is installed."""
    return list(import_onnxruntime().get_available_providers())


def started_providers(wanted: Sequence[str]) -> list[str]:
    """The providers that really start; onnxruntime leaves out the others without an exception."""
    from onnx import parser

    onnxruntime = import_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _QUIET
    model = parser.parse_model(_ONE_NODE).SerializeToString()
    try:
        session = onnxruntime.InferenceSession(model, options, providers=list(wanted))
    except Exception:  # some builds raise instead
        return [CPU]
    return list(session.get_providers())


def _info(value: Any) -> TensorInfo:
    return TensorInfo(value.name, dtype_of_ort_type(value.type) or value.type, tuple(value.shape or ()))


def _as_array(info: TensorInfo, result: Any) -> Array:
    if not isinstance(result, np.ndarray):
        raise RuntimeFailed(f"output {info.name!r} is {info.dtype}, not a tensor")
    return result


def is_out_of_memory(error: Exception) -> bool:
    """Whether a runtime raised because it could not allocate."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or any(words in text for words in _OUT_OF_MEMORY)


def _to_ort(array: Array) -> Any:
    made = import_onnxruntime().OrtValue
    element_type = EXTENDED.get(array.dtype.name)
    if element_type is None:
        return made.ortvalue_from_numpy(array)
    carrier = np.asarray(array, order="C").view(np.dtype(f"u{array.dtype.itemsize}"))
    return made.ortvalue_from_numpy_with_onnx_type(carrier, element_type)


def _from_ort(value: Any) -> Any:
    name = dtype_of_ort_type(value.data_type())
    if name not in EXTENDED:
        return value.numpy()
    # `numpy()` refuses these types, so the bytes are copied from where the value keeps them.
    data = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes()) if 0 not in value.shape() else b""
    return from_raw(data, dtype_called(name), tuple(value.shape()))


def find_lacking_kernels(path: str) -> tuple[str, ...]:
    """The types of the operators on bfloat16 without a kernel on the CPU, in the order of their names; empty where the types
    inside the file are unknown."""
    import onnx

    try:
        model = onnx.shape_inference.infer_shapes(onnx.load(path, load_external_data=False))
    except Exception:  # a model that is too large for one message
        return ()
    types = dict(_types(model.graph))
    found: set[str] = set()
    tried: set[tuple[Any, ...]] = set()
    for node in every_node(model.graph):
        names = [*filter(None, node.input), *node.output]
        key = (node.domain, node.op_type, *(types.get(name) for name in names))
        has_graph = any(attribute.HasField("g") for attribute in node.attribute)
        if _BFLOAT16 not in key or None in key or has_graph or key in tried:
            continue
        tried.add(key)
        if _is_unsupported(_one_node(model, node, types)):
            found.add(node.op_type)
    return tuple(sorted(found))


def _types(graph: Any) -> Any:
    """Name and element type of each value, those of inner graphs included."""
    for value in (*graph.input, *graph.output, *graph.value_info):
        yield value.name, value.type.tensor_type.elem_type or None
    yield from ((tensor.name, tensor.data_type) for tensor in graph.initializer)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _types(attribute.g)


def _one_node(model: Any, node: Any, types: dict[str, Any]) -> bytes:
    """The node as a model, its values without shapes."""
    from onnx import helper

    inputs, outputs = (
        [helper.make_tensor_value_info(name, types[name], None) for name in dict.fromkeys(names) if name]
        for names in (node.input, node.output)
    )
    graph = helper.make_graph([node], "one", inputs, outputs)
    made = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    data: bytes = made.SerializeToString()
    return data


def _is_unsupported(model: bytes) -> bool:
    try:
        Session(model, threads=1, optimize=False)
    except RuntimeRejected as error:
        return error.unsupported
    return False
