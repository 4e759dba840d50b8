"""Changes of one tensor for edge values: masks by pattern, integers at the ends of their range, floats in some elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

_HIDING = -1e3  # a mask that is added to scores hides with this or less
_NAN_EVERY = 32
MUCH = 64  # elements of a tensor that gets NaN in many places
_FEW = (0.0, -0.0, 1.0, -1.0, 0.5, -2.0)


@dataclass(frozen=True)
class Draw:
    """Random numbers for one change, and the lowest and highest legal value of the tensor, where declared."""

    random: torch.Generator
    range: tuple[float, float] | None = None

    def below(self, high: int, shape: torch.Size) -> torch.Tensor:
        """Whole numbers from 0 to `high - 1`."""
        return torch.randint(0, max(high, 1), shape, generator=self.random)

    def half(self, tensor: torch.Tensor) -> torch.Tensor:
        """True for about half of the elements."""
        return self.below(2, tensor.shape).bool().to(tensor.device)


Change = Callable[[torch.Tensor, Draw], torch.Tensor]


def is_mask(tensor: torch.Tensor) -> bool:
    """Booleans, and integers of two or more axes that hold nothing but 0 and 1."""
    if tensor.dtype is torch.bool:
        return True
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dim() < 2 or tensor.numel() == 0:
        return False
    return bool(((tensor == 0) | (tensor == 1)).all())


def flags_of(tensor: torch.Tensor) -> tuple[float, float] | None:
    """The two values of a mask: False and True, 0 and 1, or 0 and what hides a score. None for what is no mask."""
    if is_mask(tensor):
        return (0, 1)
    if not is_wide_float(tensor) or tensor.dim() < 2 or tensor.numel() == 0:
        return None
    others = torch.unique(tensor[tensor != 0])
    if len(others) != 1 or not (others[0] == 1 or others[0] <= _HIDING):
        return None
    return 0, float(others[0])


def is_wide_float(tensor: torch.Tensor) -> bool:
    # Eight-bit floats have hardly an operator; what they hold comes from a quantizer, not from the user.
    return tensor.is_floating_point() and tensor.element_size() > 1


def is_number(tensor: torch.Tensor) -> bool:
    """Whether the tensor holds integers that are neither a mask nor pivots of a matrix."""
    is_whole = not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is torch.bool)
    return is_whole and tensor.numel() > 0 and not is_mask(tensor) and not _are_pivots(tensor)


def _are_pivots(tensor: torch.Tensor) -> bool:
    """Rows to swap, as LAPACK gives them: never below their own place. torch reads memory at whatever else they hold."""
    if tensor.dtype is not torch.int32 or tensor.dim() == 0:
        return False
    return bool((tensor > torch.arange(tensor.shape[-1], device=tensor.device)).all())


def floats(change: Change) -> Change:
    return lambda tensor, draw: change(tensor, draw) if is_wide_float(tensor) else tensor


def _numbers(change: Change) -> Change:
    return lambda tensor, draw: change(tensor, draw) if is_number(tensor) else tensor


def _masks(pattern: Callable[[torch.Tensor, Draw], torch.Tensor]) -> Change:
    def change(tensor: torch.Tensor, draw: Draw) -> torch.Tensor:
        flags = flags_of(tensor)
        if flags is None or tensor.dim() == 0 or tensor.shape[-1] == 0:
            return tensor
        off, on = (torch.full_like(tensor, value) for value in flags)
        return torch.where(pattern(tensor, draw).to(tensor.device), on, off)

    return change


def _prefix(tensor: torch.Tensor, draw: Draw) -> torch.Tensor:
    """The first few of each row: at least one, not all where there are two."""
    count = tensor.shape[-1]
    lengths = 1 + draw.below(count - 1, torch.Size((*tensor.shape[:-1], 1)))
    return (torch.arange(count) < lengths).expand(tensor.shape)


def _rows(tensor: torch.Tensor, draw: Draw) -> torch.Tensor:
    """The first row full, the last one empty, the others random."""
    mask = draw.half(tensor).cpu().reshape(-1, tensor.shape[-1])
    mask[-1] = False
    mask[0] = True
    return mask.reshape(tensor.shape)


def _signed_zeros(tensor: torch.Tensor, draw: Draw) -> torch.Tensor:
    zeros = torch.zeros_like(tensor)
    return torch.where(draw.half(tensor), -zeros, zeros)


def _mixed(tensor: torch.Tensor, draw: Draw) -> torch.Tensor:
    """Every second element, in random order, becomes one of a few numbers; infinities stay."""
    order = torch.randperm(tensor.numel(), generator=draw.random).reshape(tensor.shape).to(tensor.device)
    few = _few_of(tensor, draw)
    return torch.where((order % 2 == 0) & tensor.isfinite(), few[(order // 2) % len(few)], tensor)


def few_numbers(tensor: torch.Tensor, draw: Draw) -> torch.Tensor:
    """All elements become one of a few numbers; infinities stay."""
    order = torch.randperm(tensor.numel(), generator=draw.random).reshape(tensor.shape).to(tensor.device)
    few = _few_of(tensor, draw)
    return torch.where(tensor.isfinite(), few[order % len(few)], tensor)


def _few_of(tensor: torch.Tensor, draw: Draw) -> torch.Tensor:
    """Zeros of both signs, small numbers, and the ends of the legal range."""
    ends = [bound for bound in draw.range or () if math.isfinite(bound)]
    return torch.tensor([*_FEW, *ends], dtype=tensor.dtype, device=tensor.device)


def _equal(tensor: torch.Tensor, draw: Draw) -> torch.Tensor:
    """Half of the elements become equal to their left neighbour."""
    return torch.where(draw.half(tensor), tensor.roll(1, -1), tensor) if tensor.dim() else tensor


def with_nan(tensor: torch.Tensor, draw: Draw) -> torch.Tensor:
    """One element in 32, the very first among them, becomes NaN; none where a range of values is declared, none of a mask."""
    return _with_nan(tensor, draw, _NAN_EVERY)


def with_much_nan(tensor: torch.Tensor, draw: Draw) -> torch.Tensor:
    """Every second element becomes NaN; none where there are few elements: what sorts is stable there by chance."""
    return _with_nan(tensor, draw, 2) if tensor.numel() >= MUCH else tensor


def _with_nan(tensor: torch.Tensor, draw: Draw, every: int) -> torch.Tensor:
    if draw.range is not None or not tensor.numel() or flags_of(tensor) is not None:
        return tensor
    order = torch.randperm(tensor.numel(), generator=draw.random)
    order = ((order - order[0]) % tensor.numel()).reshape(tensor.shape).to(tensor.device)
    return torch.where(order % every == 0, torch.full_like(tensor, math.nan), tensor)


def whole_range(tensor: torch.Tensor, legal: tuple[float, float] | None) -> tuple[int, int]:
    """The lowest and highest whole number: of the declared range as far as it is finite, else of the tensor."""
    limits = torch.iinfo(tensor.dtype)
    low, high = legal or (-math.inf, math.inf)
    lowest = math.ceil(low) if math.isfinite(low) else int(tensor.min()) if legal is None else limits.min
    highest = math.floor(high) if math.isfinite(high) else int(tensor.max()) if legal is None else limits.max
    return max(lowest, limits.min), min(highest, limits.max)


def _at_end(end: int) -> Change:
    def change(tensor: torch.Tensor, draw: Draw) -> torch.Tensor:
        own = int(tensor.min()), int(tensor.max())
        known = whole_range(tensor, draw.range)[end] if draw.range and math.isfinite(draw.range[end]) else own[end]
        return torch.full_like(tensor, known)

    return _numbers(change)


def _negative(tensor: torch.Tensor, _: Draw) -> torch.Tensor:
    return tensor if torch.iinfo(tensor.dtype).min == 0 else torch.where(tensor == 0, -torch.ones_like(tensor), -tensor)


def _equal_numbers(tensor: torch.Tensor, draw: Draw) -> torch.Tensor:
    return torch.where(draw.half(tensor), tensor.reshape(-1)[0], tensor)


FURTHER_CHANGES: Mapping[str, Change] = {
    "signed-zeros": floats(_signed_zeros),
    "mixed": floats(_mixed),
    "equal": floats(_equal),
    "partial-masks": _masks(lambda tensor, draw: draw.half(tensor).cpu()),
    "prefix-masks": _masks(_prefix),
    "suffix-masks": _masks(lambda tensor, draw: _prefix(tensor, draw).flip(-1)),
    "full-and-empty-rows": _masks(_rows),
    "lowest-integers": _at_end(0),
    "highest-integers": _at_end(1),
    "zero-integers": _numbers(lambda tensor, _: torch.zeros_like(tensor)),
    "negative-integers": _numbers(_negative),
    "equal-integers": _numbers(_equal_numbers),
}
"""By the name under which a failure is reported and done again."""
