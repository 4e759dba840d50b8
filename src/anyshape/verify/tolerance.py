"""How far outputs of the file may differ from the module's: a multiple of the noise of its precision, which is found here too.

    tolerance = FACTOR * noise * magnitude

`noise` is measured (see `noise.py`) relative to the magnitude, and grows with the square root of the number of elements of the
inputs (`NoiseFloor.tolerances`). It has a least and a most value for each dtype, since the noise of one draw can be 0, a file
may come to the same result by another formula, and a value that flips is no noise: 16 to 1024 ulps of float32, 0.5 to 16 ulps
of half precision, always 2**-40 for float64, or 2**-24 to 2**-18 behind nodes with numbers in float32 (SINGLE_FACTOR). Where
the module is sensitive, `compare_arrays` adds FACTOR * sensitivity. The magnitude of an element is the largest among its
peers, which are elements without a wide gap between them, so that a mask filled with -1e9 does not blur the scores beside it.

`roundings` finds the precision of each output: the narrowest that values pass through on the way to it; a float32 output may
be what is left of bfloat16 arithmetic. File and module must both show it, so that a file which rounds where the module does
not stays wrong.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from anyshape.runtime.child_messages import Array
from anyshape.verify.reference import CallInputs, Reference

SINGLE_FACTOR = 2.0**-28
"""The epsilon of float64 outputs behind nodes with float32 numbers: attributes of ONNX operators, and factors that onnxruntime
fuses into a matrix product."""

_EPSILONS = {1: 2.0**-23, 10: 2.0**-10, 16: 2.0**-7}  # by ONNX's numbers of float, float16 and bfloat16
_DOUBLE, _FLOAT_ATTRIBUTES = 11, (1, 6)
_WITH_FACTORS = frozenset({"MatMul", "Gemm"})
_MOVING = frozenset(
    {"Cast", "CastLike", "Concat", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Reshape"}
    | {"Pad", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze", "Where"}
)
_MOST_BYTES = 1 << 30  # types are told by way of a message, which has its limit
_OF_SHAPES = frozenset({"Shape", "Size", "Constant"})
Epsilons = dict[str, float]
FACTOR = 8.0
_LOWEST_EXPONENT = 1100  # below that of the smallest double
_GAP_BITS = 10
_LEAST_NOISE_IN_ULPS = 16.0
_LEAST_NOISE_IN_ULPS_OF_HALF = 0.5
_NOISE_IN_ULPS = 64.0  # where nothing could be measured: single and double precision
_NOISE_IN_ULPS_OF_HALF = 2.0
_MOST_NOISE_IN_ULPS = 1024.0  # a value that flips (a rounded one, a chosen one) is no noise of its neighbours
_MOST_NOISE_IN_ULPS_OF_HALF = 16.0
_DOUBLE_PRECISION = 1e-10  # an epsilon below this
_LEAST_NOISE_OF_DOUBLES = (
    2.0**-40
)  # between the rounding of float64, for which there is no reference, and that of float32
_HALF_PRECISION = 1e-4  # an epsilon above this is that of half, bfloat16 or narrower


def roundings_of_file(path: str) -> tuple[float, ...]:
    """For each output the largest epsilon of what was rounded on the way to it, 0 for none above its own; () if unknown."""
    import onnx

    try:
        model = onnx.load(path, load_external_data=False)
        if model.ByteSize() > _MOST_BYTES:
            return ()
        known = onnx.shape_inference.infer_shapes(model)
    except Exception:  # whatever is wrong with the file, running it tells better
        return ()
    found = _follow(known.graph, {}, {})
    outputs = [(found.get(name, 0.0), _EPSILONS.get(dtype, 0.0)) for name, dtype in _types(known.graph.output).items()]
    return tuple(rounding if rounding > own else 0.0 for rounding, own in outputs)


def _follow(graph: Any, outer: Epsilons, outer_types: Mapping[str, int]) -> Epsilons:
    """The epsilon of each value of a graph; inputs and weights are what they are for both sides."""
    types = {**outer_types, **_types([*graph.input, *graph.output, *graph.value_info])}
    found = dict(outer)
    for node in graph.node:
        reaching = max((found.get(name, 0.0) for name in node.input), default=0.0)
        for attribute in node.attribute:
            for inner in [attribute.g, *attribute.graphs] if attribute.type in (5, 10) else ():
                reaching = max([reaching, *_follow(inner, found, types).values()])
        for name in node.output:
            found[name] = _epsilon(node, reaching, types.get(name))
    return found


def _epsilon(node: Any, reaching: float, dtype: int | None) -> float:
    if node.op_type in _OF_SHAPES or (node.op_type in _MOVING and reaching == 0.0):
        return 0.0
    own = _EPSILONS.get(dtype or 0, 0.0)
    has_factors = node.op_type in _WITH_FACTORS or any(each.type in _FLOAT_ATTRIBUTES for each in node.attribute)
    return max(reaching, own, SINGLE_FACTOR if dtype == _DOUBLE and has_factors else 0.0)


def _types(values: Iterable[Any]) -> dict[str, int]:
    return {value.name: value.type.tensor_type.elem_type for value in values}


def roundings_of_module(reference: Reference, inputs: CallInputs) -> tuple[float, ...]:
    """For each output the largest epsilon among the values that the module computes on the way to it."""
    return _look(reference, inputs).of_outputs


def computes_in_double(reference: Reference, inputs: CallInputs) -> bool:
    """Whether the module computes something in double precision: a file that does not has lost it."""
    return any(epsilon <= torch.finfo(torch.float64).eps for epsilon in _look(reference, inputs).epsilons)


def _look(reference: Reference, inputs: CallInputs) -> _Looking:
    looking = _Looking()
    watched = copy.copy(reference)

    def flatten(outputs: Any) -> Sequence[tuple[str, Any]]:
        leaves = reference.flatten(outputs)
        looking.of_outputs = tuple(looking.reaching(leaf) for _, leaf in leaves if leaf is not None)
        return leaves

    watched.flatten = flatten
    with looking:
        watched.run(inputs, watched=True)
    return looking


class _Looking(TorchDispatchMode):  # type: ignore[misc]
    """Keeps for each piece of memory the largest epsilon of what was computed on the way to its values."""

    def __init__(self) -> None:
        super().__init__()
        self.epsilons: set[float] = set()
        self.of_outputs: tuple[float, ...] = ()
        self._reaching: dict[int, tuple[StorageWeakRef, float]] = {}

    def reaching(self, value: Any) -> float:
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
            return max(self.epsilons, default=0.0)
        return self._reaching.get(value.untyped_storage()._cdata, (None, 0.0))[1]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        given = [value for value in tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)]
        reaching = max(map(self.reaching, given), default=0.0)
        for value in tree_leaves(result):
            if isinstance(value, torch.Tensor):
                self._note(value, reaching)
        return result

    def _note(self, value: torch.Tensor, reaching: float) -> None:
        own = torch.finfo(value.dtype).eps if value.is_floating_point() else 0.0
        if own:
            self.epsilons.add(own)
        if value.layout is torch.strided:
            storage = value.untyped_storage()
            # The reference keeps the address from being used again for other memory.
            found = max(own, reaching, self.reaching(value))
            self._reaching[storage._cdata] = (StorageWeakRef(storage), found)


def roundings(path: str, reference: Reference, samples: Sequence[CallInputs]) -> tuple[float, ...]:
    """For each output of the file the smaller epsilon of file and module; () where nothing is known.

    What the module computes counts, not what it is given: `x.half()` of an input is the same number for both.
    """
    of_file = roundings_of_file(path)
    if all(rounding <= SINGLE_FACTOR for rounding in of_file) or not samples:
        return of_file
    module = roundings_of_module(reference, samples[0])
    if len(module) != len(of_file):
        return of_file
    return tuple(
        rounding if rounding <= SINGLE_FACTOR else min(rounding, own)
        for rounding, own in zip(of_file, module, strict=True)
    )


@dataclass(frozen=True)
class Tolerance:
    """The tolerance of one output. `noise` None: not measured, so taken from the dtype. rtol/atol: the user's word."""

    noise: float | None = None
    rtol: float | None = None
    atol: float | None = None

    @property
    def is_users(self) -> bool:
        """Whether the user's own rtol or atol stands in place of the noise floor."""
        return self.rtol is not None or self.atol is not None

    @property
    def allowed(self) -> float:
        """How many floors the tolerance is wide."""
        return 1.0 if self.is_users else FACTOR

    def limit(self, expected: Array, eps: float) -> Array:
        """The largest error of each element that counts as equal; `eps` is that of the precision before widening."""
        if self.is_users:
            return np.asarray((self.atol or 0.0) + (self.rtol or 0.0) * np.abs(expected))
        noise = default_noise(eps) if self.noise is None else min(max(self.noise, least_noise(eps)), most_noise(eps))
        return FACTOR * noise * magnitudes(expected)


DEFAULT_TOLERANCE = Tolerance()


def default_noise(eps: float) -> float:
    """The noise to assume of a dtype with this epsilon, relative to the magnitude."""
    return max(least_noise(eps), eps * (_NOISE_IN_ULPS_OF_HALF if eps > _HALF_PRECISION else _NOISE_IN_ULPS))


def least_noise(eps: float) -> float:
    """The least noise to assume, whatever was measured."""
    if eps < _DOUBLE_PRECISION:
        return _LEAST_NOISE_OF_DOUBLES
    return eps * (_LEAST_NOISE_IN_ULPS_OF_HALF if eps > _HALF_PRECISION else _LEAST_NOISE_IN_ULPS)


def most_noise(eps: float) -> float:
    """The most noise to grant a whole output; what differs more is compared element by element."""
    return max(least_noise(eps), eps * (_MOST_NOISE_IN_ULPS_OF_HALF if eps > _HALF_PRECISION else _MOST_NOISE_IN_ULPS))


def magnitudes(array: Array) -> Array:
    """For each element the largest magnitude among its peers.

    Peers are neighbours in the order of magnitudes with less than a factor of 2**10 between each two. The smallest ones
    (and zeros: a zero may be what is left of a cancellation) count as 1 if there are others of 1 or more: how small the
    tail of a saturated sigmoid is, is a matter of the formula. Elements that are not finite get 0.
    """
    size = np.abs(array)
    usable = np.isfinite(size) & (size > 0)
    if not usable.any():
        return np.isfinite(size).astype(np.float64)  # nothing but zeros tells no magnitude: that of the unit is assumed
    exponents = np.frexp(size if usable.all() else np.where(usable, size, 1.0))[1]
    present = np.flatnonzero(np.bincount(exponents[usable] + _LOWEST_EXPONENT)) - _LOWEST_EXPONENT
    group_of = np.concatenate(
        [[0], np.cumsum(np.diff(present) > _GAP_BITS)]
    )  # exponents ascend: a wide step parts them
    if group_of[-1] == 0:  # one group, whose largest element is no less than the unit
        return np.where(np.isfinite(size), float(size[usable].max()), 0.0)
    groups = group_of[np.searchsorted(present, np.where(usable, exponents, present[0]))]
    largest = np.zeros(group_of[-1] + 1)
    np.maximum.at(largest, groups[usable], size[usable])
    unit = min(1.0, float(largest[-1]))
    return np.where(np.isfinite(size), np.maximum(largest[groups], unit), 0.0)
