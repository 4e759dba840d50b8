"""A line of the user's code is replaced on a copy of the module; the module, its class and its file stay as they are."""

from __future__ import annotations

import linecache

import torch
from torch import nn

from anyshape.findings import Source
from anyshape.modules.module_forms import edited_copy


def flatten(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(3, 10)


def through(x: torch.Tensor) -> torch.Tensor:
    return flatten(x)


class Head(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(3, 10)


class Named(Head):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = super().forward(x.view(3, 10))
        return x + 1


class Two(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.view(3, 2, 5)
        return self.last(x)

    def last(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(3, 10)


class Helped(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return through(x)


class Quiet(nn.Module):
    @torch.no_grad()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scaled(x.view(3, 10) * 1)

    def scaled(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def line(text: str, after: str) -> Source:
    """The first line of this file with this text, below a line with the other one."""
    lines = [each.strip() for each in linecache.getlines(__file__)]
    start = next(number for number, each in enumerate(lines) if each.startswith(after))
    return Source(__file__, lines.index(text, start) + 1, text=text)


def answers(module: nn.Module | None, rows: int) -> bool:
    assert module is not None
    try:
        return bool(module(torch.randn(rows, 10)).shape[0] == rows)
    except RuntimeError:
        return False


def test_the_copy_runs_the_new_line_and_the_module_the_old_one() -> None:
    module = nn.Sequential(Head(), nn.ReLU())
    forward = Head.forward
    copied = edited_copy(module, [(line("return x.view(3, 10)", "class Head"), "return x.view(x.shape[0], 10)")])
    assert answers(copied, 7) and answers(copied, 3)
    assert answers(module, 3) and not answers(module, 7)
    assert Head.forward is forward and "forward" not in vars(module[0])


def test_a_function_beside_the_class_is_edited_for_the_copy_alone() -> None:
    module = Helped()
    copied = edited_copy(module, [(line("return x.reshape(3, 10)", "def flatten"), "return x.reshape(-1, 10)")])
    assert answers(copied, 7)
    assert not answers(module, 7)


def test_several_lines_are_edited_together() -> None:
    first = (line("x = x.view(3, 2, 5)", "class Two"), "x = x.view(-1, 2, 5)")
    last = (line("return x.view(3, 10)", "def last"), "return x.view(-1, 10)")
    assert not answers(edited_copy(Two(), [first]), 7)
    assert answers(edited_copy(Two(), [first, last]), 7)


def test_a_method_that_calls_the_one_above_it_still_does() -> None:
    edit = (line("x = super().forward(x.view(3, 10))", "class Named"), "x = super().forward(x.view(-1, 10))")
    copied = edited_copy(Named(), [edit])
    assert answers(copied, 3)


def test_a_line_behind_a_decorator_gives_no_copy() -> None:
    edit = (line("return self.scaled(x.view(3, 10) * 1)", "class Quiet"), "return self.scaled(x.view(-1, 10) * 1)")
    assert edited_copy(Quiet(), [edit]) is None


def test_a_line_that_is_not_there_or_not_python_gives_no_copy() -> None:
    there = line("return x.view(3, 10)", "class Head")
    assert edited_copy(Head(), [(Source(there.file, there.line, text="return 1"), "return x")]) is None
    assert edited_copy(Head(), [(Source(there.file, there.line + 1, text=there.text), "return x")]) is None
    assert edited_copy(Head(), [(there, "return x.view(")]) is None
    assert edited_copy(nn.Linear(3, 4), [(there, "return x")]) is None
