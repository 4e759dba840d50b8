"""Twenty models of different kinds for the picture of a batch: `anyshape batch twenty.toml --report twenty.html`.

Sixteen are kept, one has a size baked in, one crashes, one hangs, and the file of one is missing.

    python benchmarks/batch/twenty_models.py FOLDER     writes FOLDER/twenty.toml
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(8, 4)

    def forward(self, x, mask):
        return self.head((x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True))


def pooled_inputs(batch=3, seq=5):
    return {"x": torch.randn(batch, seq, 8), "mask": torch.ones(batch, seq)}


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.joined, self.out = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x):
        parts = self.joined(x).unflatten(-1, (3, 4, 4)).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(*parts).transpose(1, 2).flatten(2))


class Cached(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(50, 16), nn.Linear(16, 50)

    def forward(self, ids, past):
        seen = torch.cat([past, self.words(ids)], 1)
        return {"logits": self.head(seen), "seen": seen}


def cached_inputs(batch=2, past=4, seq=3):
    return {"ids": torch.randint(0, 50, (batch, seq)), "past": torch.randn(batch, past, 16)}


cached_where = ["0 <= past", "past + seq <= 1024"]


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.cells = kind(8, 6, batch_first=True)

    def forward(self, x):
        return self.cells(x)[0]


class Steps(nn.Module):
    def forward(self, x):
        state = torch.zeros_like(x[:, 0])
        for step in range(x.shape[1]):
            state = torch.tanh(x[:, step] + state)
        return state


class Regions(nn.Module):
    def forward(self, x):
        return x.sum(1) if x.shape[1] > 16 else x.mean(1)


class Padded(nn.Module):
    def forward(self, x):
        return F.pad(x, (0, 0, 0, x.shape[1] % 2)).unflatten(1, (-1, 2)).mean(2)


class Halves(nn.Module):
    def forward(self, x):
        one, other = x.view(x.shape[0], 2, x.shape[1] // 2, 8).unbind(1)
        return one * other


class Baked(nn.Module):
    def forward(self, x):
        return x.sum(1).view(3, 8)


class Between(nn.Module):
    def forward(self, x, y):
        return torch.cdist(x, y).argmin(-1)


def between_inputs(batch=2, left=3, right=5):
    return {"x": torch.randn(batch, left, 8), "y": torch.randn(batch, right, 8)}


def sequences(batch=3, seq=5):
    return torch.randn(batch, seq, 8)


def wide_sequences(batch=3, seq=5):
    return torch.randn(batch, seq, 16)


def signals(batch=2, time=16):
    return torch.randn(batch, 4, time)


def images(batch=2, height=16, width=12):
    return torch.randn(batch, 3, height, width)


def _block() -> nn.Module:
    return nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)


def _images() -> nn.Module:
    parts = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1)
    return nn.Sequential(*parts, nn.Flatten(), nn.Linear(8, 10))


# name: the model, its inputs, its rules
MODELS: dict[str, tuple[Any, Any, list[str]]] = {
    "pooled": (Pooled, pooled_inputs, ["1 <= batch <= 64", "1 <= seq <= 512"]),
    "mlp": (lambda: nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 4)), sequences, []),
    "norm": (lambda: nn.LayerNorm(8), sequences, []),
    "attention": (Attention, wide_sequences, ["seq <= 256"]),
    "transformer": (_block, wide_sequences, ["seq <= 256"]),
    "cached": (Cached, cached_inputs, cached_where),
    "rnn": (lambda: Recurrent(nn.RNN), sequences, []),
    "lstm": (lambda: Recurrent(nn.LSTM), sequences, []),
    "gru": (lambda: Recurrent(nn.GRU), sequences, []),
    "steps": (Steps, sequences, ["seq <= 9"]),
    "regions": (Regions, sequences, []),
    "padded": (Padded, sequences, []),
    "signal": (lambda: nn.Conv1d(4, 6, 3, stride=2), signals, []),
    "images": (_images, images, []),
    "between": (Between, between_inputs, []),
    "halves": (Halves, lambda batch=3, seq=6: sequences(batch, seq), []),
    "baked": (Baked, sequences, ["1 <= batch <= 64"]),
}
BAD = {"crash": "import os\n\nos.abort()\n", "hang": "import time\n\ntime.sleep(10**6)\n"}
_FILE = """import sys

sys.path.insert(0, {folder!r})
from twenty_models import MODELS

model, inputs, where = MODELS[{name!r}]
"""


def write_twenty(folder: Path) -> Path:
    """Write a file for each model and the manifest, whose path comes back."""
    own = str(Path(__file__).resolve().parent)
    texts = {name: _FILE.format(folder=own, name=name) for name in MODELS} | BAD
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    head = 'output = "exported"\njobs = 2\n\n[defaults]\nverify = "quick"\n'
    rows = [f'\n[[model]]\nsource = "{name}.py"\n' for name in [*texts, "missing"]]
    rows[list(texts).index("hang")] += 'time_limit = "20s"\n'
    manifest = folder / "twenty.toml"
    manifest.write_text(head + "".join(rows), encoding="utf-8")
    return manifest


if __name__ == "__main__":
    print(write_twenty(Path(sys.argv[1])))
