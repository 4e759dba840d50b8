"""Every tensor that the module computes on the way to its outputs, with the user's line, and whether an array of the file is
one of them: by content, whatever its name or its view.

A file has its own names and its own reshapes, so content decides: the same numbers in the same order. What is the same
number throughout says little and must have the same shape as well.

torch runs the module as it is; a dispatch mode looks on. Compound operators are taken apart beside the run as well,
since a file may hold their parts: what they are made of is then known too, and changes nothing.
"""

from __future__ import annotations

import contextlib
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from anyshape.findings import Source
from anyshape.intercept.patching import without_fused_layers
from anyshape.modules.user_code import make_source, runs_users_code
from anyshape.runtime.child_messages import EXTENDED, Array
from anyshape.verify.compare import OutputTolerance, compare_arrays, is_float
from anyshape.verify.reference import Answer, CallInputs, Reference
from anyshape.verify.tensors import to_array
from anyshape.verify.tolerance import Tolerance

_SAMPLES = 8
_MOST_BYTES = 1 << 28
_DEEPEST = 3


class KnownValues:
    """The module's values, to be asked for a file's; `tight` where the failure itself is slight."""

    def __init__(self, steps: Sequence[Step], tight: bool = False) -> None:
        self.steps = steps
        self.tolerance = OutputTolerance("", Tolerance(noise=0.0) if tight else Tolerance())
        self._by_count: dict[int, list[int]] = defaultdict(list)
        self._sources: list[int] = []  # of each step, all that went into it: bits of an integer
        for position, step in enumerate(steps):
            self._by_count[step.value.size].append(position)
            self._sources.append(union(self._sources[taken] | 1 << taken for taken in step.takes))

    def find(self, value: Array, is_data: bool = False) -> int | None:
        """The first step that has the same content; None if no step has. Data is never found among weights."""
        return next((step for step in self.find_all(value) if self.steps[step].is_data or not is_data), None)

    def follows(self, step: int, among: int) -> bool:
        """Whether a step is one of these, or one of these went into it."""
        return bool((self._sources[step] | 1 << step) & among)

    def find_all(self, value: Array) -> Iterator[int]:
        """Every step that has the same content, in order."""
        if value.dtype.kind in "OUS":
            return
        for position in self._by_count.get(value.size, ()):
            if self.is_same(self.steps[position].value, value):
                yield position

    def is_same(self, known: Array, value: Array) -> bool:
        if known.dtype.kind == "c" or value.dtype.kind == "c":
            return False
        if known.shape != value.shape and (value.size <= 1 or is_one_number(value)):
            return False
        with np.errstate(all="ignore"):  # a module may well compute NaN on its way
            return _may_be_same(known, value) and self._is_equal(known.reshape(-1), value.reshape(-1))

    def _is_equal(self, one: Array, other: Array) -> bool:
        if is_float(one) and is_float(other):
            finer, coarser = (one, other) if _width(one) >= _width(other) else (other, one)
            return compare_arrays(coarser, finer.astype(coarser.dtype), self.tolerance)[0] is None
        return bool(np.array_equal(one.astype(np.float64), other.astype(np.float64)))


def union(sets: Iterable[int]) -> int:
    """Of sets of steps, each held as the bits of an integer."""
    return reduce(or_, sets, 0)


def _may_be_same(one: Array, other: Array) -> bool:
    """A glance at a few elements: nearly all candidates end here."""
    places = np.linspace(0, max(one.size - 1, 0), _SAMPLES).astype(int) if one.size else np.zeros(0, int)
    left, right = one.flat[places].astype(np.float64), other.flat[places].astype(np.float64)
    scale = np.abs(np.where(np.isfinite(left), left, 0.0)).max(initial=1.0)
    return bool(np.allclose(left, right, rtol=1e-2, atol=1e-2 * scale, equal_nan=True))


def is_one_number(value: Array) -> bool:
    """Whether all elements are the same."""
    return value.size > 0 and bool((value == value.reshape(-1)[0]).all())


def _width(array: Array) -> int:
    return 1 if array.dtype.name in EXTENDED else array.dtype.itemsize


@dataclass(frozen=True, eq=False)
class Step:
    """One tensor; `takes` are the positions of those steps whose tensors it was computed from.

    `is_data`: the numbers of the inputs went into it, rather than weights and sizes alone.
    """

    value: Array
    source: Source | None
    takes: tuple[int, ...]
    is_data: bool


class TooMuch(Exception):
    """More memory than is worth spending on this."""


def watch(reference: Reference, inputs: CallInputs) -> tuple[Answer, Sequence[Step]] | None:
    """The module's answer and the steps to it, in order; None where it refuses, or makes too much to be kept."""
    answer = reference.run(inputs)
    looking = _Looking(reference.module)
    try:
        with without_fused_layers(), looking:
            watched = reference.run(inputs, watched=True)
    except TooMuch:
        return None
    if isinstance(answer, Answer) and isinstance(watched, Answer) and not looking.is_full:
        return answer, tuple(looking.steps)
    return None


class _Looking(TorchDispatchMode):  # type: ignore[misc]
    """Keeps what each operator gives; tensors are distinguished by identity, so all of them are kept alive."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        weights = (*module.parameters(), *module.buffers())
        self._weights = {tensor.untyped_storage().data_ptr() for tensor in weights if tensor.layout is torch.strided}
        self.steps: list[Step] = [Step(_shared(tensor), None, (), is_data=False) for tensor in weights]
        self.is_full = False
        self._known: dict[int, int] = {}
        self._alive: list[torch.Tensor] = []
        self._bytes = 0
        self._depth = 0
        self._source: Source | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self._depth == 0:
            self._source = _running_line()
        result = func(*args, **(kwargs or {}))
        if not self.is_full:
            before = len(self.steps)
            self._take_apart(func, args, kwargs or {})
            parts = range(before, len(self.steps))
            if "empty" not in func.__name__:  # memory that nobody has written to yet holds anything
                self._keep(result, tuple(_tensors((args, kwargs or {}))), parts)
        return result

    def _take_apart(self, func: Any, args: Any, kwargs: Any) -> None:
        parts = _parts(func)
        if parts is None or self._depth >= _DEEPEST:
            return
        self._depth += 1
        try:
            with contextlib.suppress(Exception), self:  # only what comes of it is of use
                parts(*args, **kwargs)
        finally:
            self._depth -= 1

    def _keep(self, result: Any, given: Sequence[torch.Tensor], parts: Sequence[int]) -> None:
        known = (self._known[id(tensor)] for tensor in given if id(tensor) in self._known)
        takes = tuple(dict.fromkeys((*known, *parts)))
        is_data = any(self.steps[step].is_data for step in takes) or any(
            id(tensor) not in self._known and not self._is_weight(tensor) for tensor in given
        )
        for tensor in _tensors(result):
            is_weight = self._is_weight(tensor)
            self._bytes += 0 if is_weight else tensor.numel() * tensor.element_size()
            if self._bytes > _MOST_BYTES:
                self.is_full = True
                return
            with contextlib.suppress(Exception):  # a kind of tensor that numpy cannot hold
                value = _shared(tensor) if is_weight else to_array(tensor)
                self.steps.append(Step(value, self._source, takes, is_data))
                self._known[id(tensor)] = len(self.steps) - 1
                self._alive.append(tensor)

    def _is_weight(self, tensor: torch.Tensor) -> bool:
        return tensor.layout is torch.strided and tensor.untyped_storage().data_ptr() in self._weights


def _parts(func: Any) -> Any:
    """A function that computes the same from smaller operators; None where there is none, or it would not be the same."""
    from torch._decomp import decomposition_table

    if func.name().startswith("aten::_scaled_dot_product_"):  # in eval mode, nothing about it is random
        return _attention
    if func._schema.is_mutable or torch.Tag.nondeterministic_seeded in func.tags:
        return None
    if func is torch.ops.aten.convolution.default:
        return _convolution_without_bias
    return decomposition_table.get(func)


def _convolution_without_bias(images: Any, weight: Any, bias: Any, *rest: Any) -> Any:
    return None if bias is None else torch.ops.aten.convolution.default(images, weight, None, *rest)


def _attention(query: Any, key: Any, value: Any, *rest: Any, scale: float | None = None, **given: Any) -> Any:
    """Attention in the steps of a file: torch's own kernel shows no inner values, and its parts scale both sides first."""
    mask = given.get("attn_mask", given.get("attn_bias", next((each for each in rest if _is_mask(each)), None)))
    is_causal = given.get("is_causal", next((each for each in rest if each is True), False))
    if is_causal:
        mask = torch.full((query.shape[-2], key.shape[-2]), float("-inf")).to(query).triu(1)
    scores = query @ key.transpose(-2, -1)
    scores = scores * (query.shape[-1] ** -0.5 if scale is None else scale)
    return torch.softmax(scores if mask is None else scores + mask, -1) @ value


def _is_mask(each: Any) -> bool:
    return isinstance(each, torch.Tensor) and each.dim() >= 2


def _running_line() -> Source | None:
    """The innermost line of the user's code that runs inside the module; who called us is no part of it."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code is not Reference.run.__code__:
        if runs_users_code(frame):
            return make_source(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return None


def _shared(tensor: torch.Tensor) -> Array:
    """Of the same memory where numpy can: weights may be large, and are not written to while we look."""
    try:
        return tensor.detach().numpy()
    except (TypeError, RuntimeError):
        return to_array(tensor)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
