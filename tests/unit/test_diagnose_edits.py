"""An edit is proposed only for a line that shows the number or the tensor, and shows it once."""

from __future__ import annotations

import pytest

from anyshape.diagnose.one_size import propose_edit, propose_part
from anyshape.findings import Source

BATCH = {"batch": (3, {"x": 0})}
BOTH = {"batch": (3, {"x": 0}), "width": (10, {"x": 1})}
SEQ = {"seq": (16, {"x": 1})}


def line(text: str) -> Source:
    return Source("model.py", 7, text=text)


@pytest.mark.parametrize(
    ("text", "pinned", "edit"),
    [
        ("return x.view(3, 10)", BATCH, "return x.view(x.shape[0], 10)"),
        ("return y.view(3, 10)", BATCH, "return y.view(-1, 10)"),
        ("if x.view((3, 10)).sum() > 0:", BATCH, "if x.view((x.shape[0], 10)).sum() > 0:"),
        ("é = x.view(3, 10)", BATCH, "é = x.view(x.shape[0], 10)"),
        ("return x + torch.zeros(3, 10)", BOTH, "return x + torch.zeros(x.shape[0], x.shape[1])"),
        ("return y.view(3, 10)", BOTH, ""),  # two times -1
        ("return x.view(3, 3)", BATCH, ""),
        ("return x * 3", BATCH, ""),
        ("return x.view(3,", BATCH, ""),
    ],
)
def test_a_number_becomes_the_size_of_an_input(
    text: str, pinned: dict[str, tuple[int, dict[str, int]]], edit: str
) -> None:
    assert propose_edit(line(text), pinned, "batch") == edit


@pytest.mark.parametrize(
    ("text", "shape", "edit"),
    [
        ("return x + self.pos", (16, 8), "return x + self.pos[: x.shape[1]]"),
        ("return x + self.embed.pos * 2", (1, 16, 8), "return x + self.embed.pos[:, : x.shape[1]] * 2"),
        ("x = x + self.pos", (16, 16), "x = x + self.pos[: x.shape[1], : x.shape[1]]"),
        ("return x + self.pos", (8, 8), ""),
        ("return y + self.pos", (16, 8), ""),
        ("return x + self.pos + self.pos", (16, 8), ""),
        ("return x + self.pos[0]", (16, 8), ""),
        ("return self.add(x, self.table)", (16, 8), ""),
    ],
)
def test_a_held_tensor_becomes_a_part_of_it(text: str, shape: tuple[int, ...], edit: str) -> None:
    assert propose_part(line(text), "layer.pos", shape, SEQ) == edit


def test_without_a_line_there_is_no_edit() -> None:
    assert propose_edit(None, BATCH, "batch") == propose_part(None, "pos", (16,), SEQ) == ""
