"""Which sizes and values of a contract the judge compares: its own choice, independent of anyshape's."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from registry import Model, Sizes

_SMALL = (1, 2, 3, 4, 6, 7, 8, 13, 16, 17, 31, 33, 61, 64)
_LARGE = (127, 255, 256, 257, 263, 300, 401, 512, 521, 601, 769, 1024, 1031, 2003)
_MOST_ELEMENTS = 1 << 23
_JOINT = 14


def choose_sizes(model: Model, contains: Callable[[Sizes], bool], ends: Mapping[str, Sequence[int]]) -> list[Sizes]:
    """The author's far sizes first, then the ends of the contract, then one dim at a time, then joint ones.

    `ends` has for each dim of the contract the sizes at its lower and upper end.
    """
    chosen: list[Sizes] = []
    for sizes in _proposed(model, ends):
        if sizes not in chosen and min(sizes.values(), default=1) >= 0 and contains(sizes):
            chosen.append(sizes)
    return chosen


def _proposed(model: Model, ends: Mapping[str, Sequence[int]]) -> Iterator[Sizes]:
    base = model.sizes
    yield base
    for point in model.points:
        yield base | point
    for dim, sizes in model.far.items():
        yield from (base | {dim: size} for size in sizes)
    for dim, sizes in ends.items():
        yield from (base | {dim: size} for size in sizes if dim in base)
    yield {dim: ends.get(dim, (1,))[0] for dim in base}
    for dim in base:
        yield from (base | {dim: size} for size in (*_SMALL, *_LARGE))
    draw = random.Random(model.name)
    far = {dim: [*model.far.get(dim, ()), *_SMALL] for dim in base}
    for _ in range(8 * _JOINT):
        yield {dim: draw.choice(far[dim]) for dim in base}


def is_small_enough(inputs: Any) -> bool:
    """Whether the inputs are small enough to be compared within seconds."""
    return sum(tensor.numel() for tensor in _tensors(inputs)) <= _MOST_ELEMENTS


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)


def map_tensors(change: Callable[[int, torch.Tensor], torch.Tensor], value: Any) -> Any:
    """The same structure with each tensor changed; the change also gets the number of the tensor."""
    count = -1

    def walk(item: Any) -> Any:
        nonlocal count
        if isinstance(item, torch.Tensor):
            count += 1
            return change(count, item)
        if isinstance(item, Mapping):
            return {key: walk(child) for key, child in item.items()}
        if isinstance(item, (tuple, list)):
            walked = [walk(child) for child in item]
            return type(item)(*walked) if hasattr(item, "_fields") else type(item)(walked)
        return item

    return walk(value)


def copied(inputs: Any) -> Any:
    """The inputs with tensors of their own, so that a module which writes into them harms nobody."""
    return map_tensors(lambda _, tensor: tensor.clone(), inputs)


def invent(inputs: Any) -> Iterator[tuple[str, Any]]:
    """Unusual values of finite numbers, one input at a time and all at once, each legal by dtype alone.

    Integers keep the values that the author's function made; they are only repeated and put into another order.
    """
    count = sum(1 for _ in _tensors(inputs))
    for name, change in _CHANGES.items():
        for number in [*range(count), None] if count > 1 else [None]:
            changed = map_tensors(lambda at, t, n=number, c=change: c(t) if n in (None, at) else t.clone(), inputs)
            if any(not torch.equal(a, b) for a, b in zip(_tensors(inputs), _tensors(changed), strict=True)):
                yield f"{name} in {'all' if number is None else number}", changed


def _some(tensor: torch.Tensor, value: float) -> torch.Tensor:
    if not tensor.is_floating_point():
        return tensor.clone()
    picked = torch.rand(tensor.shape) < 0.3
    return torch.where(picked, torch.full_like(tensor, value), tensor)


def _rounded(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.round() if tensor.is_floating_point() else tensor.clone()


def _repeated(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.numel() == 0 or tensor.dtype is torch.bool:
        return tensor.clone()
    return tensor.reshape(-1)[:1].expand(tensor.numel()).reshape(tensor.shape).clone()


def _mask(make: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda tensor: make(tensor) if tensor.dtype is torch.bool and tensor.dim() else tensor.clone()


def _one_row(tensor: torch.Tensor, row: bool) -> torch.Tensor:
    made = torch.rand(tensor.shape) < 0.5
    made[..., 0] = not row
    if tensor.shape[0]:
        made[-1] = row
    return made


_CHANGES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "zeros among others": lambda tensor: _some(tensor, 0.0),
    "negative zeros among others": lambda tensor: _some(tensor, -0.0),
    "whole numbers": _rounded,
    "one value everywhere": _repeated,
    "random mask": _mask(lambda tensor: torch.rand(tensor.shape) < 0.5),
    "prefix mask": _mask(
        lambda tensor: torch.arange(tensor.shape[-1]).expand(tensor.shape) < tensor.shape[-1] // 2 + 1
    ),
    "suffix mask": _mask(lambda tensor: torch.arange(tensor.shape[-1]).expand(tensor.shape) >= tensor.shape[-1] // 2),
    "one row true": _mask(lambda tensor: _one_row(tensor, True)),
    "one row false": _mask(lambda tensor: _one_row(tensor, False)),
}
