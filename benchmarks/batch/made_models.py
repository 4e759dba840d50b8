"""Forty model files for a batch: 36 small models of twelve forms, two that crash, one that hangs, one that eats memory.

Each file notes that it was run in `runs.txt` beside it: so it shows whether a model that was done was done again.
"""

from __future__ import annotations

from pathlib import Path

_HEAD = """from pathlib import Path

with (Path(__file__).parent / "runs.txt").open("a") as runs:
    runs.write("{name}\\n")

"""
_PLAIN = """import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x):
        return {forward}


def model():
    return Net()


def inputs(batch=3, seq=5):
    return torch.randn(batch, seq, {width})
"""
FORMS = {
    "linear": ("self.a = torch.nn.Linear({w}, 5)", "self.a(x)"),
    "mlp": ("self.a, self.b = torch.nn.Linear({w}, 9), torch.nn.Linear(9, {w})", "self.b(self.a(x).relu())"),
    "norm": ("self.a = torch.nn.LayerNorm({w})", "self.a(x)"),
    "gelu": ("self.a = torch.nn.Linear({w}, 4)", "torch.nn.functional.gelu(self.a(x))"),
    "mean": ("self.a = torch.nn.Linear({w}, 3)", "self.a(x.mean(1))"),
    "scores": ("self.a = torch.nn.Linear({w}, {w})", "(self.a(x) @ x.transpose(1, 2)).softmax(-1)"),
    "conv": ("self.a = torch.nn.Conv1d({w}, 6, 3, padding=1)", "self.a(x.transpose(1, 2))"),
    "flat": ("self.a = torch.nn.Linear({w}, 2)", "self.a(x.reshape(-1, {w}))"),
    "cat": ("self.a = torch.nn.Linear(2 * {w}, 2)", "self.a(torch.cat([x, x.flip(1)], -1))"),
    "sum": ("self.a = torch.nn.Parameter(torch.ones({w}))", "(x * self.a).cumsum(1)"),
    "gate": ("self.a = torch.nn.Linear({w}, {w})", "x * torch.sigmoid(self.a(x))"),
    "max": ("self.a = torch.nn.Linear({w}, 7)", "self.a(x).amax(1)"),
}
BAD = {
    "crash-abort": ("import os\n\nos.abort()\n", "crashed", "AS541"),
    "crash-memory": ("import ctypes\n\nctypes.string_at(0)\n", "crashed", "AS541"),
    "hang": ("import time\n\ntime.sleep(10**6)\n", "hung", "AS542"),
    "eat": ("held = []\nwhile True:\n    held.append(bytearray(10**7))\n", "out of memory", "AS543"),
}
TIME_LIMIT_S, MEMORY_LIMIT = 90, "1500MB"


def write_models(folder: Path, *, widths: tuple[int, ...] = (8, 12, 16), bad: bool = True) -> Path:
    """Write the files and their manifest, the bad ones among the others; the manifest's path comes back."""
    folder.mkdir(parents=True, exist_ok=True)
    sources = {}
    for form, (init, forward) in FORMS.items():
        for width in widths:
            words = {"init": init.format(w=width), "forward": forward.format(w=width), "width": width}
            sources[f"{form}-{width}"] = _PLAIN.format(**words)
    names = list(sources)
    for place, (name, (text, _, _)) in enumerate(BAD.items() if bad else ()):
        sources[name] = text
        names.insert((place + 1) * len(names) // 5, name)
    for name, text in sources.items():
        (folder / f"{name}.py").write_text(_HEAD.format(name=name) + text, encoding="utf-8")
    limits = {name: "6s" if name == "hang" else f"{TIME_LIMIT_S}s" for name in names}
    tables = [f'[[model]]\nsource = "{name}.py"\nname = "{name}"\ntime_limit = "{limits[name]}"\n' for name in names]
    head = f'[defaults]\nverify = "quick"\nmemory_limit = "{MEMORY_LIMIT}"\n\n'
    manifest = folder / "models.toml"
    manifest.write_text(head + "\n".join(tables), encoding="utf-8")
    return manifest
