"""A module on an accelerator is exported from a copy on the CPU, and the devices that its code names mean the CPU there."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import anyshape
from anyshape.intercept.accelerators import devices_mean_cpu, names_accelerator
from anyshape.modules import structural_copy
from anyshape.modules.structural_copy import is_on_accelerator, moved_to_cpu, working_copy

DEVICE = torch.device("cuda:0")
on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


class Tagger(nn.Module):
    """Has an index that may be out of range: on a GPU that ends every later call of the process."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.lstm = nn.LSTM(16, 8, bidirectional=True, batch_first=True)
        self.out = nn.Linear(16, 50, bias=False)
        self.out.weight = self.embed.weight
        self.home = torch.device("cuda")

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        offset = torch.ones(ids.shape[1], 16, device=self.home)
        return self.out(self.lstm(self.embed(ids) + offset)[0])


class NamesDevices(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.to("cuda") + torch.zeros(x.shape[0], 1, device="cuda") + torch.ones(1, device=DEVICE).cuda()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return self.linear(x)


def test_devices_of_accelerators_are_recognised() -> None:
    assert [is_on_accelerator(value) for value in (DEVICE, "cuda", "cuda:1", "mps")] == [True] * 4
    assert not any(map(is_on_accelerator, (torch.device("cpu"), "cpu", "meta", "cuda is here", 3, torch.zeros(1))))
    assert moved_to_cpu(DEVICE) == torch.device("cpu") and moved_to_cpu("cuda:1") == "cpu"


def test_a_copy_on_another_device_keeps_ties_and_shares_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structural_copy, "_IN_PLACE", ("meta",))  # so that memory of the CPU counts as an accelerator's
    monkeypatch.setattr(structural_copy, "_CPU", torch.device("meta"))
    module = Tagger()
    copied = working_copy(module)
    assert {tensor.device.type for tensor in (*copied.parameters(), *copied.buffers())} == {"meta"}
    assert copied.out.weight is copied.embed.weight
    assert copied.lstm._flat_weights[0] is copied.lstm.weight_ih_l0
    assert copied.home == torch.device("meta")
    assert {parameter.device.type for parameter in module.parameters()} == {"cpu"}
    assert moved_to_cpu(torch.zeros(2, 3)).device.type == "meta"  # as inputs are moved


def test_devices_that_code_names_mean_the_cpu() -> None:
    module = NamesDevices()
    assert names_accelerator(module) and not names_accelerator(nn.Linear(2, 2))
    with devices_mean_cpu(module):
        assert torch.autocast("cuda").device == "cpu"
        output = module(torch.zeros(2, 4))
    assert (output.device.type, output.dtype) == ("cpu", torch.bfloat16)
    if not torch.cuda.is_available():
        with pytest.raises((RuntimeError, AssertionError)):
            module(torch.zeros(2, 4))


def test_a_module_that_names_devices_is_exported_within() -> None:
    module = NamesDevices()
    with devices_mean_cpu(module):
        result = anyshape.export(module, lambda batch=3: (torch.randn(batch, 4),))
    assert result.contract.status == "kept"


@on_gpu
@pytest.mark.parametrize("make", [Tagger, NamesDevices], ids=lambda make: make.__name__)
def test_a_module_on_a_gpu_is_exported_and_stays_there(make: type[nn.Module]) -> None:
    module = make().cuda().eval()

    def inputs(batch: int = 3, seq: int = 5) -> torch.Tensor:
        if make is Tagger:
            return torch.randint(0, 50, (batch, seq), device="cuda")
        return torch.randn(batch, 4, device="cuda")

    result = anyshape.export(module, inputs)
    assert result.contract.status == "kept"
    assert all(parameter.is_cuda for parameter in module.parameters())
    torch.cuda.synchronize()  # raises if a call has failed on the GPU
