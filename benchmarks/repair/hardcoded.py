"""Models that answer at the size of their example alone, each with the model that is meant, or why none is sure.

A row whose `repaired` is None has to be refused. Names that begin with `trap` have a number that equals a size by accident.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

BATCH = 3
FRAMES = 5


@dataclass(frozen=True)
class Hardcoded:
    """One model: how to make it and its inputs at some sizes, and the model that a repair has to equal at `others`."""

    name: str
    make: Callable[[], nn.Module]
    inputs: Callable[..., dict[str, torch.Tensor]]
    repaired: Callable[[], nn.Module] | None = None
    others: Sequence[dict[str, int]] = ()
    where: Sequence[str] = field(default=())


class Function(nn.Module):
    """A module of one function of tensors: the meant model of a row without weights."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, **inputs: torch.Tensor) -> Any:
        return self.function(**inputs)


def rows_of(width: int, batch: int = BATCH) -> Callable[..., dict[str, torch.Tensor]]:
    def inputs(b: int = batch) -> dict[str, torch.Tensor]:
        return {"x": torch.randn(b, width)}

    return inputs


def frames_of(width: int, batch: int = BATCH, frames: int = FRAMES) -> Callable[..., dict[str, torch.Tensor]]:
    def inputs(b: int = batch, t: int = frames) -> dict[str, torch.Tensor]:
        return {"x": torch.randn(b, t, width)}

    return inputs


ROWS = ({"b": 1}, {"b": 2}, {"b": 7})
BOTH = ({"b": 1, "t": 2}, {"b": 7, "t": 4}, {"b": 2, "t": 11})


class ViewNumber(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(3, 10) * 2


class ExpandNumber(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bias = self.bias.expand(3, -1)
        return x + bias


class ExpandMeant(ExpandNumber):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.bias


class ZerosNumber(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(10, 20)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.zeros(3, 20)
        return self.cell(x, h)


class ZerosMeant(ZerosNumber):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.cell(x, torch.zeros(x.shape[0], 20))


class ArangeNumber(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(64, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(5)
        return x + self.table(positions)


class ArangeMeant(ArangeNumber):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.table(torch.arange(x.shape[1]))


class MaskInInit(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", torch.full((5, 5), float("-inf")).triu(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = x @ x.transpose(1, 2) / math.sqrt(8)
        return (scores + self.mask).softmax(-1) @ x


def causal(x: torch.Tensor) -> torch.Tensor:
    scores = x @ x.transpose(1, 2) / math.sqrt(8)
    mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
    return scores.masked_fill(mask, float("-inf")).softmax(-1) @ x


class PositionsInInit(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(64, 8)
        self.register_buffer("positions", torch.arange(5).unsqueeze(0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.table(self.positions)


class BatchOnSelf(nn.Module):
    def __init__(self, batch: int = 3) -> None:
        super().__init__()
        self.batch = batch
        self.head = nn.Linear(40, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.transpose(1, 2)
        return self.head(y.reshape(self.batch, -1, 40).mean(1))


class BatchOnSelfMeant(BatchOnSelf):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x.transpose(1, 2).reshape(x.shape[0], -1, 40).mean(1))


class FlattenProduct(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(-1, 5 * 20).cumsum(1)


class WavesInInit(nn.Module):
    def __init__(self, frames: int = 5) -> None:
        super().__init__()
        position = torch.arange(frames).unsqueeze(1)
        rate = torch.exp(torch.arange(0, 8, 2) * (-math.log(100.0) / 8))
        self.register_buffer("waves", torch.cat([torch.sin(position * rate), torch.cos(position * rate)], 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.waves


def with_waves(x: torch.Tensor) -> torch.Tensor:
    angle = torch.arange(x.shape[1]).unsqueeze(1) * torch.exp(torch.arange(0, 8, 2) * (-math.log(100.0) / 8))
    return x + torch.cat([angle.sin(), angle.cos()], 1)


def from_zero_to_one(x: torch.Tensor) -> torch.Tensor:
    return x * torch.linspace(0, 1, x.shape[1]).unsqueeze(1)


class Lengths(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        mask = torch.arange(5)[None, :] < lengths[:, None]
        return (x * mask.unsqueeze(-1)).sum(1)


def with_lengths(b: int = 3, t: int = 5) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(b, t, 8), "lengths": torch.randint(1, t + 1, (b,))}


def masked_mean(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    return (x * (torch.arange(x.shape[1])[None, :] < lengths[:, None]).unsqueeze(-1)).sum(1)


class DefaultArgument(nn.Module):
    def rows(self, x: torch.Tensor, count: int = 3) -> torch.Tensor:
        return x.view(count, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.rows(x) * 2


class FlatBatch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.reshape(15, 8) * 1.0
        return flat.view(3, 5, 8).cumsum(1)


class ViewOne(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(1, 10) * 2


class RestOfRow(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(3, -1).cumsum(1)


class Resized(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        half = F.avg_pool2d(x, 2)
        return x + F.interpolate(half, size=(16, 24))


def through_half(x: torch.Tensor) -> torch.Tensor:
    return x + F.interpolate(F.avg_pool2d(x, 2), size=x.shape[2:])


class LoopNumber(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x.new_zeros(x.shape[0], 8)
        steps = []
        for t in range(5):
            h = self.cell(x[:, t], h)
            steps.append(h)
        return torch.stack(steps, 1) + x


class LoopMeant(LoopNumber):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x.new_zeros(x.shape[0], 8)
        steps = []
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            steps.append(h)
        return torch.stack(steps, 1) + x


class BothNumbers(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.view(3, 5, 2, 4).permute(0, 2, 1, 3)
        return y.reshape(3 * 2, 5, 4).softmax(1).view(3, 2, 5, 4)


def both(x: torch.Tensor) -> torch.Tensor:
    return x.view(x.shape[0], x.shape[1], 2, 4).permute(0, 2, 1, 3).softmax(2)


def split_in_two(x: torch.Tensor) -> torch.Tensor:
    return x.unflatten(-1, (2, -1)).softmax(1)


class GlobalNumber(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(BATCH, FRAMES, 8).cumsum(1)


class ListOfSizes(nn.Module):
    sizes = (3, 5, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(*self.sizes).cumsum(1)


class HiddenState(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(8, 6, num_layers=2, batch_first=True)
        self.state = (torch.zeros(2, 3, 6), torch.zeros(2, 3, 6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.rnn(x, (self.state[0], self.state[1]))[0]


class HiddenStateMeant(HiddenState):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.rnn(x)[0]


class HelperState(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(8, 6)

    def start(self, x: torch.Tensor) -> torch.Tensor:
        return x.new_zeros((3, 6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.cell(x, self.start(x))


class HelperMeant(HelperState):
    def start(self, x: torch.Tensor) -> torch.Tensor:
        return x.new_zeros((x.shape[0], 6))


class InitHidden(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(8, 6, batch_first=True)

    def init_hidden(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Both states, for the batch of training."""
        return torch.zeros(1, 3, 6), torch.zeros(1, 3, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = self.init_hidden()
        return self.rnn(x, state)[0]


class InitHiddenMeant(InitHidden):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.rnn(x)[0]


class OwnMask(nn.Module):
    def make_mask(self) -> torch.Tensor:
        ones = torch.ones(5, 5)
        return ones.triu(1) * -1e4

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x @ x.transpose(1, 2) / math.sqrt(8) + self.make_mask()).softmax(-1) @ x


class Inner(nn.Module):
    def forward(self, h: torch.Tensor) -> torch.Tensor:
        return h.view(3, 2, 10).transpose(1, 2)


class SubModule(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(8, 20)
        self.inner = Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(self.up(x)).sum(1)


class SubModuleMeant(SubModule):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.up(x).view(x.shape[0], 2, 10).transpose(1, 2).sum(1)


class StatePair(HiddenState):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.rnn(x, self.state)[0]


class Chunks(nn.Module):
    """Windows of 5 frames, of which the example has one."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.reshape(x.shape[0], -1, 5, 8).softmax(2)
        return y.flatten(1, 2)


class Strided(nn.Module):
    """The batch is a number; the height has to be even, which is a rule of the model."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.avg_pool1d(x, 2)
        return x.reshape(3, 4, -1) + F.interpolate(y, scale_factor=2.0)


class StridedMeant(Strided):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + F.interpolate(F.avg_pool1d(x, 2), scale_factor=2.0)


class LoopStack(nn.Module):
    """At more frames it answers already, for the first five, row by row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([x[:, t] * 2 for t in range(5)], 1)


class ClassToken(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 1, 8))
        self.table = nn.Embedding(64, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.cat([self.token.expand(3, -1, -1), x], 1)
        return y + self.table(torch.arange(6))


class ClassTokenMeant(ClassToken):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
        return y + self.table(torch.arange(x.shape[1] + 1))


class ImageGrid(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        return y.view(2, 8, 24).transpose(1, 2).softmax(1)


class ImageGridMeant(ImageGrid):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x).flatten(2).transpose(1, 2).softmax(1)


def images(b: int = 2, h: int = 16, w: int = 24) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(b, 3, h, w)}


class EqualSizes(nn.Module):
    """Batch and frames are both 4 in the example; the rows of a batch do not mix under one reading only."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(4, 4, 2, 3).softmax(1)


class TrapEqual(nn.Module):
    """The same with 4 channels as well: the view can take the frames from the channels."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(4, 4, 2, 4).softmax(1)


class TrapHeads(nn.Module):
    """3 is the number of heads, and the batch of the example."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b = x.shape[0]
        heads = x.view(b, 3, -1).softmax(-1)
        return heads.reshape(3, 12)


class TrapHidden(nn.Module):
    """The hidden size is the batch of the example."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.cell(x, torch.zeros(3, 3))


class TrapHiddenMeant(TrapHidden):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.cell(x)


class TrapFactor(nn.Module):
    """A factor that equals the batch: rows in groups show that it stays."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(3, 10) * 3


class TrapMean(nn.Module):
    """`/ 5` may be the mean over the frames, or a number."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(-1, 5, 8).sum(1) / 5 + x.reshape(3, 5, 8)[:, 0]


class TrapLast(nn.Module):
    """Position 4 may be the last one, or the fifth of at least five."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(-1, 5, 8).cumsum(1)[:, 4]


class TrapPairs(nn.Module):
    """The last 8 are the channels, which are as many as the frames; 4 are the pairs of frames."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(3, 4, 2, 8).mean(2)


class TrapReversed(nn.Module):
    """4, 3, 2, 1, 0 begins at the last frame, or at the fifth."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("order", torch.tensor([4, 3, 2, 1, 0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, self.order].cumsum(1) + x


class TrapFifths(nn.Module):
    """0.2 may be one fifth of the frames."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weights", torch.tensor([0.2, 0.2, 0.2, 0.2, 0.2]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.einsum("btc,t->bc", x, self.weights)


class TrapUnbiased(nn.Module):
    """4 may be one less than the frames."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = x.view(3, 5, 2, 4)
        return ((parts - parts.mean(1, keepdim=True)) ** 2).sum(1) / 4


class TrapLastMask(nn.Module):
    """The fifth frame, or the last one."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        is_last = torch.arange(5) == 4
        return (x * is_last[:, None]).sum(1).view(3, 8)


class BlocksInInit(nn.Module):
    """Five frames are in one block: what the table shows is not what its expression means."""

    def __init__(self) -> None:
        super().__init__()
        block = torch.tensor([i // 8 for i in range(5)])
        self.register_buffer("same", block[:, None] == block[None])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x @ x.transpose(1, 2)).masked_fill(~self.same, -1e4).softmax(-1) @ x


def in_blocks(x: torch.Tensor) -> torch.Tensor:
    block = torch.arange(x.shape[1]) // 8
    return (x @ x.transpose(1, 2)).masked_fill(block[:, None] != block[None], -1e4).softmax(-1) @ x


class TrapTop(nn.Module):
    """Five of the frames, or all of them."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(3, 5, 8).topk(5, 1).values


class TrapCount(nn.Module):
    """40 may be the number of elements of a row, or a number."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(3, 5, 8).sum((1, 2)) / 40


class TrapBothCounts(nn.Module):
    """15 may be the number of all frames."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(3, 5, 8).sum((0, 1)) * (1 / 15)


class TrapScale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = 5**-0.5
        self.register_buffer("mask", torch.ones(5, 5).tril())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x @ x.transpose(1, 2) * self.scale * self.mask) @ x


class TrapPool(nn.Module):
    """Pooling to 5 frames: the number of frames of the example, or five."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool1d(5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool(x.view(-1, 5, 8).transpose(1, 2))


class TrapPositions(nn.Module):
    """Learned positions end with the example: nothing tells what the sixth is."""

    def __init__(self) -> None:
        super().__init__()
        self.positions = nn.Parameter(torch.randn(1, 5, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.positions


class TrapZeroPositions(TrapPositions):
    """The same before training: equal rows of a parameter are no pattern."""

    def __init__(self) -> None:
        super().__init__()
        self.positions = nn.Parameter(torch.zeros(1, 5, 8))


class TrapLinear(nn.Module):
    """The weights fix the number of frames."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(40, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x.reshape(-1, 5 * 8))


class TrapAssert(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[1] != 5:
            raise ValueError("five frames")
        return x.mean(1)


class TrapFirstFive(nn.Module):
    """At more frames it answers already, for the first five."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = x[:, 0]
        for t in range(1, 5):
            total = total + x[:, t]
        return total


class TrapSquare(nn.Module):
    """Batch and frames are both 4; no reading of the view keeps rows apart."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(4, 4, 8).cumsum(0).cumsum(1)


class GridInInit(nn.Module):
    """Steps from 0 to 1, which depend on the number of frames."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("grid", torch.linspace(0, 1, 5).view(1, 5, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.grid


class NameTwice(nn.Module):
    """One name is the batch in the view, and a number in the quotient, where rows stay apart."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = 3
        return x.view(n, 10) / n


class TrapState(nn.Module):
    """The state is kept from call to call, and has the batch of the example."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(8, 6)
        self.state = torch.zeros(3, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.cell(x, self.state)
        self.state = h
        return h


class TrapRotate(nn.Module):
    """Rows are mixed: no evidence tells the batch from the number of shifts."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(3, 10).roll(3, 0).cumsum(0) * 3


class TrapDecoder(nn.Module):
    """Learned positions before attention to all frames: fewer frames are another model."""

    def __init__(self) -> None:
        super().__init__()
        self.positions = nn.Parameter(torch.randn(5, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + self.positions
        return (y @ y.transpose(1, 2)).softmax(-1) @ y


class CutPositions(nn.Module):
    """Learned positions, added; there are at most as many frames as in the example."""

    def __init__(self) -> None:
        super().__init__()
        self.positions = nn.Parameter(torch.randn(5, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.positions


class CutPositionsMeant(CutPositions):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.positions[: x.shape[1]]


class TrapShares(nn.Module):
    """Fifths: of the number of frames, or always."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("shares", (torch.arange(5) / 5).view(-1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.shares


class TrapWeights(nn.Module):
    """Weights of frames, all equal by accident of their values at first, then not."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weights", torch.tensor([0.1, 0.2, 0.4, 0.2, 0.1]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * self.weights[None, :, None]).sum(1)


EQUAL = ({"b": 5, "t": 4}, {"b": 2, "t": 7})

ALL = (
    Hardcoded("view", ViewNumber, rows_of(10), lambda: Function(lambda x: x * 2), ROWS),
    Hardcoded("expand", ExpandNumber, rows_of(10), ExpandMeant, ROWS),
    Hardcoded("zeros", ZerosNumber, rows_of(10), ZerosMeant, ROWS),
    Hardcoded("arange", ArangeNumber, frames_of(8), ArangeMeant, BOTH),
    Hardcoded("mask", MaskInInit, frames_of(8), lambda: Function(causal), BOTH),
    Hardcoded("positions", PositionsInInit, frames_of(8), ArangeMeant, BOTH),
    Hardcoded("batch-on-self", BatchOnSelf, lambda b=3: {"x": torch.randn(b, 5, 8)}, BatchOnSelfMeant, ROWS),
    Hardcoded("product", FlattenProduct, frames_of(20), lambda: Function(lambda x: x.flatten(1).cumsum(1)), BOTH),
    Hardcoded("grid-in-init", GridInInit, frames_of(8), lambda: Function(from_zero_to_one), BOTH),
    Hardcoded("waves", WavesInInit, frames_of(8), lambda: Function(with_waves), BOTH),
    Hardcoded("lengths", Lengths, with_lengths, lambda: Function(masked_mean), BOTH),
    Hardcoded("default", DefaultArgument, rows_of(10), lambda: Function(lambda x: x * 2), ROWS),
    Hardcoded("flat", FlatBatch, frames_of(8), lambda: Function(lambda x: x.cumsum(1)), BOTH),
    Hardcoded("batch-of-one", ViewOne, rows_of(10, 1), lambda: Function(lambda x: x * 2), ROWS),
    Hardcoded("rest", RestOfRow, rows_of(10), lambda: Function(lambda x: x.cumsum(1)), ROWS),
    Hardcoded(
        "resize",
        Resized,
        images,
        lambda: Function(through_half),
        ({"b": 1, "h": 8, "w": 12}, {"b": 3, "h": 20, "w": 8}),
    ),
    Hardcoded("loop", LoopNumber, frames_of(8), LoopMeant, BOTH),
    Hardcoded("both", BothNumbers, frames_of(8), lambda: Function(both), BOTH),
    Hardcoded("global", GlobalNumber, frames_of(8), lambda: Function(lambda x: x.cumsum(1)), BOTH),
    Hardcoded("list", ListOfSizes, frames_of(8), lambda: Function(lambda x: x.cumsum(1)), BOTH),
    Hardcoded("state", HiddenState, frames_of(8), HiddenStateMeant, BOTH),
    Hardcoded("state-pair", StatePair, frames_of(8), HiddenStateMeant, BOTH),
    Hardcoded(
        "strided",
        Strided,
        lambda b=3, t=6: {"x": torch.randn(b, 4, t)},
        StridedMeant,
        ({"b": 2, "t": 8}, {"b": 7, "t": 2}),
    ),
    Hardcoded("trap-chunks", Chunks, frames_of(8)),
    Hardcoded("trap-loop-stack", LoopStack, frames_of(8)),
    Hardcoded("helper", HelperState, rows_of(8), HelperMeant, ROWS),
    Hardcoded("init-hidden", InitHidden, frames_of(8), InitHiddenMeant, BOTH),
    Hardcoded("own-mask", OwnMask, frames_of(8), lambda: Function(causal), BOTH),
    Hardcoded("inner", SubModule, rows_of(8), SubModuleMeant, ROWS),
    Hardcoded("class-token", ClassToken, frames_of(8), ClassTokenMeant, BOTH),
    Hardcoded("grid", ImageGrid, images, ImageGridMeant, ({"b": 1, "h": 8, "w": 12}, {"b": 3, "h": 20, "w": 8})),
    Hardcoded("equal", EqualSizes, frames_of(6, 4, 4), lambda: Function(split_in_two), EQUAL),
    Hardcoded("trap-equal", TrapEqual, frames_of(8, 4, 4)),
    Hardcoded(
        "trap-heads", TrapHeads, rows_of(12), lambda: Function(lambda x: x.view(-1, 3, 4).softmax(-1).flatten(1)), ROWS
    ),
    Hardcoded("trap-hidden", TrapHidden, rows_of(8), TrapHiddenMeant, ROWS),
    Hardcoded("trap-factor", TrapFactor, rows_of(10), lambda: Function(lambda x: x * 3), ROWS),
    Hardcoded("trap-mean", TrapMean, frames_of(8)),
    Hardcoded("trap-last", TrapLast, frames_of(8)),
    Hardcoded("trap-pairs", TrapPairs, frames_of(8, 3, 8), where=["t % 4 == 0"]),
    Hardcoded("trap-reversed", TrapReversed, frames_of(8)),
    Hardcoded("trap-fifths", TrapFifths, frames_of(8)),
    Hardcoded("trap-unbiased", TrapUnbiased, frames_of(8)),
    Hardcoded("trap-last-mask", TrapLastMask, frames_of(8)),
    Hardcoded("trap-blocks", BlocksInInit, frames_of(8), lambda: Function(in_blocks), BOTH),
    Hardcoded("trap-top", TrapTop, frames_of(8)),
    Hardcoded("trap-count", TrapCount, frames_of(8)),
    Hardcoded("trap-both-counts", TrapBothCounts, frames_of(8)),
    Hardcoded("trap-scale", TrapScale, frames_of(8)),
    Hardcoded("trap-pool", TrapPool, frames_of(8)),
    Hardcoded("trap-positions", TrapPositions, frames_of(8), where=["1 <= t <= 9"]),
    Hardcoded("trap-zero-positions", TrapZeroPositions, frames_of(8), where=["1 <= t <= 9"]),
    Hardcoded("trap-linear", TrapLinear, frames_of(8)),
    Hardcoded("trap-assert", TrapAssert, frames_of(8)),
    Hardcoded("trap-first-five", TrapFirstFive, frames_of(8)),
    Hardcoded("trap-square", TrapSquare, frames_of(8, 4, 4)),
    Hardcoded("trap-name-twice", NameTwice, rows_of(10), lambda: Function(lambda x: x / 3), ROWS),
    Hardcoded("trap-state", TrapState, rows_of(8)),
    Hardcoded("trap-rotate", TrapRotate, rows_of(10)),
    Hardcoded("trap-decoder", TrapDecoder, frames_of(8)),
    Hardcoded(
        "cut", CutPositions, frames_of(8), CutPositionsMeant, ({"b": 2, "t": 3}, {"b": 1, "t": 1}), ["1 <= t <= 5"]
    ),
    Hardcoded("trap-cut-open", CutPositions, frames_of(8)),
    Hardcoded("trap-shares", TrapShares, frames_of(8)),
    Hardcoded("trap-weights", TrapWeights, frames_of(8)),
)
