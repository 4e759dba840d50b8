"""Answers of eager and of a file: flattened, and compared."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

# By dtype: relative and absolute. Wide enough for another order of summation; a wrong formula is further off.
_TOLERANCE = {"float64": (1e-6, 1e-8), "float32": (1e-3, 1e-4), "float16": (2e-2, 5e-3), "bfloat16": (5e-2, 2e-2)}
_TIMES_STRAY = 8.0
_SLIGHT = 1e-3  # of the output's usual size


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Tensors and numbers of a nested value with their paths: `past.0.1`."""
    if value is None:
        return
    if isinstance(value, Mapping):
        children = [(str(key), child) for key, child in value.items()]
    elif isinstance(value, (tuple, list)):
        names = getattr(value, "_fields", None) or [str(number) for number in range(len(value))]
        children = list(zip(names, value, strict=True))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        children = [(item.name, getattr(value, item.name)) for item in dataclasses.fields(value)]
    else:
        yield path, value
        return
    for name, child in children:
        yield from leaves(child, f"{path}.{name}" if path else name)


def arguments(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments of what an inputs function returned."""
    if isinstance(inputs, torch.Tensor):
        return (inputs,), {}
    if isinstance(inputs, tuple):
        return inputs, {}
    if isinstance(inputs, dict):
        return (), inputs
    return tuple(inputs.args), dict(inputs.kwargs)


def feeds(module: torch.nn.Module, inputs: Any, contract: Any) -> dict[str, np.ndarray]:
    """Arrays by the names that the file has for them."""
    args, kwargs = arguments(inputs)
    bound = inspect.signature(module.forward).bind(*args, **kwargs)
    by_path = dict(leaves(dict(bound.arguments)))
    found = {}
    for tensor in contract.inputs:
        if tensor.path in by_path:
            found[tensor.name] = as_array(by_path[tensor.path], tensor.dtype)
    return found


def as_array(value: Any, dtype: str | None = None) -> np.ndarray:
    if not isinstance(value, torch.Tensor):
        return np.asarray(value, dtype=dtype)
    tensor = value.detach().resolve_conj().resolve_neg()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    if tensor.dtype is torch.bfloat16:
        import ml_dtypes

        return tensor.float().numpy().astype(ml_dtypes.bfloat16)
    return tensor.contiguous().numpy()


def answers(value: Any) -> list[np.ndarray]:
    """Arrays of all outputs, in order."""
    return [as_array(leaf) for _, leaf in leaves(value)]


def difference(
    expected: list[np.ndarray], actual: list[np.ndarray], sensitivities: list[np.ndarray] | None = None
) -> str | None:
    """What differs, in words, or None. `sensitivities` has the distance of eager's own answers from those in float64."""
    if len(expected) != len(actual):
        return f"{len(expected)} outputs expected, {len(actual)} given"
    for number, (want, have) in enumerate(zip(expected, actual, strict=True)):
        have = np.asarray(have)
        if want.shape != have.shape:
            return f"output {number}: shape {want.shape} expected, {have.shape} given"
        if want.dtype != have.dtype:
            return f"output {number}: {want.dtype} expected, {have.dtype} given"
        close = _close(want, have, sensitivities[number] if sensitivities else None)
        if not close.all():
            at = tuple(int(index) for index in np.argwhere(~close)[0])
            return f"output {number} at {list(at)}: {want[at]} expected, {have[at]} given; {int((~close).sum())} differ"
    return None


def _close(want: np.ndarray, have: np.ndarray, stray: np.ndarray | None) -> np.ndarray:
    if want.dtype.kind in "biu":
        close = want == have
        # A whole number that changes with the precision of eager itself is a float's rounding, not a wrong answer.
        return close | (stray != 0) if stray is not None and stray.shape == want.shape else close
    relative, absolute = _TOLERANCE.get(want.dtype.name, (1e-3, 1e-4))
    want, have = want.astype(np.float64), have.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        close = np.isclose(have, want, rtol=relative, atol=absolute, equal_nan=True)
        if stray is not None and stray.shape == want.shape:
            # As near to float64 as eager is there, or anywhere in this output if the distance is slight for it.
            finite = np.isfinite(want) & np.isfinite(have)
            usual = np.sqrt(np.mean(np.square(want[finite]))) if finite.any() else 0.0
            slight = min(2 * float(stray.max(initial=0.0)), _SLIGHT * float(usual))  # two answers, one on either side
            close |= finite & (np.abs(have - want) <= np.maximum(_TIMES_STRAY * stray, slight))
    return np.asarray(close)
