"""The user's module with its decisions fixed beforehand, and the questions themselves, each as a module.

    FixedDecisions(m, (True, "value_1"))      m, where the first question is decided as True and the second by a number
    QuestionModule(m, (True,), "number")      what m asks after one decision, as its only output

A number is given as the length of an input of that name, so that capture sees a size; one below zero by its distance from
zero. In the file as a whole it is a scalar (see `translate.decisions`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import torch

from anyshape.intercept.open_numbers import run_open
from anyshape.intercept.questions import Asked, Ints, Kind, Questions

_DTYPES = {"truth": torch.bool, "number": torch.int64}
_LONGEST_HEARD = 100
_MADE_UP = 7


@dataclass(frozen=True)
class Times:
    """The same decision as many times as the number `name`: the decisions of a `while`."""

    name: str
    decision: bool


@dataclass(frozen=True)
class Below:
    """A number below zero: the input `name` is as long as the number is far from zero."""

    name: str


Entry = bool | str | Times | Below
Script = tuple[Entry, ...]
"""Decisions in the order of the questions: truths as they are, numbers by the name of the input that has them."""


class _Scripted(torch.nn.Module):
    """A module that runs under `Questions`, which gets its decisions from a script."""

    def __init__(self, module: torch.nn.Module, script: Script, *, ints: Ints = "tensors") -> None:
        super().__init__()
        self.module = module
        self.script = script
        self._ints = ints
        self._is_strict = False

    def strictly(self) -> _Scripted:
        """A copy that raises for values by which the module itself would decide otherwise."""
        strict = copy(self)
        strict._is_strict = True
        return strict

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        decisions = [decision for entry in self.script for decision in _decisions(entry, kwargs)]

        def run() -> Any:
            with Questions((args, kwargs), decisions, is_strict=self._is_strict, ints=self._ints) as questions:
                return questions.outputs_as_tensors(self.module(*args, **kwargs))

        return run_open(self.module, run)


def _decisions(entry: Entry, kwargs: dict[str, Any]) -> Iterator[Any]:
    if isinstance(entry, bool):
        yield entry
    elif isinstance(entry, str):
        yield kwargs.pop(entry).shape[0]
    elif isinstance(entry, Below):
        yield -kwargs.pop(entry.name).shape[0]
    else:
        yield from [entry.decision] * int(kwargs.pop(entry.name).shape[0])


class FixedDecisions(_Scripted):
    """The module where its decisions are fixed. A question more is an error: no value may be baked in."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._run(args, kwargs)
        except Asked as asked:
            raise RuntimeError(f"the model asks for one more value at {asked.source}") from None


class QuestionModule(_Scripted):
    """A module whose output is the value that the user's module reads next after these decisions. If it reads none: the
    value that ends the loop at the end of the script, otherwise an unused false or 0.
    """

    def __init__(self, module: torch.nn.Module, script: Script, kind: Kind, *, ints: Ints = "tensors") -> None:
        super().__init__(module, script, ints=ints)
        self._kind = kind

    def forward(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        try:
            self._run(args, kwargs)
        except Asked as asked:
            _leave_modules(asked)
            if asked.kind != self._kind:
                raise RuntimeError(f"the model asks another question at {asked.source}") from None
            return asked.value
        last = self.script[-1] if self.script else None
        ending = isinstance(last, Times) and not last.decision
        return torch.full((), ending, dtype=_DTYPES[self._kind])


def _leave_modules(error: BaseException) -> None:
    """Tell torch's tracer that it has left the modules that the error came through: it does not notice by itself."""
    from torch.fx import Tracer

    traceback = error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code is Tracer.call_module.__code__:
            frame.f_locals["self"].module_stack.pop(frame.f_locals["module_key"], None)
        traceback = traceback.tb_next


@dataclass(frozen=True)
class QuestionFound:
    """What a module asked of some inputs after the script's decisions, and the numbers that it asked for on the way, each as
    its distance from zero.

    `sizes` are those of the inputs, where whoever made them says so. Where the script has another sign than a number
    really has, a small number of the script's sign was made up, and `is_real` is false.
    """

    asked: Asked | None
    numbers: Mapping[str, int]
    sizes: Mapping[str, int] = field(default_factory=dict)
    is_real: bool = True


def find_next_question(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], script: Script, *, ints: Ints = "tensors"
) -> QuestionFound:
    """Run the module: truths come from the script, numbers are what they are. What the module raises goes on."""
    decisions: list[Any] = []
    numbers: dict[str, int] = {}
    is_real = True

    def ask() -> Asked | None:
        return _first_question(module, args, kwargs, decisions, ints)

    for entry in script:
        if isinstance(entry, bool):
            decisions.append(entry)
        elif isinstance(entry, (str, Below)):
            asked = ask()
            if asked is None or asked.kind != "number":
                return QuestionFound(asked, numbers, is_real=is_real)
            number, is_below = int(asked.value), isinstance(entry, Below)
            if (number < 0) != is_below:
                is_real = False
                number = -1 - number % _MADE_UP if is_below else -number % _MADE_UP
            numbers[entry.name if isinstance(entry, Below) else entry] = abs(number)
            decisions.append(number)
        else:
            numbers[entry.name] = 0
            while (asked := ask()) is not None and bool(asked.value) == entry.decision:
                decisions.append(entry.decision)
                numbers[entry.name] += 1
                if numbers[entry.name] > _LONGEST_HEARD:
                    return QuestionFound(asked, numbers, is_real=is_real)
    return QuestionFound(ask(), numbers, is_real=is_real)


def _first_question(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], decisions: Sequence[Any], ints: Ints
) -> Asked | None:
    def run() -> None:
        with Questions((args, kwargs), decisions, ints=ints):
            module(*args, **kwargs)

    try:
        run_open(module, run)
    except Asked as asked:
        return asked
    return None
