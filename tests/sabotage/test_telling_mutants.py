"""Mutants that random numbers cannot tell from the right file: a mask in part, a sign of zero, one element, one input can."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import onnx
import pytest
import torch
from tests.verify_calls import Call, Everything

from anyshape.verify import Reference, VerifyOptions, VerifyRequest, verify
from anyshape.verify.tensors import to_array

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
SIZES = [{"b": 3, "s": 4}, {"b": 1, "s": 1}, {"b": 2, "s": 7}, {"b": 4, "s": 3}, {"b": 1, "s": 5}]
QUICK = VerifyOptions(shrink_tries=0, stop_at_failure=True, locate_s=0.0)


class Module(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


def floats(sizes: Any, seed: int) -> torch.Tensor:
    return torch.randn(sizes["b"], sizes["s"], generator=torch.Generator().manual_seed(seed))


def one(sizes: Any, seed: int) -> Call:
    return Call((floats(sizes, seed),))


def two(sizes: Any, seed: int) -> Call:
    return Call((floats(sizes, seed), floats(sizes, seed + 1000)))


def shown(sizes: Any, seed: int) -> Call:
    """All of it, as an example without padding has it."""
    return Call((floats(sizes, seed), torch.ones(sizes["b"], sizes["s"], dtype=torch.bool)))


def numbers(sizes: Any, seed: int) -> Call:
    return Call((torch.randint(1, 9, (sizes["b"], sizes["s"]), generator=torch.Generator().manual_seed(seed)),))


@dataclass(frozen=True)
class Pair:
    """A module, a right file of it, and a wrong one."""

    function: Callable[..., Any]
    make: Callable[[Any, int], Call]
    right: str
    wrong: str
    output: str = "float[b, s]"


ONE = "one = Constant<value_float = 1.0>() zero = Constant<value_float = 0.0>() axis = Constant<value_ints = [1]>()"


def some_zeros(x: torch.Tensor) -> torch.Tensor:
    return torch.where((x == 0).any(1, True) & (x != 0).any(1, True), x + 1, x)


PAIRS = {
    "a mask ignored": Pair(lambda x, m: x * m, shown, "f = Cast<to = 1>(m) y = Mul(x, f)", "y = Identity(x)"),
    "a mask of the first row alone": Pair(
        lambda x, m: x * m,
        shown,
        "f = Cast<to = 1>(m) y = Mul(x, f)",
        """f = Cast<to = 1>(m) first = Constant<value_ints = [0]>() second = Constant<value_ints = [1]>()
        r = Slice(f, first, second, first) y = Mul(x, r)""",
    ),
    "padding counted from the left": Pair(
        lambda x, m: x * m,
        shown,
        "f = Cast<to = 1>(m) y = Mul(x, f)",
        """f = Cast<to = 1>(m) minus = Constant<value_ints = [-1]>() far = Constant<value_ints = [-1000]>()
        axis = Constant<value_ints = [1]>() r = Slice(f, minus, far, axis, minus) y = Mul(x, r)""",
    ),
    "the first that is shown": Pair(
        lambda x, m: m.int().argmax(1),
        shown,
        "f = Cast<to = 6>(m) y = ArgMax<axis = 1, keepdims = 0>(f)",
        """s = Shape<start = 0, end = 1>(x) z = Constant<value_ints = [0]>() y = Expand(z, s)""",
        "int64[b]",
    ),
    "the sign of a zero": Pair(
        lambda x: torch.copysign(torch.ones_like(x), x),
        one,
        f"{ONE} i = Reciprocal(x) n = Less(i, zero) minus = Neg(one) y = Where(n, minus, one)",
        f"{ONE} n = Less(x, zero) minus = Neg(one) y = Where(n, minus, one)",
    ),
    "some zeros in a row": Pair(
        some_zeros,
        one,
        f"""{ONE} e = Equal(x, zero) f = Cast<to = 1>(e) a = ReduceMax(f, axis) b = ReduceMin(f, axis) c = Sub(a, b)
        y = Add(x, c)""",
        "y = Identity(x)",
    ),
    "one element that equals its neighbour": Pair(
        lambda x: torch.where((x == x.roll(1, 1)) & (x.amax(1, True) != x.amin(1, True)), 5.0, x),
        one,
        f"""{ONE} minus = Constant<value_ints = [-1]>() nought = Constant<value_ints = [0]>()
        far = Constant<value_ints = [1000]>()
        last = Slice(x, minus, far, axis) rest = Slice(x, nought, minus, axis) r = Concat<axis = 1>(last, rest)
        e = Equal(x, r) h = ReduceMax(x, axis) l = ReduceMin(x, axis) q = Equal(h, l) d = Not(q) c = And(e, d)
        five = Constant<value_float = 5.0>() y = Where(c, five, x)""",
        "y = Identity(x)",
    ),
    "zeros in one of two inputs": Pair(
        lambda x, m: torch.where((x == 0) & (m != 0), 7.0, x + m),
        two,
        f"""{ONE} s = Add(x, m) e = Equal(x, zero) g = Equal(m, zero) d = Not(g) c = And(e, d)
        seven = Constant<value_float = 7.0>() y = Where(c, seven, s)""",
        "y = Add(x, m)",
    ),
    "negative in one of two inputs": Pair(
        lambda x, m: torch.where((x.amax() <= 0) & (m.amax() > 0), 7.0, x - m),
        lambda sizes, seed: Call(tuple(each.abs() + 0.1 for each in two(sizes, seed).args)),
        f"""{ONE} s = Sub(x, m) p = ReduceMax<keepdims = 0>(x) q = ReduceMax<keepdims = 0>(m) a = LessOrEqual(p, zero)
        b = Greater(q, zero) c = And(a, b) seven = Constant<value_float = 7.0>() y = Where(c, seven, s)""",
        "y = Sub(x, m)",
    ),
    "a negative number": Pair(lambda x: x.abs(), numbers, "y = Abs(x)", "y = Identity(x)", "int64[b, s]"),
    "the number zero": Pair(
        lambda x: torch.where(x == 0, 3, x),
        numbers,
        "z = Constant<value_int = 0>() three = Constant<value_int = 3>() e = Equal(x, z) y = Where(e, three, x)",
        "y = Identity(x)",
        "int64[b, s]",
    ),
}


def passes(pair: Pair, body: str, edge_values: bool = True) -> bool:
    given = pair.make({"b": 2, "s": 3}, 0).args
    kinds = {torch.float32: "float", torch.bool: "bool", torch.int64: "int64"}
    declared = ", ".join(f"{kinds[tensor.dtype]}[b, s] {name}" for tensor, name in zip(given, "xm", strict=False))
    model = onnx.parser.parse_model(f"{HEAD}g ({declared}) => ({pair.output} y) {{ {body} }}")
    with Reference(Module(pair.function), lambda outputs: [("y", outputs)]) as reference:
        return verify(
            VerifyRequest(
                model=model.SerializeToString(),
                output_names=["y"],
                reference=reference,
                make=pair.make,
                feeds=lambda inputs: dict(zip("xm", map(to_array, inputs.args), strict=False)),
                domain=Everything(),
                sizes=SIZES,
                example={"b": 2, "s": 3},
                edge_values=edge_values,
                options=QUICK,
            )
        ).passed


@pytest.mark.parametrize("name", PAIRS)
def test_the_right_file_passes_and_the_wrong_one_does_not(name: str) -> None:
    pair = PAIRS[name]
    assert passes(pair, pair.right)
    assert not passes(pair, pair.wrong)


@pytest.mark.parametrize("name", PAIRS)
def test_random_numbers_alone_tell_nothing(name: str) -> None:
    assert passes(PAIRS[name], PAIRS[name].wrong, edge_values=False)
