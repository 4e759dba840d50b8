"""torch.cond, while_loop, scan and map as the plain Python that torch documents; cond also with a forced choice.

    torch.cond(pred, f, g, (x,))  ->  f(x) if pred else g(x)

torch compiles these operators with dynamo before it runs them. Under a dispatch mode (ours count operators, or look at
values) dynamo refuses, and marks its function as one never to be compiled: the next call without a mode raises as well,
although the user's own call answers. So dynamo must not run at all under a mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch
from torch._ops import HigherOrderOperator
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from anyshape.findings import Source
from anyshape.intercept.patching import patched
from anyshape.modules.frames import source_of_running_code

Function = Callable[..., Any]
Replacement = Callable[[Function, HigherOrderOperator, tuple[Any, ...]], Any]
"""What is called instead of a higher-order operator: its own call, the operator, and its arguments in order."""


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
    """The same; `noted` gets which functions each torch.cond chose, by its line. `forced` chooses for some lines."""

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
_ARGUMENTS = {
    "cond": ("pred", "true_fn", "false_fn", "operands"),
    "while_loop": ("cond_fn", "body_fn", "carried_inputs", "additional_inputs"),
    "scan": ("combine_fn", "init", "xs", "additional_inputs"),
    "map_impl": ("f", "xs", "pos_args"),
}
"""The names of the operators' arguments, in order."""


class ForcedModule(torch.nn.Module):
    """`sides` has True for the first function and False for the second, by the line of the torch.cond."""

    def __init__(self, module: torch.nn.Module, sides: Mapping[Source, bool]) -> None:
        super().__init__()
        self.module = module
        self._sides = dict(sides)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with choices_noted({}, self._sides):
            return self.module(*args, **kwargs)
