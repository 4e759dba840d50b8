"""An input that the declaration leaves out, and that keeps a dynamic axis at the example's size, is named with the edit."""

from __future__ import annotations

import ast
import re

import pytest
import torch

import anyshape
from anyshape import compat


class Masked(torch.nn.Module):
    def forward(self, x, mask):
        return (x * mask[..., None]).sum(1)


class Joined(torch.nn.Module):
    def forward(self, x, mask, segments):
        return torch.cat([x * mask[..., None], segments], 2)


class Positions(torch.nn.Module):
    def forward(self, x, positions):
        return x + positions[:, : x.shape[1]]


class Viewed(torch.nn.Module):
    def forward(self, x, other):
        return x.view(3, 4), other * 2


MASKED = (torch.randn(3, 5, 8), torch.ones(3, 5))


def refused(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], **options) -> anyshape.PromiseBroken:
    with pytest.raises(anyshape.PromiseBroken) as raised:
        anyshape.export(module, inputs, **options)
    return raised.value


def edit(finding: anyshape.Finding) -> dict[str, dict[int, str]]:
    """The declaration that the finding gives to paste."""
    (code,) = re.findall(r"^dynamic=(.*)$", finding.fix)
    return ast.literal_eval(code)


@pytest.mark.parametrize("where", [(), ("1 <= batch <= 4",)])
def test_the_axis_that_was_left_out_is_named_and_the_edit_is_right(where: tuple[str, ...]) -> None:
    broken = refused(Masked(), MASKED, dynamic={"x": "batch 5 8"}, where=where)
    (finding,) = broken.findings
    assert finding.code == "AS153"
    assert finding.what.startswith("axis 0 of input 'mask' stays 3: the model refuses other sizes of 'batch'")
    assert edit(finding) == {"x": {0: "batch"}, "mask": {0: "batch"}}
    result = anyshape.export(Masked(), MASKED, dynamic=edit(finding), where=where)
    assert result.is_kept and [str(tensor) for tensor in result.contract.inputs][1] == "mask: float32[batch, 5]"


def test_dynamic_axes_are_given_as_compat_takes_them() -> None:
    names = ["tokens", "attention"]
    with pytest.raises(anyshape.PromiseBroken) as raised:
        compat.export(Masked(), MASKED, input_names=names, dynamic_axes={"tokens": {0: "batch"}})
    code = raised.value.finding.alternative.partition("dynamic_axes=")[2]
    assert ast.literal_eval(code) == {"tokens": {0: "batch"}, "attention": {0: "batch"}}
    result = compat.export(Masked(), MASKED, input_names=names, dynamic_axes=ast.literal_eval(code))
    assert result.is_kept


def test_two_inputs_that_were_left_out_are_both_named() -> None:
    inputs = (torch.randn(3, 5, 4), torch.randn(3, 5), torch.randn(3, 5, 3))
    (finding,) = refused(Joined(), inputs, dynamic={"x": "batch 5 4"}).findings
    assert edit(finding) == {"x": {0: "batch"}, "mask": {0: "batch"}, "segments": {0: "batch"}}


def test_a_rule_that_comes_from_the_axis_is_a_warning_with_the_edit() -> None:
    inputs = (torch.randn(2, 5, 4), torch.randn(1, 5, 4))
    with pytest.warns(anyshape.NarrowedWarning, match="AS153 axis-left-out: axis 1 of input 'positions' stays 5"):
        result = anyshape.export(Positions(), inputs, dynamic={"x": "batch seq 4"})
    assert result.is_kept and result.contract.domain.dim("seq").max == 5


def test_an_accepted_narrower_domain_names_it_in_a_warning() -> None:
    with pytest.warns(anyshape.NarrowedWarning, match="AS153"):
        anyshape.export(Masked(), MASKED, dynamic={"x": "batch 5 8"}, accept_narrower=True)


def test_a_size_in_the_code_is_not_blamed_on_another_input() -> None:
    broken = refused(Viewed(), (torch.randn(3, 4), torch.randn(3)), dynamic={"x": "batch 4"}, where="batch <= 8")
    assert [finding.code for finding in broken.findings] == ["AS102"]
