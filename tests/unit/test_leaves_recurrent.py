"""Recurrent networks are captured whole and are right at every size, in any precision, with any initial state."""

from __future__ import annotations

import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import onnx_ir as ir
import pytest
import torch
from leaf_exports import SIZES, Variant, capture, compare, export, find_differences, operators, run, translate
from torch import nn

from anyshape.findings import PromiseBroken
from anyshape.leaves.recurrent import recurrent

pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")  # eager's own


class Given(nn.Module):
    """A network with its initial state as inputs of the model."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: torch.Tensor, *states: torch.Tensor) -> Any:
        return self.network(x, states[0] if len(states) == 1 else states)


class MadeFromSize(nn.Module):
    """A state made from the input's size; `is_set` writes into it afterwards."""

    def __init__(self, *, is_set: bool) -> None:
        super().__init__()
        self.network, self.is_set = nn.GRU(8, 6, 2, batch_first=True), is_set

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.zeros(2, x.size(0), 6, dtype=x.dtype)
        if self.is_set:
            state[0] = 0.5
        return self.network(x, state)[1][-1]


class Twice(nn.Module):
    """One network, called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.LSTM(8, 8, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.network(self.network(x)[0])[0]


class Cells(nn.Module):
    """One step of every kind of cell."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.relu = nn.RNNCell(8, 6), nn.RNNCell(8, 6, bias=False, nonlinearity="relu")
        self.lstm, self.gru = nn.LSTMCell(6, 5), nn.GRUCell(5, 4)

    def forward(self, x: torch.Tensor, h: torch.Tensor) -> Any:
        first = self.rnn(x)
        memory = self.lstm(first)
        return first, memory, self.gru(memory[0]), self.relu(x, h), self.rnn(x, h)


class InBfloat16(nn.Module):
    """bfloat16 inside, float32 at the border: numpy has no bfloat16."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module.bfloat16()

    def forward(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        answers = self.module(*(value.bfloat16() for value in inputs))
        return [value.float() for value in torch.utils._pytree.tree_leaves(answers)]


def batch_first(dtype: torch.dtype = torch.float32) -> Any:
    return lambda batch, steps: (torch.randn(batch, steps, 8, dtype=dtype),)


def time_first(batch: int, steps: int) -> tuple[torch.Tensor, ...]:
    return (torch.randn(steps, batch, 8),)


def unbatched(batch: int, steps: int) -> tuple[torch.Tensor, ...]:
    return (torch.randn(steps, 8),)


def with_states(*shapes: tuple[int, int], dtype: torch.dtype = torch.float32) -> Any:
    """Input, batch first, and states of (layers, features)."""

    def make(batch: int, steps: int) -> tuple[torch.Tensor, ...]:
        states = (torch.randn(layers, batch, features, dtype=dtype) for layers, features in shapes)
        return torch.randn(batch, steps, 8, dtype=dtype), *states

    return make


def rnn(**options: Any) -> Any:
    return lambda: nn.RNN(8, 6, **{"batch_first": True, **options})


def gru(**options: Any) -> Any:
    return lambda: nn.GRU(8, 6, **{"batch_first": True, **options})


def lstm(**options: Any) -> Any:
    return lambda: nn.LSTM(8, 6, **{"batch_first": True, **options})


DEEP = {"num_layers": 2, "bidirectional": True}
STATE = ((0, 1), (1,))
STATES = ((0, 1), (1,), (1,))

VARIANTS = [
    Variant("rnn-tanh", rnn(), batch_first()),
    Variant("rnn-tanh-deep", rnn(**DEEP), batch_first()),
    Variant("rnn-relu-bidirectional", rnn(nonlinearity="relu", bidirectional=True), batch_first()),
    Variant("rnn-no-bias", rnn(bias=False, num_layers=2), batch_first()),
    Variant("rnn-time-first", rnn(batch_first=False), time_first),
    Variant("gru", gru(), batch_first()),
    Variant("gru-deep", gru(**DEEP), batch_first()),
    Variant("gru-no-bias-bidirectional", gru(bias=False, bidirectional=True), batch_first()),
    Variant("gru-time-first-3-layers", gru(batch_first=False, num_layers=3), time_first),
    Variant("gru-unbatched", gru(num_layers=2), unbatched, ((0,),)),
    Variant("gru-state-given", lambda: Given(gru(**DEEP)()), with_states((4, 6)), STATE),
    Variant("gru-state-from-size", lambda: MadeFromSize(is_set=False), batch_first()),
    Variant("gru-state-from-size-then-set", lambda: MadeFromSize(is_set=True), batch_first()),
    Variant("lstm", lstm(), batch_first()),
    Variant("lstm-deep", lstm(**DEEP), batch_first()),
    Variant("lstm-no-bias", lstm(bias=False), batch_first()),
    Variant("lstm-time-first", lstm(batch_first=False, bidirectional=True), time_first),
    Variant("lstm-unbatched", lstm(**DEEP), unbatched, ((0,),)),
    Variant("lstm-dropout", lstm(dropout=0.5, num_layers=2), batch_first()),
    Variant("lstm-states-given", lambda: Given(lstm(**DEEP)()), with_states((4, 6), (4, 6)), STATES),
    Variant("lstm-projected", lstm(proj_size=3), batch_first()),
    Variant("lstm-projected-deep", lstm(proj_size=3, **DEEP), batch_first()),
    Variant("lstm-projected-no-bias", lstm(proj_size=2, bias=False), batch_first()),
    Variant(
        "lstm-projected-states-given",
        lambda: Given(lstm(proj_size=3, **DEEP)()),
        with_states((4, 3), (4, 6)),
        STATES,
    ),
    Variant("lstm-twice", Twice, batch_first()),
    Variant("float64-rnn", lambda: rnn(nonlinearity="relu", **DEEP)().double(), batch_first(torch.float64)),
    Variant("float64-gru", lambda: gru(**DEEP)().double(), batch_first(torch.float64)),
    Variant("float64-lstm-projected", lambda: lstm(proj_size=3, **DEEP)().double(), batch_first(torch.float64)),
    Variant("float64-lstm-twice", lambda: Twice().double(), batch_first(torch.float64)),
    Variant(
        "float64-gru-state-given",
        lambda: Given(gru(bias=False)()).double(),
        with_states((1, 6), dtype=torch.float64),
        STATE,
    ),
    Variant("float16-rnn", lambda: rnn()().half(), batch_first(torch.float16)),
    Variant("float16-gru", lambda: gru(**DEEP)().half(), batch_first(torch.float16)),
    Variant("float16-lstm-projected", lambda: lstm(proj_size=3, **DEEP)().half(), batch_first(torch.float16)),
    Variant(
        "float16-lstm-projected-states-given",
        lambda: Given(lstm(proj_size=3)()).half(),
        with_states((1, 3), (1, 6), dtype=torch.float16),
        STATES,
    ),
    Variant("bfloat16-gru", lambda: InBfloat16(gru(**DEEP)()), batch_first(), tolerance=3e-2),
    Variant(
        "bfloat16-lstm-projected-states-given",
        lambda: InBfloat16(Given(lstm(proj_size=3)())),
        with_states((1, 3), (1, 6)),
        STATES,
        tolerance=3e-2,
    ),
]
BY_NAME = {variant.name: variant for variant in VARIANTS}


@lru_cache
def exported(name: str) -> tuple[nn.Module, ir.Model]:
    """For tests that only look at it."""
    return export(BY_NAME[name])


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
@pytest.mark.long_table
def test_is_right_at_every_size(variant: Variant) -> None:
    assert compare(*exported(variant.name), variant, SIZES) == []


def test_a_difference_is_noticed() -> None:
    variant = BY_NAME["gru"]
    module, model = export(variant)
    with torch.no_grad():
        module.weight_hh_l0[0, 0] += 1e-3
    assert len(compare(module, model, variant, SIZES)) > 6


def test_first_and_fifth_export_of_a_process_are_the_same_file() -> None:
    first, *_, fifth = (ir.to_proto(export(BY_NAME["lstm-projected-deep"])[1]) for _ in range(5))
    assert first.SerializeToString(deterministic=True) == fifth.SerializeToString(deterministic=True)


def test_export_in_a_fresh_process_is_right() -> None:
    code = (
        "from test_leaves_recurrent import BY_NAME, find_differences\n"
        "assert find_differences(BY_NAME['lstm-deep']) == []\n"
        "print('right')"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True)
    assert ran.stdout.strip() == "right", ran.stderr


def test_cells_are_right_at_every_batch_size() -> None:
    cells = Variant("cells", Cells, lambda batch, steps: (torch.randn(batch, 8), torch.randn(batch, 6)), ((0,), (0,)))
    assert find_differences(cells, [*SIZES, (0, 1)]) == []


@pytest.mark.parametrize("name", ["rnn-tanh", "gru-deep", "lstm-projected-deep", "lstm-states-given"])
def test_batch_of_nothing_gives_nothing_where_the_domain_admits_it(name: str) -> None:
    assert find_differences(BY_NAME[name], [*SIZES, (0, 4), (0, 1)], with_empty_batch=True) == []


def test_batch_of_nothing_is_admitted_in_float64_as_it_is() -> None:
    assert find_differences(BY_NAME["float64-gru"], [(0, 4), (0, 1)]) == []


def test_a_large_network_does_nothing_to_its_weights_at_run_time() -> None:
    large = Variant("large", lambda: nn.LSTM(256, 256, batch_first=True), lambda b, t: (torch.randn(b, t, 256),))
    module, model = export(large)
    assert operators(model) == ["Transpose", "LSTM", "Squeeze", "Transpose"]
    weights = sum(parameter.numel() * 4 for parameter in module.parameters())
    assert ir.to_proto(model).ByteSize() < weights * 1.01


@pytest.mark.parametrize("name", ["lstm-twice", "float64-lstm-twice"])
def test_a_network_called_twice_has_its_weights_once(name: str) -> None:
    module, model = exported(name)
    stored = sum(value.const_value.nbytes for value in model.graph.initializers.values() if value.const_value)
    assert stored < sum(parameter.nbytes for parameter in module.parameters()) * 1.05


def test_zeros_for_an_initial_state_are_left_to_onnx() -> None:
    assert operators(exported("gru-state-from-size")[1])[:2] == ["Transpose", "GRU"]


def test_the_captured_program_runs_at_other_sizes() -> None:
    torch.manual_seed(0)
    module = nn.LSTM(8, 6, 2, batch_first=True, bidirectional=True, proj_size=3).eval()
    program = capture(module, (torch.randn(3, 5, 8),), ((0, 1),))
    inputs = torch.randn(4, 7, 8)
    torch.testing.assert_close(program.module()(inputs), module(inputs))


def test_capture_learns_nothing_about_the_sizes() -> None:
    program = capture(nn.LSTM(8, 6, 2, batch_first=True).eval(), (torch.randn(3, 5, 8),), ((0, 1),))
    assert {str(bounds) for bounds in program.range_constraints.values()} == {"VR[0, int_oo]"}


def test_random_network_is_refused() -> None:
    class Training(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = nn.LSTM(8, 6, 2, dropout=0.5)

        def forward(self, x: torch.Tensor) -> Any:
            return self.network.train()(x)

    with pytest.raises(PromiseBroken) as refused:
        capture(Training(), (torch.randn(5, 3, 8),), ((0, 1),))
    assert refused.value.finding.code == "AS151"
    assert "self.network.train()(x)" in str(refused.value)


def test_keyword_call_of_the_function_is_a_leaf_too() -> None:
    class Direct(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru = nn.GRU(8, 6)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            options = {"num_layers": 1, "dropout": 0.0, "train": False, "bidirectional": False, "batch_first": True}
            return torch.gru(x, x.new_zeros(1, x.shape[0], 6), self.gru._flat_weights, has_biases=True, **options)[0]

    direct = Variant("direct", Direct, batch_first())
    assert find_differences(direct) == []


@pytest.mark.parametrize("with_lengths", [False, True])
def test_operators_keep_their_word_to_torch(with_lengths: bool) -> None:
    module = nn.LSTM(8, 6, bidirectional=True, proj_size=3).eval()
    weights = [weight.detach() for weight in module._flat_weights]
    lengths = torch.tensor([2, 5, 1]) if with_lengths else None
    args = (torch.randn(5, 3, 8), torch.randn(2, 3, 3), torch.randn(2, 3, 6), weights, lengths, True, 1, True)
    torch.library.opcheck(recurrent.lstm, args, test_utils=("test_schema", "test_faketensor"))


def test_states_of_another_batch_size_are_refused_as_in_eager() -> None:
    with pytest.raises(RuntimeError, match="Expected hidden size"):
        capture(Given(gru()()).eval(), (torch.randn(3, 5, 8), torch.randn(1, 4, 6)), STATE)


def test_one_run_of_the_file_gives_output_and_states() -> None:
    _, model = exported("lstm-projected-deep")
    shapes = [answer.shape for answer in run(model, (torch.randn(2, 9, 8),))]
    assert shapes == [(2, 9, 6), (4, 2, 3), (4, 2, 6)]


@pytest.mark.filterwarnings("ignore:The given buffer is not writable")  # torch.export.load of torch 2.11
def test_translation_needs_no_module(tmp_path: Path) -> None:
    program = capture(nn.GRU(8, 6, batch_first=True).eval(), (torch.randn(3, 5, 8),), ((0, 1),))
    torch.export.save(program, tmp_path / "program.pt2")
    loaded = torch.export.load(tmp_path / "program.pt2")
    assert operators(translate(loaded)) == operators(translate(program))
