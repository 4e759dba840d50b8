"""Guards: decided against the domain, shown with their lines; consent makes the domain smaller, never silently."""

from __future__ import annotations

import torch
from torch import nn

import anyshape
from anyshape.report.text import describe_ladder


class Three(nn.Module):
    def forward(self, x, y):
        if x.shape[0] < 100:
            x = x * 2
        if x.shape[1] > 3:
            x = x + 1
        return torch.cat([x, y], 1)


class Loop(nn.Module):
    def forward(self, x):
        state = torch.zeros(x.shape[0], 4)
        for step in range(x.shape[1]):
            state = state * 0.5 + x[:, step]
        return state


def test_the_audit_names_every_condition_with_its_line() -> None:
    inputs = lambda b=3, t=8, u=4: (torch.randn(b, t), torch.randn(b, u))  # noqa: E731
    result = anyshape.export(Three(), inputs, where=["1 <= b <= 64"])
    audit = describe_ladder(result).replace("tests/pipeline/", "")
    assert audit.splitlines() == [
        "  rung    symbolic: right",
        "  region  t > 3",
        "  region  t <= 3",
        "  guard   proved: b < 100, asked by your code   test_guards.py:14, in Three.forward:   if x.shape[0] < 100:",
        "  guard   proved: t > 3, asked by your code   test_guards.py:16, in Three.forward:   if x.shape[1] > 3:",
        "  guard   proved: b < 100, asked by your code   test_guards.py:14, in Three.forward:   if x.shape[0] < 100:",
        "  guard   proved: t <= 3, asked by your code   test_guards.py:16, in Three.forward:   if x.shape[1] > 3:",
    ]
    assert result.contract.tested.capture_proved


def test_consent_gives_the_smaller_domain_and_says_so() -> None:
    inputs = lambda b=3, t=5: torch.randn(b, t, 4)  # noqa: E731
    result = anyshape.export(Loop(), inputs, accept_narrower=True, strategy="symbolic")
    (finding,) = (found for found in result.findings if found.code == "AS108")
    assert finding.severity.value == "warning" and finding.where.text == "for step in range(x.shape[1]):"
    assert (result.contract.domain.dim("t").min, result.contract.domain.dim("t").max) == (5, 5)


def test_a_file_size_counts_shared_weights_once(tmp_path) -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(300, 300)

        def forward(self, x):
            return self.linear(x) * 2 if x.shape[0] > 3 else self.linear(x) + 1

    class One(Shared):
        def forward(self, x):
            return self.linear(x) * 2

    sizes = []
    for index, module in enumerate((One(), Shared())):
        path = tmp_path / f"{index}.onnx"
        anyshape.export(module, lambda b=5: torch.randn(b, 300), path)
        sizes.append(path.stat().st_size)
    assert sizes[1] < sizes[0] * 1.02 + 4096
