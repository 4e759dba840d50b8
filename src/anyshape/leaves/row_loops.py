"""A Python loop over the rows of `nonzero()` -> the same loop over all places of the mask, where these are few and fixed.

    for expert in hit.nonzero():                     for expert in all places:
        out.index_add_(0, tokens, f(x, expert))  ->      out.index_add_(0, tokens, where(hit[expert], f(x, expert), 0))

How many rows `nonzero` gives depends on values, so torch cannot trace the loop itself. Here its body is traced for each
place of the mask. What the body writes into tensors from outside of it is written only if the place was hit. A body
whose results leave it in another way (`total = total + part`, a list, a number, `break`) is refused as before.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakTensorKeyDictionary

from anyshape.modules.user_code import is_ours

Function = Callable[..., Any]

_MOST_PLACES = 64
_ADDING = {"index_add_": 3, "scatter_add_": 3}
"""Functions that add one operand to a tensor, and the place of that operand: adding 0 changes nothing."""
_TORCH = torch.__path__[0]


@dataclass(frozen=True)
class _Mask:
    """What `nonzero` was called on: whether each place is hit, in the order of the rows, and the shape."""

    hits: Tensor
    shape: tuple[int, ...]

    @property
    def places(self) -> list[tuple[int, ...]]:
        return list(itertools.product(*map(range, self.shape)))


@dataclass(eq=False)
class _Body:
    """One run of a loop's body. `is_dead`: the module itself raises where this place is hit."""

    rows: Tensor
    hit: Tensor
    made: dict[int, Tensor] = field(default_factory=dict)
    given: dict[int, Tensor] = field(default_factory=dict)
    is_dead: bool = False

    def is_outside(self, tensor: Tensor) -> bool:
        """Whether a tensor is from outside of this body, or a view of one that is."""
        is_alias = torch._C._is_alias_of  # type: ignore[attr-defined]
        return id(tensor) not in self.made or any(is_alias(tensor, each) for each in self.given.values())


class RowLoops:
    """The loops of one capture."""

    def __init__(self) -> None:
        self._masks = WeakTensorKeyDictionary()
        self._bodies: list[_Body] = []
        self._over: dict[int, Tensor] = {}  # made in bodies that are over; kept, so that no other gets the same id
        self._rows: Tensor | None = None  # of the last loop
        self._left: Tensor | None = None  # those of a loop that was left before its end

    @property
    def is_met(self) -> bool:
        """Whether there was such a loop: from then on, `call` has to make all calls."""
        return bool(self._bodies or self._over) or self._left is not None

    def replacements(self) -> dict[Any, Function]:
        noted = dict.fromkeys((torch.nonzero, Tensor.nonzero, torch.argwhere, Tensor.argwhere), self._note)
        return {**noted, Tensor.__iter__: self._iterate, Tensor.unbind: self._iterate}

    def call(self, func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any], run: Function) -> Any:
        """The result of a torch function, `run`, inside a body or after a loop."""
        used = [leaf for leaf in tree_leaves((args, dict(kwargs))) if isinstance(leaf, Tensor)]
        if self._left is not None:
            _refuse(self._left)
        if self._rows is not None and any(id(tensor) in self._over for tensor in used):
            _refuse(self._rows)
        if not self._bodies:
            return run(func, args, kwargs)
        for body in self._bodies:
            body.given |= {id(tensor): tensor for tensor in used if id(tensor) not in body.made}
        if _writes(func, kwargs):
            return self._write(func, args, kwargs, run)
        inner = self._bodies[-1]
        result = run(func, _at_a_place_it_has(inner, func, args), kwargs)
        made = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor) and id(leaf) not in inner.given]
        for body in self._bodies:
            body.made |= {id(tensor): tensor for tensor in made}
        return result

    def _write(self, func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any], run: Function) -> Any:
        """A write into a tensor; into one from outside of a body only if the place of that body is hit."""
        target = kwargs["out"] if kwargs.get("out") is not None else args[0]
        if not isinstance(target, Tensor):
            _refuse(self._bodies[-1].rows)
        around = [body for body in self._bodies if body.is_outside(target)]
        if not around:
            return run(func, args, kwargs)
        return _write_if_hit(around, target, func, args, kwargs, run)

    def _note(self, func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        rows = func(*args, **kwargs)
        mask = args[0] if args else kwargs.get("input")
        if isinstance(mask, Tensor) and isinstance(rows, Tensor) and not isinstance(rows.shape[0], int):
            shape = tuple(mask.shape)
            if shape and all(isinstance(size, int) for size in shape) and mask.numel() <= _MOST_PLACES:
                self._masks[rows] = _Mask((mask != 0).reshape(-1), shape)
        return rows

    def _iterate(self, func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """`iter(rows)`, for which torch calls `rows.unbind(0)` without further ado."""
        mask, frame = self._masks.get(args[0]), _looping_frame()
        if mask is None or frame is None:
            return func(*args, **kwargs)
        return self._all_places(args[0], mask, frame)

    def _all_places(self, rows: Tensor, mask: _Mask, frame: FrameType) -> Iterator[Tensor]:
        before, self._rows = _numbers(frame), rows
        for number, place in enumerate(mask.places):
            hit, row = mask.hits[number], torch.tensor(place)
            body = _Body(rows, hit, {id(row): row})
            self._bodies.append(body)
            try:
                yield row
            except GeneratorExit:  # `break`, or an error
                self._left = rows
                raise
            finally:
                self._bodies.remove(body)
                self._over |= body.made
        after = _numbers(frame)
        if any(after.get(name) != number for name, number in before.items()):
            _refuse(rows)


def _at_a_place_it_has(body: _Body, func: Function, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a call; place 0 for one that a tensor does not have, such as that of an expert without weights.

    There the module itself would raise if the place were hit. So it is not, and nothing that this body writes is kept.
    torch records a call before it raises, so the call must not be made. `table[place]` comes here as it is on torch 2.11, and
    as a call of `select` on later versions.
    """
    if getattr(func, "__name__", "") == "__getitem__" and len(args) == 2:
        return args[0], _index_it_has(body, *args)
    is_select = getattr(func, "__name__", "") == "select" and len(args) == 3
    if not is_select or not all(type(number) is int for number in args[1:]):
        return args
    tensor, axis, place = args
    size = tensor.shape[axis]
    if isinstance(size, int) and place >= size:
        body.is_dead = True
        return tensor, axis, 0
    return args


def _index_it_has(body: _Body, tensor: Tensor, index: Any) -> Any:
    items = index if isinstance(index, tuple) else (index,)
    if any(isinstance(item, Tensor) and item.dim() > 0 for item in items):  # a mask takes several axes
        return index
    left_open = tensor.dim() - sum(item is not None and item is not Ellipsis for item in items)
    kept, axis = [], 0
    for item in items:
        place = _known_number(item)
        size = tensor.shape[axis] if axis < tensor.dim() else None
        is_behind = place is not None and isinstance(size, int) and place >= size
        body.is_dead |= is_behind
        kept.append(0 if is_behind else item)
        axis += left_open if item is Ellipsis else item is not None
    return tuple(kept) if isinstance(index, tuple) else kept[0]


def _known_number(item: Any) -> int | None:
    """Return the Python number: the value itself, or the constant that a 0-d tensor holds in the trace."""
    from torch.utils._mode_utils import no_dispatch

    if type(item) is int:
        return item
    constant = getattr(item, "constant", None)
    if not isinstance(constant, Tensor) or constant.dtype not in (torch.int64, torch.int32) or constant.dim():
        return None
    with torch._C.DisableTorchFunction(), no_dispatch():
        return int(constant)


def _write_if_hit(
    bodies: list[_Body], target: Tensor, func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any], run: Function
) -> Any:
    name = getattr(func, "__name__", "")
    if any(body.is_dead for body in bodies):
        return None if name == "__setitem__" else target
    hit = bodies[0].hit
    for body in bodies[1:]:
        hit = hit & body.hit
    added = _ADDING.get(name)
    if added is not None and len(args) > added and isinstance(args[added], Tensor):
        gated = torch.where(hit, args[added], torch.zeros_like(args[added]))
        return run(func, (*args[:added], gated, *args[added + 1 :]), kwargs)
    before = target.clone()
    result = run(func, args, kwargs)
    target.copy_(torch.where(hit, target, before))
    return result


def _writes(func: Function, kwargs: Mapping[str, Any]) -> bool:
    name = getattr(func, "__name__", "")
    is_operator = name.startswith("__i") and name not in ("__int__", "__index__", "__invert__", "__iter__")
    is_in_place = name.endswith("_") and not name.endswith("__")
    return is_operator or is_in_place or name in ("__setitem__", "__set__") or kwargs.get("out") is not None


def _refuse(rows: Tensor) -> NoReturn:
    """Raise what torch raises for the loop itself."""
    import sympy
    from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    count: Any = rows.shape[0]
    message = "a loop over the rows of nonzero(): what its body computes is used outside of it"
    raise GuardOnDataDependentSymNode(sympy.Eq(count.node.expr, 0), message)


def _numbers(frame: FrameType) -> dict[str, Any]:
    """The variables of a function that hold numbers or text."""
    kinds = (bool, int, float, str, type(None))
    return {name: value for name, value in frame.f_locals.items() if isinstance(value, kinds)}


def _looping_frame() -> FrameType | None:
    """The Python function that iterates over a tensor right now; None where something else is done with the tensor."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (is_ours(frame) or frame.f_code.co_name == "__torch_function__"):
        frame = frame.f_back
    while frame is not None and frame.f_code.co_filename.startswith(_TORCH):
        if frame.f_code.co_name == "__iter__":
            return frame.f_back
        frame = frame.f_back
    return None
