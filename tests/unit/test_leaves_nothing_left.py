"""After a capture, whether it succeeded, failed or was interrupted, torch and the user's module are as before."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
import torch
from leaf_exports import capture
from torch import nn

from anyshape.leaves import LEAVES, leaves


class Network(nn.Module):
    """A recurrent network; `error`, where given, is raised after it ran."""

    def __init__(self, error: BaseException | None = None) -> None:
        super().__init__()
        self.network, self.error = nn.LSTM(8, 6, batch_first=True), error

    def forward(self, x: torch.Tensor) -> Any:
        output, _ = self.network(x)
        if self.error is not None:
            raise self.error
        return output


class KeepsItsOutput(Network):
    def forward(self, x: torch.Tensor) -> Any:
        self.last = super().forward(x)
        return self.last


def attributes_of_torch() -> dict[str, int]:
    """Every attribute of torch.nn's modules and classes, and of torch's functions, by identity."""
    places = [torch, torch._VF, nn, nn.functional, nn.utils.rnn, nn.modules.rnn, nn.modules.module]
    classes = [value for value in vars(nn).values() if isinstance(value, type)]
    places += [*classes, nn.RNNBase, nn.utils.rnn.PackedSequence, torch.Tensor]
    return {f"{place}.{name}": id(value) for place in places for name, value in vars(place).items()}


def state_of(module: nn.Module) -> Iterator[tuple[str, Any]]:
    for name, part in module.named_modules():
        for attribute, value in vars(part).items():
            content = [id(item) for item in value] if isinstance(value, (list, tuple)) else ()
            entries = {key: id(item) for key, item in value.items()} if isinstance(value, dict) else ()
            yield f"{name}.{attribute}", (id(value), content, entries)


ERRORS = [None, ValueError("of the user"), KeyboardInterrupt()]


@pytest.mark.parametrize("error", ERRORS, ids=["success", "error", "interrupt"])
def test_nothing_is_left_behind(error: BaseException | None) -> None:
    module = Network(error).eval()
    capture(Network().eval(), (torch.randn(3, 5, 8),), ((0, 1),))  # torch fills its own caches the first time
    before, module_before, filters = attributes_of_torch(), dict(state_of(module)), list(warnings.filters)
    try:
        capture(module, (torch.randn(3, 5, 8),), ((0, 1),))
    except (ValueError, KeyboardInterrupt) as caught:
        assert caught is error
    assert attributes_of_torch() == before
    assert dict(state_of(module)) == module_before
    assert warnings.filters == filters
    assert torch.overrides._get_current_function_mode_stack() == []


def test_a_changed_attribute_of_torch_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    before = attributes_of_torch()
    monkeypatch.setattr(nn.LSTM, "forward", nn.GRU.forward)
    assert attributes_of_torch() != before


def test_a_changed_list_of_weights_would_be_noticed() -> None:
    module = Network()
    before = dict(state_of(module))
    module.network._flat_weights[0] = torch.zeros(1)
    assert dict(state_of(module)) != before


def test_networks_run_plainly_outside() -> None:
    with leaves():
        pass
    x = torch.randn(3, 5, 8)
    output = Network().eval()(x)
    assert output.grad_fn is not None and "anyshape" not in output.grad_fn.name()


def test_warning_about_the_users_own_attributes_still_stands() -> None:
    with pytest.warns(UserWarning, match=r"self\.module\.last\b.* assigned during export"):
        capture(KeepsItsOutput().eval(), (torch.randn(3, 5, 8),), ((0, 1),))


def test_every_leaf_is_a_function_of_torch() -> None:
    for name in LEAVES:
        replacements = import_module(f"anyshape.leaves.{name}").replacements()
        assert replacements and all(callable(function) for function in replacements)
