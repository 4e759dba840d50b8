"""Whether the parts of a contract that was read fit together: names, dims, bounds of values, state.

`from_json` gives back every contract that was written. A file may have been written by anybody: what is found here would fail
later, in the middle of a call.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from math import prod

from anyshape.contract.from_json import shown, unreadable_contract
from anyshape.domain import Expr, Number, dims_of
from anyshape.domain.bounded_values import GIVEN, parse_bounds
from anyshape.findings import DeclarationError, UsageError
from anyshape.records.contract import Contract, StatePromise, TensorPromise

DTYPES: Mapping[str, int] = {
    **dict.fromkeys(("bool", "int8", "uint8", "int4", "uint4", "int2", "uint2", "float4_e2m1fn", "float8_e8m0fnu"), 1),
    **dict.fromkeys(("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "string"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 8),
    "complex128": 16,
}
"""The dtypes of inputs and outputs, and the bytes of an element in memory; a text has none of its own."""


def check_consistent(contract: Contract) -> None:
    """Raise UsageError (AS046) where parts of a contract contradict each other."""
    try:
        _check(contract)
    except _Contradiction as error:
        raise UsageError(unreadable_contract(str(error))) from error


class _Contradiction(Exception):
    pass


def _check(contract: Contract) -> None:
    dims = frozenset(contract.domain.names)
    for side, tensors in (("inputs", contract.inputs), ("outputs", contract.outputs)):
        names = [tensor.name for tensor in tensors]
        if len(set(names)) < len(names):
            raise _Contradiction(f"{side!r} has a name twice")
        for tensor in tensors:
            _check_tensor(tensor, dims)
    for name, text in contract.values.items():
        bounded = next((each for each in contract.inputs if each.name == name), None)
        if bounded is None:
            raise _Contradiction(f"'values' speaks of {shown(name)}, which is no input")
        if text != GIVEN:
            _check_bounds(text, bounded, dims)
    for state in contract.state:
        _check_state(state, contract, dims)


def _check_tensor(tensor: TensorPromise, dims: frozenset[str]) -> None:
    if tensor.dtype not in DTYPES:
        raise _Contradiction(f"'dtype' cannot be {shown(tensor.dtype)}")
    for axis in tensor.axes:
        if isinstance(axis, Number) and axis.value < 0:
            raise _Contradiction(f"an axis of {shown(tensor.name)} is {axis.value}")
        if axis is not None and not dims.issuperset(dims_of(axis)):
            raise _Contradiction(
                f"an axis of {shown(tensor.name)} is {axis}, and the dims are {', '.join(sorted(dims))}"
            )


def _check_bounds(text: str, tensor: TensorPromise, dims: frozenset[str]) -> None:
    try:
        bounds = parse_bounds(text, (tensor.name, tensor.path)).bounds
    except (SyntaxError, ValueError, DeclarationError) as error:
        raise _Contradiction(f"{shown(text)} does not bound the values of {shown(tensor.name)}") from error
    limits = [bound.limit for bound in bounds]
    if any(isinstance(limit, Expr) and not dims.issuperset(dims_of(limit)) for limit in limits):
        raise _Contradiction(f"{shown(text)} has a name that is no dim")


def _check_state(state: StatePromise, contract: Contract, dims: frozenset[str]) -> None:
    for end, tensors in ((state.input, contract.inputs), (state.output, contract.outputs)):
        if not any(end in (tensor.name, tensor.path) for tensor in tensors):
            raise _Contradiction(f"'state' speaks of {shown(end)}, which is no input or output")
    if state.dtype not in DTYPES or state.dtype == "string":
        raise _Contradiction(f"'dtype' cannot be {shown(state.dtype)}")
    if any(size not in dims if isinstance(size, str) else size < 0 for size in state.shape):
        raise _Contradiction(f"'shape' cannot be {shown(list(state.shape))}")
    try:
        held = len(b64decode(state.data, validate=True))
    except ValueError as error:
        raise _Contradiction(f"'data' of {shown(state.name)} is not base64") from error
    needed = prod(1 if isinstance(size, str) else size for size in state.shape) * DTYPES[state.dtype]
    if held not in (0, needed):
        raise _Contradiction(f"'data' of {shown(state.name)} has {held} bytes of {needed}")
