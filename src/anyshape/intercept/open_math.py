"""Functions of math on open sizes: a logarithm of a size is a number that still follows the size.

torch has such functions for roots and angles, and for others only the terms in which it would think of them (seen to torch
2.13). A higher-order operator is the one kind of callable of ours that a captured program may hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch._ops import HigherOrderOperator
from torch.fx.experimental.proxy_tensor import get_proxy_mode, handle_sym_dispatch
from torch.fx.experimental.sym_node import SymNode
from torch.utils._sympy.functions import make_opaque_unary_fn


class OpenFunction(HigherOrderOperator):
    """A function of one number; of an open one it gives an open float."""

    def __init__(self, name: str, function: Callable[[float], float]) -> None:
        super().__init__(f"anyshape_{name}")
        self._function = function
        self._term = make_opaque_unary_fn(name)
        # torch writes guards as code and runs them; of these terms its printer does not know how to.
        self._term._torch_sympystr = lambda term, printer: f"math.{name}({printer._print(term.args[0])})"

    def __call__(self, number: Any, /) -> Any:  # type: ignore[override]
        if not isinstance(number, (torch.SymInt, torch.SymFloat)):
            return self._function(number)
        if get_proxy_mode() is not None:
            return handle_sym_dispatch(self, (number,), {})
        node = torch.sym_float(number).node
        hint = None if node.hint is None else self._function(node.hint)
        return torch.SymFloat(SymNode(self._term(node.expr), node.shape_env, float, hint))


OPEN_LOG = OpenFunction("log", math.log)
OPEN_LOG2 = OpenFunction("log2", math.log2)
OPEN_LOG10 = OpenFunction("log10", math.log10)
OPEN_EXP = OpenFunction("exp", math.exp)
