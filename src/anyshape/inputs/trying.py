"""A module called at other sizes than the example's, to see whether it answers at all.

On the meta device where the module can run there: no memory, no arithmetic, and values that we made cannot be at fault.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from anyshape.findings import DeclarationError
from anyshape.inputs.call_messages import example_refused
from anyshape.inputs.calls import BoundCall
from anyshape.inputs.kinds import recognise
from anyshape.modules.frames import source_of_error
from anyshape.modules.state import kept

Place = tuple[str, int]  # path and axis


class Trial:
    """One module and one example; `accepts` says whether it answers with some axes at other sizes."""

    def __init__(self, module: Callable[..., Any], bound: BoundCall) -> None:
        self.module, self.bound = module, bound
        self._meta = self._meta_state()
        self._known: dict[frozenset[tuple[Place, int]], bool] = {}
        if self._meta is not None and self._error({}) is not None:
            self._meta = None
        if self._meta is None:
            error = self._error({})
            if error is not None:
                raise DeclarationError(example_refused(error, source_of_error(error))) from error

    @property
    def on_meta(self) -> bool:
        return self._meta is not None

    def accepts(self, sizes: Mapping[Place, int]) -> bool:
        """Whether the module answers with these axes at these sizes and all others as in the example."""
        key = frozenset(sizes.items())
        if key not in self._known:
            self._known[key] = self._error(sizes) is None
        return self._known[key]

    def _meta_state(self) -> dict[str, torch.Tensor] | None:
        if not isinstance(self.module, torch.nn.Module) or isinstance(self.module, torch.jit.ScriptModule):
            return None
        state = [*self.module.named_parameters(), *self.module.named_buffers()]
        return {name: torch.empty_like(tensor, device="meta") for name, tensor in state}

    def _error(self, sizes: Mapping[Place, int]) -> Exception | None:
        changed: dict[str, dict[int, int]] = {}
        for (path, axis), size in sizes.items():
            changed.setdefault(path, {})[axis] = size
        leaves = [self._resized(path, value, changed.get(path, {})) for path, value in self.bound.leaves]
        inputs = self.bound.rebuild(leaves)
        try:
            with self._safe(), torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if self._meta is not None and isinstance(self.module, torch.nn.Module):
                    torch.func.functional_call(self.module, self._meta, inputs.args, dict(inputs.kwargs))
                else:
                    self.module(*inputs.args, **inputs.kwargs)
        except Exception as error:
            return error
        return None

    def _safe(self) -> AbstractContextManager[None]:
        return kept(self.module) if isinstance(self.module, torch.nn.Module) else nullcontext()

    def _resized(self, path: str, value: Any, sizes: Mapping[int, int]) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        shape = tuple(sizes.get(axis, size) for axis, size in enumerate(value.shape))
        if self._meta is not None:
            return torch.empty(shape, dtype=value.dtype, device="meta")
        if not sizes:
            return value.detach().clone()
        drawn = recognise([value]).draw(shape, torch.Generator().manual_seed(0))
        return drawn.to(dtype=value.dtype, device=value.device)
