"""A model that returns other outputs at other sizes: the contract has the sizes with the outputs of the example."""

from __future__ import annotations

import pytest
import torch

import anyshape


class Parts(torch.nn.Module):
    def forward(self, x):
        return torch.chunk(x, 3, dim=1)


class Guarded(torch.nn.Module):
    def forward(self, x, y):
        if x.shape[0] >= 6 and y.shape[0] <= 16:
            return x * 2.0, y + 1
        return None


class Window(torch.nn.Module):
    """Beyond its window it returns what falls out as well, as a sliding cache does."""

    def forward(self, x):
        answers = {"kept": x[:, -8:] * 2}
        if x.shape[1] > 8:
            answers["dropped"] = x[:, :-8]
        return answers


class Renamed(torch.nn.Module):
    def forward(self, x):
        return {"short" if x.shape[0] < 5 else "long": x + 1}


class Rows(torch.nn.Module):
    def forward(self, x):
        return [row * 2 for row in x]


def kept(module: torch.nn.Module, inputs, *rules: str, **options) -> anyshape.Export:
    with pytest.warns(anyshape.NarrowedWarning, match="AS154"):
        result = anyshape.export(module, inputs, **options)
    assert [str(rule.condition) for rule in result.contract.rules] == list(rules)
    assert {finding.code for finding in result.findings} == {"AS154"}
    return result


def test_parts_are_kept_where_there_are_as_many_as_at_the_example(tmp_path) -> None:
    path = tmp_path / "m.onnx"
    result = kept(Parts(), lambda b=1, n=18: torch.randn(b, n), "2*((n + 2)//3) < n", path=path)
    assert all(finding.where.text == "return torch.chunk(x, 3, dim=1)" for finding in result.findings)
    session = anyshape.load(path)
    for n in (3, 5, 13, 14, 15, 40):
        x = torch.randn(2, n)
        for actual, expected in zip(session(x.numpy()), Parts()(x), strict=True):
            torch.testing.assert_close(torch.from_numpy(actual), expected)
    with pytest.raises(anyshape.ContractBroken):
        session(torch.randn(2, 4).numpy())


def test_a_branch_that_returns_nothing_ends_the_contract() -> None:
    result = kept(Guarded(), lambda a=16, b=12: (torch.randn(a), torch.randn(b)), "a >= 6", "b <= 16")
    assert "it returns no outputs, and 2 at the sizes of the example" in result.findings[0].why


def test_a_window_ends_the_contract() -> None:
    kept(Window(), lambda n=5: torch.randn(2, n), "n <= 8")


def test_another_name_of_an_output_is_another_output() -> None:
    result = kept(Renamed(), lambda n=9: torch.randn(n), "n >= 5")
    assert "it returns output 'short' in place of 'long'" in result.findings[0].why


def test_declared_sizes_with_other_outputs_are_an_error_with_the_rule() -> None:
    with pytest.raises(anyshape.PromiseBroken) as broken:
        anyshape.export(Window(), lambda n=5: torch.randn(2, n), where=["n <= 64"])
    (finding,) = broken.value.findings
    assert finding.code == "AS155" and finding.fix == "promise what one file can keep: where=['n <= 8']"
    assert not finding.is_fix_untried


def test_outputs_that_grow_with_a_size_are_an_error() -> None:
    with pytest.raises(anyshape.PromiseBroken) as broken:
        anyshape.export(Rows(), lambda n=3: torch.randn(n, 4))
    (finding,) = broken.value.findings
    assert finding.code == "AS155" and "only where n == 3" in finding.why


def test_a_narrower_contract_can_be_accepted() -> None:
    with pytest.warns(anyshape.NarrowedWarning, match="AS155"):
        result = anyshape.export(Rows(), lambda n=3: torch.randn(n, 4), accept_narrower=True)
    assert result.is_kept and [len(tensor.axes) for tensor in result.contract.outputs] == [1, 1, 1]
