"""Which axes can vary, found by calling the module at other sizes than the example's.

An axis is tried alone, together with axes of the same size, or with one that grows along.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from anyshape.domain import Expr, Ref, Sizes, format_sizes, simplify
from anyshape.findings import DeclarationError, Finding
from anyshape.inputs.axis_messages import spell_sizes
from anyshape.inputs.call_messages import example_refused
from anyshape.inputs.calls import BoundCall
from anyshape.inputs.declared import Declared
from anyshape.inputs.fit_one import affine
from anyshape.inputs.kinds import recognise
from anyshape.modules.frames import source_of_error
from anyshape.modules.state import kept

_SPEAKS_OF_VALUES = re.compile(
    r"out of (range|bounds)|index .* is (out|not)|lengths?\b.*(>|<|greater|less|longer|larger|positive|must)"
    r"|offsets?\b|must be (in|within) .*range|indices? (must|should)|Class values|negative|duplicate|sorted",
    re.IGNORECASE,
)


def is_bad_value(error: BaseException) -> bool:
    """Whether an error is about values rather than sizes: an index out of range, a length beyond the sequence."""
    return isinstance(error, IndexError) or bool(_SPEAKS_OF_VALUES.search(str(error)))


def explain_bad_inputs(
    module: Callable[..., Any], declared: Declared, sizes: Sizes, error: BaseException
) -> Finding | None:
    """The finding for inputs that we made and whose values the module refuses; None if the values are not to blame."""
    whole = [leaf for leaf in declared.tensor_leaves if leaf.dtype.startswith(("int", "uint"))]
    if declared.source == "function" or not whole or not is_bad_value(error):
        return None
    if not any(_answers(module, declared, sizes, value) for value in (0, 1)):
        return None
    names = ", ".join(repr(leaf.path) for leaf in whole)
    arguments = format_sizes(declared.example_sizes)
    return Finding(
        code="AS027",
        name="made-values-refused",
        what=f"the module refuses the values made for {names} at {spell_sizes(sizes)}.",
        why=f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no message'}.",
        fix=f"give a function of sizes, which makes values that are legal:  def inputs({arguments}): return ...",
        is_fix_untried=True,
        sizes=dict(sizes),
    )


def _answers(module: Callable[..., Any], declared: Declared, sizes: Sizes, value: int) -> bool:
    """Whether the module answers at these sizes with all whole numbers at one small value."""
    flat = declared.flat(declared.make(sizes, 1))
    tame = [
        torch.full_like(made, value) if leaf.kind == "tensor" and leaf.dtype.startswith(("int", "uint")) else made
        for leaf, made in zip(declared.leaves, flat, strict=True)
    ]
    try:
        with kept(module) if isinstance(module, torch.nn.Module) else nullcontext(), torch.no_grad():
            declared.call(module, declared.rebuild(tame))
    except Exception:
        return False
    return True


Place = tuple[str, int]  # path and axis


class Trial:
    """One module and one example; `accepts`: whether it answers with some axes at other sizes."""

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


@dataclass(frozen=True)
class Group:
    """Axes that are one dim, and axes that grow by as much whenever it does."""

    members: frozenset[Place]
    followers: frozenset[Place]


def name_of(place: Place) -> str:
    """`ids_0` for axis 0 of ids; a made-up name that a person can guess."""
    path, axis = place
    spoken = "".join(char if char.isalnum() else "_" for char in path)
    return f"{spoken if not spoken[:1].isdigit() else f'x{spoken}'}_{axis}"


def find_open_axes(trial: Trial, sizes: Mapping[Place, int]) -> dict[Place, Expr]:
    """An expression for every axis that can vary, among those given with their sizes in the example."""
    groups = _merged([group for place in sizes if (group := _group_of(trial, place, sizes)) is not None])
    found: dict[Place, Expr] = {}
    names = {group: name_of(min(group.members, key=list(sizes).index)) for group in groups}
    for group in groups:
        found.update({member: Ref(names[group]) for member in group.members})
    for place, size in sizes.items():
        causes = [group for group in groups if place in group.followers]
        if place not in found and causes:
            terms: list[tuple[int, Expr]] = [(1, Ref(names[group])) for group in causes]
            rest = size - sum(sizes[next(iter(group.members))] for group in causes)
            found[place] = simplify(affine(terms, rest))
    return found


def _group_of(trial: Trial, place: Place, sizes: Mapping[Place, int]) -> Group | None:
    if _varies(trial, [place], sizes):
        return Group(frozenset([place]), frozenset())
    alike = [other for other in sizes if other != place and sizes[other] == sizes[place]]
    if alike and _varies(trial, [place, *alike], sizes):
        return Group(frozenset(_pruned(trial, place, alike, [], sizes)), frozenset())
    for along in dict.fromkeys(sizes[other] for other in sizes if sizes[other] > sizes[place]):
        larger = [other for other in sizes if sizes[other] == along]
        if not _varies(trial, [place, *alike, *larger], sizes):
            continue
        followers = _pruned(trial, None, larger, [place, *alike], sizes)
        members = _pruned(trial, place, alike, followers, sizes)
        return Group(frozenset(members), frozenset(followers))
    return None


def _varies(trial: Trial, places: Iterable[Place], sizes: Mapping[Place, int]) -> bool:
    """Whether the module answers with all of these longer by one, and by as much as the first is long."""
    together = list(places)
    steps = (1, max(sizes[together[0]], 2))
    return all(trial.accepts({place: sizes[place] + step for place in together}) for step in steps)


def _pruned(
    trial: Trial, first: Place | None, others: Sequence[Place], fixed: Sequence[Place], sizes: Mapping[Place, int]
) -> list[Place]:
    """Those that are needed: each is left out once, and stays out if the module answers without it."""
    needed = list(others)
    head = [first] if first is not None else []
    for other in others:
        fewer = [place for place in needed if place != other]
        if _varies(trial, [*head, *fewer, *fixed] if head else [*fixed, *fewer], sizes):
            needed = fewer
    return [*head, *needed]


def _merged(groups: Sequence[Group]) -> list[Group]:
    """Groups that share a member are one; an axis that can vary alone is in no other's group."""
    alone = {member for group in groups if len(group.members) == 1 and not group.followers for member in group.members}
    merged: list[Group] = []
    for group in groups:
        members = group.members if len(group.members) == 1 else group.members - alone
        followers = group.followers - alone
        for other in [other for other in merged if other.members & members]:
            merged.remove(other)
            members, followers = members | other.members, followers | other.followers
        merged.append(Group(members, followers))
    return merged
