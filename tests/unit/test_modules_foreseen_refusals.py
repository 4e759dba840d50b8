"""Functions of torch.while_loop and torch.cond that do not fit the sizes raise uncompiled; dynamo has the last word."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch._dynamo.utils import counters
from torch._higher_order_ops import while_loop

from anyshape.inputs import Inputs, flatten_outputs
from anyshape.verify import Reference, Refused
from anyshape.verify.reference import Answer


class Sums(torch.nn.Module):
    def forward(self, n: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
        return while_loop(lambda i, x, y: i > 0, lambda i, x, y: (i - 1, x + y, y - x), [n, a, b])


class Chooses(torch.nn.Module):
    """The second function, which is chosen, takes any size; torch compiles both."""

    def forward(self, n: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.cond(n > 5, lambda x, y: x + y, lambda x, y: x * 2, (a, b))


class OnlyCompiled(torch.nn.Module):
    def forward(self, n: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        def first(x: torch.Tensor) -> torch.Tensor:
            if not torch.compiler.is_dynamo_compiling():
                raise RuntimeError("not without dynamo")
            return x + 1

        return torch.cond(n > 0, first, lambda x: x * 2, (a,))


class Counts(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, n: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
        def body(i: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            self.count.add_(1)
            return i - 1, x + self.count

        return while_loop(lambda i, x: i > 0, body, [n, a])


def given(rows: int, columns: int, others: int, steps: int = 2) -> Inputs:
    return Inputs((torch.tensor(steps), torch.randn(rows, columns), torch.randn(rows, others)))


def compiled_frames() -> int:
    return counters["frames"]["total"]


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("module", [Sums(), Chooses()], ids=["while_loop", "cond"])
def test_a_refusal_of_a_kind_that_dynamo_has_confirmed_is_not_compiled(module: torch.nn.Module) -> None:
    with Reference(module, flatten_outputs) as reference:
        assert isinstance(reference.run(given(2, 3, 3)), Answer)
        first = reference.run(given(2, 4, 3))
        before = compiled_frames()
        others = [reference.run(given(rows, columns, 3)) for rows in (2, 5, 9) for columns in (4, 5, 7)]
        assert compiled_frames() == before
        assert isinstance(first, Refused) and "broadcastable to [2, 4]" in first.message
        assert all(isinstance(other, Refused) and other.source == first.source for other in others)
        assert isinstance(reference.run(given(5, 3, 3)), Answer)


def test_a_carried_value_that_changes_its_shape_is_refused_as_torch_refuses_it() -> None:
    inputs = given(2, 1, 3, steps=0)
    with pytest.raises(Exception, match="same metadata"):
        Sums()(*inputs.args)
    with Reference(Sums(), flatten_outputs) as reference:
        refused = reference.run(inputs)
    assert (
        isinstance(refused, Refused) and "carried input 1 has shape [2, 1], and [2, 3] after body_fn" in refused.message
    )


def test_what_dynamo_answers_is_an_answer() -> None:
    with Reference(OnlyCompiled(), flatten_outputs) as reference:
        answers = [reference.run(given(rows, 3, 3)) for rows in (2, 4, 5)]
    assert all(isinstance(answer, Answer) for answer in answers)


@pytest.mark.skipif(torch.__version__ < "2.12", reason="torch 2.11 itself refuses a while_loop that writes a buffer")
def test_a_buffer_that_a_body_writes_is_written_as_often_as_without_fake_tensors() -> None:
    inputs = given(2, 3, 3)
    with torch.no_grad():
        expected = Counts()(*inputs.args)[1]
    module = Counts()
    with Reference(module, flatten_outputs) as reference:
        answers = [reference.run(inputs) for _ in range(2)]
    for answer in answers:
        assert isinstance(answer, Answer)
        torch.testing.assert_close(torch.from_numpy(answer.arrays[1]), expected)
    assert module.count == 0
