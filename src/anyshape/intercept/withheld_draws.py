"""Calls from which torch's random numbers are withheld: one that ends as usual without them does not depend on them.

    skip = self.training and torch.rand([]) < 0.1        in eval mode the number is drawn, and nothing reads it

Each operator that moves torch's generator runs, and gives tensors without memory in place of its results. Whatever is done
with one of these is noted. torch.cond and its like run in plain Python: dynamo does not run under a dispatch mode.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NoReturn

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from anyshape.intercept.control_flow import control_flow_in_python


class WithheldDraws(TorchDispatchMode):
    """A context manager. `is_read` stays False only where nothing can have read a random number of torch."""

    def __init__(self) -> None:
        super().__init__()
        self.is_read = False
        self._position = b""
        self._without_memory = _tensors_without_memory(self._note_reading)
        self._around = ExitStack()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._note_other_draws()
        result = func(*args, **(kwargs or {}))
        start, self._position = self._position, _position()
        if self._position == start:
            return result
        if func._schema.is_mutable:  # others may read the memory that it wrote into
            self._note_reading()
            return result
        return pytree.tree_map_only(torch.Tensor, self._without_memory, result)

    def __enter__(self) -> WithheldDraws:
        self._around.enter_context(control_flow_in_python())
        self._position = _position()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._note_other_draws()
        self._around.close()

    def _note_other_draws(self) -> None:
        """Other threads, and libraries that call no operator, draw unseen: the generator is not where an operator left it."""
        if _position() != self._position:
            self._note_reading()

    def _note_reading(self) -> None:
        self.is_read = True


def _tensors_without_memory(note: Callable[[], None]) -> Callable[[torch.Tensor], torch.Tensor]:
    """A function that gives a tensor with the shape, dtype and device of another one. All use of it is noted, and raises."""

    def refuse(func: Any) -> NoReturn:
        note()
        raise RuntimeError(f"{func} reads a random number that is withheld")

    class Withheld(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            refuse(func)

        @classmethod
        def __torch_dispatch__(  # type: ignore[override]
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            refuse(func)

    def withhold(drawn: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            Withheld, drawn.shape, strides=drawn.stride(), dtype=drawn.dtype, device=drawn.device
        )
        return made

    return withhold


def _position() -> bytes:
    return torch.random.get_rng_state().numpy().tobytes()
