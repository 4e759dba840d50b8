"""One case through one exporter: pass, refused, fails, wrong or crashed; with what was said.

Both exporters get the same module, the same open axes and the same sizes, and are judged by the same comparison.
"""

from __future__ import annotations

import inspect
import io
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
import onnxruntime
import torch
from cases import FAR, Case, Module

OPSET = 18
_FEW = (0.0, -0.0, 1.0, -1.0, 0.5, -2.0)
_RELATIVE, _ABSOLUTE, _TIMES_STRAY = 2e-3, 2e-4, 4.0


def judge(case: Case, exporter: str, tell: Callable[[str], None]) -> dict[str, Any]:
    """A row of the results, without its key. `tell` hears what is being done, since a runtime may end the process."""
    began = time.monotonic()
    module = Module(case.call).eval()
    status, said, because, sizes = "pass", "", "", 0
    tell("exporting")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            file = EXPORTERS[exporter](module, case)
    except Exception as error:  # an exporter may raise anything: that is the answer
        status, said, because = kind_of(error), _last_words(error), _innermost(error)
    else:
        exported = time.monotonic()
        tell("running the file")
        status, said, sizes = _run(module, case, file)
        tell(f"done: {exported - began:.2f} s to export")
    return {
        "status": status,
        "said": said[:300],
        "because": because[:600],
        "sizes": sizes,
        "dims": len(case.dims),
        "seconds": round(time.monotonic() - began, 2),
    }


def kind_of(error: Exception) -> str:
    """Refused where the exporter says so in its own errors; crashed where it says that it is at fault, or nothing at all."""
    from torch.onnx import OnnxExporterError

    from anyshape import AnyshapeError

    if isinstance(error, AnyshapeError):
        codes = [finding.code for finding in error.findings]
        if any(code.startswith("AS9") for code in codes):
            return "crashed"
        return "unverified" if codes and all(code.startswith("AS3") for code in codes) else "refused"
    return "refused" if isinstance(error, OnnxExporterError) else "crashed"


def _run(module: torch.nn.Module, case: Case, file: bytes) -> tuple[str, str, int]:
    """Status, words, and at how many sizes the file was right."""
    try:
        session = onnxruntime.InferenceSession(file, _quiet_options(), providers=["CPUExecutionProvider"])
    except Exception as error:
        return "fails", f"not loaded: {_last_words(error)}", 0
    compared = 0
    calls = [(str(sizes), case.make(sizes)) for sizes in [case.sizes, *case.other_sizes()]]
    for sizes, inputs in [*calls, *_with_edge_values(case)]:
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
        if difference is not None and _is_wrong(module, inputs, expected, actual):
            return "wrong", f"at {sizes}: {difference}", compared
        compared += 1
    return "pass", "", compared


def _with_edge_values(case: Case) -> Iterator[tuple[str, tuple[torch.Tensor, ...]]]:
    """Inputs of which half of the elements are one of a few numbers: all inputs, then one at a time."""
    inputs = case.make(case.sizes)
    floats = [place for place, tensor in enumerate(inputs) if tensor.is_floating_point() and tensor.numel()]
    for places in [floats, *([place] for place in floats if len(floats) > 1)]:
        changed = [_mixed(tensor, place) if place in places else tensor for place, tensor in enumerate(inputs)]
        yield f"{case.sizes} with a few numbers in {places}", tuple(changed)


def _mixed(tensor: torch.Tensor, place: int) -> torch.Tensor:
    random = torch.Generator().manual_seed(place)
    few = torch.tensor(_FEW, dtype=tensor.dtype)[torch.randint(0, len(_FEW), tensor.shape, generator=random)]
    return torch.where(torch.randint(0, 2, tensor.shape, generator=random).bool(), few, tensor)


def _is_wrong(
    module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], expected: Any, actual: list[np.ndarray]
) -> bool:
    """Beyond eager's own noise, and beyond another order of equal values where torch leaves that open."""
    from anyshape import Inputs
    from anyshape.verify.reference import Reference
    from anyshape.verify.ties import look_at_choices, other_orders

    if _compare(expected, actual, _sensitivities(module, inputs, expected)) is None:
        return False
    arrays = [_array(tensor) for tensor in expected]
    with Reference(module, lambda outputs: [(str(place), each) for place, each in enumerate(outputs)]) as reference:
        orders = [answer.arrays for answer in other_orders(reference, Inputs(inputs, {}))]
        free = look_at_choices(reference, Inputs(inputs, {}), arrays, actual).free
    if all(_is_alike(one, other, more) for one, other, more in zip(arrays, actual, free, strict=True)):
        return False
    return all(_compare([torch.as_tensor(one) for one in order], actual) is not None for order in orders)


def _is_alike(one: np.ndarray, other: np.ndarray, free: np.ndarray) -> bool:
    """Equal but for free choices among equal values, and for NaN in place of an infinity: 1/0 - 1/0 is the formula's."""
    if one.dtype.kind not in "fc":
        return bool(((one == other) | (free > 0)).all())
    neither = ~np.isfinite(one) & ~np.isfinite(other) & (np.isnan(one).any() | np.isnan(other).any())
    return _are_close(np.where(neither, 0, one), np.where(neither, 0, other), None)


def _feeds(session: Any, inputs: tuple[torch.Tensor, ...]) -> dict[str, np.ndarray]:
    """Inputs are called `tensors.0`, `tensors_1` and so on, by either exporter."""
    names = [item.name for item in session.get_inputs()]
    return {name: _array(inputs[int(re.split(r"[._]", name)[-1])]) for name in names}


def _array(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.detach().resolve_conj().resolve_neg()
    return (torch.view_as_real(tensor) if tensor.is_complex() else tensor).numpy()


def _sensitivities(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], expected: Any) -> list[np.ndarray]:
    """How far eager's own answers are from those in float64: a matrix may be such that no float32 answer is near."""
    wide = {torch.float32: torch.float64, torch.complex64: torch.complex128}
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exact = module(*(tensor.to(wide.get(tensor.dtype, tensor.dtype), copy=True) for tensor in inputs))
        both = [(_array(one), _array(other)) for one, other in zip(expected, exact, strict=True)]
        if any(one.shape != other.shape for one, other in both):
            return []
        return [np.abs(one.astype(np.float64) - other.astype(np.float64)) for one, other in both]
    except Exception:  # eager does not answer in float64, and says nothing about itself
        return []


def _compare(expected: Any, actual: list[np.ndarray], sensitivities: Sequence[np.ndarray] = ()) -> str | None:
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
        elif not _are_close(want, have, sensitivities[number] if sensitivities else None):
            return f"output {number}: values differ"
    return None


def _are_close(want: np.ndarray, have: np.ndarray, stray: np.ndarray | None) -> bool:
    close = np.isclose(have, want, rtol=_RELATIVE, atol=_ABSOLUTE, equal_nan=True)
    if stray is not None:
        finite = np.isfinite(want) & np.isfinite(have) & np.isfinite(stray)
        apart = np.abs(np.where(finite, have, 0.0) - np.where(finite, want, 0.0))
        close |= finite & (apart <= _TIMES_STRAY * np.where(finite, stray, 0.0))
    return bool(close.all())


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
    where = [f"{size} <= {dim} <= {2 * size + FAR}" for dim, size in case.sizes.items()]
    result = anyshape.export(module, inputs, where=where, opset=OPSET, budget=2.0)
    return result.model_proto.SerializeToString()


EXPORTERS = {"torch.onnx": _export_torch, "anyshape": _export_anyshape}


def _quiet_options() -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return options


def _last_words(error: BaseException) -> str:
    """Of our own errors the first line, of others the innermost cause."""
    from anyshape import AnyshapeError

    if isinstance(error, AnyshapeError):
        return str(error).splitlines()[0]
    return _innermost(error)


def _innermost(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {error}".replace("\n", " ")
