"""How much is selected: branches on the length of a selection, and slices of another length in each step of a loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import anyshape


class SumOfFound(nn.Module):
    def forward(self, x):
        index = (x[:, 0] > 0).nonzero().squeeze(1)
        if index.numel() > 0:
            return x[index].sum(0)
        return x.mean(0)


class ShareOfKept(nn.Module):
    """The length of a selection decides, and is computed with."""

    def forward(self, x):
        kept = x[x[:, 0] > 0.5]
        if kept.shape[0] == 0:
            return torch.zeros(1, x.shape[1])
        return kept / kept.shape[0]


class FewFound(nn.Module):
    def forward(self, x):
        found = torch.masked_select(x, x > 1)
        if len(found) < 3:
            return x.sum()
        return found.sum()


class WithOnes(nn.Module):
    """The length of a selection decides, and is the size of a new tensor."""

    def forward(self, x):
        boxes = x[x[:, 0] > 0]
        count = boxes.size(0)
        if not count:
            return torch.full((1, 2), -1.0)
        return torch.cat([boxes[:, :1], torch.ones(count, 1)], 1)


@pytest.mark.long_table
@pytest.mark.parametrize("model", [SumOfFound(), ShareOfKept(), FewFound(), WithOnes()], ids=lambda m: type(m).__name__)
def test_a_branch_on_the_length_of_a_selection_is_in_the_file(model, tmp_path) -> None:
    result = anyshape.export(model, lambda n=4, k=5: torch.randn(n, k), tmp_path / "m.onnx")
    assert result.strategy == "decided"
    loaded = anyshape.load(tmp_path / "m.onnx")
    for rows, columns in ((1, 1), (2, 9), (7, 2), (40, 3)):
        for x in (
            torch.randn(rows, columns),
            -torch.rand(rows, columns) - 0.1,
            torch.rand(rows, columns) + 2,
            torch.zeros(rows, columns),
        ):
            np.testing.assert_allclose(np.asarray(loaded(x)), model(x).numpy(), rtol=1e-5, atol=1e-6)


class CopiesRows(nn.Module):
    """Each step writes as many elements as a value says."""

    def forward(self, padded, lengths):
        copy = torch.zeros(padded.shape)
        for row in range(lengths.shape[0]):
            copy[row, : lengths[row]] = padded[row, : lengths[row]]
        return copy


class MeansOfRows(nn.Module):
    def forward(self, padded, lengths):
        rows = zip(padded, lengths.tolist(), strict=True)
        return torch.stack([row[:length].mean() for row, length in rows])


class LastOfRows(nn.Module):
    """Each step picks one element, at a place that a value says."""

    def forward(self, padded, lengths):
        return torch.stack([padded[row, lengths[row] - 1] for row in range(padded.shape[0])])


class FromBothEnds(nn.Module):
    """Places below 0, beside `...` and None; a place that goes from step to step; writes into another tensor."""

    def forward(self, padded, lengths):
        place, found = lengths[0] - 1, torch.zeros_like(padded)
        for row in range(padded.shape[0]):
            found[row] = padded[row, -lengths[row]] + padded[..., place][row, None]
            place = (place + lengths[row]) % padded.shape[1]
        return found


@pytest.mark.parametrize(
    "model", [CopiesRows(), MeansOfRows(), LastOfRows(), FromBothEnds()], ids=lambda m: type(m).__name__
)
def test_a_loop_over_rows_with_lengths_is_in_the_file(model, tmp_path) -> None:
    def inputs(batch=3, width=6):
        return {"padded": torch.randn(batch, width), "lengths": torch.randint(1, width + 1, (batch,))}

    anyshape.export(model, inputs, tmp_path / "m.onnx", where=["batch <= 64", "width <= 64"])
    loaded = anyshape.load(tmp_path / "m.onnx")
    for sizes in ((1, 1), (2, 5), (9, 4), (33, 17)):
        example = inputs(*sizes)
        np.testing.assert_allclose(np.asarray(loaded(**example)), model(**example).numpy(), rtol=1e-5, atol=1e-6)


class WritesIntoWhatItPicked(nn.Module):
    """What a place picks is a view: the write changes the padded tensor."""

    def forward(self, padded, lengths):
        padded = padded * 1
        for row in range(padded.shape[0]):
            padded[row, lengths[row] - 1].add_(1)
        return padded


class ReadsWhatWasWritten(nn.Module):
    """The write into the padded tensor changes what was picked before."""

    def forward(self, padded, lengths):
        padded, found = padded * 1, []
        for row in range(padded.shape[0]):
            last = padded[row, lengths[row] - 1]
            padded[row] = padded[row] * 2
            found.append(last)
        return torch.stack(found)


@pytest.mark.parametrize("model", [WritesIntoWhatItPicked(), ReadsWhatWasWritten()], ids=lambda m: type(m).__name__)
def test_a_picked_element_that_is_written_later_is_not_taken_for_a_copy(model, tmp_path) -> None:
    def inputs(batch=3, width=6):
        return {"padded": torch.randn(batch, width), "lengths": torch.randint(1, width + 1, (batch,))}

    with pytest.raises(anyshape.PromiseBroken) as broken:
        anyshape.export(model, inputs, tmp_path / "m.onnx", where=["batch <= 64"], strategy="rerolled")
    assert broken.value.findings[0].code == "AS121"


def test_a_place_before_the_first_is_refused(tmp_path) -> None:
    module = LastOfRows()
    anyshape.export(
        module,
        lambda b=3, t=5: {"padded": torch.randn(b, t, 4), "lengths": torch.ones(b, dtype=torch.int64)},
        tmp_path / "m.onnx",
    )
    loaded, padded = anyshape.load(tmp_path / "m.onnx"), torch.randn(3, 5, 4)
    lengths = torch.tensor([-4, 0, 5])
    torch.testing.assert_close(torch.as_tensor(loaded(padded=padded, lengths=lengths)), module(padded, lengths))
    with pytest.raises(anyshape.AnyshapeError):
        loaded(padded=padded, lengths=torch.tensor([-5, 0, 5]))
