"""The good files that are damaged: made once for a run."""

from __future__ import annotations

from pathlib import Path

import onnx
import torch

LINEAR = """
import torch
def model(): return torch.nn.Linear(64, 32)
def inputs(batch=3): return torch.randn(batch, 64)
where = ["1 <= batch <= 64"]
"""

FOREIGN = """
<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
g (float[n, 10] x, bool c) => (float[n, 10] y)
<float[10] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}>
{
    a = Add (x, w)
    b = If (c) <then_branch = t () => (float[n, 10] r) { r = Relu (a) }, else_branch = e () => (float[n, 10] s) { s = Neg (a) }>
    y = own.twice (b)
}
<domain: "own", opset_import: ["" : 18]>
twice (p) => (q) { q = Add (p, p) }
"""

STATIC = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[2, 3, 4] x) => (float[2, 12] y)
<int64[2] s = {2, 12}>
{ y = Reshape (x, s) }
"""


class _Bag(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(100, 16)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return (self.table(ids) * mask.unsqueeze(-1)).sum(1)


def make(folder: Path) -> None:
    """linear.py and five ONNX files."""
    import anyshape

    torch.manual_seed(0)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "linear.py").write_text(LINEAR)
    anyshape.export(
        torch.nn.Linear(64, 32),
        lambda batch=3: torch.randn(batch, 64),
        folder / "linear.onnx",
        where=["1 <= batch <= 64"],
    )
    anyshape.export(
        torch.nn.Linear(64, 32),
        lambda batch=3: torch.randn(batch, 64),
        folder / "outside.onnx",
        where=["1 <= batch <= 64"],
        external_data=True,
    )

    def ids(batch: int = 2, seq: int = 5) -> dict[str, torch.Tensor]:
        return {"ids": torch.randint(0, 100, (batch, seq)), "mask": torch.ones(batch, seq)}

    anyshape.export(
        _Bag(), ids, folder / "bag.onnx", where=["1 <= batch <= 8", "seq >= 1"], values={"ids": "0 <= ids < 100"}
    )
    for name, text in (("foreign", FOREIGN), ("static", STATIC)):
        onnx.save(onnx.parser.parse_model(text), folder / f"{name}.onnx")
