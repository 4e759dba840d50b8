"""Masks of attention: torch's own question whether a mask is causal is a hint, and decides nothing in the file."""

from __future__ import annotations

from pathlib import Path

import onnxruntime
import pytest
import torch
from torch import nn

import anyshape


class Translator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.transformer = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)

    def forward(self, source, target):
        mask = self.transformer.generate_square_subsequent_mask(target.size(1))
        return self.transformer(source, target, tgt_mask=mask)


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)

    def forward(self, x, mask):
        return self.layers(x, mask=mask)


class Asking(nn.Module):
    def forward(self, x, mask):
        return x * 2 if bool((mask == 0).all()) else x


def mask_of(size: int) -> torch.Tensor:
    return torch.zeros(size, size).masked_fill(torch.ones(size, size).triu(1) > 0, -torch.inf)


def test_a_transformer_with_a_causal_mask_is_captured_symbolically() -> None:
    inputs = lambda b=2, s=5, t=4: (torch.randn(b, s, 8), torch.randn(b, t, 8))  # noqa: E731
    result = anyshape.export(Translator().eval(), inputs)
    assert result.strategy == "symbolic" and result.is_kept


def test_a_mask_given_as_an_input_may_be_causal_or_not() -> None:
    module = Masked().eval()
    result = anyshape.export(module, lambda b=2, t=5: (torch.randn(b, t, 8), mask_of(t)), strategy="symbolic")
    x = torch.randn(3, 7, 8)
    session = onnxruntime.InferenceSession(result.model_proto.SerializeToString())
    others = torch.zeros(7, 7).masked_fill((torch.rand(7, 7) > 0.5) & ~torch.eye(7, dtype=torch.bool), -torch.inf)
    for mask in (mask_of(7), others):
        (given,) = session.run(None, {"x": x.numpy(), "mask": mask.numpy()})
        torch.testing.assert_close(torch.as_tensor(given), module(x, mask), rtol=1e-4, atol=1e-5)
    for mask in (others, torch.randn(7, 7), others.roll(1, 0) / 2 + torch.eye(7)):
        (given,) = session.run(None, {"x": x.numpy(), "mask": mask.numpy()})
        with torch.no_grad():  # in which eager reads every number but 0 as hidden
            torch.testing.assert_close(torch.as_tensor(given), module(x, mask), rtol=1e-4, atol=1e-5, equal_nan=True)


def test_the_users_own_question_about_a_mask_is_still_one() -> None:
    result = anyshape.export(Asking(), lambda b=2, t=5: (torch.randn(b, t), mask_of(t)))
    assert result.strategy != "symbolic"


class Padded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)

    def forward(self, x, mask):
        return self.layers(x, src_key_padding_mask=mask)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")  # of the calls in this process
def test_a_mask_that_hides_everything_is_refused_as_in_eager() -> None:
    module = Padded().eval()
    inputs = lambda b=2, t=5: (torch.randn(b, t, 8), torch.arange(t).expand(b, t) > 2)  # noqa: E731
    result = anyshape.export(module, inputs)
    session = onnxruntime.InferenceSession(result.model_proto.SerializeToString())
    for rows in (1, 3):
        x, hidden = torch.randn(rows, 4, 8), torch.ones(rows, 4, dtype=torch.bool)
        with torch.no_grad(), pytest.raises(RuntimeError):
            module(x, hidden)
        with pytest.raises(Exception, match=r"out of|within the inclusive range|bounds"):
            session.run(None, {"x": x.numpy(), "mask": hidden.numpy()})
        hidden[-1, 0] = False
        (given,) = session.run(None, {"x": x.numpy(), "mask": hidden.numpy()})
        with torch.no_grad():
            torch.testing.assert_close(torch.as_tensor(given), module(x, hidden), rtol=1e-4, atol=1e-5)


class MasksByLengths(nn.Module):
    """The mask is as long as the longest sequence, which is a number that is read from a tensor."""

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        longest = int(torch.max(lengths).item())
        mask = torch.arange(longest).expand(lengths.shape[0], longest) >= lengths[:, None]
        scores = (x @ x.transpose(1, 2)).masked_fill(mask[:, None], float("-inf"))
        return scores.softmax(-1) @ x


def test_a_mask_as_long_as_the_largest_length_leaves_ranges_open(tmp_path: Path) -> None:
    module = MasksByLengths()

    def inputs(batch: int = 2, time: int = 5) -> dict[str, torch.Tensor]:
        lengths = torch.tensor([time - row % time for row in range(batch)])
        return {"x": torch.randn(batch, time, 4), "lengths": lengths}

    result = anyshape.export(module, inputs, tmp_path / "m.onnx", values="given")
    assert result.contract.strategy == "symbolic"
    assert not result.contract.rules
    loaded = anyshape.load(tmp_path / "m.onnx")
    for batch, time in ((1, 1), (3, 2), (2, 9), (7, 4)):
        example = inputs(batch, time)
        torch.testing.assert_close(torch.as_tensor(loaded(**example)), module(**example))
