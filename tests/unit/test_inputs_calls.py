"""Inputs are bound to forward: paths begin with its parameters, in its order."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from anyshape.findings import DeclarationError
from anyshape.inputs import Inputs
from anyshape.inputs.calls import BoundCall, bind_inputs, read_signature

X, Y, Z = torch.zeros(2), torch.ones(3), torch.ones(4)


def bind_call(module: Any, inputs: Any) -> BoundCall:
    return bind_inputs(read_signature(module), inputs)


class Several(nn.Module):
    def forward(self, x: Any, mask: Any = None, *rest: Any, y: Any = None, **extra: Any) -> Any:
        return x


class Two(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        return x + y


CALLS: list[tuple[str, Any, list[str]]] = [
    ("a tensor is one positional", X, ["x"]),
    ("a tuple is positional", (X, Y), ["x", "mask"]),
    ("a dict is keywords", {"mask": Y, "x": X}, ["x", "mask"]),
    ("both", Inputs((X,), {"y": Y}), ["x", "y"]),
    ("the rest goes to *rest", (X, Y, Z, X), ["x", "mask", "rest.0", "rest.1"]),
    ("unknown keywords go to **extra", Inputs((X,), {"bias": Y}), ["x", "extra.bias"]),
    ("nested arguments", ({"a": X, "b": [Y]},), ["x.a", "x.b.0"]),
    ("None is no leaf", (X, None, Y), ["x", "rest.0"]),
]


@pytest.mark.parametrize(("inputs", "paths"), [row[1:] for row in CALLS], ids=[row[0] for row in CALLS])
def test_paths_begin_with_the_parameter(inputs: Any, paths: list[str]) -> None:
    assert list(bind_call(Several(), inputs).paths) == paths


@pytest.mark.parametrize("inputs", [row[1] for row in CALLS], ids=[row[0] for row in CALLS])
def test_a_rebuilt_call_passes_arguments_the_same_way(inputs: Any) -> None:
    bound = bind_call(Several(), inputs)
    again = bound.rebuild(bound.values)
    assert bind_call(Several(), again) == bound


def test_a_scripted_module_is_bound_by_its_schema() -> None:
    bound = bind_call(torch.jit.script(Two()), {"y": Y, "x": X})
    assert bound.paths == ("x", "y")


def test_a_compiled_module_is_bound_by_the_module_inside() -> None:
    assert bind_call(torch.compile(Two()), (X, Y)).paths == ("x", "y")


def test_a_wrapper_that_takes_anything_is_bound_by_position() -> None:
    class Wrapper(nn.Module):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return args

    assert bind_call(Wrapper(), Inputs((X, Y), {"z": Z})).paths == ("args.0", "args.1", "kwargs.z")


def test_a_function_can_stand_for_a_module() -> None:
    assert bind_call(lambda left, right: left + right, (X, Y)).paths == ("left", "right")


@pytest.mark.parametrize(
    ("inputs", "code"),
    [
        ((X,), "AS019"),
        ((), "AS019"),
        ((X, Y, 1.0, Z), "AS020"),
        ({"x": X, "z": Y}, "AS020"),
        (Inputs((X, Y), {"x": X}), "AS020"),
    ],
)
def test_a_call_that_forward_would_refuse_is_refused(inputs: Any, code: str) -> None:
    with pytest.raises(DeclarationError) as refusal:
        bind_call(Two(), inputs)
    assert refusal.value.finding.code == code


def test_two_leaves_never_share_a_path() -> None:
    with pytest.raises(DeclarationError, match="AS021"):
        bind_call(Several(), ({"a.b": X, "a": {"b": Y}},))
