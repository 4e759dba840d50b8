"""A working copy shares weights, owns everything that forward may change, and refers to nothing of the original module."""

from __future__ import annotations

import functools
import threading
import warnings
import weakref
from collections import defaultdict, deque
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn

from anyshape.modules.structural_copy import working_copy


class Helper:
    def __init__(self, owner: nn.Module) -> None:
        self.owner = owner
        self.count = 0


class Everything(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.register_buffer("table", torch.arange(6.0))
        self.view = self.table[2:4]
        self.alias = self.first.weight.detach()
        self.state = {"list": [1, {"deep": torch.zeros(2)}], "deque": deque([1], maxlen=3), "set": {1}}
        self.counted = defaultdict(int)
        self.array = np.zeros(3)
        self.lock = threading.Lock()
        self.helper = Helper(self)
        self.space = SimpleNamespace(part=self.first)
        self.method = self.first.forward
        self.partial = functools.partial(nn.Module.train, self.first)
        self.reference = weakref.ref(self.first)
        self.pair = (self.first, 1)


def test_weights_are_shared_and_all_else_is_owned() -> None:
    module = Everything()
    copy = working_copy(module)
    assert copy is not module and type(copy) is Everything
    assert copy.first.weight is module.first.weight and copy.second.weight is copy.first.weight
    assert copy.table is not module.table and torch.equal(copy.table, module.table)
    copy.table[2] = 9.0
    assert copy.view[0] == 9.0 and module.table[2] == 2.0
    assert copy.alias.data_ptr() == module.first.weight.data_ptr()
    copy.state["list"][1]["deep"][0] = 1.0
    copy.counted["a"] += 1
    copy.array[0] = 1.0
    copy.helper.count += 1
    assert module.state["list"][1]["deep"][0] == 0 and not module.counted
    assert module.array[0] == 0 and module.helper.count == 0
    assert copy.state["deque"].maxlen == 3 and copy.lock is module.lock


def test_a_copy_refers_to_its_own_parts() -> None:
    module = Everything()
    copy = working_copy(module)
    assert copy.first is not module.first and copy.helper.owner is copy
    assert copy.space.part is copy.first and copy.pair == (copy.first, 1)
    assert copy.method.__self__ is copy.first and copy.partial.args == (copy.first,)
    assert copy.reference() is copy.first
    copy.eval()
    assert module.training and module.first.training


def test_hooks_norms_and_parametrizations_work_in_a_copy() -> None:
    from torch.nn.utils import parametrizations, weight_norm

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = nn.Sequential(weight_norm(nn.Linear(3, 3)), parametrizations.weight_norm(nn.Linear(3, 3)))
    seen: list[nn.Module] = []
    module[0].register_forward_hook(lambda part, args, output: seen.append(part))
    x = torch.randn(2, 3)
    copy = working_copy(module)
    assert copy is not module and torch.equal(copy(x), module(x))
    assert seen == [copy[0], module[0]]
    recurrent = nn.LSTM(3, 3)
    copied = working_copy(recurrent)
    assert copied is not recurrent and torch.equal(copied(x)[0], recurrent(x)[0])
    assert all(one is other for one, other in zip(copied._flat_weights, recurrent._flat_weights, strict=True))


def test_what_cannot_be_copied_is_worked_on_itself() -> None:
    scripted = nn.Sequential(torch.jit.script(nn.Linear(2, 2)))
    lazy = nn.LazyLinear(3)
    closed = nn.Linear(2, 2)
    closed.forward = lambda x: nn.functional.linear(x, closed.weight)
    hooked = nn.Sequential(nn.Linear(2, 2))
    hooked.register_forward_pre_hook(lambda part, args, other=hooked[0]: None)
    for module in (scripted, lazy, closed, hooked):
        assert working_copy(module) is module
    assert working_copy(sum) is sum
