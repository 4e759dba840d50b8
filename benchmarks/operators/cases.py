"""torch's own operator samples (op_db) as small modules with open axes, and the rules by which entries are left out.

An axis is open where eager answers with it one longer, alone or together with the other axes of its size, and with those
that are already open. Longer inputs
repeat the sample's values; floats are changed a little, so that no two are equal and no matrix becomes singular.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, UnaryUfuncInfo
from torch.utils import _pytree as pytree

Places = tuple[tuple[int, int], ...]
"""Tensor and axis of all that have one size."""

SAMPLES_PER_OPERATOR = 2
_DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64)
_NOT_IN_NUMPY = (torch.bfloat16, torch.complex32)
_MOST = 4000
"""Elements of a tensor. Larger ones are op_db's tests of load, with equal elements that eager sorts as it likes."""
FAR = 16
"""So much longer than its sample, and twice as long, every open axis may get."""
_LOOKED_AT = 40
"""So many samples of an operator are looked at for two that differ in rank and keywords."""
_UNCHECKED = ("batch_norm", "lu_unpack", "lu_solve", "ldl_solve", "ormqr", "householder")
"""Eager does not look whether their tensors fit together, reads past the end of the shorter and dies."""


@dataclass(frozen=True)
class LeftOut:
    operator: str
    rule: str


@dataclass(frozen=True)
class Case:
    """One sample. `dims` says which axes of which tensor have which open size: {"d0": ((0, 1), (1, 0))}."""

    operator: str
    number: int
    call: Any = field(repr=False)
    tensors: tuple[torch.Tensor, ...] = field(repr=False)
    dims: dict[str, tuple[tuple[int, int], ...]]

    @property
    def sizes(self) -> dict[str, int]:
        return {dim: self.tensors[places[0][0]].shape[places[0][1]] for dim, places in self.dims.items()}

    def other_sizes(self) -> list[dict[str, int]]:
        """Each dim by itself one and two longer and twice as long, then all together."""
        sizes = self.sizes
        changes = (lambda size: size + 1, lambda size: size + 2, lambda size: size * 2)
        alone = [{**sizes, dim: change(sizes[dim])} for dim in sizes for change in changes]
        together = [{dim: change(size) for dim, size in sizes.items()} for change in changes]
        return alone + (together if len(sizes) > 1 else [])

    def make(self, sizes: dict[str, int]) -> tuple[torch.Tensor, ...]:
        tensors = list(self.tensors)
        for dim, places in self.dims.items():
            for tensor, axis in places:
                tensors[tensor] = grow(tensors[tensor], axis, sizes[dim])
        return tuple(tensors)


class Module(torch.nn.Module):
    """The operator, its tensors as inputs and all else as constants."""

    def __init__(self, call: Any) -> None:
        super().__init__()
        self.call = call

    def forward(self, *tensors: torch.Tensor) -> Any:
        return self.call(*tensors)


def rule_against(entry: Any) -> str | None:
    """Why an entry of op_db is left out before it is tried; None where it is not."""
    name = entry.name
    if "sparse" in name or "sampled_addmm" in name or "csr" in name:
        return "sparse"
    if "backward" in name:
        return "backward"
    if name.endswith("_") and not name.endswith("__"):
        return "in place"
    if "wrapper_set_seed" in getattr(getattr(entry.op, "__code__", None), "co_names", ()):
        return "random"  # op_db sets the seed inside the call, so that its own tests can compare
    if name.startswith("empty") or name in ("new_empty", "new_empty_strided"):
        return "uninitialized"
    return None


def cases_of(entry: Any) -> tuple[list[Case], LeftOut | None]:
    name = entry.name + (f".{entry.variant_test_name}" if entry.variant_test_name else "")
    rule = rule_against(entry)
    if rule is not None:
        return [], LeftOut(name, rule)
    found: list[Case] = []
    kinds: set[Any] = set()
    rule = "no sample with an open axis"
    for sample in _samples(entry):
        call, tensors = _as_call(entry.op, sample)
        kind = (tuple(tensor.dim() for tensor in tensors), tuple(sorted(sample.kwargs)))
        if not tensors or kind in kinds or not all(0 < tensor.numel() <= _MOST for tensor in tensors):
            continue
        answer = _answer(call, tensors)
        if answer is None:
            continue
        if any(tensor.dtype in _NOT_IN_NUMPY for tensor in answer):
            rule = "answering in a dtype that numpy has not"
            continue
        if _draws(call, tensors):
            return [], LeftOut(name, "random")
        dims = _open_axes(call, tensors, tied=any(word in name for word in _UNCHECKED))
        if not dims:
            continue
        kinds.add(kind)
        found.append(Case(name, len(found), call, tensors, dims))
        if len(found) == _wanted(entry):
            break
    return found, None if found else LeftOut(name, rule)


def _wanted(entry: Any) -> int:
    """Of elementwise operators one sample says all: rank and sizes change nothing."""
    return 1 if isinstance(entry, (UnaryUfuncInfo, BinaryUfuncInfo)) else SAMPLES_PER_OPERATOR


def _samples(entry: Any) -> Iterator[Any]:
    dtypes = entry.supported_dtypes("cpu")
    dtype = next((dtype for dtype in _DTYPES if dtype in dtypes), None)
    if dtype is None:
        return
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for number, sample in enumerate(entry.sample_inputs("cpu", dtype, requires_grad=False)):
                if number >= _LOOKED_AT:
                    return
                yield sample
        except Exception:  # op_db's own trouble with this build of torch: what came so far is used
            return


def _as_call(function: Any, sample: Any) -> tuple[Any, tuple[torch.Tensor, ...]]:
    leaves, structure = pytree.tree_flatten(((sample.input, *sample.args), dict(sample.kwargs)))
    places = [number for number, leaf in enumerate(leaves) if _is_plain(leaf)]

    def call(*tensors: torch.Tensor) -> Any:
        filled = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            filled[place] = tensor
        args, kwargs = pytree.tree_unflatten(filled, structure)
        answer = function(*args, **kwargs)
        return tuple(leaf for leaf in pytree.tree_leaves(answer) if isinstance(leaf, torch.Tensor))

    return call, tuple(leaves[place].detach().clone() for place in places)


def _is_plain(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided and leaf.device.type == "cpu"


def _answer(call: Any, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...] | None:
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = call(*(tensor.clone() for tensor in tensors))
    except Exception:  # whatever eager raises, it does not answer
        return None
    plain = all(_is_plain(tensor) and not tensor.is_quantized for tensor in answer)
    return answer if answer and plain else None


def _draws(call: Any, tensors: Sequence[torch.Tensor]) -> bool:
    """Whether a call moves torch's random state."""
    before = torch.get_rng_state()
    _answer(call, tensors)
    return not torch.equal(before, torch.get_rng_state())


def _open_axes(call: Any, tensors: tuple[torch.Tensor, ...], tied: bool) -> dict[str, Places]:
    """With `tied`, axes of one size grow together or not at all."""
    axes = [
        (number, axis)
        for number, tensor in enumerate(tensors)
        for axis in range(tensor.dim())
        if tensor.shape[axis] > 1
    ]
    alone = [place for place in axes if not tied and _answers_longer(call, tensors, [(place,)])]
    dims: list[Places] = [(place,) for place in alone]
    rest = [place for place in axes if place not in alone]
    for size in sorted({tensors[number].shape[axis] for number, axis in rest}):
        group = tuple(place for place in rest if tensors[place[0]].shape[place[1]] == size)
        if _answers_longer(call, tensors, [group]):
            dims.append(group)
    return {f"d{number}": places for number, places in enumerate(_open_together(call, tensors, dims))}


def _open_together(call: Any, tensors: tuple[torch.Tensor, ...], dims: list[Places]) -> list[Places]:
    """Those, taken in order, that may grow by other lengths than the rest, and far beyond it: a domain of ranges."""
    chosen: list[Places] = []
    for dim in dims:
        all_of_them = [*chosen, dim]
        grows = _answers_longer(call, tensors, all_of_them) and _answers_longer(call, tensors, all_of_them[::-1])
        if grows and all(_answers_longer(call, tensors, [each], FAR) for each in all_of_them):
            chosen.append(dim)
    return chosen


def _answers_longer(call: Any, tensors: tuple[torch.Tensor, ...], dims: Sequence[Places], first: int = 1) -> bool:
    """Whether eager answers with the first dim `first` longer, the second one more than that, and so on."""
    longer = list(tensors)
    for more, places in enumerate(dims, first):
        for tensor, axis in places:
            longer[tensor] = grow(longer[tensor], axis, longer[tensor].shape[axis] + more)
    answer, before = _answer(call, longer), _answer(call, tensors)
    # A file has as many outputs at every size, of one rank each.
    return answer is not None and before is not None and _form(answer) == _form(before)


def _form(answer: Sequence[torch.Tensor]) -> list[tuple[int, torch.dtype]]:
    return [(tensor.dim(), tensor.dtype) for tensor in answer]


def grow(tensor: torch.Tensor, axis: int, size: int) -> torch.Tensor:
    old = tensor.shape[axis]
    if size == old:
        return tensor
    longer = tensor.index_select(axis, torch.arange(size) % max(old, 1))
    if not tensor.is_floating_point():
        return longer
    shape = [size if place == axis else 1 for place in range(tensor.dim())]
    is_new = (torch.arange(size) >= old).reshape(shape)
    noise = torch.rand(longer.shape, generator=torch.Generator().manual_seed(size)).to(longer.dtype)
    changed = longer * (1 + 0.1 * noise)
    if torch.count_nonzero(tensor == 0) == 1:  # several are structure, such as a triangle; one is a value like others
        changed = torch.where(longer == 0, 0.1 * noise, changed)
    return torch.where(is_new, changed, longer)
