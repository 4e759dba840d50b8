"""A row of the table: a small module, its inputs, and by hand the sizes at which eager returns a result.

    @row(ROWS, {"x": "b 3 h w"}, "h % 32 == 0 and w % 32 == 0", b=2, h=64, w=64)
    class Net(nn.Module): ...

The words name the axes of each input; a number is a fixed axis. The keywords are the sizes of the example. No range is declared
anywhere: anyshape has to learn it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

Sizes = dict[str, int]
Fill = Callable[[torch.Generator, tuple[int, ...], Sizes], torch.Tensor]
_FUNCTIONS = {"isqrt": math.isqrt, "min": min, "max": max, "abs": abs}
_CHEAP = {"b": 4}
_CHEAP_DEFAULT = 24


@dataclass(frozen=True, kw_only=True)
class Row:
    """One module with its example and its true domain.

    `truth`: a Python expression over the dims, for sizes of at least 1.
    `pinned`: words that a refusal has to contain, where an axis has only one size (beside a
        broadcast 1). Empty: the row is to be kept.
    `fills`: how inputs that are not plain normal noise are made.
    `upto`: the largest size of a dim at which eager is cheap; 4 for `b`, otherwise 24.
    """

    name: str
    module: Callable[[], nn.Module]
    inputs: Mapping[str, str]
    truth: str
    sizes: Sizes
    pinned: tuple[str, ...] = ()
    fills: Mapping[str, Fill] = field(default_factory=dict)
    upto: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def build(self) -> nn.Module:
        """The module, with the same weights each time."""
        torch.manual_seed(0)
        return self.module().eval()

    def make(self, sizes: Sizes, seed: int = 0) -> dict[str, torch.Tensor]:
        """Inputs at any sizes, with values that the module takes."""
        generator = torch.Generator().manual_seed(seed)
        made = {}
        for name, words in self.inputs.items():
            shape = tuple(int(word) if word.isdigit() else sizes[word] for word in words.split())
            made[name] = self.fills.get(name, noise)(generator, shape, sizes)
        return made

    @property
    def dynamic(self) -> dict[str, dict[int, str]]:
        """The names of the open axes, as torch's `dynamic_axes` has them."""
        return {
            name: {axis: word for axis, word in enumerate(words.split()) if not word.isdigit()}
            for name, words in self.inputs.items()
        }

    @property
    def dims(self) -> tuple[str, ...]:
        return tuple(self.sizes)

    def is_true(self, sizes: Sizes) -> bool:
        """Whether eager returns a result at these sizes, by hand."""
        return bool(eval(_compiled(self.truth), dict(_FUNCTIONS), sizes))

    def cheap(self, dim: str) -> int:
        """The largest size of a dim at which the module may be run."""
        return self.upto.get(dim, max(_CHEAP.get(dim, _CHEAP_DEFAULT), self.sizes[dim]))


_CODES: dict[str, Any] = {}


def _compiled(text: str) -> Any:
    if text not in _CODES:
        _CODES[text] = compile(text, "<truth>", "eval")
    return _CODES[text]


def row(
    rows: list[Row],
    inputs: Mapping[str, str],
    truth: str,
    *,
    name: str = "",
    pinned: tuple[str, ...] = (),
    fills: Mapping[str, Fill] | None = None,
    upto: Mapping[str, int] | None = None,
    options: Mapping[str, Any] | None = None,
    arguments: tuple[Any, ...] = (),
    **sizes: int,
) -> Callable[[type[nn.Module]], type[nn.Module]]:
    """Put a row for the decorated class into `rows`. Its name is the class's name in kebab case."""

    def put(module: type[nn.Module]) -> type[nn.Module]:
        named = name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", module.__name__).lower()
        rows.append(
            Row(
                name=named,
                module=lambda: module(*arguments),
                inputs=inputs,
                truth=truth,
                sizes=sizes,
                pinned=pinned,
                fills=fills or {},
                upto=upto or {},
                options=options or {},
            )
        )
        return module

    return put


def noise(generator: torch.Generator, shape: tuple[int, ...], sizes: Sizes) -> torch.Tensor:
    return torch.randn(shape, generator=generator)


def unit(generator: torch.Generator, shape: tuple[int, ...], sizes: Sizes) -> torch.Tensor:
    """Numbers between 0 and 1."""
    return torch.rand(shape, generator=generator)


def mask(generator: torch.Generator, shape: tuple[int, ...], sizes: Sizes) -> torch.Tensor:
    """Booleans; the first of each line is true, so that a softmax over a line has a result."""
    drawn = torch.rand(shape, generator=generator) < 0.7
    drawn[..., 0] = True
    return drawn


def integers(below: int | str, least: int = 0) -> Fill:
    """Integers from `least` to below a number, or below a dim."""

    def fill(generator: torch.Generator, shape: tuple[int, ...], sizes: Sizes) -> torch.Tensor:
        high = below if isinstance(below, int) else sizes[below]
        return torch.randint(least, max(high, least + 1), shape, generator=generator)

    return fill


def distinct(below: str) -> Fill:
    """Integers below a dim, no two equal as far as there are enough of them."""

    def fill(generator: torch.Generator, shape: tuple[int, ...], sizes: Sizes) -> torch.Tensor:
        order = torch.randperm(sizes[below], generator=generator)
        return order[torch.arange(shape[0]) % sizes[below]]

    return fill


def lengths(dim: str, is_sorted: bool = True) -> Fill:
    """Lengths from 1 to a dim, the first of them equal to it; from the longest on, if sorted."""

    def fill(generator: torch.Generator, shape: tuple[int, ...], sizes: Sizes) -> torch.Tensor:
        drawn = torch.randint(1, sizes[dim] + 1, shape, generator=generator)
        drawn[0] = sizes[dim]
        return drawn.sort(descending=True).values if is_sorted else drawn

    return fill
