"""Calls of a module from its first state, or in a row, under random numbers that are chosen or withheld.

Every call runs in eval mode, without gradients and warnings. At the end the module is as it was handed over.

skip = self.training and torch.rand([]) < 0.1        in eval mode the number is drawn, and nothing reads it

Each operator that moves torch's generator runs, and gives tensors without memory in place of its results. Whatever is done
with one of these is noted. torch.cond and its like run in plain Python: dynamo does not run under a dispatch mode.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, NoReturn

import numpy as np
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from anyshape.intercept.control_flow import control_flow_in_python
from anyshape.intercept.patching import patched
from anyshape.modules.kept_tensors import copied
from anyshape.modules.state import ModuleState, generator_state

Flatten = Callable[[Any], Sequence[tuple[str, Any]]]
Call = Callable[[torch.nn.Module], Any]
Within = AbstractContextManager[Any]
_NOTHING_ELSE = nullcontext()
TORCH, NUMPY, PYTHON, HELD = "torch", "numpy", "Python's random", "a generator of its own"
SOURCES = (TORCH, NUMPY, PYTHON, HELD)
_ROUNDING = 256.0  # units in the last place of the largest element: a table that is computed in longer pieces


@dataclass(frozen=True, eq=False)
class Reply:
    """What a call gave: leaves by path, or the exception that it raised."""

    leaves: tuple[tuple[str, Any], ...] = ()
    raised: Exception | None = None

    def is_like(self, other: Reply) -> bool:
        """Whether both raised, or gave the same leaves up to a few units of rounding."""
        if self.raised is not None or other.raised is not None:
            return self.raised is not None and other.raised is not None
        if [path for path, _ in self.leaves] != [path for path, _ in other.leaves]:
            return False
        return all(_is_close(one, two) for (_, one), (_, two) in zip(self.leaves, other.leaves, strict=True))

    def without_none(self) -> Reply:
        """The reply without the leaves that are None."""
        return replace(self, leaves=tuple((path, leaf) for path, leaf in self.leaves if leaf is not None))


class Replay:
    """A context manager around a module and its first state."""

    def __init__(self, module: torch.nn.Module, flatten: Flatten) -> None:
        self.module = module
        self._flatten = flatten
        self._state = ModuleState(module)
        self._has_run = False
        self.has_written = False  # whether any call so far wrote something, were it an equal value
        self.has_drawn = False  # whether the last call drew random numbers of torch

    def fresh(self, call: Call, seed: int = 0, varied: Sequence[str] = ()) -> Reply:
        """The reply from the first state. The `varied` sources of random numbers are seeded anew."""
        self.reset()
        return self._run(call, seed, varied)

    def onward(self, call: Call) -> Reply:
        """The reply from the state that the last call left, under the same random numbers as every call."""
        return self._run(call, 0, ())

    def reset(self) -> None:
        """Put the first state back."""
        self.has_written = bool(self._state.restore(thorough=not self._has_run)) or self.has_written

    def rebinds(self, call: Call) -> frozenset[tuple[int, str]]:
        """The attributes that a call from the state of the last one sets: the id of a part, and the name."""
        found: set[tuple[int, str]] = set()
        own = torch.nn.Module.__setattr__

        def note(part: torch.nn.Module, name: str, value: Any) -> None:
            found.add((id(part), name))
            own(part, name, value)

        with patched([(torch.nn.Module, "__setattr__", note)]):
            self.onward(call)
        return frozenset(found)

    def advanced(self, call: Call) -> dict[str, bool]:
        """The sources of random numbers that a call reads; True for one that the call itself does not seed."""
        before = [self._positions_around(call, seed) for seed in (1, 2)]
        read = [source for source in SOURCES if any(start[source] != end[source] for start, end in before)]
        return {source: before[0][1][source] != before[1][1][source] for source in read}

    def stays_alike(self, call: Call, usual: Reply) -> bool:
        """Whether a call from the state that the last one left, under other random numbers, replies as usual.

        It must read none of these numbers; where it reads some of torch, it must not depend on them. The first state is put
        back afterwards.
        """
        self._vary(1, SOURCES)
        start = self._positions()
        reply = self._run(call, 1, SOURCES)
        is_read = self._positions() != start
        self.reset()
        return reply.is_like(usual) and (not is_read or self.ignores_draws(call, usual))

    def ignores_draws(self, call: Call, usual: Reply) -> bool:
        """Whether a call from the first state, from which the random numbers of torch are withheld, replies as usual.

        It must read no other source.
        """
        reply = self.fresh_without_draws(call)
        return reply is not None and reply.is_like(usual)

    def fresh_without_draws(self, call: Call) -> Reply | None:
        """The reply from the first state, with the random numbers of torch withheld; None where the call reads random numbers.

        All sources are seeded anew, for a call that looks at the state of a generator.
        """
        self.reset()
        self._vary(1, SOURCES)
        start = self._positions()
        draws = WithheldDraws()
        reply = self._run(call, 1, SOURCES, draws)
        end = self._positions()
        is_same = all(start[source] == end[source] for source in SOURCES if source != TORCH)
        return reply if is_same and not draws.is_read else None

    def _positions_around(self, call: Call, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
        self.reset()
        self._vary(seed, SOURCES)
        start = self._positions()
        self._run(call, seed, SOURCES)
        return start, self._positions()

    def _run(self, call: Call, seed: int, varied: Sequence[str], within: Within = _NOTHING_ELSE) -> Reply:
        self._has_run = True
        self._state.random.restore()
        self._vary(seed, varied)
        start = _position()
        try:
            with torch.no_grad(), warnings.catch_warnings(), within:
                warnings.simplefilter("ignore")
                self.module.eval()
                leaves = self._flatten(call(self.module))
                return Reply(tuple((path, copied(leaf)) for path, leaf in leaves))
        except Exception as error:
            return Reply(raised=error)
        finally:
            self.has_drawn = _position() != start

    def _vary(self, seed: int, varied: Sequence[str]) -> None:
        if TORCH in varied:
            torch.manual_seed(seed)
        if NUMPY in varied:
            np.random.seed(seed)
        if PYTHON in varied:
            random.seed(seed)
        for generator in self._state.random.held if HELD in varied else ():
            _seed(generator, seed)

    def _positions(self) -> dict[str, Any]:
        name, keys, position, *rest = np.random.get_state()
        return {
            TORCH: torch.random.get_rng_state().numpy().tobytes(),
            NUMPY: (name, np.asarray(keys).tobytes(), position, *rest),
            PYTHON: random.getstate(),
            HELD: [_readable(generator_state(generator)) for generator in self._state.random.held],
        }

    def __enter__(self) -> Replay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._state.restore(thorough=True)


def _seed(generator: Any, seed: int) -> None:
    if isinstance(generator, torch.Generator):
        generator.manual_seed(seed)
    elif isinstance(generator, np.random.Generator):
        generator.bit_generator.state = type(generator.bit_generator)(seed).state
    else:
        generator.seed(seed)


def _readable(state: Any) -> Any:
    return state.numpy().tobytes() if isinstance(state, torch.Tensor) else repr(state)


def _is_close(one: Any, other: Any) -> bool:
    if not (isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)):
        return type(one) is type(other) and (bool(one == other) or (one != one and other != other))
    if one.shape != other.shape or one.dtype != other.dtype or one.device != other.device:
        return False
    if one.is_meta:  # without values
        return True
    if torch.equal(one, other) or not (one.is_floating_point() or one.is_complex()):
        return torch.equal(one, other)
    if one.numel() == 0:
        return True
    finite = torch.where(torch.isfinite(one), one, torch.zeros_like(one))
    allowed = _ROUNDING * torch.finfo(one.dtype).eps * float(finite.abs().max())
    return torch.allclose(one, other, rtol=0.0, atol=allowed, equal_nan=True)


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
