"""Refusals of torch.cond, while_loop, scan and map that are found without dynamo.

torch compiles the functions of these operators before it runs them. Where they do not fit the sizes, each call is compiled
in vain: a second for a call that takes a millisecond where it answers. Their functions on fake tensors, which have sizes
and no values, raise the same error at once. Dynamo has the last word: it confirms the first error of each kind, and what
it answers at is no refusal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._ops import HigherOrderOperator
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from anyshape.findings import Source
from anyshape.intercept.control_flow import control_flow_by
from anyshape.intercept.patching import patched
from anyshape.modules.frames import source_of_error

Function = Callable[..., Any]
Kind = tuple[type[Exception], str, Source | None]

_NUMBER = re.compile(r"\d+")
_OPERATORS = "torch._higher_order_ops"


class ForeseenRefusals:
    """The kinds of errors that dynamo has confirmed or refuted so far."""

    def __init__(self) -> None:
        self._confirmed: dict[Kind, bool] = {}

    @contextmanager
    def raised_early(self) -> Iterator[None]:
        """Within this, an operator whose functions do not fit its inputs raises before it is compiled."""
        if torch._C._len_torch_dispatch_stack():
            yield
            return
        own = torch.compile

        def compile_function(model: Any = None, **options: Any) -> Any:
            compiled = own(model, **options)
            if not str(getattr(model, "__module__", "")).startswith(_OPERATORS):
                return compiled
            return lambda *args, **kwargs: self._call(model, compiled, args, kwargs)

        with patched([(vars(torch), "compile", compile_function)]):
            yield

    def _call(self, function: Function, compiled: Function, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        foreseen = _foresee(function, args, kwargs)
        if foreseen is None:
            return compiled(*args, **kwargs)
        kind = (type(foreseen), _NUMBER.sub("0", str(foreseen)), source_of_error(foreseen))
        if self._confirmed.get(kind):
            raise foreseen
        try:
            outputs = compiled(*args, **kwargs)
        except Exception as error:
            self._confirmed.setdefault(kind, True)
            raise (foreseen if self._confirmed[kind] else error) from error
        self._confirmed[kind] = False
        return outputs


def _foresee(function: Function, args: Sequence[Any], kwargs: dict[str, Any]) -> Exception | None:
    """The error that the functions of an operator raise on fake tensors; None if they raise none, or one for want of values."""
    from torch._subclasses.fake_tensor import (
        DataDependentOutputException,
        DynamicOutputShapeException,
        FakeTensorMode,
        UnsupportedFakeTensorException,
        UnsupportedOperatorException,
    )

    try:
        with FakeTensorMode(allow_non_fake_inputs=True) as mode, _NoRealWrites(), control_flow_by(_once):
            given, named = tree_map_only(torch.Tensor, mode.from_tensor, (tuple(args), kwargs))
            function(*given, **named)
    except (
        DataDependentOutputException,
        DynamicOutputShapeException,
        UnsupportedFakeTensorException,
        UnsupportedOperatorException,
    ):
        return None
    except (RuntimeError, ValueError, IndexError) as error:
        return error
    except Exception:
        return None
    return None


class _NoRealWrites(TorchDispatchMode):
    """Raises before an operator writes into a tensor that is not fake: a buffer, which is the module's own."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from torch._subclasses.fake_tensor import FakeTensor

        tensors = [leaf for leaf in tree_leaves((args, kwargs or {})) if isinstance(leaf, torch.Tensor)]
        if func._schema.is_mutable and not all(isinstance(tensor, FakeTensor) for tensor in tensors):
            raise _RealWrite
        return func(*args, **(kwargs or {}))


class _RealWrite(Exception):
    """A function writes into a tensor of the module: it is not called on fake tensors."""


def _once(own: Function, operator: HigherOrderOperator, args: tuple[Any, ...]) -> Any:
    """The functions of an operator, each called once; the outputs have the sizes of those of the operator."""
    return _ONCE[operator.name()](*args)


def _cond(pred: Any, true_fn: Function, false_fn: Function, operands: Sequence[Any] = ()) -> Any:
    if not isinstance(pred, torch.Tensor):
        return true_fn(*operands) if pred else false_fn(*operands)
    false_fn(*operands)
    return true_fn(*operands)


def _while_loop(cond_fn: Function, body_fn: Function, carried: Sequence[Any], additional: Sequence[Any] = ()) -> Any:
    given = tree_leaves(carried)
    cond_fn(*given, *additional)
    outputs = body_fn(*given, *additional)
    for number, (before, after) in enumerate(zip(given, tree_leaves(outputs), strict=False)):
        if isinstance(before, torch.Tensor) and isinstance(after, torch.Tensor) and before.shape != after.shape:
            shapes = f"{list(before.shape)}, and {list(after.shape)} after body_fn"
            raise RuntimeError(f"while_loop: carried input {number} has shape {shapes}")
    return outputs


def _scan(combine_fn: Function, init: Sequence[Any], xs: Sequence[Any], additional: Sequence[Any] = ()) -> Any:
    steps = xs[0].shape[0]
    rows = [x.select(0, 0) if steps else x.new_empty(x.shape[1:]) for x in xs]
    leaves = tree_leaves(combine_fn(*init, *rows, *additional))
    stacked = [row.unsqueeze(0).expand(steps, *row.shape) for row in leaves[len(init) :] if row is not None]
    return (*leaves[: len(init)], *stacked)


def _map(function: Function, xs: Sequence[Any], additional: Sequence[Any] = ()) -> Any:
    return _scan(function, (), xs, additional)


_ONCE: dict[str, Function] = {"cond": _cond, "while_loop": _while_loop, "scan": _scan, "map_impl": _map}
