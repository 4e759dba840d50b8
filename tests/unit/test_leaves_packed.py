"""Packed sequences: right at every size and for all lengths, whatever the model does with the packed data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from leaf_exports import SIZES, Variant, capture, export, find_differences, operators
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from anyshape.findings import PromiseBroken
from anyshape.leaves.recurrent import recurrent

pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")  # eager's own

AXES = ((0, 1), (0,))
TWICE = (*SIZES, *SIZES)
"""Other lengths the second time."""


class Packed(nn.Module):
    """Pack, run, pad: what tutorials show. `total` is what is added to the number of steps, or None for the longest."""

    def __init__(self, network: nn.RNNBase, total: int | None = None, *, is_sorted: bool = False) -> None:
        super().__init__()
        self.network, self.total, self.is_sorted = network, total, is_sorted

    def forward(self, x: Tensor, lengths: Tensor, *states: Tensor) -> Any:
        first = self.network.batch_first
        sequence = pack_padded_sequence(x, lengths, batch_first=first, enforce_sorted=self.is_sorted)
        hx = {0: None, 1: states[:1] and states[0], 2: states}[len(states)]
        output, final = self.network(sequence, hx)
        total_length = None if self.total is None else x.shape[1 if first else 0] + self.total
        padded, back = pad_packed_sequence(output, batch_first=first, padding_value=-1.5, total_length=total_length)
        return padded, back, final


class UserCode(nn.Module):
    """A GRU and what some user does around it."""

    def __init__(self, code: Callable[[UserCode, Tensor, Tensor], Any]) -> None:
        super().__init__()
        self.code = code
        self.gru, self.lstm = nn.GRU(8, 6), nn.LSTM(6, 5, bidirectional=True)
        self.before, self.after, self.dropout = nn.Linear(8, 8), nn.Linear(6, 3), nn.Dropout(0.5)

    def forward(self, x: Tensor, lengths: Tensor) -> Any:
        return self.code(self, x, lengths)


def pack(x: Tensor, lengths: Tensor) -> PackedSequence:
    return pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)


def pad(sequence: PackedSequence) -> Tensor:
    return pad_packed_sequence(sequence, batch_first=True)[0]


def with_data(sequence: PackedSequence, data: Tensor) -> PackedSequence:
    return PackedSequence(data, *sequence[1:])


def linear_before(m: UserCode, x: Tensor, lengths: Tensor) -> Any:
    sequence = pack(x, lengths)
    output, final = m.gru(with_data(sequence, torch.relu(m.before(m.dropout(sequence.data)))))
    return pad(output), final


def linear_after(m: UserCode, x: Tensor, lengths: Tensor) -> Any:
    output, _ = m.gru(pack(x, lengths))
    return pad(with_data(output, m.after(output.data)))


def mean_over_all_steps(m: UserCode, x: Tensor, lengths: Tensor) -> Any:
    output, _ = m.gru(pack(x, lengths))
    return m.after(output.data).mean(0)


def packed_data_itself(m: UserCode, x: Tensor, lengths: Tensor) -> Any:
    sequence = pack(x, lengths)
    output, _ = m.gru(sequence)
    return torch.cat([sequence.data, output.data], -1), output.batch_sizes + 1


def two_networks(m: UserCode, x: Tensor, lengths: Tensor) -> Any:
    output, first = m.gru(pack(x, lengths))
    output, states = m.lstm(output)
    return pad(output), first, states


def packed_data_written_to(m: UserCode, x: Tensor, lengths: Tensor) -> Any:
    sequence = pack(x, lengths)
    sequence.data.mul_(2.0)
    sequence.data[:, 0] = 1.0
    sequence.data[:, 1:3].add_(1.0)
    return pad(m.gru(sequence)[0])


def input_written_to_after_packing(m: UserCode, x: Tensor, lengths: Tensor) -> Any:
    x, lengths = x + 0, lengths + 0
    sequence = pack(x, lengths)
    x.zero_()
    lengths.fill_(1)
    return pad(m.gru(sequence)[0]), x


def lengths_given_back_written_to(m: UserCode, x: Tensor, lengths: Tensor) -> Any:
    output, _ = m.gru(pack_padded_sequence(x, lengths.sort(descending=True)[0], batch_first=True))
    back = pad_packed_sequence(output)[1]
    back.fill_(1)
    return pad(output), back


def state_from_number_of_sequences(m: UserCode, x: Tensor, lengths: Tensor) -> Any:
    sequence = pack(x, lengths)
    output, final = m.gru(sequence, x.new_ones(1, sequence.batch_sizes[0].item(), 6))
    return pad(output), final


def lengths_from_a_mask(m: UserCode, x: Tensor, lengths: Tensor) -> Any:
    mask = torch.arange(x.shape[1])[None] < lengths[:, None]
    return pad(m.gru(pack(x, mask.sum(1).to(torch.int32).cpu()))[0])


def fixed_total_length(m: UserCode, x: Tensor, lengths: Tensor) -> Any:
    return pad_packed_sequence(m.gru(pack(x, lengths))[0], total_length=64)


def packed_then_padded(m: UserCode, x: Tensor, lengths: Tensor) -> Any:
    _, final = m.gru(pack(x, lengths))
    output, again = m.gru(torch.cat([x, x]))
    return final, output, again


def zeros_by_shape(m: UserCode, x: Tensor, lengths: Tensor) -> Any:
    sequence = pack(x, lengths)
    state = torch.zeros((1, sequence.batch_sizes[0], 6)) + torch.ones([1, *x.shape[:1], 6])
    return m.gru(sequence, state)[1], torch.full(x.shape, 2.0), torch.empty(x.size()).fill_(1.0)


@torch.inference_mode()
def in_inference_mode(m: UserCode, x: Tensor, lengths: Tensor) -> Any:
    sequence = pack(x, lengths)
    sequence.data.mul_(2.0)
    return pad(m.gru(sequence)[0])


USER_CODES = [
    *(packed_then_padded, zeros_by_shape, in_inference_mode),
    *(linear_before, linear_after, mean_over_all_steps, packed_data_itself, two_networks, packed_data_written_to),
    *(input_written_to_after_packing, lengths_given_back_written_to, state_from_number_of_sequences),
    *(lengths_from_a_mask, fixed_total_length),
]


def padded(*states: tuple[int, int], dtype: torch.dtype = torch.float32, batch_first: bool = True) -> Any:
    """Input, lengths sorted downwards where time is first, and states of (layers, features)."""

    def make(batch: int, steps: int) -> tuple[Tensor, ...]:
        lengths = torch.randint(1, steps + 1, (batch,))
        more = tuple(torch.randn(layers, batch, features, dtype=dtype) for layers, features in states)
        if batch_first:
            return torch.randn(batch, steps, 8, dtype=dtype), lengths, *more
        return torch.randn(steps, batch, 8, dtype=dtype), lengths.sort(descending=True)[0], *more

    return make


DEEP = {"num_layers": 2, "bidirectional": True}

VARIANTS = [
    Variant("rnn-relu-longest", lambda: Packed(nn.RNN(8, 6, 2, "relu", batch_first=True)), padded(), AXES),
    Variant("gru-deep-longest", lambda: Packed(nn.GRU(8, 6, batch_first=True, **DEEP)), padded(), AXES),
    Variant("gru-sorted", lambda: Packed(nn.GRU(8, 6, **DEEP), is_sorted=True), padded(batch_first=False), AXES),
    Variant("gru-as-long-as-the-input", lambda: Packed(nn.GRU(8, 6, batch_first=True), 0), padded(), AXES),
    Variant("gru-longer-than-the-input", lambda: Packed(nn.GRU(8, 6, batch_first=True), 3), padded(), AXES),
    Variant(
        "gru-state-given",
        lambda: Packed(nn.GRU(8, 6, batch_first=True, **DEEP)),
        padded((4, 6)),
        (*AXES, (1,)),
    ),
    Variant("lstm-longest", lambda: Packed(nn.LSTM(8, 6, batch_first=True)), padded(), AXES),
    Variant(
        "lstm-sorted-states-given",
        lambda: Packed(nn.LSTM(8, 6, **DEEP), 0, is_sorted=True),
        padded((4, 6), (4, 6), batch_first=False),
        (*AXES, (1,), (1,)),
    ),
    Variant("lstm-projected", lambda: Packed(nn.LSTM(8, 6, proj_size=3, batch_first=True, **DEEP), 0), padded(), AXES),
    Variant(
        "lstm-projected-states-given",
        lambda: Packed(nn.LSTM(8, 6, proj_size=3, batch_first=True, **DEEP)),
        padded((4, 3), (4, 6)),
        (*AXES, (1,), (1,)),
    ),
    Variant(
        "float64-lstm-deep",
        lambda: Packed(nn.LSTM(8, 6, batch_first=True, **DEEP)).double(),
        padded(dtype=torch.float64),
        AXES,
    ),
    Variant("float16-gru", lambda: Packed(nn.GRU(8, 6, batch_first=True), 0).half(), padded(dtype=torch.float16), AXES),
    *(Variant(code.__name__, lambda code=code: UserCode(code), padded(), AXES) for code in USER_CODES),
]
BY_NAME = {variant.name: variant for variant in VARIANTS}


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
@pytest.mark.long_table
def test_is_right_at_every_size_and_for_all_lengths(variant: Variant) -> None:
    assert find_differences(variant, TWICE) == []


def test_nothing_is_packed_where_only_networks_and_padding_look() -> None:
    assert not {"NonZero", "ScatterND"} & set(operators(export(BY_NAME["gru-as-long-as-the-input"])[1]))
    assert {"NonZero", "ScatterND"} <= set(operators(export(BY_NAME["linear_before"])[1]))


def test_the_captured_program_runs_at_other_sizes() -> None:
    variant = BY_NAME["linear_after"]
    module = variant.make_module().eval()
    program = capture(module, variant.make_inputs(3, 5), AXES)
    inputs = variant.make_inputs(4, 9)
    torch.testing.assert_close(program.module()(*inputs), module(*inputs))


def test_packed_sequence_from_outside_is_refused_with_its_line() -> None:
    class Outside(nn.Module):
        def __init__(self, network: nn.RNNBase) -> None:
            super().__init__()
            self.network = network

        def forward(self, data: Tensor, batch_sizes: Tensor) -> Any:
            output, _ = self.network(PackedSequence(data, batch_sizes))
            return output.data

    inputs = pack_padded_sequence(torch.randn(5, 3, 8), torch.tensor([5, 3, 2]))[:2]
    for network in (nn.GRU(8, 6), nn.LSTM(8, 6)):
        with pytest.raises(PromiseBroken) as refused:
            capture(Outside(network).eval(), inputs, ((0,), (0,)))
        assert refused.value.finding.code == "AS152"
        assert "output, _ = self.network(PackedSequence(data, batch_sizes))" in str(refused.value)


def test_number_of_sequences_taken_as_an_int_is_a_guard_not_a_guess() -> None:
    def state_of_an_int(m: UserCode, x: Tensor, lengths: Tensor) -> Any:
        sequence = pack(x, lengths)
        return m.gru(sequence, torch.zeros(1, int(sequence.batch_sizes[0]), 6))[1]

    program = capture(UserCode(state_of_an_int).eval(), padded()(3, 5), AXES)
    lengths = next(node for node in program.graph.nodes if node.name == program.graph_signature.user_inputs[1])
    assert str(lengths.meta["val"].shape[0]) == "3"  # frozen, and torch says so: the audit of guards goes on from here


def test_state_of_another_batch_size_is_refused_as_in_eager() -> None:
    variant = BY_NAME["gru-state-given"]
    x, lengths, state = variant.make_inputs(3, 5)
    module = Packed(nn.GRU(8, 6, batch_first=True, **DEEP), is_sorted=True).eval()
    with pytest.raises(RuntimeError, match="Expected hidden size"):
        capture(module, (x, lengths.sort(descending=True)[0], state[:, :2]), variant.axes)


@pytest.mark.parametrize("name", ["pack", "repack", "unpack", "pad"])
def test_operators_keep_their_word_to_torch(name: str) -> None:
    x, lengths = torch.randn(5, 3, 8), torch.tensor([5, 3, 2])
    args = {"pack": (x, lengths), "repack": (x, lengths, 10), "unpack": (torch.randn(10, 8), lengths, 5)}
    args["pad"] = (x, lengths, -1.5, 7)
    torch.library.opcheck(getattr(recurrent, name), args[name], test_utils=("test_schema", "test_faketensor"))


def test_packing_and_unpacking_are_inverses() -> None:
    x, lengths = torch.randn(5, 3, 8), torch.tensor([5, 3, 2])
    data, batch_sizes = recurrent.pack(x, lengths)
    assert torch.equal(data, recurrent.repack(x, lengths, data.shape[0]))
    assert torch.equal(batch_sizes, torch.tensor([3, 3, 2, 1, 1]))
    assert torch.equal(recurrent.unpack(data, lengths, 5), recurrent.pad(x, lengths, 0.0, None))
