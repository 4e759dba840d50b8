"""Leaves: torch functions that a capture records in a form of ours, because torch.export would freeze a size in them.

`torch.export` unrolls a recurrent network step by step, which freezes its length, and makes as many pieces of a `split` as
there are at the traced size. A torch function mode sees the calls that `torch.nn` and the user make while `leaves()` is
entered, and records our own operators, or functions of torch that keep sizes open, instead. Only `lifted` and `checked` patch
names.

A leaf is a file or a folder with a function `replacements`: torch function -> what is called in its place. If that is an
operator of ours, made by `define`, `translations` gives the ONNX nodes of each. Adding one: docs/how-to/extend/add-a-leaf.md.

This file has the mode, and one leaf: `squeeze` where the size of the axis is open. torch's own operator takes an open size for
other than 1, silently. Here the size is compared, as the user would have to write it, and both sides are captured. The mark
`__only_passes_on__` makes that comparison a condition of the user's line that calls `squeeze` (`capture/guards.py`).

Files, in the order in which data flows:

    row_loops       loops over the rows of nonzero(), as loops over all places of the mask
    open_splits     chunk, split, tensor_split and pooling over an open axis
    sized           functions that torch traces at the traced sizes only
    open_lengths    arange between tensors, hann_window and its like, istft; F.interpolate and cross_entropy of open sizes
    checked         functions that check values or choose a kernel by them, nn.Transformer's layers among them
    ragged          repeat_interleave by a tensor, pad_sequence of tensors whose lengths depend on values
    own_operators   operators of ours: `anyshape::loop`, pick, cut, put; numbers through floats; grouped_mm
    recurrent/      LSTM, GRU, RNN, padded or packed
    lifted          torch.cond, while_loop, scan and map, kept whole
    reading         values that a function reads besides its arguments
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Protocol

import torch
from torch import SymInt, Tensor
from torch._ops import OpOverload
from torch.overrides import TorchFunctionMode

__only_passes_on__ = True

Replacement = Callable[[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]], Any]
LEAVES = (
    "open_splits",
    "sized",
    "open_lengths",
    "checked",
    "ragged",
    "own_operators",
    "recurrent",
)
_ONLY_FLAT_WEIGHTS = (
    r"The tensor attributes? (self\.[\w.]*_flat_weights\[\d+\](, )?)+ (was|were) assigned during export"
)


def define(name: str, schema: str, run: Callable[..., Any], fake: Callable[..., Any]) -> OpOverload:
    """Register `anyshape::name`, which changes none of its arguments."""
    torch.library.custom_op(f"anyshape::{name}", run, mutates_args=(), schema=schema).register_fake(fake)
    operator: OpOverload = getattr(torch.ops.anyshape, name).default
    return operator


def without_types(translation: Callable[..., Any]) -> Callable[..., Any]:
    """The same function without annotations: torch.onnx would read them as ONNX types, and warn that it cannot."""
    return lambda *args, **kwargs: translation(*args, **kwargs)


class Watch(Protocol):
    """Makes the calls of a capture in its own way, from when `is_met` is true: `call(func, args, kwargs, run)`."""

    @property
    def is_met(self) -> bool: ...

    def call(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], run: Replacement) -> Any: ...


class LeafMode(TorchFunctionMode):
    """One capture's worth of leaves."""

    def __init__(self, replacements: Mapping[Any, Replacement], watch: Watch) -> None:
        super().__init__()
        self._replacements = replacements
        self._watch = watch

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if self._watch.is_met and not torch.compiler.is_dynamo_compiling():
            return self._watch.call(func, args, kwargs or {}, self._run)
        return self._run(func, args, kwargs or {})

    def _run(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        replacement = self._replacements.get(func)
        if replacement is None or torch.compiler.is_dynamo_compiling():
            return func(*args, **kwargs)
        return replacement(func, args, kwargs)


@contextmanager
def leaves() -> Iterator[None]:
    """Enter around `torch.export.export(..., strict=False)`. Each entry starts afresh and leaves nothing behind."""
    from anyshape.leaves.row_loops import RowLoops

    row_loops = RowLoops()
    replacements = {
        function: replacement for leaf in _modules() for function, replacement in leaf.replacements().items()
    }
    replacements |= {torch.squeeze: _squeeze, Tensor.squeeze: _squeeze}
    with warnings.catch_warnings():
        # torch.nn rebuilds this list whenever its weights are others, and in a capture they are symbolic ones.
        warnings.filterwarnings("ignore", message=_ONLY_FLAT_WEIGHTS, category=UserWarning)
        with LeafMode({**replacements, **row_loops.replacements()}, row_loops):
            yield


def leaf_translations() -> dict[OpOverload, Callable[..., Any]]:
    """What `ONNXRegistry.register_op(target, function)` takes, for every operator of a leaf."""
    with_operators = [leaf for leaf in _modules() if hasattr(leaf, "translations")]
    found = {operator: written for leaf in with_operators for operator, written in leaf.translations().items()}
    return {operator: without_types(written) for operator, written in found.items()}


def _modules() -> list[Any]:
    return [import_module(f"anyshape.leaves.{name}") for name in LEAVES]


def _squeeze(func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    named = {"input": None, "dim": None, **kwargs, **dict(zip(("input", "dim"), args, strict=False))}
    x, dim = named["input"], named["dim"]
    if len(args) > 2 or set(named) != {"input", "dim"} or not isinstance(x, Tensor):
        return func(*args, **kwargs)
    asked: Sequence[Any] = range(x.dim()) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
    if not all(isinstance(axis, int) and -x.dim() <= axis < x.dim() for axis in asked):
        return func(*args, **kwargs)
    axes = sorted({axis % x.dim() for axis in asked})
    kept = [axis for axis in axes if x.shape[axis] != 1]
    is_traced_at_sizes = not any(isinstance(size, SymInt) for size in x.shape)
    if not kept and not is_traced_at_sizes and not any(isinstance(x.shape[axis], SymInt) for axis in axes):
        return func(*args, **kwargs)
    for axis in reversed([axis for axis in axes if axis not in kept]):
        x = x.select(axis, 0)
    return x
