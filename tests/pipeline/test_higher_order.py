"""Models with torch's operators on functions: cond, while_loop, scan, associative_scan, map."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
import torch
from onnxscript import opset18 as op
from torch import nn
from torch._higher_order_ops import associative_scan, scan, while_loop
from torch._higher_order_ops import map as mapped

import anyshape


class Chosen(nn.Module):
    """Weights, a constant, a size and a tensor of the outer function, each read by one branch only."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(3, 4), nn.Linear(3, 4)
        self.table = torch.tensor([1.0, 0.0, 2.0, -1.0])

    def forward(self, x, y):
        scale, count = x.mean() * 2, y.shape[0]

        def rise(x):
            return self.up(x).relu() * scale + math.sqrt(count)

        return torch.cond(x.sum() > 0, rise, lambda x: torch.sin(self.down(x)) * self.table, (x,)) + y.sum()


class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3))

    def forward(self, x, y):
        def inner(x):
            return torch.cond(y.mean() > 0, lambda x: x * self.weight, lambda x: x - y, (x,))

        return torch.cond(x.sum() > 0, inner, lambda x: x + y, (x,))


class Structures(nn.Module):
    """What a branch gives is nested, and the second branch gives its operand itself."""

    def forward(self, x):
        given = torch.cond(
            x.max() > 1, lambda x: {"a": x.sum(0), "b": (x * 2,)}, lambda x: {"a": x[0], "b": (x,)}, (x,)
        )
        return given["a"] + given["b"][0]


class Written(nn.Module):
    """A branch writes into a copy, with constants made of Python numbers."""

    def forward(self, x):
        def write(x):
            copy = x * torch.tensor([1.0, 2.0, 3.0])
            copy[0], copy[:, 1] = torch.tensor(5.0), 7
            return copy.add_(1)

        return torch.cond(x.sum() > 0, write, lambda x: x - torch.tensor(2.0), (x,))


class BySize(nn.Module):
    def forward(self, x):
        return torch.cond(x.shape[0] > 4, lambda x: x * 2, lambda x: x - 1, (x,))


class Counted(nn.Module):
    def forward(self, x, n):
        start = torch.zeros((), dtype=torch.int64)
        return while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x * 0.5 + i), (start, x))[1]


class CountedByInt(nn.Module):
    def forward(self, x):
        return while_loop(lambda i, x: i < x.shape[0], lambda i, x: (i + 1, x * 0.5 + i), (0, x))[1]


class Settled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        def is_open(count, x):
            return (x.abs().max() > 1e-2) & (count < 20)

        return while_loop(is_open, lambda count, x: (count + 1, self.layer(x).tanh() * 0.3), (torch.tensor(0), x))


class Cell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(3, 5)

    def forward(self, x):
        def step(hidden, x):
            hidden = self.cell(x, hidden)
            return hidden, hidden.clone()

        return scan(step, torch.zeros(x.shape[1], 5), x)


class Backwards(nn.Module):
    """Two carried values, two rows of results, from the end of the second axis."""

    def forward(self, x):
        def step(carried, x):
            total, mean = carried
            return (total + x, mean * 0.9 + total), {"y": total * x, "z": mean.clone()}

        start = torch.zeros(x.shape[0], 3), torch.ones(x.shape[0], 3)
        carried, rows = scan(step, start, x, dim=1, reverse=True)
        return carried[0], rows["y"], rows["z"]


class Raw(nn.Module):
    """The operator itself, whose function gives the same tensor twice."""

    def forward(self, x):
        def add(carried, x):
            total = carried + x
            return [total, total]

        return torch.ops.higher_order.scan(add, [x.new_zeros(x.shape[1:])], [x], additional_inputs=[])[1]


class Recurrence(nn.Module):
    """h[t] = a[t] * h[t - 1] + b[t], as an associative scan of pairs."""

    def forward(self, a, b):
        def join(left, right):
            return left[0] * right[0], left[1] * right[0] + right[1]

        return associative_scan(join, (a, b), dim=1, combine_mode="generic")[1]


class Mapped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x, y):
        return mapped(lambda row, y: self.layer(row).relu() + y.sum(), x, y)


class CondInScan(nn.Module):
    def forward(self, x):
        def step(carried, row):
            carried = torch.cond(row.sum() > 0, lambda c, r: c + r, lambda c, r: c * 0.5, (carried, row))
            return carried, carried * 2

        return scan(step, torch.zeros_like(x[0]), x)[1]


class LoopInCond(nn.Module):
    def forward(self, x):
        def halve(x):
            return while_loop(lambda x: x.abs().max() > 1, lambda x: (x * 0.5,), (x,))[0]

        return torch.cond(x.sum() > 0, halve, lambda x: x - 1, (x,))


def tensors(*shapes: tuple[int, ...]) -> tuple[torch.Tensor, ...]:
    return tuple(torch.randn(shape) for shape in shapes)


CASES: list[tuple[type[nn.Module], tuple[torch.Tensor, ...], dict[str, str], str]] = [
    (Chosen, tensors((5, 3), (4,)), {"x": "n 3", "y": "m"}, "If"),
    (Nested, tensors((5, 3), (5, 3)), {"x": "n 3", "y": "n 3"}, "If"),
    (Structures, tensors((5, 3)), {"x": "n 3"}, "If"),
    (Written, tensors((5, 3)), {"x": "n 3"}, "If"),
    (BySize, tensors((5, 3)), {"x": "n 3"}, "If"),
    (Counted, (torch.randn(5, 3), torch.tensor(3)), {"x": "n 3"}, "Loop"),
    (CountedByInt, tensors((5, 3)), {"x": "n 3"}, "Loop"),
    (Settled, tensors((5, 4)), {"x": "n 4"}, "Loop"),
    (Cell, tensors((5, 2, 3)), {"x": "time batch 3"}, "Scan"),
    (Backwards, tensors((2, 5, 3)), {"x": "batch time 3"}, "Scan"),
    (Raw, tensors((5, 3)), {"x": "n m"}, "Scan"),
    (Recurrence, tensors((2, 5), (2, 5)), {"a": "n m", "b": "n m"}, "Scan"),
    (Mapped, tensors((5, 4, 3), (4,)), {"x": "n m 3", "y": "k"}, "Scan"),
    (CondInScan, tensors((5, 3)), {"x": "n m"}, "Scan"),
    (LoopInCond, tensors((5, 3)), {"x": "n m"}, "If"),
]


@pytest.mark.parametrize(
    ("kind", "inputs", "dynamic", "operator"), CASES, ids=lambda each: getattr(each, "__name__", "")
)
@pytest.mark.long_table
def test_the_operator_is_kept(
    kind: Callable[[], nn.Module],
    inputs: tuple[torch.Tensor, ...],
    dynamic: dict[str, str],
    operator: str,
    tmp_path: Path,
) -> None:
    result = anyshape.export(kind(), inputs, tmp_path / "m.onnx", dynamic=dynamic)
    assert result.strategy == "symbolic"
    assert operator in {node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node}


def test_both_branches_of_cond_are_in_the_file(tmp_path: Path) -> None:
    model = Chosen().eval()
    anyshape.export(model, tensors((5, 3), (4,)), tmp_path / "m.onnx", dynamic={"x": "n 3", "y": "m"})
    loaded = anyshape.load(tmp_path / "m.onnx")
    for x in (torch.ones(7, 3), -torch.ones(2, 3)):
        y = torch.randn(6)
        with torch.no_grad():
            expected = model(x, y)
        torch.testing.assert_close(torch.from_numpy(loaded(x=x.numpy(), y=y.numpy())), expected)


def test_eager_answers_after_a_mode_has_looked_on() -> None:
    """dynamo never compiles a function again that it has met under a dispatch mode; the next call would raise."""
    from anyshape.intercept.operation_counts import count_call, count_real_call

    model, inputs = Chosen().eval(), tensors((5, 3), (4,))
    count_call(lambda values: model(*values), list(inputs), 100)
    counted = count_real_call(lambda: model(*inputs), 100)
    assert counted is not None
    assert counted.operators > 4  # those inside the branch
    with torch.no_grad():
        assert model(*inputs).shape == (5, 4)


class OwnRow(nn.Module):
    """A number that is read from a tensor picks the row which is written: torch.export does not follow it."""

    def forward(self, x, y):
        def write(rows, place, x, y):
            rows, index = rows.clone(), place.item()
            rows[index, :] = ((x[index, :] - y) ** 2).sum(-1)
            return [rows, place]

        rows = torch.empty((x.shape[0], y.shape[0]))
        return torch.ops.higher_order.scan(write, [rows], [torch.arange(x.shape[0])], [x, y])[0]


def test_where_torch_export_refuses_the_operator_runs_as_python(tmp_path: Path) -> None:
    inputs = tensors((5, 3), (4, 3))
    where = ["n <= 20", "m <= 20", "k <= 20"]
    result = anyshape.export(OwnRow(), inputs, tmp_path / "m.onnx", dynamic={"x": "n k", "y": "m k"}, where=where)
    assert result.strategy == "rerolled"


class Signed(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x - 1, torch.sin, (x,))


class Rare(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 1e9, torch.sin, lambda x: x - 1, (x,))


class RareInRare(nn.Module):
    def forward(self, x):
        def inner(x):
            y = x * 2
            return torch.cond(
                y.mean() > 1e8,
                torch.sin,
                lambda y: y + 1,
                (y,),
            )

        return torch.cond(x.sum() > 1e9, inner, lambda x: x - 1, (x,))


class RareInLoop(nn.Module):
    """No module's forward, and no line of one, has the torch.cond."""

    def forward(self, x):
        return scan(self.step, torch.zeros_like(x[0]), x)[1]

    def step(self, carried, row):
        carried = torch.cond((row == 77.5).any(), lambda c, r: torch.sin(c) + r, lambda c, r: c + r, (carried, row))
        return carried, carried * 2


@pytest.mark.parametrize(
    ("kind", "code"), [(Signed, "AS305"), (Rare, "AS135"), (RareInRare, "AS135"), (RareInLoop, "AS135")]
)
def test_a_function_that_is_translated_wrong_is_noticed(kind: Callable[[], nn.Module], code: str) -> None:
    """Those to which no values lead are compared by themselves."""
    wrong = {"aten::sin": lambda x: op.Cos(x)}
    with pytest.raises(anyshape.PromiseBroken) as broken:
        anyshape.export(kind(), (torch.randn(5, 3),), dynamic={"x": "n 3"}, translations=wrong, strategy="symbolic")
    assert code in {finding.code for finding in broken.value.findings}


@pytest.mark.parametrize(("kind", "count"), [(Signed, 0), (Rare, 1), (RareInRare, 2), (RareInLoop, 1)])
def test_functions_to_which_no_values_lead_are_compared_by_themselves(
    kind: Callable[[], nn.Module], count: int
) -> None:
    result = anyshape.export(kind(), (torch.randn(5, 3),), dynamic={"x": "n 3"})
    assert [side.is_compared for side in result.verdict.sides] == [True] * count
    assert result.findings == ()


class SameTwice(nn.Module):
    def forward(self, x):
        return scan(lambda total, row: (total + row, total), torch.zeros(3), x)[0]


def test_a_refusal_by_torch_names_its_reason() -> None:
    """scan() takes no function that gives what it was given; eager itself says so."""
    with pytest.raises(anyshape.PromiseBroken, match="aliasing"):
        anyshape.export(SameTwice(), (torch.randn(5, 3),), dynamic={"x": "n 3"})


def by_row(x):
    return torch.vmap(lambda row: row.softmax(0) * row.sum())(x)


def by_pair(x):
    return torch.vmap(lambda one: torch.vmap(lambda other: (one * other).sum())(x))(x)


@pytest.mark.parametrize("function", [by_row, by_pair])
def test_vmap_over_a_dynamic_axis_is_kept(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    result = anyshape.export(function, (torch.randn(5, 3),), dynamic={"x": "n 3"})
    assert result.strategy == "symbolic" and result.findings == ()
