"""OpenVINO on the CPU: the only module of the package that imports it, and that lazily.

It runs ONNX files and its own IR (`.xml` beside `.bin`). Floats are computed as they are declared: on processors with bfloat16
OpenVINO would otherwise round every float32 to it. Exceptions are translated here into `RuntimeRejected` and `RuntimeFailed`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from anyshape.runtime.child_messages import Array, RuntimeFailed, RuntimeRejected, dtype_called
from anyshape.runtime.session import TensorInfo, is_out_of_memory

_DTYPES = {
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "bf16": "bfloat16",
    "boolean": "bool",
    **{f"{sign}{bits}": f"{kind}{bits}" for sign, kind in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)},
}
_AS_DECLARED = "ACCURACY"
_TELEMETRY = "openvino_telemetry"
# With one thread OpenVINO 2026.4 loses exceptions: a run that fails returns as if it had answered.
_FEWEST_THREADS = 2
AxisRange = tuple[int, int | None]
"""The smallest and the largest size of an axis; None where it has no end."""


def import_openvino() -> Any:
    """The package without its telemetry, which sends data over the network when openvino is imported.

    It does so in a fork of this process that outlives it. A program that imported openvino before has made that choice itself.
    """
    if "openvino" not in sys.modules:
        known = sys.modules.get(_TELEMETRY)
        sys.modules[_TELEMETRY] = None  # type: ignore[assignment]  # an import of it fails, and openvino goes on without
        try:
            importlib.import_module("openvino")
        finally:
            del sys.modules[_TELEMETRY]
            if known is not None:
                sys.modules[_TELEMETRY] = known
    import openvino

    return openvino


class OpenvinoSession:
    """A loaded model on the CPU; runs any number of times."""

    def __init__(self, model: str | PathLike[str], *, threads: int = 0, optimize: bool = True) -> None:
        """`threads` 0 leaves their number to OpenVINO; it always optimizes. Raises RuntimeRejected."""
        openvino = import_openvino()
        properties = openvino.properties
        core = openvino.Core()
        options: dict[Any, Any] = {properties.hint.execution_mode(): _AS_DECLARED}
        if threads:
            options[properties.inference_num_threads()] = max(threads, _FEWEST_THREADS)
        try:
            self._compiled = core.compile_model(core.read_model(fspath(model)), "CPU", options)
        except Exception as error:
            raise RuntimeRejected(_words(error), unsupported="not supported" in str(error).lower()) from error
        self._ports = {name: port for port in self._compiled.inputs for name in port.get_names()}
        self.inputs = tuple(map(_info, self._compiled.inputs))
        self.outputs = tuple(map(_info, self._compiled.outputs))

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        """The outputs in the file's order. Raises RuntimeFailed."""
        try:
            given = {self._ports[name]: _to_tensor(array) for name, array in feeds.items() if name in self._ports}
            request = self._compiled.create_infer_request()  # a new one: no output of an earlier run is in it
            request.infer(given)
            return [
                _from_tensor(request.get_output_tensor(place), info.dtype) for place, info in enumerate(self.outputs)
            ]
        except Exception as error:
            raise RuntimeFailed(_words(error), memory=is_out_of_memory(error)) from error


def save_ir(model: str | PathLike[str], target: Path, shapes: Mapping[str, Sequence[AxisRange]]) -> None:
    """Write the model as OpenVINO's IR, its inputs with these ranges, its weights as they are. Raises RuntimeRejected."""
    openvino = import_openvino()
    try:
        loaded = openvino.Core().read_model(fspath(model))
        ports = {name: port for port in loaded.inputs for name in port.get_names()}
        ranges = {
            ports[name]: openvino.PartialShape(
                [openvino.Dimension(low, -1 if high is None else high) for low, high in axes]
            )
            for name, axes in shapes.items()
            if name in ports
        }
        loaded.reshape(ranges)
        openvino.save_model(loaded, fspath(target), compress_to_fp16=False)
    except Exception as error:
        raise RuntimeRejected(_words(error)) from error


def openvino_version() -> str:
    """The installed version, without the build."""
    openvino = import_openvino()
    return str(openvino.__version__).partition("-")[0]


def _words(error: Exception) -> str:
    """OpenVINO's message in one line, without the lines that only name its own source files."""
    lines = [line.strip() for line in str(error).splitlines()]
    kept = [line for line in lines if line and not line.startswith("Exception from ")]
    return " ".join(kept) or str(error).strip() or type(error).__name__


def _info(port: Any) -> TensorInfo:
    name = min(port.get_names(), default="")
    kind = port.get_element_type().get_type_name()
    sizes = [int(axis.to_string()) if axis.is_static else None for axis in port.get_partial_shape()]
    return TensorInfo(name, _DTYPES.get(kind, kind), tuple(sizes))


def _to_tensor(array: Array) -> Any:
    openvino = import_openvino()
    if array.dtype.kind in "OUS":
        raise RuntimeFailed("OpenVINO takes no strings here")
    if array.dtype.name == "bfloat16":
        tensor = openvino.Tensor(openvino.Type.bf16, openvino.Shape(list(array.shape)))
        tensor.data.view(np.uint16)[...] = np.asarray(array, order="C").view(np.uint16)
        return tensor
    return openvino.Tensor(np.array(array, order="C"))


def _from_tensor(tensor: Any, dtype: str) -> Array:
    data: Array = np.array(tensor.data)  # a copy: the memory is the request's
    return data.view(dtype_called(dtype)) if dtype == "bfloat16" else data
