"""Branches on sizes that only choose numbers, pad, resize, slice or copy become one program, whatever their number."""

from __future__ import annotations

import math
from pathlib import Path

import onnx
import pytest
import torch
from torch import nn
from torch.nn import functional

import anyshape


class SamePadding(nn.Module):
    """Padding in the way of TensorFlow, in several layers: each has a condition on each of two sizes."""

    def __init__(self, layers: int = 3) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(2, 2, 3, stride=2 + at % 2) for at in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(self.pad(x, layer))
        return x

    def pad(self, x: torch.Tensor, layer: nn.Conv2d) -> torch.Tensor:
        height = int(x.shape[-2])
        width = int(x.shape[-1])
        if height % layer.stride[0] == 0:
            down = max(layer.kernel_size[0] - layer.stride[0], 0)
        else:
            down = max(layer.kernel_size[0] - (height % layer.stride[0]), 0)
        across = 3 - layer.stride[1] if width % layer.stride[1] == 0 else 3 - width % layer.stride[1]
        return functional.pad(x, (across // 2, across - across // 2, down // 2, down - down // 2))


class PadsWhereNeeded(nn.Module):
    """Pads to whole patches, merges, pads to whole windows and slices what it added, each under a condition."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        height, width = x.shape[-2:]
        if width % 3 != 0:
            padding = (0, 3 - width % 3)
            x = functional.pad(x, padding)
        if height % 3 != 0:
            padding = (0, 0, 0, 3 - height % 3)
            x = functional.pad(x, padding)
        x = functional.max_pool2d(x, 3)
        if not x.shape[-1] % 2 == 0:  # noqa: SIM201 -- as users write it
            x = functional.pad(x, (0, 2 - x.shape[-1] % 2))
        for _ in range(2):
            height, width = x.shape[-2:]
            is_odd = (height % 2 == 1) or (width % 2 == 1)
            if is_odd:
                x = functional.pad(x, (0, width % 2, 0, height % 2))
            x = functional.avg_pool2d(x, 2)
            x = self.in_windows(x)
        return x

    def in_windows(self, x: torch.Tensor) -> torch.Tensor:
        batch, height, width = x.shape
        right, below = (4 - width % 4) % 4, (4 - height % 4) % 4
        x = functional.pad(x, (0, right, 0, below))
        rows, columns = x.shape[1:]
        x = x.view(batch, rows // 4, 4, columns // 4, 4).softmax(-1).view(batch, rows, columns)
        if right > 0 or below > 0:
            x = x[:, :height, :width].contiguous()
        return x


class ResizesWhereNeeded(nn.Module):
    """Resizes to whole patches and back, as MobileViT does; a flag of its own decides about the way back."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for patch in (2, 3, 2):
            x = self.in_patches(x[..., ::2, ::2], patch)
        return x

    def in_patches(self, x: torch.Tensor, patch: int) -> torch.Tensor:
        batch, channels, height, width = x.shape
        rows, columns = math.ceil(height / patch), math.ceil(width / patch)
        resized = False
        if rows * patch != height or columns * patch != width:
            x = functional.interpolate(x, size=(rows * patch, columns * patch), mode="bilinear", align_corners=False)
            resized = True
        x = x.reshape(batch, channels, rows, patch, columns, patch).softmax(2)
        x = x.reshape(batch, channels, rows * patch, columns * patch)
        if resized:
            x = functional.interpolate(x, (height, width), mode="bilinear", align_corners=True)
        return x


def test_branches_that_resize_in_several_layers_give_one_program(tmp_path: Path) -> None:
    model = ResizesWhereNeeded()

    def inputs(batch: int = 2, height: int = 53, width: int = 94) -> dict[str, torch.Tensor]:
        return {"x": torch.randn(batch, 2, height, width)}

    result = anyshape.export(model, inputs, tmp_path / "m.onnx", where=["height <= 300", "width <= 300"])
    assert result.contract.strategy == "symbolic"
    loaded = anyshape.load(tmp_path / "m.onnx")
    assert "If" not in {node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node}
    for height in (1, 2, 3, 7, 12, 24, 25, 289):
        for width in (1, 5, 6, 23, 48, 256):
            example = inputs(1, height, width)
            torch.testing.assert_close(torch.as_tensor(loaded(**example)), model(**example), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("model", [SamePadding(), PadsWhereNeeded()])
def test_conditions_on_remainders_in_several_layers_give_one_proved_program(model: nn.Module, tmp_path: Path) -> None:
    def inputs(batch: int = 2, height: int = 53, width: int = 94) -> dict[str, torch.Tensor]:
        shape = (batch, height, width) if isinstance(model, PadsWhereNeeded) else (batch, 2, height, width)
        return {"x": torch.randn(shape)}

    result = anyshape.export(model, inputs, tmp_path / "m.onnx")
    assert result.contract.status == "kept"
    assert result.contract.strategy == "symbolic"
    assert not result.contract.rules  # proved: endless ranges, no rule `compared`
    loaded = anyshape.load(tmp_path / "m.onnx")
    for height in (1, 2, 3, 7, 12, 24, 25):
        for width in (1, 5, 6, 23, 48):
            example = inputs(1, height, width)
            torch.testing.assert_close(torch.as_tensor(loaded(**example)), model(**example), rtol=1e-4, atol=1e-5)


class Rows(nn.Module):
    """Returns as many rows as a method computes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.new_ones(self.count(x.shape[0])).cumsum(0)


class KeepsTheSize(Rows):
    def count(self, n: int) -> int:
        if n % 2 == 0:
            rows = 5
        else:
            rows = n
        return rows


class DividesByTheSize(Rows):
    def count(self, n: int) -> int:
        rows = 1 if n % 3 == 0 else 40 // (n % 3)  # a statement of its own: it is joined
        return rows  # noqa: RET504


class SetsOnOneSide(Rows):
    def count(self, n: int) -> int:
        rows, added = 3, 2
        if n % 4 != 3:
            added = n % 4
            rows = rows + added
        return rows * 10 + added


class IsReadByAnInnerFunction(Rows):
    def count(self, n: int) -> int:
        rows = 1

        def added() -> int:
            return rows + n

        if n % 3 == 1:
            rows = 4
        return added()


class UsesAnotherPad(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pad = lambda x, amounts: x[amounts[1] :] * 2  # noqa: E731
        if x.shape[0] % 2 == 1:
            x = pad(x, (0, x.shape[0] % 2))
        return x


class Trims(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = x.shape[0]
        if n % 4 != 0 and n > 4:
            x = x[: n - n % 4]
        if n % 2 == 1:
            x = x[1:].contiguous()
        return x


class NamesWhatItPadded(nn.Module):
    """The text cannot be chosen, so the branch is taken as it is written: nothing is padded twice."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        name = "even"
        if x.shape[0] % 4 != 0:
            x = functional.pad(x, (0, 4 - x.shape[0] % 4), value=1.0)
            name = "odd"
        return x.cumsum(0) * len(name)


class WritesAfterResizing(nn.Module):
    """Where nothing is resized, the write changes both variables."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = x = x[None, None] * 2
        n = math.ceil(x.shape[-1] / 3) * 3
        if n != x.shape[-1]:
            x = functional.interpolate(x, n, mode="linear")
        x.add_(1)
        return torch.cat([first, x], -1)


class AsksForTheFlagItself(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, is_whole = x.shape[0], True
        if math.ceil(n / 3) * 3 != n:
            x = functional.interpolate(x[None, None], math.ceil(n / 3) * 3, mode="linear", align_corners=True)[0, 0]
            is_whole = False
        return x * 2 if is_whole is True else x


class ResizesByNearest(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x[None, None]
        if x.shape[-1] % 2 != 0:
            x = functional.interpolate(x, size=[x.shape[-1] * 2])
        return x


@pytest.mark.parametrize(
    "model",
    [
        KeepsTheSize(),
        DividesByTheSize(),
        SetsOnOneSide(),
        IsReadByAnInnerFunction(),
        UsesAnotherPad(),
        Trims(),
        NamesWhatItPadded(),
        WritesAfterResizing(),
        AsksForTheFlagItself(),
        ResizesByNearest(),
    ],
)
def test_the_file_is_right_whether_or_not_the_sides_can_be_joined(model: nn.Module, tmp_path: Path) -> None:
    anyshape.export(model, lambda n=6: {"x": torch.randn(n)}, tmp_path / "m.onnx")
    loaded = anyshape.load(tmp_path / "m.onnx")
    for n in range(2, 14):
        x = torch.randn(n)
        torch.testing.assert_close(torch.as_tensor(loaded(x=x)), model(x))


def test_a_branch_that_cannot_be_joined_after_all_is_captured_once(tmp_path: Path) -> None:
    result = anyshape.export(NamesWhatItPadded(), lambda n=6: {"x": torch.randn(n)}, tmp_path / "m.onnx")
    assert result.contract.strategy == "symbolic"


class CopiesLargeTensors(nn.Module):
    """Copies before an operator that was once wrong for large tensors, as upsampling layers do."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = x.transpose(-1, -2)
            if x.shape[0] >= 64:
                x = x.contiguous()
            if x.numel() * 2 > pow(2, 31) or x.size(1) > 1000:
                x = x.contiguous()
            x = functional.interpolate(x, scale_factor=2.0, mode="nearest")
        return x


def test_branches_that_only_copy_decide_nothing(tmp_path: Path) -> None:
    model = CopiesLargeTensors()

    def inputs(batch: int = 2, height: int = 4, width: int = 5) -> dict[str, torch.Tensor]:
        return {"x": torch.randn(batch, 3, height, width)}

    result = anyshape.export(model, inputs, tmp_path / "m.onnx")
    assert result.contract.strategy == "symbolic"
    assert not result.contract.rules  # the sizes that the branches name are no ends
    assert "If" not in {node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node}
    loaded = anyshape.load(tmp_path / "m.onnx")
    for batch in (1, 63, 64, 65):
        example = inputs(batch, 2, 3)
        torch.testing.assert_close(torch.as_tensor(loaded(**example)), model(**example))


class WritesIntoWhatItChanged(nn.Module):
    """Where nothing is resized, both names are one tensor, and the write is seen in both."""

    def __init__(self, change: str) -> None:
        super().__init__()
        self.change = change

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = x.relu()
        y = x
        width = x.shape[-1]
        wanted = (width + 36) // 37 * 37
        if self.change == "copy":
            if width >= 37:
                x = x.contiguous()
        elif self.change == "pad":
            if width % 37 != 0:
                x = functional.pad(x, (0, 37 - width % 37))
        elif wanted != width:
            x = functional.interpolate(x, size=(wanted,), mode="linear")
        x.add_(1)
        return x, y


@pytest.mark.parametrize("change", ["pad", "resize", "copy"])
def test_a_later_write_is_seen_in_both_tensors(change: str, tmp_path: Path) -> None:
    model = WritesIntoWhatItChanged(change)
    anyshape.export(model, lambda width=9: {"x": torch.randn(2, 3, width)}, tmp_path / "m.onnx")
    loaded = anyshape.load(tmp_path / "m.onnx")
    for width in (37, 74, 36, 1):
        x = torch.randn(2, 3, width)
        for actual, expected in zip(loaded(x), model(x.clone()), strict=True):
            torch.testing.assert_close(torch.as_tensor(actual), expected)


class LeavesTheLoop(nn.Module):
    """The last turn ends behind the branch, whose variable is read after the loop."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        count = 1
        for turn in range(2):
            if x.shape[0] % 37 == 0:
                count = 3
            if turn == 1:
                break
            count = 1
        return x.new_ones(count) * x.sum()


def test_a_variable_is_read_where_a_jump_leads(tmp_path: Path) -> None:
    anyshape.export(LeavesTheLoop(), lambda n=9: {"x": torch.randn(n)}, tmp_path / "m.onnx")
    loaded = anyshape.load(tmp_path / "m.onnx")
    assert [loaded(torch.ones(n)).shape[0] for n in (36, 37, 74)] == [1, 3, 3]
