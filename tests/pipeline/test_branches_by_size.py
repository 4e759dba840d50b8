"""Branches on sizes that have few known values, and branches that give other dtypes."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import anyshape
from anyshape.exporting import ladder
from anyshape.exporting.calls_at_sizes import make_trial


class Cases(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        match x.shape[0]:
            case 9:
                return x * 2
            case 26 | 39:
                return x * 3
            case _:
                return x + 1


class Counted(torch.nn.Module):
    """Whole numbers up to a size, floats beyond it."""

    def __init__(self, last: int) -> None:
        super().__init__()
        self.last = last

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.long() * (1.0 if x.shape[0] > self.last else 1)


class CountedFar(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.long() * (1.0 if x.shape[0] > 4500 and x.shape[0] % 7 == 3 else 1)


def inputs(n: int = 5) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(n)}


def test_a_match_with_several_cases_is_right_at_each(tmp_path: Path) -> None:
    anyshape.export(Cases(), inputs, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    for n in (1, 8, 9, 10, 26, 27, 38, 39, 40):
        x = torch.randn(n)
        np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], Cases()(x).numpy(), rtol=1e-6)


def test_another_dtype_ends_the_contract() -> None:
    with pytest.warns(anyshape.NarrowedWarning, match="AS154"):
        result = anyshape.export(Counted(31), inputs)
    assert [str(rule.condition) for rule in result.contract.rules] == ["n <= 31"]
    assert "it returns output 'output' as float32, and as int64 at the sizes of the example" in result.findings[0].why
    assert "one dtype" in result.findings[0].alternative


def test_another_dtype_at_declared_sizes_is_an_error() -> None:
    with pytest.raises(anyshape.PromiseBroken, match="AS155") as broken:
        anyshape.export(Counted(31), inputs, where=["n <= 64"])
    assert "n <= 31" in broken.value.finding.fix


def test_a_rare_size_with_another_dtype_is_not_in_the_contract() -> None:
    with pytest.warns(anyshape.NarrowedWarning):
        result = anyshape.export(CountedFar(), inputs)
    assert not result.contract.domain.contains({"n": 4504})  # 4504 % 7 == 3


class FarBranches(torch.nn.Module):
    """Two branches of the user's: four programs, of which the first is wrong beyond either size."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * 2 if x.shape[0] > 40 else x + 1
        return x.sin() if x.shape[1] > 50 else x.cos()


def test_a_file_of_one_program_is_compared_until_it_is_wrong_where_another_program_is_due(tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []

    def note(stage: str, done: int, total: int) -> None:
        if stage == "comparing" and total:
            steps.append((done, total))

    x = torch.randn(3, 5)
    anyshape.export(FarBranches(), x, tmp_path / "m.onnx", dynamic={"x": "n, m"}, progress=note)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    for n, m in ((3, 5), (41, 5), (3, 51), (41, 51)):
        x = torch.randn(n, m)
        (found,) = session.run(None, {"x": x.numpy()})
        np.testing.assert_allclose(found, FarBranches()(x).numpy(), rtol=1e-4, atol=1e-5)
    ends = [place for place, (done, _) in enumerate(steps) if done == 0][1:]
    last, total = steps[ends[0] - 1]  # of the comparison of the first file
    assert last < total // 4


class NearestShape(torch.nn.Module):
    """Chooses the nearest of some quotients: no rule of whole numbers says where."""

    def forward(self, x):
        shapes = [(1, 1), (1, 2), (2, 1), (2, 3)]
        quotient = x.shape[0] / x.shape[1]
        nearest = min(range(4), key=lambda place: abs(shapes[place][0] / shapes[place][1] - quotient))
        return x * (nearest + 1)


def test_a_choice_by_quotients_of_sizes_is_refused_by_its_line() -> None:
    with pytest.raises(anyshape.PromiseBroken) as broken:
        anyshape.export(NearestShape(), lambda rows=3, columns=7: torch.randn(rows, columns), None)
    finding = broken.value.findings[0]
    assert finding.code == "AS101" and "takes another" in finding.what
    assert "nearest = min(" in finding.where.text


class LargeTensors(torch.nn.Module):
    """Computes the same in another way where a tensor has more elements than a kernel once could count."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x > 0, x, 0.0) if x.numel() > 2**31 else x.relu()


def test_a_side_that_no_call_can_afford_is_captured_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[int] = []

    def noting(*args: Any, **kwargs: Any) -> Any:
        try_sizes = make_trial(*args, **kwargs)
        return lambda sizes: (called.append(prod(sizes.values())), try_sizes(sizes))[1]

    monkeypatch.setattr(ladder, "make_trial", noting)

    def inputs(batch: int = 2, h: int = 4, w: int = 5) -> dict[str, torch.Tensor]:
        assert batch * h * w < 10**8  # nobody fills such inputs either
        return {"x": torch.randn(batch, 3, h, w)}

    result = anyshape.export(LargeTensors(), inputs, tmp_path / "m.onnx", isolate=False)
    assert result.contract.strategy == "symbolic"
    assert not result.contract.rules
    assert "If" in {node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node}
    assert all(elements < 10**8 for elements in called)


class HandsConditionsOn(torch.nn.Module):
    """A condition on sizes goes to a function of C, which takes True and False alone: at once, by a variable, by a call."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = torch.nn.Linear(8, 24)

    def attend(self, x: torch.Tensor, is_causal: bool) -> torch.Tensor:
        q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in self.lin(x).chunk(3, -1))
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = x.shape[1]
        is_long = n > 3
        q = x[:, None]
        whole = torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=self.lin is not None and n > 1)
        return whole.sum((1, 3)) + self.attend(x, n > 1).sum((1, 3)) + self.attend(x, is_long).sum((1, 3))


def test_conditions_for_functions_that_want_a_bool_are_branches(tmp_path: Path) -> None:
    module = HandsConditionsOn()

    def inputs(batch: int = 2, n: int = 5) -> dict[str, torch.Tensor]:
        return {"x": torch.randn(batch, n, 8)}

    result = anyshape.export(module, inputs, tmp_path / "m.onnx")
    assert result.contract.strategy == "symbolic"
    assert not result.contract.rules
    loaded = anyshape.load(tmp_path / "m.onnx")
    for n in (1, 2, 3, 4, 9):
        example = inputs(3, n)
        torch.testing.assert_close(torch.as_tensor(loaded(**example)), module(**example), rtol=1e-4, atol=1e-5)
