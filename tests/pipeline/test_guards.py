"""Guards: decided against the domain, shown with their lines; consent makes the domain smaller, never silently."""

from __future__ import annotations

import onnx
import pytest
import torch
from torch import nn

import anyshape
from anyshape.report.text import describe_ladder


class Folded(nn.Module):
    LAST = "return x.transpose(1, 2).reshape(x.shape[0], -1).relu_()"

    def forward(self, x):
        if x.shape[0] < 100:
            x = x * 2
        if x.shape[1] > 3:
            x = x + 1
        return x.transpose(1, 2).reshape(x.shape[0], -1).relu_()


class FoldedCopy(Folded):
    """The same without a write: whether `reshape` gives a view is no condition."""

    def forward(self, x):
        if x.shape[1] > 3:
            x = x + 1
        return x.transpose(1, 2).reshape(x.shape[0], -1)


class ChannelsLast(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x):
        return self.conv(x.to(memory_format=torch.channels_last))


class Loop(nn.Module):
    def forward(self, x):
        state = torch.zeros(x.shape[0], 4)
        for step in range(x.shape[1]):
            state = state * 0.5 + x[:, step]
        return state


def test_the_audit_names_every_condition_with_its_line_and_who_asked() -> None:
    inputs = lambda b=3, t=8, c=4: torch.randn(b, t, c)  # noqa: E731
    result = anyshape.export(Folded(), inputs, where=["1 <= b <= 64"])
    audit = describe_ladder(result).replace("tests/pipeline/", "")
    few, many, folded = (f"test_guards.py:{line}, in Folded.forward:   " for line in (18, 20, 22))
    assert audit.splitlines() == [
        "  rung    symbolic: right",
        "  region  t > 3",
        "  region  t <= 3",
        f"  guard   proved: b < 100, asked by your code   {few}if x.shape[0] < 100:",
        f"  guard   proved: t > 3, asked by your code   {many}if x.shape[1] > 3:",
        f"  guard   proved: t != 1, asked by torch   {folded}{Folded.LAST}",
        f"  guard   refuted: c != 1 (not at b=1, t=4, c=1), asked by torch   {folded}{Folded.LAST}",
        f"  guard   proved: b < 100, asked by your code   {few}if x.shape[0] < 100:",
        f"  guard   proved: t <= 3, asked by your code   {many}if x.shape[1] > 3:",
        f"  guard   refuted: t != 1 (not at b=1, t=1, c=1), asked by torch   {folded}{Folded.LAST}",
        f"  guard   refuted: c != 1 (not at b=1, t=1, c=1), asked by torch   {folded}{Folded.LAST}",
    ]
    tested = result.contract.tested
    assert not tested.capture_proved and tested.against_guards > 0


def test_the_choice_between_view_and_copy_is_no_condition_of_a_model_without_writes() -> None:
    result = anyshape.export(FoldedCopy(), lambda b=3, t=8, c=4: torch.randn(b, t, c))
    assert [guard.text for guard in result.guards if not guard.by_user] == []
    assert result.contract.tested.capture_proved


def test_a_guard_without_a_line_of_the_model_does_not_name_the_callers() -> None:
    result = anyshape.export(ChannelsLast(), lambda b=3, h=5, w=6: torch.randn(b, 3, h, w), strategy="symbolic")
    assert {guard.source.function.split(".")[-1] for guard in result.guards if guard.source is not None} == {"forward"}


def test_consent_gives_the_smaller_domain_and_says_so() -> None:
    inputs = lambda b=3, t=5: torch.randn(b, t, 4)  # noqa: E731
    result = anyshape.export(Loop(), inputs, accept_narrower=True, strategy="symbolic")
    (finding,) = (found for found in result.findings if found.code == "AS108")
    assert finding.severity.value == "warning" and finding.where.text == "for step in range(x.shape[1]):"
    assert (result.contract.domain.dim("t").min, result.contract.domain.dim("t").max) == (5, 5)


def test_a_condition_that_the_user_accepted_is_a_rule_of_the_model_with_its_line() -> None:
    inputs = lambda b=3, t=5: torch.randn(b, t, 4)  # noqa: E731
    result = anyshape.export(Loop(), inputs, accept_narrower=True, strategy="symbolic", where="t <= 40")
    rules = [(rule.origin, str(rule.condition), rule.source and rule.source.text) for rule in result.contract.rules]
    assert rules == [
        ("declared", "t >= 1", None),
        ("declared", "t <= 40", None),
        ("model", "t == 5", "for step in range(x.shape[1]):"),
    ]


@pytest.mark.thorough  # 50 s: the loop is captured for many lengths
def test_a_relation_that_the_user_accepted_is_no_declared_one() -> None:
    class Difference(nn.Module):
        def forward(self, x, y):
            for step in range(x.shape[0] - y.shape[0]):
                x = x * 0.5 + step
            return x

    inputs = lambda a=7, b=4: (torch.randn(a, 2), torch.randn(b, 3))  # noqa: E731
    result = anyshape.export(Difference(), inputs, accept_narrower=True, strategy="symbolic", where="a > b")
    rules = [(rule.origin, str(rule.condition), rule.source is not None) for rule in result.contract.rules]
    assert rules == [("declared", "a > b", False), ("model", "a + -b == 3", True)]


def test_a_file_size_counts_shared_weights_once(tmp_path) -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(300, 300)

        def forward(self, x):
            return self.linear(x) * 2 if x.shape[0] > 3 else self.linear(x) + 1

    class One(Shared):
        def forward(self, x):
            return self.linear(x) * 2

    one, shared = tmp_path / "one.onnx", tmp_path / "shared.onnx"
    for module, path in ((One(), one), (Shared(), shared)):
        anyshape.export(module, lambda b=5: torch.randn(b, 300), path)
    (choice,) = (node for node in onnx.load(shared).graph.node if node.op_type == "If")
    assert shared.stat().st_size < one.stat().st_size * 1.01 + choice.ByteSize()
    assert choice.ByteSize() < 4096


class Halves(nn.Module):
    def forward(self, x):
        def joined(part):
            size = part.shape[1]
            if size == 1:
                return part[:, 0]
            return torch.tanh(joined(part[:, : size // 2]) + joined(part[:, size // 2 :]))

        return joined(x)


def test_a_condition_of_the_decomposed_program_has_a_line_of_the_model_and_not_of_the_caller() -> None:
    with pytest.raises(anyshape.PromiseBroken) as caught:
        anyshape.export(Halves(), lambda b=2, t=6: torch.randn(b, t, 8), strategy="symbolic")
    where = caught.value.finding.where
    assert where is not None and where.text == "if size == 1:"


class _ChecksLengths(torch.nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        torch._check_tensor_all(lengths > 0)
        return x * 2 + lengths[:, None]


class _ReadsFlag(torch.nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        flag = (lengths > 0).all().item()
        torch._check(flag)
        return x * 2 + lengths[:, None]


@pytest.mark.parametrize("module", [_ChecksLengths(), _ReadsFlag()], ids=lambda module: type(module).__name__)
def test_truths_that_are_only_asserted_are_no_conditions(module: torch.nn.Module) -> None:
    """The module itself raises where they are false: the capture is proved without them."""

    def sizes(batch: int, n: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randn(batch, n), torch.randint(1, 5, (batch,))

    result = anyshape.export(module, sizes)
    assert result.contract.tested.capture_proved
    assert not result.findings
