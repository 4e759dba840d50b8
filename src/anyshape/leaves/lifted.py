"""torch.cond, while_loop, scan, associative_scan and map while a module is captured: kept whole, their functions traced.

    scale = self.scale * 2                                  cond(pred, f, g, (x, scale))
    torch.cond(pred, lambda x: x * scale, g, (x,))    ->    f = lambda x, scale: x * scale

The operators take functions of their operands alone. dynamo would find what else a function reads, but it cannot follow the
functions that keep sizes open (see `open_numbers`). Here each function runs once beside the capture, on tensors that nothing
records: what it reads besides its operands becomes operands. A result that shares memory with an operand or with another
result is copied, as torch demands of every such function.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from inspect import getclosurevars
from typing import Any

import torch
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from anyshape.intercept.control_flow import control_flow_by
from anyshape.intercept.patching import patched
from anyshape.leaves.reading import Reading, Recorded, Replacing
from anyshape.modules.user_code import source_of_running_code

Function = Callable[..., Any]

_OF_TRACERS = ("PreDispatchTorchFunctionMode", "TorchFunctionMetadataMode")
"""Function modes of which each tracer has its own."""


@contextmanager
def control_flow_kept() -> Iterator[None]:
    """Enter around `torch.export.export(..., strict=False)`."""
    from torch._higher_order_ops import associative_scan

    space = vars(sys.modules[associative_scan.__module__])
    replaced = [(space, "generic_associative_scan", _scan_in_order), (vars(torch), "cond", _with_numbers(torch.cond))]
    with control_flow_by(_keep), patched(replaced):
        yield


def _with_numbers(own: Function) -> Function:
    """torch.cond that takes numbers among its operands if a condition on sizes decides, as it does outside of a capture."""

    def cond(pred: Any, true_fn: Function, false_fn: Function, operands: Sequence[Any] = ()) -> Any:
        leaves, structure = tree_flatten(tuple(operands))
        tensors = tuple(leaf for leaf in leaves if isinstance(leaf, torch.Tensor))
        if not isinstance(pred, torch.SymBool) or len(tensors) == len(leaves):
            return own(pred, true_fn, false_fn, operands)

        def bind(function: Function) -> Function:
            def bound(*given: torch.Tensor) -> Any:
                rest = iter(given)
                values = [next(rest) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
                return function(*tree_unflatten(values, structure))

            return bound

        return own(pred, bind(true_fn), bind(false_fn), tensors)

    return cond


@dataclass(frozen=True)
class _Call:
    """A call of an operator: its functions, what each of them is called with, and a way to call the operator with other
    functions and more operands."""

    functions: tuple[Function, ...]
    operands: Callable[[], tuple[Any, ...]]
    again: Callable[[Sequence[Function], Sequence[Any]], Any]


def _keep(own: Function, operator: HigherOrderOperator, args: tuple[Any, ...]) -> Any:
    call = _CALLS[operator.name()](own, operator, *args)
    if all(isinstance(function, (_Lifted, torch.fx.GraphModule)) for function in call.functions):
        return own(operator, *args)
    modes = [mode for mode in _get_current_function_mode_stack() if type(mode).__name__ not in _OF_TRACERS]
    recorded = _recorded_so_far(modes)
    with _beside_the_capture() as environment:
        found = [_run(function, call.operands(), recorded) for function in call.functions]
        symbols = dict.fromkeys(symbol for reading, _ in found for symbol in reading.symbols)
        sizes = [environment.create_symintnode(symbol, hint=None) for symbol in symbols]
    free = list({key: value for reading, _ in found for key, value in reading.free.items()}.values())
    constants = [value for reading, _ in found for value in reading.constants]
    lifted, place = [], len(free)
    for function, (reading, _) in zip(call.functions, found, strict=True):
        extra = _Extra(free, place, len(free) + len(constants) + len(sizes), recorded)
        lifted.append(_Lifted(function, modes, extra))
        place += len(reading.constants)
    results = call.again(lifted, [*map(_as_recorded, (*free, *constants)), *sizes])
    _write_line(results, recorded)
    return tree_unflatten(list(results), found[-1][1])


def _write_line(results: Sequence[Any], recorded: Recorded) -> None:
    """Put the line that calls the operator onto its node; torch keeps lines of functions named `forward` only."""
    from torch.fx.experimental.proxy_tensor import get_proxy_slot

    source = source_of_running_code(2)
    tensor = next((each for each in results if isinstance(each, torch.Tensor)), None)
    if source is None or tensor is None or not recorded.tracers:
        return
    slot = get_proxy_slot(tensor, recorded.tracers[-1], None)
    if slot is not None:
        node: Any = slot.proxy.node.args[0]
        node.stack_trace = f'{node.stack_trace or ""}\n  File "{source.file}", line {source.line}, in {source.function}'


@contextmanager
def _beside_the_capture() -> Iterator[Any]:
    """Within this, operators run on tensors without values, and nothing is recorded. Gives the shape environment."""
    from torch._guards import detect_fake_mode
    from torch.fx.experimental.proxy_tensor import (
        _temp_remove_pre_dispatch_torch_function_mode,
        disable_proxy_modes_tracing,
    )

    fake = detect_fake_mode()
    environment = None if fake is None else fake.shape_env
    with ExitStack() as stack:
        stack.enter_context(_temp_remove_pre_dispatch_torch_function_mode())
        stack.enter_context(disable_proxy_modes_tracing())
        if environment is not None:
            stack.enter_context(environment.ignore_fresh_unbacked_symbols())
        yield environment


def _recorded_so_far(modes: Sequence[TorchFunctionMode]) -> Recorded:
    from torch.fx.experimental.proxy_tensor import get_proxy_mode

    mode = torch._ops._get_dispatch_mode_pre_dispatch(torch._C._TorchDispatchModeKey.PROXY) or get_proxy_mode()
    outer = [tracer for each in modes if isinstance(each, Replacing) for tracer in each.recorded.tracers]
    return Recorded() if mode is None else Recorded([*outer, mode.tracer])


def _run(function: Function, operands: Sequence[Any], recorded: Recorded) -> tuple[Reading, Any]:
    """What the function reads besides its operands, and the structure of what it gives."""
    reading = Reading(recorded)
    copied = [value.clone() if isinstance(value, torch.Tensor) else value for value in operands]
    with reading:
        given = function(*copied)
    reading.note(given)
    return reading, tree_flatten(given)[1]


def _as_recorded(value: torch.Tensor) -> torch.Tensor:
    """A tensor that the capture has recorded; one that Python holds passes an operator, which records it."""
    return value if isinstance(value, FakeTensor) else value.detach()


@dataclass(frozen=True)
class _Extra:
    """The operands after those of the user: for `free` values, for constants (the function's own begin at `constants`) and
    for sizes, `count` in all. `recorded` is what was recorded outside of the function."""

    free: Sequence[torch.Tensor]
    constants: int
    count: int
    recorded: Recorded


class _Lifted:
    """A function of its operands alone: those of the user, then the values that it read from elsewhere."""

    def __init__(self, function: Function, modes: Sequence[TorchFunctionMode], extra: _Extra) -> None:
        self._function = function
        self._modes = modes
        self._extra = extra

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        extra, usual = self._extra, len(operands) - self._extra.count
        more = operands[usual:]
        replacing = Replacing(extra.free, more[: len(extra.free)], more[extra.constants :])
        replacing.recorded = extra.recorded
        active = _get_current_function_mode_stack()
        with ExitStack() as stack:
            for mode in (*(mode for mode in self._modes if mode not in active), replacing):
                stack.enter_context(mode)
            given = self._function(*operands[:usual])
        return tuple(_unshared([replacing.value(leaf) for leaf in tree_leaves(given)], operands))


def _unshared(results: Sequence[Any], operands: Sequence[Any]) -> Iterator[Any]:
    """The results, copied where they share memory with an operand or with a result before."""
    taken = {_memory(value) for value in operands if isinstance(value, torch.Tensor)}
    for result in results:
        if not isinstance(result, torch.Tensor):
            yield result
            continue
        yield result.clone() if _memory(result) in taken else result
        taken.add(_memory(result))


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def _scan_in_order(operator: Any, leaves: Sequence[torch.Tensor], dim: int = 0, **_: Any) -> Any:
    """What replaces torch's recursion over pairs, whose depth grows with the size: one element after the other.

    `operator` is the user's function under torch.vmap, for many pairs at once; here there is one pair at a time.
    """
    from torch._higher_order_ops.scan import scan_op

    count = len(leaves)
    vmapped = operator.keywords["combine_fn"]
    users = getattr(vmapped, "__wrapped__", None) or getclosurevars(vmapped).nonlocals["func"]
    of_one = partial(operator.func, **{**operator.keywords, "combine_fn": users})

    def combine(*values: torch.Tensor) -> list[torch.Tensor]:
        before, now, position = values[:count], values[count : 2 * count], values[-1]
        joined = zip(now, tree_leaves(of_one(*before, *now)), strict=True)
        carried = [torch.where(position == 0, first, later) for first, later in joined]
        return [*carried, *carried]

    positions = torch.arange(leaves[0].shape[0], device=leaves[0].device)
    given = scan_op(combine, [leaf.select(0, 0) for leaf in leaves], [*leaves, positions], ())
    return list(given[count:])


def _apart(*groups: Sequence[Any]) -> list[list[Any]]:
    """The operands, each tensor once: torch names the inputs of a function by them."""
    seen: set[int] = set()

    def once(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        is_new = id(value) not in seen
        seen.add(id(value))
        return value if is_new else value.clone()

    return [[once(value) for value in group] for group in groups]


def _cond(own: Function, operator: Any, pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> _Call:
    def again(functions: Sequence[Function], more: Sequence[Any]) -> Any:
        return own(operator, pred, *functions, *map(tuple, _apart([*operands, *more])))

    return _Call((true_fn, false_fn), lambda: tuple(operands), again)


def _while_loop(own: Function, operator: Any, cond: Any, body: Any, carried: Any, additional: Any = ()) -> _Call:
    def again(functions: Sequence[Function], more: Sequence[Any]) -> Any:
        return own(operator, *functions, *map(tuple, _apart(carried, [*additional, *more])))

    return _Call((cond, body), lambda: (*carried, *additional), again)


def _scan(own: Function, operator: Any, combine: Any, init: Any, xs: Any, additional: Any = ()) -> _Call:
    def again(functions: Sequence[Function], more: Sequence[Any]) -> Any:
        starts, rows, others = _apart(init, xs, [*additional, *more])
        return own(operator, *functions, starts, rows, tuple(others))

    return _Call((combine,), lambda: (*init, *(x.select(0, 0) for x in xs), *additional), again)


def _map(own: Function, operator: Any, function: Any, xs: Any, additional: Any = ()) -> _Call:
    from torch._higher_order_ops.scan import scan_op

    return _scan(own, scan_op, function, (), xs, additional)


_CALLS: dict[str, Callable[..., _Call]] = {"cond": _cond, "while_loop": _while_loop, "scan": _scan, "map_impl": _map}
