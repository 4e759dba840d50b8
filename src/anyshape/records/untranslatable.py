"""What translation lacks: an operator of a program that nobody has said how to write."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Untranslatable:
    """An operator without a translation, torch's stack text of its first use, and what its template needs.

    `tensors` and `others` are the names of its parameters, `outputs` counts what it returns. `body` is the error with which
    its Python body refused to be followed, and None where it has none. `mutates`: it changes its arguments.
    """

    operator: str
    stack: str | None
    tensors: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    outputs: int = 1
    body: BaseException | None = None
    mutates: bool = False
