"""What an export replaces while the model runs: names, calls of builtins, log lines, default dtype. Each is put back."""

from __future__ import annotations

import logging
import math
from functools import lru_cache
from math import sqrt
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from anyshape.intercept.call_sites import redirect
from anyshape.intercept.open_numbers import open_numbers
from anyshape.intercept.patching import without_fused_layers
from anyshape.processes.quiet import quiet_libraries
from anyshape.verify.float64_copy import double_by_default


@lru_cache(maxsize=4)
def cached(number: int) -> object:
    return object()


class Uses(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[Any, ...]:
        kinds = type(x.ndim) is int, np.zeros(1, dtype=float).dtype, torch.zeros(1, dtype=float).dtype
        numbers = int(2.5), float("1.5"), len(x), list(map(int, "12")), sqrt(4.0), math.log(1.0), np.sin(0.0)
        modules = [isinstance(each, ModuleType) for each in (math, np, torch)]
        return *kinds, *numbers, *modules, cached(1) is cached(1), len(cached.cache_info())


def test_names_and_code_are_put_back() -> None:
    module, x = Uses(), torch.zeros(3)
    before, codes = module(x), Uses.forward.__code__
    with open_numbers(module):
        assert Uses.forward.__code__ is not codes
        with pytest.raises(AttributeError, match="cache_info"):  # the function itself is called, not its cache
            module(x)
    assert Uses.forward.__code__ is codes and module(x) == before


def test_sizes_stay_open_in_a_capture() -> None:
    class Asks(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.new_zeros(int(x.shape[0] * 0.5), *map(int, x.shape), *[int(each) for each in x.shape], len(x))

    module = Asks()
    with open_numbers(module):
        program = torch.export.export(
            module, (torch.zeros(6, 2),), dynamic_shapes=({0: torch.export.Dim.AUTO},), strict=False
        )
    shape = next(node for node in program.graph.nodes if node.op == "output").args[0][0].meta["val"].shape
    assert [isinstance(size, torch.SymInt) for size in shape] == [True, True, False, True, False, True]


def test_only_calls_are_redirected() -> None:
    calls: list[Any] = []

    def ours(value: Any) -> int:
        calls.append(value)
        return int(value)

    def function(value: Any) -> tuple[Any, ...]:
        return int(value), int, isinstance(1, int), value.int(), [int(each) for each in (1, 2)]

    class Value(float):
        def int(self) -> str:
            return "own"

    function.__code__ = redirect(function.__code__, {"int": ours})
    assert function(Value(2.5)) == (2, int, True, "own", [1, 2])
    assert calls == [2.5, 1, 2]


def test_calls_are_redirected_in_functions_of_many_names_and_constants() -> None:
    lines = [f"    x = x + {number}.25 + space.name_{number}" for number in range(400)]
    source = "\n".join(["def function(x, space):", *lines, "    return int(x) + abs(-1)"])
    defined: dict[str, Any] = {}
    exec(source, defined)
    function = defined["function"]

    class Space:
        def __getattr__(self, name: str) -> int:
            return 0

    before = function(0.0, Space())
    function.__code__ = redirect(function.__code__, {"int": lambda value: 1000 + int(value)})
    assert function(0.0, Space()) == before + 1000


def test_torchs_fused_layers_are_off() -> None:
    with without_fused_layers():
        assert not torch.backends.mha.get_fastpath_enabled()
    assert torch.backends.mha.get_fastpath_enabled()


def test_log_lines_of_libraries_go_to_our_logger(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "anyshape")
    with quiet_libraries():
        logging.getLogger("torch.some.part").warning("inner")
        logging.getLogger("mine").warning("own")
    logging.getLogger("torch.some.part").warning("after")
    said = [(record.name, record.levelname, record.getMessage()) for record in caplog.records]
    assert ("anyshape.libraries", "DEBUG", "torch.some.part: inner") in said
    assert ("mine", "WARNING", "own") in said and ("torch.some.part", "WARNING", "after") in said


def made_by_default() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    mask, whole = torch.tensor([True, False]), torch.tensor([1, 2])
    return [
        torch.zeros(3),
        torch.full((2,), 0.1),
        torch.full((2,), 1),
        torch.tensor([0.1, 1]),
        whole,
        torch.as_tensor([[0.3]]),
        torch.arange(5) / 7,
        torch.arange(5) * 0.1,
        torch.arange(0, 1, 0.1),
        torch.sqrt(whole),
        torch.where(mask, 0.1, 0.2),
        torch.where(mask, whole, 0.3),
        mask * 0.1,
        torch.randn(3, generator=generator),
        torch.rand(3, generator=generator),
        torch.randint(0, 9, (3,), generator=generator),
        torch.hann_window(5),
        torch.pow(10000.0, torch.arange(4)),
        whole.to(torch.float32),
        torch.zeros(2, dtype=torch.get_default_dtype()),
        torch.polar(torch.ones(2), torch.arange(2) * 0.3),
        torch.tensor(np.array([0.1], np.float32)),
    ]


def test_doubles_by_default_are_those_of_set_default_dtype() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        expected = made_by_default()
    finally:
        torch.set_default_dtype(torch.float32)
    plain = made_by_default()
    with double_by_default():
        wide = made_by_default()
    for place, (one, two) in enumerate(zip([*expected, *plain], [*wide, *made_by_default()], strict=True)):
        assert one.dtype == two.dtype and torch.equal(one, two), place
