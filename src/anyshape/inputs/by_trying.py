"""Call the module at other sizes than the example's, and make an expression for each axis that can vary."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from anyshape.domain import Expr, Ref, Sizes, format_sizes, simplify
from anyshape.findings import DeclarationError, Finding, Source
from anyshape.findings.finding import text_of_error
from anyshape.inputs.axis_messages import spell_sizes
from anyshape.inputs.axis_moves import Accepts, Move, Place, find_moves, is_taken
from anyshape.inputs.call_messages import example_refused
from anyshape.inputs.calls import BoundCall
from anyshape.inputs.declared import Declared, InputLeaf, dtype_of
from anyshape.inputs.fit_one import affine, fit_one
from anyshape.inputs.kinds import ValueKind, recognise
from anyshape.modules.state import kept
from anyshape.modules.user_code import source_of_error
from anyshape.processes import is_own_process
from anyshape.processes.endings import user_line
from anyshape.processes.workers import Worker, WorkerDied

_SPEAKS_OF_VALUES = re.compile(
    r"out of (range|bounds)|index .* is (out|not)|lengths?\b.*(>|<|greater|less|longer|larger|positive|must)"
    r"|offsets?\b|must be (in|within) .*range|indices? (must|should)|Class values|negative|duplicate|sorted",
    re.IGNORECASE,
)
_SMALL = 5_000_000  # parameters
_SMALL_INPUTS = 1_000_000  # elements of the example: real calls are made at up to four times as many
_CALL_S = 30.0  # of a call at a size that nobody has declared
_BELOW, _ABOVE = 3, 10  # sizes around the example's at which the size of a rounded axis is looked for


def is_bad_value(error: BaseException) -> bool:
    """Whether an error is about values rather than sizes: an index out of range, a length beyond the sequence."""
    return isinstance(error, IndexError) or bool(_SPEAKS_OF_VALUES.search(text_of_error(error)))


def find_made_integers(declared: Declared) -> list[InputLeaf]:
    """The inputs of whole numbers whose values we make; none where a function of the user makes them."""
    if declared.source == "function":
        return []
    return [leaf for leaf in declared.tensor_leaves if leaf.dtype.startswith(("int", "uint"))]


def explain_bad_inputs(
    module: Callable[..., Any], declared: Declared, sizes: Sizes, error: BaseException
) -> Finding | None:
    """The finding for inputs that we made and whose values the module refuses; None if the values are not to blame."""
    whole = find_made_integers(declared)
    if not whole or not is_bad_value(error):
        return None
    if not any(_answers(module, declared, sizes, value) for value in (0, 1)):
        return None
    names = ", ".join(repr(leaf.path) for leaf in whole)
    arguments = format_sizes(declared.example_sizes)
    return Finding(
        code="AS027",
        name="made-values-refused",
        what=f"the module refuses the values made for {names} at {spell_sizes(sizes)}.",
        why=f"{type(error).__name__}: {(text_of_error(error).strip().splitlines() or ['no message'])[0]}.",
        fix=f"give a function of sizes, which makes values that are legal:  def inputs({arguments}): return ...",
        is_fix_untried=True,
        sizes=dict(sizes),
    )


def _answers(module: Callable[..., Any], declared: Declared, sizes: Sizes, value: int) -> bool:
    """Whether the module answers at these sizes with all whole numbers at one small value."""
    flat = declared.flat(declared.make(sizes, 1))
    tame = [_filled(made, value) for made in flat]
    try:
        with kept(module) if isinstance(module, torch.nn.Module) else nullcontext(), torch.no_grad():
            declared.call(module, declared.rebuild(tame))
    except Exception:
        return False
    return True


Failed = tuple[Exception, Source | None]
"""The error of a call, and the user's line."""


class TriedAxes:
    """One module and one example; `accepts`: whether it answers with some axes at other sizes."""

    def __init__(self, module: Callable[..., Any], bound: BoundCall, *, may_use_meta: bool = True) -> None:
        self.module, self.bound = module, bound
        self._meta = self._meta_state() if may_use_meta else None
        self._worker = Worker(self._attempt, seconds=_CALL_S) if is_own_process() else None
        self._known: dict[frozenset[tuple[Place, int]], bool] = {}
        self._kinds: dict[str, ValueKind] = {}
        if self._meta is not None and self._error({}) is not None:
            self._meta = None
        if self._meta is None:
            refused = self._error({})
            if refused is not None:
                error, source = refused
                raise DeclarationError(example_refused(error, source)) from error

    @property
    def on_meta(self) -> bool:
        return self._meta is not None

    @property
    def is_small(self) -> bool:
        """Whether a real call takes so little that some hundreds of them do no harm."""
        tensors = [value for _, value in self.bound.leaves if isinstance(value, torch.Tensor)]
        if sum(tensor.numel() for tensor in tensors) > _SMALL_INPUTS:
            return False
        if not isinstance(self.module, torch.nn.Module):
            return True
        return sum(parameter.numel() for parameter in self.module.parameters()) <= _SMALL

    def for_real(self) -> TriedAxes:
        """The same module and example, with real calls only."""
        return TriedAxes(self.module, self.bound, may_use_meta=False)

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

    def _error(self, sizes: Mapping[Place, int]) -> Failed | None:
        changed: dict[str, dict[int, int]] = {}
        for (path, axis), size in sizes.items():
            changed.setdefault(path, {})[axis] = size
        leaves = [self._resized(path, value, changed.get(path, {})) for path, value in self.bound.leaves]
        error = self._call(leaves)
        if not sizes or self._meta is not None or error is None or not any(map(_is_whole, leaves)):
            return error
        # Integers that were drawn, or that fit the example's sizes alone, may be at fault and not the sizes.
        tame = ([_filled(value, number) for value in leaves] for number in (0, 1))
        return None if any(self._call(each) is None for each in tame) else error

    def _call(self, leaves: list[Any]) -> Failed | None:
        if self._worker is None or self._meta is not None:  # no kernel runs on the meta device
            return self._attempt(leaves)
        try:
            failed: Failed | None = self._worker.call(leaves)
        except WorkerDied as died:
            return RuntimeError(str(died)), user_line(died.death)
        return failed

    def _attempt(self, leaves: list[Any]) -> Failed | None:
        inputs = self.bound.rebuild(leaves)
        try:
            with self._safe(), torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if self._meta is not None and isinstance(self.module, torch.nn.Module):
                    torch.func.functional_call(self.module, self._meta, inputs.args, dict(inputs.kwargs))
                else:
                    self.module(*inputs.args, **inputs.kwargs)
        except Exception as error:
            return error, source_of_error(error)
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
        if path not in self._kinds:
            self._kinds[path] = recognise([value])
        drawn = self._kinds[path].draw(shape, torch.Generator().manual_seed(0))
        return drawn.to(dtype=value.dtype, device=value.device)


def _filled(value: Any, number: int) -> Any:
    """The value with each whole number replaced by this one: an index or a length that a module takes at most sizes."""
    return torch.full_like(value, number) if _is_whole(value) else value


def _is_whole(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and dtype_of(value).startswith(("int", "uint"))


def name_of(place: Place) -> str:
    """`ids_0` for axis 0 of ids; a made-up name that a person can guess."""
    path, axis = place
    spoken = "".join(char if char.isalnum() else "_" for char in path)
    return f"{spoken if not spoken[:1].isdigit() else f'x{spoken}'}_{axis}"


def find_open_axes(trial: TriedAxes, sizes: Mapping[Place, int]) -> dict[Place, Expr]:
    """An expression for every axis that can vary, among those given with their sizes in the example.

    The meta device admits sizes that a kernel refuses. So moves that were found there are tried for real where the module is
    small, and if one of them is refused, all are found for real.
    """
    moves = find_moves(trial, sizes)
    if trial.on_meta and trial.is_small:
        real = trial.for_real()
        if not all(is_taken(real, sizes, move) for move in moves):
            moves, trial = find_moves(real, sizes), real
    bases = _bases(moves, sizes)
    if bases is None:  # no axis belongs to one move alone: each is a dim, and rules have to say the rest
        return {place: Ref(name_of(place)) for place in sizes if any(place in move for move in moves)}
    found: dict[Place, Expr] = {}
    for base, move in zip(bases, moves, strict=True):
        found.update(_rounded(trial, sizes, move, moves))
        if not any(place in found for place in move):
            found[base] = Ref(name_of(_first(base, move, sizes)))
    for place in sizes:
        causes = [(base, move) for base, move in zip(bases, moves, strict=True) if place in move]
        if place not in found and causes:
            terms: list[tuple[int, Expr]] = [(move[place] // move[base], found[base]) for base, move in causes]
            rest = sizes[place] - sum(move[place] // move[base] * sizes[base] for base, move in causes)
            found[place] = simplify(affine(terms, rest))
    return found


def _first(base: Place, move: Move, sizes: Mapping[Place, int]) -> Place:
    """The first axis that always has the size of the base, which gives the dim its name."""
    alike = [place for place in move if sizes[place] == sizes[base] and move[place] == move[base]]
    return min(alike, key=list(sizes).index)


def _bases(moves: Sequence[Move], sizes: Mapping[Place, int]) -> list[Place] | None:
    """For each move an axis of no other move, by whose step all others are divisible: the smallest, then the first."""
    order = list(sizes)
    bases = []
    for move in moves:
        own = [
            place
            for place, step in move.items()
            if not any(place in other for other in moves if other is not move)
            and all(other % step == 0 for other in move.values())
        ]
        if not own:
            return None
        bases.append(min(own, key=lambda place: (sizes[place], order.index(place))))
    return bases


def _rounded(trial: Accepts, sizes: Mapping[Place, int], move: Move, moves: Sequence[Move]) -> dict[Place, Expr]:
    """Where an axis has steps of 2 or more beside steps of 1: whether it takes the sizes between, which are then rounded.

    `{x: 2, y: 1}`: does the module answer with x one longer, with y as it is or one longer?  Then y is a quotient of x.
    """
    largest = max(move.values())
    steps = set(move.values())
    if (
        steps != {1, largest}
        or largest < 2
        or any(place in other for place in move for other in moves if other is not move)
    ):
        return {}
    fine = [place for place, step in move.items() if step == largest]
    coarse = [place for place, step in move.items() if step == 1]
    size, quotient = sizes[fine[0]], sizes[coarse[0]]
    samples: dict[int, int] = {}
    for moved in range(max(2, size - _BELOW), size + _ABOVE):
        near = quotient + (moved - size) // largest
        for other in (near, near + 1):
            at = {**dict.fromkeys(fine, moved), **{place: sizes[place] - quotient + other for place in coarse}}
            if min(at.values()) >= 2 and moved not in samples and trial.accepts(at):
                samples[moved] = other
    name = name_of(fine[0])
    takes_all = all(moved in samples for moved in range(size, size + _ABOVE))
    fitted = fit_one(name, samples) if takes_all else None
    if fitted is None:
        return {}
    found: dict[Place, Expr] = dict.fromkeys(fine, Ref(name))
    for place in coarse:
        found[place] = simplify(affine([(1, fitted)], sizes[place] - quotient))
    return found
