"""Models that end their process, hang, or take all memory at some sizes. Each row: name, module, inputs, dynamic."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn.utils import rnn

OPEN = torch.export.Dim.DYNAMIC


class Packed(nn.Module):
    """A recurrent network of packed sequences takes an initial state of any size, and reads past its end."""

    def __init__(self, kind: type[nn.RNNBase], *, sorts: bool = True, **options: object) -> None:
        super().__init__()
        self.network = kind(4, 6, **options)
        self.sorts = sorts

    def forward(self, x, lengths, *states):
        packed = rnn.pack_padded_sequence(x, lengths, self.network.batch_first, enforce_sorted=self.sorts)
        outputs, state = self.network(packed, states if len(states) > 1 else states[0])
        return rnn.pad_packed_sequence(outputs, self.network.batch_first)[0], state


def packed(kind: type[nn.RNNBase], *, sorts: bool = True, **options: object):
    module = Packed(kind, sorts=sorts, **options)
    layers = module.network.num_layers * (2 if module.network.bidirectional else 1)
    x = torch.randn(3, 5, 4) if module.network.batch_first else torch.randn(5, 3, 4)
    states = [torch.randn(layers, 3, 6) for _ in range(2 if kind is nn.LSTM else 1)]
    example = (x, torch.tensor([5, 4, 2]), *states)
    dynamic = ({0: OPEN, 1: OPEN}, {0: OPEN}, *({1: OPEN} for _ in states))
    return module, example, {"x": dynamic[0], "lengths": dynamic[1], "states": dynamic[2:]}


class At(nn.Module):
    """Does something at some sizes, and doubles its input at all."""

    def __init__(self, is_hit, action) -> None:
        super().__init__()
        self.is_hit, self.action = is_hit, action

    def forward(self, x):
        if self.is_hit(int(x.shape[0])):
            self.action(x)
        return x * 2


def write_past_the_end(x) -> None:
    ctypes.memset(x.clone().data_ptr(), 0, 64 * x.nbytes + (1 << 16))


def read_past_the_end(x) -> None:
    ctypes.string_at(x.data_ptr(), x.nbytes + (1 << 26))


def scatter_beyond(x) -> None:
    index = torch.full((x.shape[0],), 1 << 40)
    torch.ops.aten._index_put_impl_(x.clone(), [index], x, False, True)


def recurse(x) -> None:
    sys.setrecursionlimit(1 << 30)

    def deeper(value):
        return eval("deeper(value)", {"deeper": deeper, "value": value})

    deeper(x)


def spin(x) -> None:
    while True:
        pass


def at_17(n: int) -> bool:
    return n == 17


def beyond_40(n: int) -> bool:
    return n > 40


def from_24(n: int) -> bool:
    return n >= 24


def start_and_wait(x) -> None:
    subprocess.run(["sleep", "3600"], check=False)


def inputs(n=3):
    return torch.randn(n, 2)


def row(is_hit, action):
    return At(is_hit, action), inputs, None


ROWS = {
    "lstm": packed(nn.LSTM),
    "gru": packed(nn.GRU),
    "rnn": packed(nn.RNN),
    "lstm-both-ways": packed(nn.LSTM, bidirectional=True),
    "lstm-two-layers": packed(nn.LSTM, num_layers=2, batch_first=True),
    "gru-batch-first": packed(nn.GRU, batch_first=True),
    "lstm-unsorted": packed(nn.LSTM, sorts=False),
    "rnn-relu": packed(nn.RNN, nonlinearity="relu"),
    "write-past-the-end": row(beyond_40, write_past_the_end),
    "read-past-the-end": row(beyond_40, read_past_the_end),
    "scatter-beyond": row(beyond_40, scatter_beyond),
    "null-pointer": row(at_17, lambda x: ctypes.string_at(0)),
    "abort": row(at_17, lambda x: os.abort()),
    "abort-beyond": row(beyond_40, lambda x: os.abort()),
    "kill": row(from_24, lambda x: os.kill(os.getpid(), signal.SIGKILL)),
    "arithmetic": row(at_17, lambda x: os.kill(os.getpid(), signal.SIGFPE)),
    "exit": row(beyond_40, lambda x: os._exit(0)),
    "recursion": row(at_17, recurse),
    "100-gb": row(at_17, lambda x: torch.ones(25 * 10**9)),
    "100-gb-beyond": row(beyond_40, lambda x: torch.ones(25 * 10**9)),
    "100-gb-numpy": row(at_17, lambda x: np.ones(12 * 10**9)),
    "sleep": row(at_17, lambda x: time.sleep(3600)),
    "endless": row(beyond_40, spin),
    "waits-for-a-process": row(beyond_40, start_and_wait),
}
