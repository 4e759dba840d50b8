"""Modules that differentiate, or map over an axis, inside `forward`: captured below autograd, after torch.func's transforms.

    torch.func.grad(f)(x)     torch.export: tensors that it cannot record     ->     here: the operators of the gradient

torch.export records operators above autograd, where `torch.func.grad`, `jacrev`, `vmap` with `out_dims` and
`torch.autograd.grad` are no operators (seen to torch 2.13). A trace below autograd has plain operators only; it is made first,
and torch.export records a call of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._functorch import eager_transforms, vmap
from torch._subclasses.fake_tensor import is_fake
from torch.export import ExportedProgram
from torch.fx import GraphModule, Interpreter
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing, make_fx
from torch.fx.traceback import preserve_node_meta
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import _get_current_function_mode_stack, _pop_mode, _push_mode

from anyshape.intercept.patching import Patch, patched
from anyshape.modules.module_forms import FlatModule

_RECORDS_MODES = "PreDispatchTorchFunctionMode"  # of the trace above autograd: it writes down each change of grad mode
_TRANSFORMS = (
    (eager_transforms, "_grad_increment_nesting"),
    (eager_transforms, "_jvp_increment_nesting"),
    (vmap, "_vmap_increment_nesting"),
    (torch.autograd, "grad"),
    (torch.autograd, "backward"),
)
DERIVATIVES = {"_grad_increment_nesting", "grad", "backward"}
"""Transforms of which a trace above autograd may be made that cannot be used."""


class ModuleBelowAutograd(FlatModule):
    """A flat module whose calls are traced below autograd first."""

    def forward(self, *leaves: Any) -> tuple[Any, ...]:
        forward = super().forward
        with (
            _no_trace_above_autograd(),
            sdpa_kernel(SDPBackend.MATH),
        ):  # fused attention has an operator for its gradient
            graph = make_fx(forward, _allow_non_fake_inputs=True, record_stack_traces=True)(*leaves)
        return _run(graph, leaves)


def _run(graph: GraphModule, leaves: tuple[Any, ...]) -> tuple[Any, ...]:
    with preserve_node_meta():  # the lines of the user's code
        return tuple(Interpreter(graph).run(*leaves))


@contextmanager
def _no_trace_above_autograd() -> Iterator[None]:
    """Within this, torch.export records nothing; the other function modes stay."""
    modes = [_pop_mode() for _ in _get_current_function_mode_stack()]
    kept = [mode for mode in reversed(modes) if type(mode).__name__ != _RECORDS_MODES]
    for mode in kept:
        _push_mode(mode)
    try:
        with disable_proxy_modes_tracing():
            yield
    finally:
        for _ in kept:
            _pop_mode()
        for mode in reversed(modes):
            _push_mode(mode)


def has_all_values(program: ExportedProgram) -> bool:
    """Whether all constants of a program have values: what a transform makes on its way may have none."""
    held = [value for value in program.constants.values() if isinstance(value, torch.Tensor)]
    return not any(value.device.type == "meta" or is_fake(value) for value in held)


@contextmanager
def noted_transforms() -> Iterator[set[str]]:
    """Within this, the names of the transforms that run are added to the set that it gives."""
    noted: set[str] = set()
    with patched([_noting(place, name, noted) for place, name in _TRANSFORMS]):
        yield noted


def _noting(place: Any, name: str, noted: set[str]) -> Patch:
    own = getattr(place, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        noted.add(name)
        return own(*args, **kwargs)

    return place, name, call
