"""Models with torch's operators on functions: cond, while_loop, scan, associative_scan, map."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

import anyshape


class Chosen(nn.Module):
    """Two weights, each read by one branch only."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(3, 4), nn.Linear(3, 4)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: self.up(x).relu(), lambda x: self.down(x) - 1, (x,))


def test_eager_answers_after_a_mode_has_looked_on() -> None:
    """dynamo never compiles a function again that it has met under a dispatch mode; the next call would raise."""
    from anyshape.modules.cost import count_call, count_real_call

    model, x = Chosen().eval(), torch.randn(5, 3)
    count_call(lambda values: model(*values), [x], 100)
    counted = count_real_call(lambda: model(x), 100)
    assert counted is not None
    assert counted.operators > 2  # those inside the branch
    with torch.no_grad():
        assert model(x).shape == (5, 4)


def test_both_branches_of_cond_are_in_the_file(tmp_path: Path) -> None:
    model = Chosen()
    result = anyshape.export(model, (torch.randn(5, 3),), tmp_path / "m.onnx", dynamic={"x": "n 3"})
    loaded = anyshape.load(tmp_path / "m.onnx")
    for x in (torch.ones(7, 3), -torch.ones(2, 3)):
        with torch.no_grad():
            expected = model.eval()(x)
        torch.testing.assert_close(torch.from_numpy(loaded(x=x.numpy())), expected)
    assert result.strategy == "symbolic"
