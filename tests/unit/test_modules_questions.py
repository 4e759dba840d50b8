"""Questions that Python asks of tensors: only what depends on the inputs is one, and answers come from the script."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from anyshape.intercept.fixed_decisions import Below, FixedDecisions, QuestionModule, Times, find_next_question
from anyshape.intercept.questions import Asked, Questions


class Model(nn.Module):
    def forward(self, x, n):
        if x.sum() > 0:
            x = x + 1
        for _ in range(int(n)):
            x = x * 2
        return x


def run(function, *inputs, answers=()):
    with Questions(inputs, answers):
        return function(*inputs)


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (lambda x: bool(x.sum()), "truth"),
        (lambda x: not (x > 0).any(), "truth"),
        (lambda x: int(x.sum()), "number"),
        (lambda x: x.argmax().item(), None),
        (lambda x: x * x.argmax().item() + x.argmax().item() // 2, None),
        (lambda x: x[x.argmax().item()], None),
        (lambda x: torch.zeros(x.argmax().item()), "number"),
        (lambda x: x[: x.argmax().item() + 1], "number"),
        (lambda x: x[: x.argmax()], "number"),
        (lambda x: 1 if x.argmax().item() > 3 else 2, "truth"),
        (lambda x: range(x.argmax()), "number"),
        (lambda x: torch.equal(x, x + 1), "truth"),
        (lambda x: torch.allclose(x, x + 1), "truth"),
        (lambda x: x.max().item() > 3, None),
        (lambda x: 1 if (x > 0).nonzero().numel() > 0 else 2, "truth"),
        (lambda x: 1 if x[x > 0].shape[0] == 3 else 2, "truth"),
        (lambda x: 1 if torch.where(x > 0)[0].size(0) else 2, "truth"),
        (lambda x: 1 if torch.masked_select(x, x > 0).float().unsqueeze(1)[:, 0].size(-1) else 2, "truth"),
        (lambda x: 1 if x[(x > 0).nonzero()[:, 0]].shape[0] else 2, "truth"),
        (lambda x: 1 if x[:, None][x > 0].shape[1] == 1 else 2, None),
        (lambda x: torch.zeros(x[x > 0].shape[0]), None),
        (lambda x: 1 if x[torch.tensor([True, False, True])].shape[0] == 2 else 2, None),
        (lambda x: 1 if torch.masked_select(x, torch.tensor([True, False, True])).shape[0] == 2 else 2, None),
        (lambda x: 1 if x[1:].shape[0] == 2 else 2, None),
    ],
)
def test_what_is_asked(function, kind) -> None:
    if kind is None:
        run(function, torch.ones(3))
        return
    with pytest.raises(Asked) as caught:
        run(function, torch.ones(3))
    assert caught.value.kind == kind and caught.value.value.shape == ()


def test_among_sizes_every_int_is_asked_for() -> None:
    x = torch.ones(3)
    with pytest.raises(Asked), Questions(x, (), ints="sizes"):
        x.argmax().item()


@pytest.mark.parametrize(
    "read",
    [
        lambda x, a, b: x[:a],
        lambda x, a, b: x[a:b],
        lambda x, a, b: x[1, a:],
        lambda x, a, b: x[..., a:-1],
        lambda x, a, b: x[None, 2:, :b],
        lambda x, a, b: x[..., None, b:, 1:],
        lambda x, a, b: x[:, : b.item()],
    ],
)
@pytest.mark.parametrize(("a", "b"), [(0, 3), (2, 2), (3, 1), (-2, -1), (-9, 9)])
def test_a_slice_between_values_is_a_mask(read, a, b) -> None:
    x, ends = torch.arange(20.0).reshape(4, 5), (torch.tensor(a), torch.tensor(b))
    with Questions(ends, (), ints="masks"):
        masked, written = read(x, *ends), x.clone()
        written[1, ends[0] : 4] = -1.0
    assert torch.equal(masked, read(x, *ends))
    expected = x.clone()
    expected[1, a:4] = -1.0
    assert torch.equal(written, expected)


def test_a_list_of_values_is_read_one_by_one() -> None:
    with pytest.raises(Asked) as caught:
        run(lambda x: torch.zeros((x > 0).sum(1).tolist()[1]), torch.ones(2, 3))
    assert int(caught.value.value) == 3


def test_a_number_that_follows_from_an_answer_is_not_asked_for() -> None:
    def window(x, k):
        k = k.item()
        return x[k - 2 : k + 1], x[: k // 2]

    first, second = run(window, torch.arange(9.0), torch.tensor(3), answers=[4])
    assert first.tolist() == [4.0, 5.0, 6.0] and second.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("count", "may_be_negative"),
    [
        (lambda x: x.argmax().item(), False),
        (lambda x: (x > 0).sum().item(), False),
        (lambda x: x.to(torch.uint8).max().item(), False),
        (lambda x: x.to(torch.int32).sum().item(), True),
        (lambda x: x.argmax().item() - 1, True),
    ],
)
def test_a_count_is_never_negative(count, may_be_negative) -> None:
    with pytest.raises(Asked) as caught:
        run(lambda x: torch.zeros(count(x)) if count(x) is not None else 0, torch.ones(3))
    assert caught.value.may_be_negative is may_be_negative


def test_a_float_is_asked_for_when_it_decides() -> None:
    with pytest.raises(Asked):
        run(lambda x: 1 if x.max().item() > 3 else 2, torch.ones(3))


def test_what_does_not_depend_on_the_inputs_is_not_asked() -> None:
    assert run(lambda x: bool(torch.ones(2).sum() > 0), torch.ones(3)) is True


@pytest.mark.parametrize(
    "write",
    [
        lambda table, x: table.add_(x),
        lambda table, x: table.__setitem__(0, x[0]),
        lambda table, x: table[1:].copy_(x[1:]),
        lambda table, x: torch.add(x, 1, out=table),
    ],
)
def test_a_tensor_that_inputs_are_written_into_depends_on_them(write) -> None:
    def function(x):
        table = torch.zeros(3)
        write(table, x)
        return bool(table.sum() > 0)

    with pytest.raises(Asked):
        run(function, torch.ones(3))


def test_answers_are_taken_in_order() -> None:
    x, n = torch.ones(3), torch.tensor(5)
    assert run(Model(), x, n, answers=[True, 2]).tolist() == [8.0, 8.0, 8.0]
    assert run(Model(), x, n, answers=[False, 1]).tolist() == [2.0, 2.0, 2.0]


def test_an_answer_of_another_kind_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="other questions"):
        run(Model(), torch.ones(3), torch.tensor(5), answers=[2])


def test_a_script_gives_numbers_by_the_length_of_inputs() -> None:
    answered = FixedDecisions(Model(), (True, "value_1"))
    assert answered(torch.ones(2), torch.tensor(9), value_1=torch.zeros(3)).tolist() == [16.0, 16.0]
    question = QuestionModule(Model(), (True,), "number")
    assert question(torch.ones(2), torch.tensor(9)).item() == 9
    with pytest.raises(RuntimeError, match="one more value"):
        FixedDecisions(Model(), (True,))(torch.ones(2), torch.tensor(9))


def test_a_number_below_zero_is_given_by_its_distance() -> None:
    class Ends(nn.Module):
        def forward(self, x, n):
            return x[n.item() :]

    x = torch.arange(5.0)
    answered = FixedDecisions(Ends(), (Below("value_1"),))
    assert answered(x, torch.tensor(9), value_1=torch.zeros(2)).tolist() == [3.0, 4.0]
    found = find_next_question(Ends(), (x, torch.tensor(-3)), {}, (Below("value_1"),))
    assert found.numbers == {"value_1": 3} and found.is_real
    assert not find_next_question(Ends(), (x, torch.tensor(3)), {}, (Below("value_1"),)).is_real


def test_a_loop_that_ends_by_itself_ends_the_repetition() -> None:
    class Search(nn.Module):
        def forward(self, x):
            for item in x:
                if item > 5:
                    break
            return item

    question = QuestionModule(Search(), (Times("value_1", False),), "truth")
    x = torch.ones(3)
    assert [bool(question(x, value_1=torch.zeros(n))) for n in range(4)] == [False, False, False, True]


def test_hearing_finds_the_real_numbers() -> None:
    class Halved(nn.Module):
        def forward(self, x):
            while x.max() > 1:
                x = x / 2
            return x

    found = find_next_question(Halved(), (torch.tensor([5.0]),), {}, (Times("value_1", True), False))
    assert found.asked is None and found.numbers == {"value_1": 3}
    found = find_next_question(Model(), (torch.ones(2), torch.tensor(9)), {}, (True, "value_1"))
    assert found.asked is None and found.numbers == {"value_1": 9}


def test_strictly_an_answer_that_the_values_contradict_is_an_error() -> None:
    answered = FixedDecisions(Model(), (True, "value_1"))
    low, count = -torch.ones(2), {"value_1": torch.zeros(1)}
    assert answered(low, torch.tensor(9), **count).tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="decides otherwise"):
        answered.strictly()(low, torch.tensor(9), **count)
    assert answered.strictly()(-low, torch.tensor(9), **count).tolist() == [4.0, 4.0]
