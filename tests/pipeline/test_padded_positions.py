"""A position table behind a padding token: how long a sequence may be depends on how many tokens are padding."""

import pytest
import torch
from torch import nn

import anyshape

PADDING = 1


class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 4)
        self.positions = nn.Embedding(40, 4)

    def forward(self, ids):
        used = (ids != PADDING).long()
        return self.words(ids) + self.positions(torch.cumsum(used, 1) * used + PADDING)


def test_the_learned_end_is_that_of_a_sequence_without_padding(tmp_path):
    example = torch.randint(0, 20, (2, 9), generator=torch.Generator().manual_seed(0))
    with pytest.warns(anyshape.NarrowedWarning):
        result = anyshape.export(Positions(), (example,), tmp_path / "m.onnx", dynamic={"ids": "batch seq"})
    assert [str(rule.condition) for rule in result.contract.rules] == ["seq <= 38"]
