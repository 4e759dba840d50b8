"""The quick way through arguments gives the leaves of torch's tree functions."""

from __future__ import annotations

from collections import OrderedDict, namedtuple

import torch
from torch.utils._pytree import tree_leaves

from anyshape.intercept.real_numbers import leaves_of, tensors_of

Pair = namedtuple("Pair", "first second")


def test_leaves_are_those_of_torch() -> None:
    x = torch.ones(2)
    values = (
        x,
        [1, (2.0, None), {"b": x, "a": [slice(0, 1), "text"]}],
        Pair(x, [torch.nn.Parameter(x)]),
        OrderedDict(z=1, y=x),
        torch.float32,
        torch.Size([2, 3]),
        {},
        (),
    )
    found, expected = leaves_of(values), tree_leaves(values)
    assert len(found) == len(expected)
    assert all(one is other or one == other for one, other in zip(found, expected, strict=True))
    assert len(tensors_of(values)) == 5
