"""Values that Python reads from tensors while a module runs: `if x.sum() > 0`, `int(n)`, `.item()`; decided by a script.

    if x.sum() > 0:        -> a question of truth, decided as True or False
    for _ in range(int(n)) -> a question of number, decided by a whole number
    x / float(x.max())     -> no question: the float goes on as a tensor (see `real_numbers`)
    x * int(n)             -> no question either (see `python_numbers`), unless ints are to be sizes
    x[: int(n)]            -> a question of number, unless ints are to be masks (see `selections`)
    if mask.nonzero().numel() > 0  -> a question of truth: values decide how much is selected (see `selections`)

Only values that depend on the inputs are questions; what follows from weights and sizes alone torch decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Literal

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from anyshape.findings import Source
from anyshape.intercept.control_flow import control_flow_in_python
from anyshape.intercept.int_arithmetic import ELEMENTWISE, WHOLE_DTYPES
from anyshape.intercept.python_numbers import (
    PythonNumbers,
    at_numbers,
    map_index,
    map_slices,
    no_hash_of_numbers,
    slice_ends,
)
from anyshape.intercept.real_numbers import larger, real_number, smaller, tensors_of, whole_number
from anyshape.intercept.selections import (
    Selections,
    call_with_mask,
    find_open_slice,
    is_open_size,
    split_with_masks,
    topk_with_mask,
)
from anyshape.intercept.value_checks import decided_checks
from anyshape.modules.user_code import source_of_running_code

Kind = Literal["truth", "number"]
Ints = Literal["tensors", "masks", "sizes"]
"""How ints that are read from tensors go on: as tensors, as tensors also where they are the ends of slices, or as sizes."""
Decisions = Sequence[Any]

_TRUTHS = {torch.Tensor.__bool__, torch.is_nonzero, torch.Tensor.is_nonzero}
_NUMBERS = {torch.Tensor.__int__, torch.Tensor.__index__}
_EQUAL = {torch.equal, torch.Tensor.equal}
_CLOSE = {torch.allclose, torch.Tensor.allclose}
_ITEMS = {torch.Tensor.__getitem__, torch.Tensor.__setitem__}
_PARTS = {
    "split": ("tensor", "split_size_or_sections", "dim"),
    "topk": ("input", "k", "dim", "largest", "sorted"),
}
"""Functions that take parts of a tensor, of lengths that may be ints that were read, and the names of their arguments."""
_SHAPES = {torch.full: 0, torch.Tensor.new_full: 1}
"""Where functions that fill a new tensor with a number have its shape."""
_LOOKS = {"__get__", "dim", "is_floating_point", "is_complex", "numel", "size"}
"""Functions that look at a tensor, not at its value."""
_COUNTING = {"argmax", "argmin", "count_nonzero", "bincount"}


class Asked(BaseException):
    """A question that the script does not decide. No Exception: a model's own `except` must not swallow it."""

    def __init__(self, kind: Kind, value: torch.Tensor, source: Source | None, **about: bool) -> None:
        super().__init__(kind)
        self.kind = kind
        self.value = value
        self.source = source
        self.may_be_negative = about.get("may_be_negative", True)
        self.ends_a_slice = about.get("ends_a_slice", False)


class Questions(TorchFunctionMode):
    """Decides questions in order, from `decisions`; raises Asked at the first that it has no decision for.

    `inputs` are what the module is called with. A tensor depends on them if anything that it was made from does; tensors
    that share memory depend together. Strictly, a decision that the values contradict is an error.

    An int goes on as a tensor, and is a question only where torch or Python need an int itself. Among `sizes`, it is a
    question as soon as it is read, and what is computed from it is computed from the decision. With `masks`, the end of a
    slice is no question.
    """

    def __init__(self, inputs: Any, decisions: Decisions, *, is_strict: bool = False, ints: Ints = "tensors") -> None:
        super().__init__()
        self._is_strict = is_strict
        self._ints_are = ints
        self._decisions = list(decisions)
        self._numbers = PythonNumbers(lambda truth: bool(self._decide("truth", truth)))
        self._selections = Selections(self._depends)
        self._counts: dict[int, torch.Tensor] = {}  # tensors that are never negative
        self._kept: list[torch.Tensor] = []  # a freed tensor's memory may become another's
        self._dependent: set[int] = set()
        self._mark(inputs)
        self._around = ExitStack()

    def __enter__(self) -> Questions:
        self._around.enter_context(no_hash_of_numbers())
        self._around.enter_context(control_flow_in_python())
        self._around.enter_context(decided_checks())
        return super().__enter__()  # type: ignore[no-any-return,no-untyped-call]

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self._around.close()

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        depends = self._depends((args, kwargs))
        open_slice = find_open_slice(args[1], self._is_mask) if func in _ITEMS else None
        if open_slice is not None:
            result = call_with_mask(open_slice, *args)
            self._mark(args[0] if func is torch.Tensor.__setitem__ else result)
            return result
        by_mask = self._with_masks(func, args, kwargs) if depends and self._numbers.has_any else None
        if by_mask is not None:
            self._mark(by_mask)
            return by_mask
        if func in _ITEMS:
            depends = depends or self._depends(slice_ends(args[1]))
            args = (args[0], map_slices(args[1], self._bound), *args[2:])
        if depends and func is torch._assert:  # torch dispatches it for tensors without values
            return _check(bool(self._decide("truth", args[0] != 0)), *args[1:], **kwargs)
        if depends and func is torch.Tensor.tolist:
            return self._listed(args[0])
        if depends and self._is_read(func, args):
            return self._read(func, args[0])
        if depends and (sizes := self._selections.read_size(func, args)) is not None:
            return self._read_size(*sizes)
        question = _question(func, args, kwargs) if depends else None
        if question is not None:
            decision = self._int_of(args[0]) if question[0] == "number" else self._decide(*question)
            return (
                int(decision) if func in _NUMBERS else decision
            )  # int() and index() must return a plain int, no symbol
        if func in (smaller, larger) and not all(map(self._is_number, args)):
            return self._compared(func, args)
        result = self._call(func, args, kwargs)
        if depends:
            self._mark(result)
            self._selections.note(func, args, kwargs, result)
            if _writes(func, kwargs):
                self._mark((args, kwargs))
        if _counts(func, args) and isinstance(result, torch.Tensor):
            self._counts[id(result)] = result
        return result

    def _with_masks(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The result of a function that takes parts of a tensor, as many elements as ints that were read; None of others.

        With masks; else a part is as long as the int that is asked for.
        """
        name = getattr(func, "__name__", "")
        if name not in _PARTS:
            return None
        given: dict[str, Any] = {**kwargs, **dict(zip(_PARTS[name], args, strict=False))}
        x: Any
        sizes: Any
        x, sizes, dim = (given.get(each) for each in _PARTS[name][:3])
        if name == "topk":
            is_plain = (
                self._numbers.is_whole(sizes) and x is not None and x.ndim == 1 and given.keys() <= set(_PARTS[name])
            )
            if not is_plain or given.get("sorted", True) is not True:
                return None
            if self._is_mask(sizes):
                return self._selections.added(topk_with_mask(x, sizes, largest=given.get("largest", True)))
            self._int_of(sizes, ends_a_slice=True)
            return None
        if not isinstance(sizes, (list, tuple)) or not any(map(self._numbers.is_whole, sizes)):
            return None
        if self._ints_are == "masks":
            pieces = split_with_masks(x, sizes, dim or 0)
            return pieces if dim else self._selections.added(pieces)
        for size in sizes:
            if self._numbers.is_whole(size):
                self._int_of(size, ends_a_slice=True)
        return None

    def _is_mask(self, value: Any) -> bool:
        """Whether an end of a part is a mask: where ints are masks, and where it is the size of a selection in a trace."""
        if not isinstance(value, torch.Tensor) or not self._depends(value):
            return False
        is_known = self._ints_are != "masks" and self._numbers.is_whole(value)
        return self._ints_are == "masks" or (is_known and is_open_size(self._numbers.known_int(value)))

    def _compared(self, func: Callable[..., Any], values: tuple[Any, ...]) -> Any:
        """min() or max() of tensors: each comparison is a question."""
        chosen = values[0]
        for value in values[1:]:
            is_better = value < chosen if func is smaller else value > chosen
            if isinstance(is_better, torch.Tensor):
                self._mark(is_better)
                is_better = self._decide("truth", is_better) if self._depends((value, chosen)) else bool(is_better)
            chosen = value if is_better else chosen
        return chosen

    def _is_read(self, func: Callable[..., Any], args: tuple[Any, ...]) -> bool:
        """Whether a call reads a number that goes on as a tensor."""
        if func is real_number or (func is torch.Tensor.item and args[0].is_floating_point()):
            return True
        is_int = func is whole_number or (func is torch.Tensor.item and args[0].dtype in WHOLE_DTYPES - {torch.bool})
        return is_int and self._ints_are != "sizes"

    def _read(self, func: Callable[..., Any], value: torch.Tensor) -> torch.Tensor:
        is_float = func is real_number or (func is torch.Tensor.item and value.is_floating_point())
        number = self._numbers.add(value) if is_float else self._numbers.add_whole(value)
        if self._is_count(value):
            self._counts[id(number)] = number
        self._mark(number)
        return number

    def _listed(self, values: torch.Tensor) -> Any:
        """`values.tolist()`, each element read by itself."""
        if values.ndim:
            return [self._listed(each) for each in values]
        return self.__torch_function__(torch.Tensor.item, (), (values,))

    def _read_size(self, sizes: Any, place: int | None) -> Any:
        """Sizes of a selection: the one that values decide is a number, which torch gets as the size itself."""
        if place is not None:
            return (*sizes[:place], self._read_size(sizes[place], None), *sizes[place + 1 :])
        number = self._read(whole_number, torch.full((), sizes, dtype=torch.int64))
        self._counts[id(number)] = number
        self._numbers.learn_int(number, sizes)
        return number

    def _call(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The function's result; ints that were read are ints where it needs them, and tensors where it computes."""
        if func in _ITEMS:
            return self._items(func, args)
        name = getattr(func, "__name__", "")
        if func in PythonNumbers.FILLS:
            place = _SHAPES.get(func, len(args))
            args = (*args[:place], *self._ints(args[place : place + 1]), *args[place + 1 :])
            kwargs = {name: self._ints(value) if name == "size" else value for name, value in kwargs.items()}
        elif name not in _LOOKS | ELEMENTWISE and func not in (smaller, larger) and func not in PythonNumbers.MAKERS:
            args, kwargs = self._ints((args, dict(kwargs)))
        return self._numbers.call(func, args, kwargs)

    def _items(self, func: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        tensor, index, *value = args
        picked = at_numbers(tensor, index, self._numbers.is_whole) if not value else None
        if picked is not None:
            return picked
        return self._numbers.call(func, (tensor, map_index(index, self._whole_as_int), *value), {})

    def _ints(self, values: Any) -> Any:
        return tree_map(self._whole_as_int, values) if self._numbers.has_any else values

    def _whole_as_int(self, value: Any) -> Any:
        return self._int_of(value) if self._numbers.is_whole(value) else value

    def _bound(self, value: Any) -> Any:
        """The end of a slice: an int, whatever tensor it was."""
        is_open = isinstance(value, torch.Tensor) and self._depends(value)
        return self._int_of(value, ends_a_slice=True) if is_open else value

    def _int_of(self, value: torch.Tensor, *, ends_a_slice: bool = False) -> Any:
        """The decision of a question of number, which one already made may imply."""
        known = self._numbers.known_int(value)
        if known is None:
            number, is_count = value.reshape(()).to(torch.int64), self._is_count(value)
            known = self._decide("number", number, may_be_negative=not is_count, ends_a_slice=ends_a_slice)
            if self._numbers.has(value):
                self._numbers.learn_int(value, known)
        return known

    def _is_number(self, value: Any) -> bool:
        return not isinstance(value, torch.Tensor) or self._numbers.has(value)

    def _is_count(self, value: torch.Tensor) -> bool:
        return id(value) in self._counts or value.dtype in (torch.bool, torch.uint8)

    def outputs_as_tensors(self, value: Any) -> Any:
        """The module's outputs, with floats that were read from values as tensors."""
        with torch._C.DisableTorchFunction():
            return self._numbers.outputs_as_tensors(value)

    def _decide(self, kind: Kind, value: torch.Tensor, **about: bool) -> Any:
        if not self._decisions:
            raise Asked(kind, value, source_of_running_code(3), **about)
        decision = self._decisions.pop(0)
        if isinstance(decision, bool) != (kind == "truth"):
            raise RuntimeError("the model asks other questions at these sizes")
        if self._is_strict and isinstance(decision, bool) and bool(value) != decision:
            raise RuntimeError("the model decides otherwise by these values")
        return decision

    def _depends(self, values: Any) -> bool:
        return any(_memory(value) in self._dependent for value in tensors_of((values,)))

    def _mark(self, values: Any) -> None:
        for value in tensors_of((values,)):
            if _memory(value) not in self._dependent:
                self._dependent.add(_memory(value))
                self._kept.append(value)


def _check(truth: bool, message: str) -> None:
    assert truth, message


def _question(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Kind, torch.Tensor] | None:
    """The question of a call, as a tensor without axes; None if it has none."""
    if func in _TRUTHS or (func is torch.Tensor.item and args[0].dtype == torch.bool):
        return "truth", args[0].reshape(()) != 0
    if func in _NUMBERS or func is whole_number or (func is torch.Tensor.item and args[0].dtype in WHOLE_DTYPES):
        return "number", args[0].reshape(()).to(torch.int64)
    if func in _EQUAL:
        same = args[0].shape == args[1].shape
        return ("truth", (args[0] == args[1]).all()) if same else None
    if func in _CLOSE:
        return "truth", torch.isclose(*args, **kwargs).all()
    return None


def _counts(func: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """Whether a result holds counts or places, none of which is negative."""
    name = getattr(func, "__name__", "")
    of_truths = bool(args) and isinstance(args[0], torch.Tensor) and args[0].dtype == torch.bool
    return name in _COUNTING or (name == "sum" and of_truths)


def _writes(func: Callable[..., Any], kwargs: Mapping[str, Any]) -> bool:
    name = getattr(func, "__name__", "")
    in_place = (name.endswith("_") and not name.endswith("__")) or name.startswith("__i") or name == "__setitem__"
    return in_place or "out" in kwargs


def _memory(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):  # no memory of its own: sparse, nested
        return id(tensor)
