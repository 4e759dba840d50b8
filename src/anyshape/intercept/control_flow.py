"""torch.cond, while_loop, scan and map as the plain Python that torch documents, and their refusals, found without dynamo.

    torch.cond(pred, f, g, (x,))  ->  f(x) if pred else g(x)

torch compiles these operators with dynamo before it runs them. Under a dispatch mode (ours count operators, or look at
values) dynamo refuses, and marks its function as one never to be compiled: the next call without a mode raises as well,
although the user's own call answers. So dynamo must not run at all under a mode.

torch compiles the functions of these operators before it runs them. Where they do not fit the sizes, each call is compiled
in vain: a second for a call that takes a millisecond where it answers. Their functions on fake tensors, which have sizes
and no values, raise the same error at once. Dynamo has the last word: it confirms the first error of each kind, and what
it answers at is no refusal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch
from torch._ops import HigherOrderOperator
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map_only, tree_unflatten

from anyshape.findings import Source
from anyshape.intercept.patching import patched
from anyshape.modules.user_code import source_of_error, source_of_running_code

Function = Callable[..., Any]
Replacement = Callable[[Function, HigherOrderOperator, tuple[Any, ...]], Any]
"""What is called instead of a higher-order operator: its own call, the operator, and its arguments in order."""
_ARGUMENTS = {
    "cond": ("pred", "true_fn", "false_fn", "operands"),
    "while_loop": ("cond_fn", "body_fn", "carried_inputs", "additional_inputs"),
    "scan": ("combine_fn", "init", "xs", "additional_inputs"),
    "map_impl": ("f", "xs", "pos_args"),
}
"""The names of the operators' arguments, in order."""
_NUMBER = re.compile(r"\d+")
_OPERATORS = "torch._higher_order_ops"


@contextmanager
def eager_under_modes() -> Iterator[None]:
    """Within this, the operators run in plain Python if a dispatch mode is active; torch is unchanged if none is."""
    if not torch._C._len_torch_dispatch_stack():
        yield
        return
    with control_flow_in_python():
        yield


@contextmanager
def control_flow_in_python() -> Iterator[None]:
    """Within this, the operators run in plain Python in this thread, and nothing is compiled."""
    with control_flow_by(_in_python):
        yield


@contextmanager
def control_flow_by(replacement: Replacement) -> Iterator[None]:
    """Within this, torch.compile changes nothing in this thread, and `replacement` is called for each of the operators."""
    own = HigherOrderOperator.__call__

    @wraps(own)
    def call(operator: HigherOrderOperator, /, *args: Any, **kwargs: Any) -> Any:
        names = _ARGUMENTS.get(operator.name())
        if names is None:
            return own(operator, *args, **kwargs)
        return replacement(own, operator, (*args, *(kwargs[name] for name in names[len(args) :] if name in kwargs)))

    with patched([(vars(torch), "compile", _uncompiled), (HigherOrderOperator, "__call__", call)]):
        yield


@contextmanager
def choices_noted(noted: dict[Source, set[bool]], forced: Mapping[Source, bool]) -> Iterator[None]:
    """Run these operators as Python, and note in `noted` which functions each torch.cond chose, by its line. `forced`
    chooses for some lines."""

    def choose(own: Function, operator: HigherOrderOperator, args: tuple[Any, ...]) -> Any:
        if operator.name() != "cond":
            return _in_python(own, operator, args)
        source = source_of_running_code(2)
        if source is None:
            return _choose(*args)
        side = bool(forced.get(source, args[0]))
        noted.setdefault(source, set()).add(side)
        return _choose(side, *args[1:])

    with control_flow_by(choose):
        yield


def _uncompiled(model: Any = None, **options: Any) -> Any:
    """What replaces torch.compile: the function as it is; without one, a decorator that changes nothing."""
    return (lambda function: function) if model is None else model


def _in_python(own: Function, operator: HigherOrderOperator, args: tuple[Any, ...]) -> Any:
    return _PLAIN[operator.name()](*args)


def _choose(pred: Any, true_fn: Function, false_fn: Function, operands: Sequence[Any] = ()) -> Any:
    return true_fn(*operands) if pred else false_fn(*operands)


def _repeat(cond_fn: Function, body_fn: Function, carried: Sequence[Any], additional: Sequence[Any] = ()) -> Any:
    given: Any = tuple(carried)
    while cond_fn(*tree_leaves(given), *additional):
        given = body_fn(*tree_leaves(given), *additional)
    return given


def _scan(combine_fn: Function, init: Sequence[Any], xs: Sequence[Any], additional: Sequence[Any] = ()) -> Any:
    carried, rows, spec = list(init), [], None
    for position in range(xs[0].shape[0]):
        given = combine_fn(*carried, *(x.select(0, position) for x in xs), *additional)
        leaves, spec = tree_flatten(given)
        carried, row = leaves[: len(carried)], leaves[len(carried) :]
        rows.append(row)
    stacked = [None if values[0] is None else torch.stack(values) for values in zip(*rows, strict=True)]
    return tree_unflatten([*carried, *stacked], spec) if spec is not None else (*carried,)


def _map(function: Function, xs: Sequence[Any], additional: Sequence[Any] = ()) -> Any:
    return _scan(function, (), xs, additional)


_PLAIN: dict[str, Function] = {"cond": _choose, "while_loop": _repeat, "scan": _scan, "map_impl": _map}


class ForcedModule(torch.nn.Module):
    """`sides` has True for the first function and False for the second, by the line of the torch.cond."""

    def __init__(self, module: torch.nn.Module, sides: Mapping[Source, bool]) -> None:
        super().__init__()
        self.module = module
        self._sides = dict(sides)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with choices_noted({}, self._sides):
            return self.module(*args, **kwargs)


Kind = tuple[type[Exception], str, Source | None]


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


def _foresee_cond(pred: Any, true_fn: Function, false_fn: Function, operands: Sequence[Any] = ()) -> Any:
    if not isinstance(pred, torch.Tensor):
        return true_fn(*operands) if pred else false_fn(*operands)
    false_fn(*operands)
    return true_fn(*operands)


def _foresee_while_loop(
    cond_fn: Function, body_fn: Function, carried: Sequence[Any], additional: Sequence[Any] = ()
) -> Any:
    given = tree_leaves(carried)
    cond_fn(*given, *additional)
    outputs = body_fn(*given, *additional)
    for number, (before, after) in enumerate(zip(given, tree_leaves(outputs), strict=False)):
        if isinstance(before, torch.Tensor) and isinstance(after, torch.Tensor) and before.shape != after.shape:
            shapes = f"{list(before.shape)}, and {list(after.shape)} after body_fn"
            raise RuntimeError(f"while_loop: carried input {number} has shape {shapes}")
    return outputs


def _foresee_scan(combine_fn: Function, init: Sequence[Any], xs: Sequence[Any], additional: Sequence[Any] = ()) -> Any:
    steps = xs[0].shape[0]
    rows = [x.select(0, 0) if steps else x.new_empty(x.shape[1:]) for x in xs]
    leaves = tree_leaves(combine_fn(*init, *rows, *additional))
    stacked = [row.unsqueeze(0).expand(steps, *row.shape) for row in leaves[len(init) :] if row is not None]
    return (*leaves[: len(init)], *stacked)


def _foresee_map(function: Function, xs: Sequence[Any], additional: Sequence[Any] = ()) -> Any:
    return _foresee_scan(function, (), xs, additional)


_ONCE: dict[str, Function] = {
    "cond": _foresee_cond,
    "while_loop": _foresee_while_loop,
    "scan": _foresee_scan,
    "map_impl": _foresee_map,
}
