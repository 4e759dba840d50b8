"""What Python asks of tensors while a module runs: `if x.sum() > 0`, `int(n)`, `.item()`; answered from a script.

    if x.sum() > 0:        -> a question of truth, answered True or False
    for _ in range(int(n)) -> a question of number, answered by a whole number
    x / float(x.max())     -> no question: the float goes on as a tensor (see `real_numbers`)

Only values that depend on the inputs are questions; what follows from weights and sizes alone is torch's to answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from anyshape.findings import Source
from anyshape.modules.frames import source_of_running_code
from anyshape.modules.real_numbers import RealNumbers, real_number, whole_number

Kind = Literal["truth", "number"]
Answers = Sequence[Any]

_TRUTHS = {torch.Tensor.__bool__, torch.is_nonzero, torch.Tensor.is_nonzero}
_NUMBERS = {torch.Tensor.__int__, torch.Tensor.__index__}
_EQUAL = {torch.equal, torch.Tensor.equal}
_CLOSE = {torch.allclose, torch.Tensor.allclose}
_WHOLE = {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}


class Asked(BaseException):
    """A question that the script does not answer. No Exception: a model's own `except` must not swallow it."""

    def __init__(self, kind: Kind, value: torch.Tensor, source: Source | None) -> None:
        super().__init__(kind)
        self.kind = kind
        self.value = value
        self.source = source


class Questions(TorchFunctionMode):
    """Answers questions in order, from `answers`; raises Asked at the first that it has no answer for.

    `inputs` are what the module is called with. A tensor depends on them if anything that it was made from does; tensors
    that share memory depend together. Strictly, an answer that the values contradict is an error.
    """

    def __init__(self, inputs: Any, answers: Answers, *, is_strict: bool = False) -> None:
        super().__init__()
        self._is_strict = is_strict
        self._answers = list(answers)
        self._numbers = RealNumbers()
        self._kept: list[torch.Tensor] = []  # a freed tensor's memory may become another's
        self._dependent: set[int] = set()
        self._mark(inputs)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        depends = self._depends((args, kwargs))
        if depends and (func is real_number or (func is torch.Tensor.item and args[0].is_floating_point())):
            number = self._numbers.add(args[0])  # a float goes on as a tensor: whoever compares it asks
            self._mark(number)
            return number
        question = _question(func, args, kwargs) if depends else None
        if question is not None:
            answer = self._answer(*question)
            return int(answer) if func in _NUMBERS else answer  # Python wants an int here, and no symbol of one
        result = self._numbers.call(func, args, kwargs)
        if depends:
            self._mark(result)
            if _writes(func, kwargs):
                self._mark((args, kwargs))
        return result

    def answered(self, value: Any) -> Any:
        """What the module answers, with floats that were asked of values as tensors."""
        return self._numbers.answered(value)

    def _answer(self, kind: Kind, value: torch.Tensor) -> Any:
        if not self._answers:
            raise Asked(kind, value, source_of_running_code(3))
        answer = self._answers.pop(0)
        if isinstance(answer, bool) != (kind == "truth"):
            raise RuntimeError("the model asks other questions at these sizes")
        if self._is_strict and isinstance(answer, bool) and bool(value) != answer:
            raise RuntimeError("the model decides otherwise by these values")
        return answer

    def _depends(self, values: Any) -> bool:
        return any(
            isinstance(value, torch.Tensor) and _memory(value) in self._dependent for value in tree_leaves(values)
        )

    def _mark(self, values: Any) -> None:
        for value in tree_leaves(values):
            if isinstance(value, torch.Tensor) and _memory(value) not in self._dependent:
                self._dependent.add(_memory(value))
                self._kept.append(value)


def _question(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Kind, torch.Tensor] | None:
    """What a call asks, as a tensor without axes; None if it asks nothing."""
    if func in _TRUTHS or (func is torch.Tensor.item and args[0].dtype == torch.bool):
        return "truth", args[0].reshape(()) != 0
    if func in _NUMBERS or func is whole_number or (func is torch.Tensor.item and args[0].dtype in _WHOLE):
        return "number", args[0].reshape(()).to(torch.int64)
    if func in _EQUAL:
        same = args[0].shape == args[1].shape
        return ("truth", (args[0] == args[1]).all()) if same else None
    if func in _CLOSE:
        return "truth", torch.isclose(*args, **kwargs).all()
    return None


def _writes(func: Callable[..., Any], kwargs: Mapping[str, Any]) -> bool:
    name = getattr(func, "__name__", "")
    in_place = (name.endswith("_") and not name.endswith("__")) or name.startswith("__i") or name == "__setitem__"
    return in_place or "out" in kwargs


def _memory(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):  # no memory of its own: sparse, nested
        return id(tensor)
