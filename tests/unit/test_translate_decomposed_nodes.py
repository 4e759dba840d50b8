"""Single operators are decomposed in place; programs in which that could be wrong are left to torch's own pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim, ExportedProgram

from anyshape.capture.torch_export import symbolic_sizes
from anyshape.translate import registry
from anyshape.translate.decomposed_nodes import decompose_nodes
from anyshape.translate.private_writes import is_same_size

Forward = Callable[[nn.Module, torch.Tensor], Any]


class _Model(nn.Module):
    def __init__(self, forward: Forward) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.drop = nn.Dropout()
        self._forward = forward

    def forward(self, x: torch.Tensor) -> Any:
        return self._forward(self, x)


def exported(forward: Forward) -> tuple[nn.Module, ExportedProgram]:
    model = _Model(forward).eval()
    with torch.no_grad():
        return model, torch.export.export(model, (torch.randn(3, 4),), dynamic_shapes=({0: Dim.AUTO},), strict=False)


def is_decomposed(program: ExportedProgram) -> bool:
    return decompose_nodes(program, registry._decompositions(), registry._registry().is_registered)


def operators(program: ExportedProgram) -> list[str]:
    return [str(node.target) for node in program.graph.nodes if node.op == "call_function"]


def filled(model: Any, x: torch.Tensor) -> Any:
    sizes = torch.empty(2, 2, dtype=torch.int64)
    for row, (height, width) in enumerate([(x.shape[0], 4), (7, x.shape[0] + 1)]):
        sizes[row, 0] = height
        sizes[row, 1] = width
    return sizes, (sizes[:, 0] * sizes[:, 1]).sum() + x


def rows_written(model: Any, x: torch.Tensor) -> Any:
    y = model.linear(x)
    y[:, 1:3] = x[:, :2]
    before = y + 1
    y[:, 0] = 5.0
    y[:, 2:][:, 1] = before[:, 0]
    return before, y


def added_to_rows(model: Any, x: torch.Tensor) -> Any:
    y = model.linear(x)
    y[:, 1] += x[:, 0]
    return y


def change_through_view(model: Any, x: torch.Tensor) -> Any:
    y = model.linear(x)
    y[:, 0].relu_()
    return y


def written_into_the_only_view(model: Any, x: torch.Tensor) -> Any:
    y = torch.cat([x.sin(), x.cos()], dim=1).view(-1, 2).transpose(0, 1)
    y[0] = 0
    y[:, 1:] *= 2
    y.mul_(3)
    return y, y + 1


def written_into_one_view_of_two(model: Any, x: torch.Tensor) -> Any:
    whole = torch.cat([x.sin(), x.cos()], dim=1)
    y = whole.view(-1, 2)
    y[0] = 0
    return y, whole.sum()


def written_into_repeated_rows(model: Any, x: torch.Tensor) -> Any:
    y = model.linear(x)[:1].expand(3, -1)
    y[0] = 0
    return y


def written_into_a_product_of_one_tensor(model: Any, x: torch.Tensor) -> Any:
    y = model.linear(x)
    z = torch.einsum("bi->ib", y)
    z[0] = 0
    return y + z.sum()


def written_into_what_may_be_a_copy(model: Any, x: torch.Tensor) -> Any:
    y = model.linear(x).transpose(0, 1).reshape(-1)
    y[0] = 0
    z = model.linear(x).reshape(-1)
    z[:2] *= 3
    scores = torch.einsum("bi,ij->bj", x, model.linear.weight).reshape(-1)[1:].reshape(-1, 1)[:, :1]
    scores *= 2
    others = model.linear(x)[:, 1:]
    others *= 3
    return y, z, scores, others, scores.sum() + others


def view_read_after_writing(model: Any, x: torch.Tensor) -> Any:
    y = model.linear(x)
    row = y[:, 0]
    row.copy_(x[:, 1])
    y[:, 0] = 3.0
    return row * 2, y


def view_of_view_read_after_writing(model: Any, x: torch.Tensor) -> Any:
    y = model.linear(x)
    part = y[:, 1:]
    part[:, 0] = x[:, 0]
    return part.sum(), y


def returned_view_read_after_writing(model: Any, x: torch.Tensor) -> Any:
    y = model.linear(x)
    row = y[:, 0].relu_()
    y[:, 0] = 3.0
    return row * 2, y


def reshaped_before_writing(model: Any, x: torch.Tensor) -> Any:
    y = model.linear(x)
    flat = y.view(-1)
    y[:, 0] = x[:, 0]
    return flat, y


def view_before_change(model: Any, x: torch.Tensor) -> Any:
    y = model.linear(x)
    view = y.transpose(0, 1)
    y.relu_()
    return view


def view_of_view_before_change(model: Any, x: torch.Tensor) -> Any:
    y = model.linear(x)
    row = y.transpose(0, 1).unsqueeze(0)[0]
    y.relu_()
    return row * 2


def first_part_overwritten(model: Any, x: torch.Tensor) -> Any:
    """The angles of positions in an image: parts of the first are overwritten by the others."""
    angles = torch.stack([x, x + 1, x + 2]).cos()
    last = angles[2]
    first = angles[0]
    for part, offset in ((1, 1), (2, 2)):
        first[..., offset::3] = angles[part, ..., offset::3]
    last[:, 0] = first[:, 1]
    return torch.cat([first, first], dim=-1), angles.sum(0), last * 2


def written_into_an_input(model: Any, x: torch.Tensor) -> Any:
    x = x.view(-1, 2)
    x[:, 0] = 1.0
    return x * 2


def changed_after_reading(model: Any, x: torch.Tensor) -> Any:
    y = model.linear(x)
    before = y * 2
    y.relu_()
    return before + y


def views_read_before_changing(model: Any, x: torch.Tensor) -> Any:
    y = model.linear(x)
    one, two = y.transpose(0, 1).split(2)
    before = one.sum(0) + two.reshape(-1)[: y.shape[0]]
    y.copy_(x.flip(1))
    return before + y.shape[0], y


def changed_twice(model: Any, x: torch.Tensor) -> Any:
    y = model.linear(x)
    y += x
    y *= 3
    return y, y - 1


def changed_behind_an_idle_conversion(model: Any, x: torch.Tensor) -> Any:
    y = model.linear(x)
    z = y.to(x)
    z.add_(1)
    return y * 2, z


def changed_one_of_several_results(model: Any, x: torch.Tensor) -> Any:
    greatest, places = x.topk(2)
    before = greatest * 2
    greatest /= greatest.sum(-1, keepdim=True)
    return before, greatest, places


def flat_sizes(model: Any, x: torch.Tensor) -> Any:
    return model.drop(x[:, None]).flatten(1).to(torch.float64) + 1


def several_results(model: Any, x: torch.Tensor) -> Any:
    one, two = x.chunk(2, dim=1)
    return torch.min(one, two), (x > 0) & (x < 1)


def dropped(model: Any, x: torch.Tensor) -> Any:
    return model.drop(model.linear(model.drop(x))) + 1


def returned_as_it_is(model: Any, x: torch.Tensor) -> Any:
    y = model.linear(x)
    return y.to(x.dtype), model.drop(y * 2), y.sum()


def returned_twice(model: Any, x: torch.Tensor) -> Any:
    y = model.linear(x)
    return y, y.to(x.dtype)


@pytest.mark.parametrize(
    "forward",
    [
        returned_as_it_is,
        returned_twice,
        changed_after_reading,
        views_read_before_changing,
        changed_twice,
        flat_sizes,
        several_results,
        dropped,
        filled,
        rows_written,
        added_to_rows,
        change_through_view,
        written_into_the_only_view,
        written_into_what_may_be_a_copy,
        changed_behind_an_idle_conversion,
        changed_one_of_several_results,
        view_before_change,
        view_of_view_before_change,
        view_of_view_read_after_writing,
        reshaped_before_writing,
        first_part_overwritten,
    ],
    ids=lambda each: each.__name__,
)
def test_a_program_decomposed_in_place_computes_the_same(forward: Forward) -> None:
    model, program = exported(forward)
    assert is_decomposed(program)
    program.graph.lint()
    is_registered = registry._registry().is_registered
    for node in program.graph.nodes:
        if isinstance(node.target, torch._ops.OpOverload) and "assert" not in str(node.target):
            assert is_registered(node.target) and not node.target._schema.is_mutable
    for batch in (2, 5):
        x = torch.randn(batch, 4)
        torch.testing.assert_close(program.module()(x), model(x))


def flattened_before_changing(model: Any, x: torch.Tensor) -> Any:
    y = model.linear(x)
    flat = y.reshape(-1)
    y.relu_()
    return flat * 2


def change_of_the_input(model: Any, x: torch.Tensor) -> Any:
    return x.relu_() + 1


def change_of_what_dropout_returns(model: Any, x: torch.Tensor) -> Any:
    y = torch.relu(x)
    z = torch.nn.functional.dropout(y, 0.5, False)
    z.add_(1)
    return y + z


def change_of_a_conversion_that_copies(model: Any, x: torch.Tensor) -> Any:
    y = model.linear(x)
    z = y.to(x.dtype, copy=True)
    z.add_(1)
    return y * 2, z


def change_of_one_of_several_views(model: Any, x: torch.Tensor) -> Any:
    y = torch.relu(x)
    one, _ = y.split(2, dim=1)
    one.add_(1)
    return y


def change_of_narrower_numbers(model: Any, x: torch.Tensor) -> Any:
    y = torch.relu(x.half())
    y.add_(x)
    return y


def input_returned(model: Any, x: torch.Tensor) -> Any:
    return x.to(torch.float32), x + 1


@pytest.mark.parametrize(
    "forward",
    [
        input_returned,
        change_of_the_input,
        change_of_narrower_numbers,
        change_of_a_conversion_that_copies,
        change_of_one_of_several_views,
        view_read_after_writing,
        returned_view_read_after_writing,
        flattened_before_changing,
        written_into_one_view_of_two,
        written_into_repeated_rows,
        written_into_an_input,
        written_into_a_product_of_one_tensor,
    ],
    ids=lambda each: each.__name__,
)
def test_a_change_that_others_may_see_is_left_to_torch(forward: Forward) -> None:
    model, program = exported(forward)
    assert not is_decomposed(program)
    decomposed = registry.Translator().decompose(program)
    x = torch.randn(5, 4)
    torch.testing.assert_close(decomposed.module()(x.clone()), model(x.clone()))


def written_twice(model: Any, x: torch.Tensor) -> Any:
    """The first write is removed; the second, through a transposed view, is not."""
    y = x.clone()
    y[:, ::2] += 1
    y.t()[0] = 5
    return y


def test_a_program_of_which_one_write_alone_was_removed_names_its_output() -> None:
    model, program = exported(written_twice)
    assert not is_decomposed(program)
    (name,) = program.graph_signature.user_outputs
    assert program.graph.output_node().args[0][0].name == name
    x = torch.randn(5, 4)
    torch.testing.assert_close(registry.Translator().decompose(program).module()(x), model(x))


def test_a_change_of_a_result_that_two_nodes_pick_is_left_to_torch() -> None:
    _, program = exported(changed_one_of_several_results)
    picked = next(node for node in program.graph.nodes if str(node.target) == "<built-in function getitem>")
    with program.graph.inserting_after(picked):
        again = program.graph.call_function(picked.target, picked.args)
    again.meta = dict(picked.meta)
    last = next(node for node in reversed(program.graph.nodes) if node.target == torch.ops.aten.mul.Tensor)
    last.replace_input_with(picked, again)
    assert not is_decomposed(program)


def test_what_dropout_returns_is_its_input() -> None:
    model, program = exported(change_of_what_dropout_returns)
    decomposed = registry.Translator().decompose(program)
    x = torch.randn(5, 4)
    torch.testing.assert_close(decomposed.module()(x), model(x))


def test_equal_operators_of_several_layers_are_traced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.fx.experimental import proxy_tensor

    traced: list[Any] = []
    own = proxy_tensor.make_fx
    _, program = exported(lambda model, x: [x := torch.min(model.linear(x), x) for _ in range(6)][-1])
    monkeypatch.setattr(proxy_tensor, "make_fx", lambda *args, **kwargs: traced.append(args) or own(*args, **kwargs))
    assert is_decomposed(program)
    assert operators(program).count("aten.minimum.default") == 6
    assert len(traced) == 1


@pytest.mark.parametrize(("size", "is_same"), [(1, True), (3, False)])
def test_a_write_keeps_a_size_that_torch_takes_for_1_only_where_it_was_traced_at_1(size: int, is_same: bool) -> None:
    with symbolic_sizes():
        program = torch.export.export(
            _Model(lambda model, x: x * 2), (torch.randn(size, 4),), dynamic_shapes=({0: Dim.AUTO},)
        )
    (made,) = [node.meta["val"] for node in program.graph.nodes if node.op == "call_function"]
    assert is_same_size(1, made.shape[0]) == is_same
    assert is_same_size(made.shape[0], made.shape[0])
    assert not is_same_size(2, made.shape[0])
