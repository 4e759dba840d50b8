"""Every form of declaration, and the canonical domain that it means: one row each."""

from __future__ import annotations

import functools
from collections import namedtuple
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
import torch
from torch import nn
from torch.export import Dim

from anyshape.domain import format_domain
from anyshape.inputs import Declared, Inputs, declare, dim


class One(nn.Module):
    def forward(self, x: Any) -> Any:
        return x


class Two(nn.Module):
    def forward(self, x: Any, mask: Any = None, k: Any = 0, **extra: Any) -> Any:
        return x


class Many(nn.Module):
    def forward(self, *xs: Any) -> Any:
        return xs


class Added(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y


class Head(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor, pos: torch.Tensor | None = None) -> torch.Tensor:
        out: torch.Tensor = self.linear(x)
        return out


class Decoder(nn.Module):
    def forward(self, ids: torch.Tensor, mask: torch.Tensor, past: torch.Tensor) -> torch.Tensor:
        whole = torch.cat([past, ids.to(past.dtype)], 1)
        return whole * mask


R = torch.randn
Pair = namedtuple("Pair", "left right")
B = Dim("batch")
B64 = Dim("batch", min=1, max=64)
T = Dim("seq", min=2)


@dataclass(frozen=True)
class Row:
    name: str
    means: str
    inputs: Any
    module: nn.Module = field(default_factory=Two)
    options: dict[str, Any] = field(default_factory=dict)


def row(name: str, means: str, inputs: Any, module: nn.Module | None = None, **options: Any) -> Row:
    return Row(name, means, inputs, module or Two(), options)


def canonical(declared: Declared) -> str:
    """`x[batch, 2*n] k=n | 1 <= batch <= 64`: the inputs' axes, scalars and constants, then the rules."""
    leaves = []
    for leaf in declared.leaves:
        if leaf.kind == "tensor":
            leaves.append(f"{leaf.path}[{', '.join(str(axis) for axis in leaf.axes)}]")
        else:
            leaves.append(f"{leaf.path}{'=' if leaf.kind == 'scalar' else ':'}{leaf.value}")
    return " ".join(leaves) + "".join(f" | {rule}" for rule in format_domain(declared.domain))


def of_range(batch: Annotated[int, range(1, 65)] = 3, seq: int = 5) -> torch.Tensor:
    return R(batch, seq)


def of_steps(n: Annotated[int, range(8, 65, 8)] = 16) -> torch.Tensor:
    return R(n)


def of_odd(n: Annotated[int, range(1, 64, 2)] = 3) -> torch.Tensor:
    return R(n)


def of_dim_default(batch: int = dim(1, 64), h: int = dim(32, multiple=32)) -> torch.Tensor:
    return R(batch, 3, h)


def of_dim_annotation(batch: Annotated[int, dim(2, 8, example=4)], h: dim(0, 9) = 1) -> torch.Tensor:  # type: ignore[valid-type]
    return R(batch, h)


class Callable_:
    def __call__(self, n: int, m: int = 4) -> torch.Tensor:
        return R(n, m)


FUNCTIONS = [
    row("dims are the parameters", "x[batch, seq]", lambda batch, seq: R(batch, seq)),
    row("defaults are example sizes", "x[batch, 8]", lambda batch=3: R(batch, 8)),
    row("a sum", "x[b, s] mask[b, p + s]", lambda b, s, p: (R(b, s), R(b, p + s))),
    row("a multiple", "x[2*n] mask[n]", lambda n: (R(2 * n), R(n))),
    row("a difference from a constant", "x[t] mask[32 - t] | 1 <= t <= 32", lambda t: (R(t), R(32 - t))),
    row("a ceil half", "x[t] mask[(t + 1)//2]", lambda t: (R(t), R((t + 1) // 2))),
    row("a floor third", "x[t] mask[t//3]", lambda t: (R(t), R(t // 3))),
    row("patches", "x[3, h, w] mask[h//16*(w//16)]", lambda h, w: (R(3, h, w), R((h // 16) * (w // 16)))),
    row("a product", "x[b, t] mask[b*t]", lambda b, t: (R(b, t), R(b * t))),
    row("a product plus one", "x[h, w] mask[h*w + 1]", lambda h, w: (R(h, w), R(h * w + 1))),
    row("a square", "x[n] mask[n*n]", lambda n: (R(n), R(n * n))),
    row("rounded up to a multiple", "x[n] mask[8*((n + 7)//8)]", lambda n: (R(n), R((n + 7) // 8 * 8))),
    row(
        "the smaller of two", "x[n] mask[m] extra.v[min(m, n)]", lambda n, m: Inputs((R(n), R(m)), {"v": R(min(n, m))})
    ),
    row("cut off at a constant", "x[n] mask[min(n, 10)]", lambda n: (R(n), R(min(n, 10)))),
    row("half a sum", "x[a] mask[b] extra.v[(a + b)//2]", lambda a, b: Inputs((R(a), R(b)), {"v": R((a + b) // 2)})),
    row("keywords", "x[n] mask[n, 2]", lambda n: {"mask": R(n, 2), "x": R(n)}),
    row("nested", "x.a[n] x.b.0[m]", lambda n, m: ({"a": R(n), "b": [R(m)]},)),
    row("a range beside it", "x[n] | 1 <= n <= 8", lambda n: R(n), where=["1 <= n <= 8"]),
    row("a single rule as text", "x[n] | n >= 0", lambda n: R(n), where="n >= 0"),
    row("a relation", "x[n] mask[m] | m <= n", lambda n, m: (R(n), R(m)), where=["m <= n"]),
    row(
        "a total of its own",
        "x[b, s] mask[t] extra.p[p] | p + s == t",
        lambda b, s, p, t: Inputs((R(b, s), R(t)), {"p": R(p)}),
        where=["p + s == t"],
    ),
    row("a range annotation", "x[batch, seq] | 1 <= batch <= 64", of_range),
    row("a stepped range annotation", "x[n] | 8 <= n <= 64 | n % 8 == 0", of_steps),
    row("odd sizes by annotation", "x[n] | 1 <= n <= 63 | (n - 1) % 2 == 0", of_odd),
    row("dim as default", "x[batch, 3, h] | 1 <= batch <= 64 | h >= 32 | h % 32 == 0", of_dim_default),
    row("dim as annotation", "x[batch, h] | 2 <= batch <= 8 | 0 <= h <= 9", of_dim_annotation),
    row("a callable object", "x[n, m]", Callable_()),
    row("a partial function", "x[n, m]", functools.partial(lambda n, m: R(n, m), m=7)),
    row("a value is no dim", "x[n]", lambda n, gain=0.5: R(n) * gain),
    row("an int that no axis follows is no dim", "x[n] mask[]", lambda n, v: (R(n), torch.tensor(v))),
    row("an int that follows a dim is a scalar", "x[n] mask[n] k=n", lambda n: (R(n), R(n), n)),
    row("an int that is a parameter is a dim", "x[n] mask[n] k=m", lambda n, m: (R(n), R(n), m)),
    row("a baked constant", "x[n] mask[n] k:7", lambda n: (R(n), R(n), 7)),
    row("a float that varies is a scalar", "x[n] mask[n] k=0.5", lambda n, g=0.5: (R(n), R(n), g)),
    row("words that agree", "x[n, 4]", lambda n: R(n, 4), dynamic={"x": "n 4"}),
    row("a dim that may be 0", "x[past] | past >= 0", lambda past=0: R(past), where=["past >= 0"]),
]

X = R(3, 5, 8)
M = R(3, 5)
WORDS = [
    row(
        "one word an axis",
        "x[batch, seq, 8] mask[batch, seq]",
        (X, M),
        dynamic={"x": "batch seq 8", "mask": "batch seq"},
    ),
    row("words alone for one tensor", "x[batch, seq, 8]", X, dynamic="batch seq 8"),
    row("commas", "x[batch, seq, 8]", X, dynamic={"x": "batch, seq, 8"}),
    row("an underscore keeps the size", "x[batch, 5, 8]", X, dynamic={"x": "batch _ _"}),
    row("an ellipsis", "x[3, h, w]", X, dynamic={"x": "... h w"}),
    row("an ellipsis in the middle", "x[b, 5, c]", X, dynamic={"x": "b ... c"}),
    row("an ellipsis for nothing", "x[a, b, c]", X, dynamic={"x": "a b c ..."}),
    row(
        "a sum",
        "x[batch, seq, 8] mask[batch, past + seq]",
        (X, R(3, 9)),
        dynamic={"x": "batch seq 8", "mask": "batch past+seq"},
    ),
    row("a sum with spaces", "x[b, s, 8] mask[b, p + s]", (X, R(3, 9)), dynamic={"x": "b s 8", "mask": "b p + s"}),
    row("a multiple", "x[n, 5, 8] mask[2*n]", (X, R(6)), dynamic={"x": "n _ _", "mask": "2*n"}),
    row("a multiple alone", "x[2*n]", R(6), One(), dynamic="2*n"),
    row("a ceil half", "x[3, t, 8] mask[(t + 1)//2]", (X, R(3)), dynamic={"x": "_ t _", "mask": "(t+1)//2"}),
    row("a difference", "x[3, t, 8] mask[32 - t] | 1 <= t <= 32", (X, R(27)), dynamic={"x": "_ t _", "mask": "32-t"}),
    row("two sums solve each other", "x[a + b] mask[a + 2*b]", (R(5), R(8)), dynamic={"x": "a+b", "mask": "a+2*b"}),
    row("a dict of axes", "x[batch, 5, c]", X, dynamic={"x": {0: "batch", 2: "c"}}),
    row("a dict with an axis from the end", "x[3, 5, c]", X, dynamic={"x": {-1: "c"}}),
    row("a dict with an expression", "x[batch, 2*n, 8]", R(3, 6, 8), dynamic={"x": {0: "batch", 1: "2*n"}}),
    row("a prefix speaks for all", "x.0.0[b, p] x.0.1[b, p]", (((R(2, 4), R(2, 4)),),), One(), dynamic={"x": "b p"}),
    row("a prefix and a dict", "x.0[b, 4] x.1[b, 4]", ([R(2, 4), R(2, 4)],), One(), dynamic={"x": {0: "b"}}),
    row("a path", "x.0[2, 4] x.1[b, 4]", ([R(2, 4), R(2, 4)],), One(), dynamic={"x.1": "b _"}),
    row("a tree by keys", "x.a[n] x.b[m]", ({"a": R(2), "b": R(3)},), One(), dynamic={"x": {"a": "n", "b": "m"}}),
    row("a named tuple", "x.left[n] x.right[3]", (Pair(R(2), R(3)),), One(), dynamic={"x.left": "n"}),
    row(
        "a key of **kwargs alone",
        "x[n] extra.bias[n]",
        Inputs((R(2),), {"bias": R(2)}),
        dynamic={"x": "n", "bias": "n"},
    ),
    row(
        "a path into **kwargs",
        "x[n] extra.bias[n]",
        Inputs((R(2),), {"bias": R(2)}),
        dynamic={"x": "n", "extra.bias": "n"},
    ),
    row("*args", "xs.0[n] xs.1[m]", (R(2), R(3)), Many(), dynamic={"xs.0": "n", "xs.1": "m"}),
    row("a None stays", "x[n] extra.y[n]", Inputs((R(2), None), {"y": R(2)}), dynamic={"x": "n", "y": "n"}),
    row("a constant is listed", "x[n] mask[2] k:3", (R(2), R(2), 3), dynamic={"x": "n"}),
    row("an int made an input", "x[n] mask[2] k=k", (R(2), R(2), 3), dynamic={"x": "n", "k": "value"}),
    row("an int with a name", "x[n] mask[2] k=top", (R(2), R(2), 3), dynamic={"x": "n", "k": {"value": "top"}}),
    row("an int that is a size", "x[n] mask[2] k=n", (R(2), R(2), 2), dynamic={"x": "n", "k": {"value": "n"}}),
    row("a float made an input", "x[n] mask[2] k=0.5", (R(2), R(2), 0.5), dynamic={"x": "n", "k": "value"}),
    row("rules", "x[b, s, 8] | 1 <= b <= 64 | b <= s", X, dynamic="b s 8", where=["1 <= b <= 64", "b <= s"]),
    row("a declared 0", "x[n] | n >= 0", R(0), dynamic="n", where=["n >= 0"]),
    row("nothing is all static", "x[3, 5, 8]", X),
    row("a list of axes", "x[x_0, x_1, 8]", X, Head(), dynamic={"x": [0, 1]}),
    row(
        "names for inputs and outputs",
        "x[batch, 5, 8]",
        X,
        input_names=["input"],
        output_names=["output"],
        dynamic={"input": {0: "batch"}, "output": {0: "batch"}},
    ),
    row("input_names by path", "x[batch, 5, 8]", X, input_names={"x": "pixels"}, dynamic={"pixels": {0: "batch"}}),
]

COLLECTED = torch.export.ShapesCollection()
COLLECTED[X] = {0: B}
COLLECTED[M] = (B, None)
FURTHER = torch.export.AdditionalInputs()
FURTHER.add((R(4, 6, 8),), {"mask": R(4, 6)})

TORCH = [
    row("a ShapesCollection", "x[batch, 5, 8] mask[batch, 5]", (X, M), dynamic=COLLECTED),
    row("AdditionalInputs", "x[x_0, x_1, 8] mask[x_0, x_1]", Inputs((X,), {"mask": M}), dynamic=FURTHER),
    row("None beside numbers", "x[x_0, x_1, 8]", X, dynamic={"x": [None, None, 8]}),
    row("a Dim", "x[batch, 5, 8]", X, dynamic={"x": {0: B}}),
    row("a Dim with a range", "x[batch, 5, 8] | 1 <= batch <= 64", X, dynamic={"x": {0: B64}}),
    row("a Dim with a lower end", "x[3, seq, 8] | seq >= 2", X, dynamic={"x": {1: T}}),
    row(
        "the same Dim twice",
        "x[batch, seq, 8] mask[batch, seq] | seq >= 2",
        (X, M),
        dynamic={"x": {0: B, 1: T}, "mask": (B, T)},
    ),
    row("a derived Dim", "x[batch, 5, 8] mask[2*batch]", (X, R(6)), dynamic={"x": {0: B}, "mask": {0: 2 * B}}),
    row("a Dim plus one", "x[batch, 5, 8] mask[batch + 1]", (X, R(4)), dynamic={"x": {0: B}, "mask": {0: B + 1}}),
    row("Dim.STATIC and None", "x[3, 5, 8]", X, dynamic={"x": {0: Dim.STATIC, 1: None}}),
    row("a number", "x[3, seq, 8] | seq >= 2", X, dynamic={"x": {0: 3, 1: T}}),
    row("a tuple that mirrors the call", "x[batch, 5, 8] mask[batch, 5]", (X, M), dynamic=({0: B}, {0: B})),
    row("a tuple per axis", "x[batch, 5, 8]", X, dynamic=((B, None, None),)),
    row("None for an input", "x[batch, 5, 8] mask[3, 5]", (X, M), dynamic=({0: B}, None)),
    row("None for a None", "x[batch, 5, 8] extra.y[2]", Inputs((X, None), {"y": R(2)}), dynamic=({0: B}, None, None)),
    row("nested lists", "x.0[batch] x.1[2]", ([R(2), R(2)],), One(), dynamic={"x": [{0: B}, None]}),
    row("nested tuples", "x.0.0[batch] x.0.1[2]", (((R(2), R(2)),),), One(), dynamic=((({0: B}, None),),)),
    row("*args as a tuple", "xs.0[batch] xs.1[batch]", (R(2), R(2)), Many(), dynamic={"xs": ({0: B}, {0: B})}),
    row(
        "Dim.DYNAMIC ties what the module ties",
        "x[x_0, x_1] y[x_0, x_1]",
        (R(3, 5), R(3, 5)),
        Added(),
        dynamic={"x": (Dim.DYNAMIC, Dim.DYNAMIC), "y": (Dim.DYNAMIC, Dim.DYNAMIC)},
    ),
    row(
        "Dim.DYNAMIC with a range",
        "x[x_0, 8] | 2 <= x_0 <= 9",
        R(3, 8),
        Head(),
        dynamic={"x": {0: Dim.DYNAMIC(min=2, max=9)}},
    ),
    row("Dim.AUTO may turn out static", "x[x_0, 8]", R(3, 8), Head(), dynamic={"x": (Dim.AUTO, Dim.AUTO)}),
    row("strings in a tree", "x[batch, 5, 8] mask[batch, 5]", (X, M), dynamic=({0: "batch"}, {0: "batch"})),
]


def decoder(batch: int, seq: int, past: int) -> tuple[torch.Tensor, ...]:
    return R(batch, seq), torch.ones(batch, past + seq), R(batch, past)


EXAMPLES = [
    row("what varies is dynamic", "x[x_0, 8]", [R(2, 8), R(5, 8)]),
    row("what varies together is one dim", "x[x_0, 8] mask[x_0]", [(R(2, 8), R(2)), (R(5, 8), R(5))]),
    row(
        "a sum is found",
        "ids[ids_0, ids_1] mask[ids_0, ids_1 + past_1] past[ids_0, past_1]",
        [decoder(2, 3, 4), decoder(3, 5, 1), decoder(1, 4, 4)],
        Decoder(),
    ),
    row(
        "words name the dims",
        "ids[batch, seq] mask[batch, past + seq] past[batch, past]",
        [decoder(2, 3, 4), decoder(3, 5, 1), decoder(1, 4, 4)],
        Decoder(),
        names={"ids": "batch seq", "past": "batch past"},
    ),
    row("made-up names are renamed", "x[n, 8]", [R(2, 8), R(5, 8)], names={"x_0": "n"}),
    row("a multiple is found", "x[2*mask_0] mask[mask_0]", [(R(6), R(3)), (R(10), R(5))]),
    row(
        "a constant sum is found",
        "x[x_0] mask[32 - x_0] | 1 <= x_0 <= 32",
        [(R(10), R(22)), (R(1), R(31)), (R(15), R(17))],
    ),
    row("a half is found", "x[x_0] mask[(x_0 + 1)//2]", [(R(8), R(4)), (R(1), R(1)), (R(7), R(4)), (R(13), R(7))]),
    row("an int that varies is a scalar", "x[x_0] mask[3] k=k", [(R(2), R(3), 4), (R(5), R(3), 9)]),
    row("an int that is a size", "x[x_0] mask[3] k=x_0", [(R(2), R(3), 2), (R(5), R(3), 5)]),
    row("a float that varies is a scalar", "x[x_0] mask[3] k=0.5", [(R(2), R(3), 0.5), (R(5), R(3), 1.5)]),
    row("examples with rules", "x[x_0, 8] | 1 <= x_0 <= 64", [R(2, 8), R(5, 8)], where=["1 <= x_0 <= 64"]),
]

AUTO = [
    row("the batch of a linear layer", "x[x_0, x_1, 8]", X, Head(), dynamic="auto"),
    row("two inputs that must agree", "x[x_0, x_1] y[x_0, x_1]", (R(3, 5), R(3, 5)), Added(), dynamic="auto"),
    row("equal sizes that need not agree", "x[x_0, x_1, 8]", R(4, 4, 8), Head(), dynamic="auto"),
    row(
        "a mask that grows along",
        "ids[ids_0, ids_1] mask[ids_0, ids_1 + past_1] past[ids_0, past_1]",
        decoder(2, 3, 4),
        Decoder(),
        dynamic="auto",
    ),
]

ROWS = {
    f"{way}: {entry.name}": entry
    for way, rows in [
        ("function", FUNCTIONS),
        ("words", WORDS),
        ("torch", TORCH),
        ("examples", EXAMPLES),
        ("auto", AUTO),
    ]
    for entry in rows
}


@pytest.mark.parametrize("entry", ROWS.values(), ids=ROWS.keys())
def test_a_declaration_means_its_domain(entry: Row) -> None:
    assert canonical(declare(entry.module, entry.inputs, **entry.options)) == entry.means


def test_the_table_is_long_enough() -> None:
    assert len(ROWS) >= 60


def test_the_table_can_fail() -> None:
    assert canonical(declare(One(), lambda n: R(n, 2))) != "x[n, 3]"
