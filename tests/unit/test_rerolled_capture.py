"""Python loops over a dim become loops of the file, right at lengths that were never traced."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import pytest
import torch
from tests.learned import learn
from torch import nn

from anyshape.capture.generalized.record import Recorder
from anyshape.capture.rerolled import capture_rerolled
from anyshape.findings import PromiseBroken, Source

SIZES = [{"batch": 1, "length": 1}, {"batch": 2, "length": 2}, {"batch": 3, "length": 13}, {"batch": 2, "length": 50}]


def _inputs(batch: int = 3, length: int = 5) -> tuple[torch.Tensor]:
    return (torch.randn(batch, length, 8),)


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(8, 6)
        self.head = nn.Linear(6, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        state = x.new_zeros(x.shape[0], 6)
        outputs = []
        for step in range(x.shape[1]):
            state = self.cell(x[:, step], state)
            outputs.append(self.head(state))
        return torch.stack(outputs, 1), state


class Unbound(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = torch.zeros_like(x[:, 0])
        outputs = []
        for value in x.unbind(1):
            total = 0.5 * total + value
            outputs.append(total)
        return torch.stack(outputs, 1)


class Pieces(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([piece.sum(1) for piece in x.split(4, 1)], 1)


class Reversed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state, outputs = torch.zeros(x.shape[0], 8), []
        for step in reversed(range(x.shape[1])):
            state = torch.tanh(state + x[:, step])
            outputs.append(state)
        return torch.stack(outputs[::-1], 1)


class Strided(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.zeros(x.shape[0], 8)
        for step in range(0, x.shape[1], 2):
            state = torch.tanh(state + x[:, step])
        return state


class Half(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.zeros(x.shape[0], 8)
        for step in range(x.shape[1] // 2):
            state = torch.tanh(state + x[:, 2 * step] - x[:, 2 * step + 1])
        return state


class FirstDiffers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.again = nn.Linear(8, 6), nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state: Any = None
        outputs = []
        for step in range(x.shape[1]):
            given = self.first(x[:, step])
            state = torch.tanh(given) if state is None else torch.tanh(given + self.again(state))
            outputs.append(state)
        return torch.stack(outputs, 1)


class LastDiffers(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.zeros(x.shape[0], 8)
        for step in range(x.shape[1]):
            state = state * 0.5 + x[:, step]
            if step < x.shape[1] - 1:
                state = state.relu()
        return state


class Nested(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = []
        for row in range(x.shape[0]):
            state = torch.zeros(8)
            for step in range(x.shape[1]):
                state = torch.tanh(state + x[row, step])
            rows.append(state)
        return torch.stack(rows)


class NestedCarried(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        state, rows = torch.zeros(8), []
        for row in range(x.shape[0]):
            state = state * 0.5
            for step in range(x.shape[1]):
                state = torch.tanh(state + x[row, step])
            rows.append(state)
        return torch.stack(rows), state


class Growing(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        past, outputs = x[:, :0], []
        for step in range(x.shape[1]):
            query = x[:, step : step + 1]
            past = torch.cat([past, query * 0.5], 1)
            outputs.append((query @ past.transpose(1, 2)).softmax(-1) @ past)
        return torch.cat(outputs, 1), past


class Table(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        table = torch.zeros_like(x)
        table[:, 0] = x[:, 0]
        for step in range(1, x.shape[1]):
            table[:, step] = table[:, step - 1] * 0.5 + x[:, step]
        return table


class TwoBack(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        older, newer = torch.zeros(x.shape[0], 8), torch.ones(x.shape[0], 8)
        for step in range(x.shape[1]):
            older, newer = newer, torch.tanh(older + 0.3 * newer + x[:, step])
        return older, newer


class ShortestPaths(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        distance = (x[0] @ x[0].T).abs()
        distance.fill_diagonal_(0)
        for place in range(distance.shape[0]):
            distance = torch.minimum(distance, distance[:, place, None] + distance[place])
        return distance


class TwoLoops(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values = [torch.tanh(value) for value in x.unbind(1)]
        return sum(values[1:], values[0]), torch.stack(values, 1).mean(1)


class Counted(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([value * (place + 1) / x.shape[1] + place for place, value in enumerate(x.unbind(1))], 1)


class Doubling(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        step = 1
        while step < x.shape[1]:
            x = x + nn.functional.pad(x, (0, 0, step, 0))[:, : x.shape[1]]
            step *= 2
        return x


class UnevenPieces(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([piece.softmax(1) for piece in x.split(4, 1)], 1)


LOOPS = [
    Doubling,
    UnevenPieces,
    Decoder,
    Unbound,
    Pieces,
    Reversed,
    Strided,
    Half,
    FirstDiffers,
    LastDiffers,
    Nested,
    NestedCarried,
    Growing,
    Table,
    TwoBack,
    TwoLoops,
    ShortestPaths,
    Counted,
]


@pytest.mark.parametrize("model", LOOPS, ids=lambda model: model.__name__)
@pytest.mark.long_table
def test_a_loop_is_right_at_lengths_that_were_never_traced(model: type[nn.Module]) -> None:
    learned = learn(capture_rerolled, model(), _inputs)
    assert learned.captured.strategy == "rerolled"
    assert learned.differences(SIZES) == []
    assert any(node.op_type == "Loop" for node in learned.model.graph)


def test_a_decoder_is_learned_from_twelve_steps_and_right_at_two_hundred(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []
    trace = Recorder.trace

    def heard(self: Recorder, sizes: Any) -> Any:
        lengths.append(sizes["length"])
        return trace(self, sizes)

    monkeypatch.setattr(Recorder, "trace", heard)
    learned = learn(capture_rerolled, Decoder(), _inputs)
    assert max(lengths) <= 12
    assert learned.differences([{"batch": 2, "length": length} for length in (1, 2, 13, 200)]) == []
    assert len(list(learned.model.graph)) < 40


def test_weights_stay_outside_the_body_and_its_nodes_know_their_line() -> None:
    learned = learn(capture_rerolled, Decoder(), _inputs)
    (loop,) = [node for node in learned.model.graph if node.op_type == "Loop"]
    body = loop.attributes["body"].as_graph()
    assert not body.initializers
    assert {"module.cell.bias_ih", "module.head.bias"} <= set(learned.model.graph.initializers)
    lines = {node.metadata_props.get("anyshape.source") for node in ir.traversal.RecursiveGraphIterator(body)}
    assert any(line and "test_rerolled_capture.py" in line for line in lines)


def test_no_repetition_at_all_gives_the_initial_state() -> None:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.RNNCell(8, 6)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            state = x.new_ones(x.shape[0], 6)
            for step in range(x.shape[1]):
                state = self.cell(x[:, step], state)
            return state

    learned = learn(capture_rerolled, Last(), _inputs, ["length >= 0"])
    assert learned.differences([{"batch": 2, "length": 0}, {"batch": 3, "length": 30}]) == []


def test_a_trip_count_that_is_a_value_is_refused_by_its_line() -> None:
    class ByValue(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(int(x.abs().sum())):
                x = torch.tanh(x)
            return x

    with pytest.raises(PromiseBroken) as caught:
        learn(capture_rerolled, ByValue(), _inputs)
    where = caught.value.finding.where
    assert caught.value.finding.code == "AS121"
    assert isinstance(where, Source)
    assert where.text == "for _ in range(int(x.abs().sum())):"
