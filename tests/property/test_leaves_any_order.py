"""Recurrent networks of any kind, exported one after another in one process in any order, are right at any size."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

sys.path.append(str(Path(__file__).parents[1] / "unit"))
from leaf_exports import Variant, find_differences

pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")  # eager's own

EXAMPLES = 50 if os.environ.get("ANYSHAPE_THOROUGH") else 5
CLASSES = {"LSTM": nn.LSTM, "GRU": nn.GRU, "RNN": nn.RNN}


class Model(nn.Module):
    """A network whose input may be packed and whose initial state may be given."""

    def __init__(self, network: nn.RNNBase, *, is_packed: bool) -> None:
        super().__init__()
        self.network, self.is_packed = network, is_packed

    def forward(self, x: Tensor, lengths: Tensor, *states: Tensor) -> Any:
        hx = None if not states else states[0] if len(states) == 1 else states
        if not self.is_packed:
            return self.network(x, hx), lengths + 0
        first = self.network.batch_first
        sequence = pack_padded_sequence(x, lengths, batch_first=first, enforce_sorted=False)
        output, final = self.network(sequence, hx)
        return pad_packed_sequence(output, batch_first=first), final


@st.composite
def variants(draw: st.DrawFn) -> Variant:
    kind = draw(st.sampled_from(sorted(CLASSES)))
    flags = {name: draw(st.booleans()) for name in ("bidirectional", "bias", "batch_first")}
    options: dict[str, Any] = {"num_layers": draw(st.integers(1, 3)), **flags}
    if kind == "LSTM":
        options["proj_size"] = draw(st.sampled_from([0, 0, 2]))
    if kind == "RNN":
        options["nonlinearity"] = draw(st.sampled_from(["tanh", "relu"]))
    dtype = draw(st.sampled_from([torch.float32, torch.float32, torch.float64]))
    is_packed, is_given = draw(st.booleans()), draw(st.booleans())

    def make_inputs(batch: int, steps: int) -> tuple[Tensor, ...]:
        sizes = (batch, steps) if options["batch_first"] else (steps, batch)
        features = (options.get("proj_size") or 5, 5) if kind == "LSTM" else (5,)
        layers = options["num_layers"] * (2 if options["bidirectional"] else 1)
        states = (torch.randn(layers, batch, size, dtype=dtype) for size in features) if is_given else ()
        return torch.randn(*sizes, 4, dtype=dtype), torch.randint(1, steps + 1, (batch,)), *states

    axes = ((0, 1), (0,), *([(1,)] * (2 if kind == "LSTM" else 1) if is_given else []))
    name = f"{kind} {options} {dtype} packed={is_packed} given={is_given}"
    return Variant(
        name, lambda: Model(CLASSES[kind](4, 5, **options), is_packed=is_packed).to(dtype), make_inputs, axes
    )


SIZES = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 9)), min_size=3, max_size=3)


@settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(variants(), min_size=1, max_size=2), SIZES)
def test_any_networks_in_any_order_are_right(some: list[Variant], sizes: list[tuple[int, int]]) -> None:
    for variant in some:
        assert (variant.name, find_differences(variant, sizes)) == (variant.name, [])
