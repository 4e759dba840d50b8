"""The state before the first call: written into the contract, and made at the sizes of a call."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from anyshape.domain import Number, Ref
from anyshape.inputs import StateInput
from anyshape.inputs.feeds import as_array
from anyshape.records.contract import StatePromise
from anyshape.runtime.dtypes import Array, dtype_called


def state_promises(states: Sequence[StateInput], parameter: str) -> tuple[StatePromise, ...]:
    """What the contract has of each state; `parameter` is the argument that holds them."""
    return tuple(_promise(state, f"{parameter}.{state.name}") for state in states)


def _promise(state: StateInput, path: str) -> StatePromise:
    dtype = str(state.initial.dtype).removeprefix("torch.")
    own = [dim.name for dim in state.own]
    shape = tuple(
        str(axis) if isinstance(axis, Ref) and axis.name not in own and not isinstance(axis, Number) else size
        for axis, size in zip(state.axes, state.initial.shape, strict=True)
    )
    data = np.ascontiguousarray(as_array(state.initial, dtype)).tobytes()
    return StatePromise(
        state.name, path, f"{path}.next", dtype, shape, base64.b64encode(data).decode() if any(data) else ""
    )


def first_value(state: StatePromise, sizes: Mapping[str, int]) -> Array:
    """The value before the first call. Raises TypeError where a size that it needs is not given."""
    missing = [size for size in state.shape if isinstance(size, str) and size not in sizes]
    if missing:
        raise TypeError(f"initial_state() needs the size of {missing[0]}: initial_state({missing[0]}=...)")
    stored = [1 if isinstance(size, str) else size for size in state.shape]
    dtype = np.dtype(dtype_called(state.dtype))
    data = base64.b64decode(state.data) or bytes(prod(stored) * dtype.itemsize)
    wanted = [sizes[size] if isinstance(size, str) else size for size in state.shape]
    return np.broadcast_to(np.frombuffer(data, dtype=dtype).reshape(stored), wanted).copy()
