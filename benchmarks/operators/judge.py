"""One case through one exporter: pass, refused, fails (at run time), wrong; with what was said.

Both exporters get the same module, the same open axes and the same sizes, and are judged by the same comparison.
"""

from __future__ import annotations

import inspect
import io
import re
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
import onnxruntime
import torch
from cases import Case, Module

OPSET = 18
_RELATIVE, _ABSOLUTE = 2e-3, 2e-4


def judge(case: Case, exporter: str) -> dict[str, Any]:
    """A row of the results."""
    began = time.monotonic()
    status, said, sizes = _judge(case, exporter)
    return {
        "operator": case.operator,
        "sample": case.number,
        "exporter": exporter,
        "status": status,
        "said": said[:300],
        "sizes": sizes,
        "dims": len(case.dims),
        "seconds": round(time.monotonic() - began, 2),
    }


def _judge(case: Case, exporter: str) -> tuple[str, str, int]:
    module = Module(case.call).eval()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            file = EXPORTERS[exporter](module, case)
        session = onnxruntime.InferenceSession(file, _quiet_options(), providers=["CPUExecutionProvider"])
    except Exception as error:  # an exporter may raise anything: that is the answer
        return "refused", _last_words(error), 0
    compared = 0
    for sizes in [case.sizes, *case.other_sizes()]:
        inputs = case.make(sizes)
        try:
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = module(*(tensor.clone() for tensor in inputs))
        except Exception:  # eager does not answer here
            continue
        try:
            actual = session.run(None, _feeds(session, inputs))
        except Exception as error:
            return "fails", f"at {sizes}: {_last_words(error)}", compared
        difference = _compare(expected, actual)
        if difference is not None:
            return "wrong", f"at {sizes}: {difference}", compared
        compared += 1
    return "pass", "", compared


def _feeds(session: Any, inputs: tuple[torch.Tensor, ...]) -> dict[str, np.ndarray]:
    """Inputs are called `tensors.0`, `tensors_1` and so on, by either exporter."""
    names = [item.name for item in session.get_inputs()]
    return {name: _array(inputs[int(re.split(r"[._]", name)[-1])]) for name in names}


def _array(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.detach().resolve_conj().resolve_neg()
    return (torch.view_as_real(tensor) if tensor.is_complex() else tensor).numpy()


def _compare(expected: Any, actual: list[np.ndarray]) -> str | None:
    arrays = [_array(tensor) for tensor in expected]
    if len(arrays) != len(actual):
        return f"{len(arrays)} outputs expected, {len(actual)} given"
    for number, (want, have) in enumerate(zip(arrays, actual, strict=True)):
        if want.shape != have.shape:
            return f"output {number}: shape {want.shape} expected, {have.shape} given"
        if want.dtype != have.dtype:
            return f"output {number}: {want.dtype} expected, {have.dtype} given"
        if want.dtype.kind != "f":
            if not np.array_equal(want, have):
                return f"output {number}: values differ"
        elif not np.allclose(have, want, rtol=_RELATIVE, atol=_ABSOLUTE, equal_nan=True):
            return f"output {number}: values differ"
    return None


@contextmanager
def _library_kept() -> Iterator[None]:
    """torch.onnx builds its operator library anew in every call, which takes longer than all else: here, once."""
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    library = _library(OPSET)
    build = ONNXRegistry.__dict__["from_torchlib"]
    ONNXRegistry.from_torchlib = classmethod(lambda cls, opset_version=OPSET: library)  # type: ignore[assignment]
    try:
        yield
    finally:
        ONNXRegistry.from_torchlib = build


@lru_cache(maxsize=1)
def _library(opset: int) -> Any:
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    return ONNXRegistry.from_torchlib(opset_version=opset)


def _export_torch(module: torch.nn.Module, case: Case) -> bytes:
    auto = torch.export.Dim.AUTO
    open_axes: list[dict[int, Any]] = [{} for _ in case.tensors]
    for places in case.dims.values():
        for tensor, axis in places:
            open_axes[tensor][axis] = auto
    with _library_kept():
        program = torch.onnx.export(
            module,
            case.tensors,
            dynamo=True,
            opset_version=OPSET,
            dynamic_shapes=(tuple(open_axes),),
            input_names=[f"tensors.{number}" for number in range(len(case.tensors))],
            verbose=False,
        )
    stream = io.BytesIO()
    program.save(stream)
    return stream.getvalue()


def _export_anyshape(module: torch.nn.Module, case: Case) -> bytes:
    import anyshape

    def inputs(**sizes: int) -> anyshape.Inputs:
        return anyshape.Inputs(case.make(sizes), {})

    parameters = [
        inspect.Parameter(dim, inspect.Parameter.KEYWORD_ONLY, default=size) for dim, size in case.sizes.items()
    ]
    inputs.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    # A sample is only ever made longer: that smaller ones are answered too is not asked of either exporter.
    where = [f"{dim} >= {size}" for dim, size in case.sizes.items()]
    result = anyshape.export(module, inputs, where=where, opset=OPSET, budget=2.0)
    return result.model_proto.SerializeToString()


EXPORTERS = {"torch.onnx": _export_torch, "anyshape": _export_anyshape}


def _quiet_options() -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return options


def _last_words(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {error}".replace("\n", " ")
