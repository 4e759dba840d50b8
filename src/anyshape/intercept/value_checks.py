"""Checks of values in the user's code (`torch._check`, `torch._check_tensor_all`), recorded as assertions with their words.

    torch._check(mask.any().item(), lambda: "no mask")  ->  the same, and _assert_async(truth, "RuntimeError: no mask (...)")

torch.export takes such a check for knowledge about a symbol: what it writes down has no words, and looks like conditions of its
own. `torch._check` of sizes alone is left to torch: its condition is a guard. Behind the words, in a line of its own, an
assertion has the condition as torch writes it: `translate/fewer_nodes.py` needs it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import SymBool, Tensor

from anyshape.intercept.patching import patched
from anyshape.modules.user_code import is_users, source_of_running_code

__only_passes_on__ = True

_NAME = "_check_with"  # what all functions torch._check... call
_NO_WORDS = "Expected cond to be True, but got False."
_NOT_TRUE = "Expected Tensor with single nonzero value, but got zero"
_PLAIN = (str, int, float, bool, type(None))


@contextmanager
def recorded_checks() -> Iterator[None]:
    """Within this, a check of values in the user's code is recorded as an assertion, too."""
    own = vars(torch)[_NAME]

    def check(error_type: type[Exception], cond: Any, message: Callable[[], Any] | None = None) -> None:
        if isinstance(cond, SymBool) and _is_of_values(cond) and _is_called_by_user():
            condition = str(cond.node.expr)
            truth = torch.scalar_tensor(torch.sym_ite(cond, 1, 0), dtype=torch.int64)
            words = _with_line(f"{error_type.__name__}: {_words_of(message)}")
            torch.ops.aten._assert_async.msg(truth, f"{words}\n{condition}")
        own(error_type, cond, message)  # from here on, torch takes the condition for true

    with patched([(vars(torch), _NAME, check)]):
        yield


@contextmanager
def asked_checks() -> Iterator[None]:
    """Within this, a check of values in the user's code is what `if not cond: raise` is: a trace that cannot follow it ends."""
    own = vars(torch)[_NAME]

    def check(error_type: type[Exception], cond: Any, message: Callable[[], Any] | None = None) -> None:
        is_asked = isinstance(cond, SymBool) and _is_of_values(cond) and _is_called_by_user()
        own(error_type, bool(cond) if is_asked else cond, message)

    with patched([(vars(torch), _NAME, check)]):
        yield


@contextmanager
def decided_checks() -> Iterator[None]:
    """Within this, a check may be of a tensor that is a number: whether it holds is asked of the tensor."""
    own = vars(torch)[_NAME]

    def check(error_type: type[Exception], cond: Any, message: Callable[[], Any] | None = None) -> None:
        own(error_type, bool(cond) if isinstance(cond, Tensor) else cond, message)

    with patched([(vars(torch), _NAME, check)]):
        yield


def replacements() -> dict[Any, Callable[..., Any]]:
    """`torch._assert_async`, whose words get the line."""
    return {torch._assert_async: _assert_async}


def _assert_async(func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    given = dict(zip(("input", "assert_msg"), args, strict=False)) | dict(kwargs)
    return func(given["input"], _with_line(f"RuntimeError: {given.get('assert_msg', _NOT_TRUE)}"))


def _is_of_values(cond: SymBool) -> bool:
    """Whether a condition is about values; the others are about sizes of the inputs."""
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    return bool(free_unbacked_symbols(cond))


def _is_called_by_user() -> bool:
    frame = sys._getframe(3)  # check, and the object that looks at the thread
    while frame.f_back is not None and frame.f_code.co_filename == torch.__file__:
        frame = frame.f_back
    return is_users(frame.f_code.co_filename)


def _words_of(message: Callable[[], Any] | None) -> str:
    """The words of a check; where they may have values in them, which a file has none of, those of torch for no words."""
    cells = getattr(message, "__closure__", None) or ()
    defaults = getattr(message, "__defaults__", None) or ()
    held = [*(cell.cell_contents for cell in cells), *defaults]
    if message is None or not all(isinstance(value, _PLAIN) for value in held):
        return _NO_WORDS
    return str(message())


def _with_line(words: str) -> str:
    source = source_of_running_code(3)
    return words if source is None else f"{words.splitlines()[0]} ({source.file}:{source.line})"
