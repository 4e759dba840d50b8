"""Checks of values in the user's code (`torch._check`, `torch._check_tensor_all`), recorded as assertions with their words.

    torch._check(mask.any().item(), lambda: "no mask")  ->  the same, and _assert_async(truth, "RuntimeError: no mask (...)")

torch.export takes such a check for knowledge about a symbol: what it writes down has no words, and looks like conditions of its
own. `torch._check` of sizes alone is left to torch: its condition is a guard. Behind the words, in a line of its own, an
assertion has the condition as torch writes it: `translate/fewer_nodes.py` needs it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import SymBool, Tensor

from anyshape.intercept.patching import patched
from anyshape.modules.user_code import runs_users_code, source_of_running_code

__only_passes_on__ = True

_NAME = "_check_with"  # what all functions torch._check... call
_NO_WORDS = "Expected cond to be True, but got False."
_NOT_TRUE = "Expected Tensor with single nonzero value, but got zero"
_PLAIN = (str, int, float, bool, type(None))


Message = Callable[[], Any] | None
Change = Callable[[type[Exception], Any, Message], Any]
"""What torch is given in place of the condition of a check."""


@contextmanager
def _changed_checks(change: Change) -> Iterator[None]:
    """Within this, torch's checks get the conditions that `change` makes of theirs."""
    own = vars(torch)[_NAME]

    def check(error_type: type[Exception], cond: Any, message: Message = None) -> None:
        own(error_type, change(error_type, cond, message), message)

    with patched([(vars(torch), _NAME, check)]):
        yield


def recorded_checks() -> AbstractContextManager[None]:
    """Within this, a check of values in the user's code is recorded as an assertion, too."""

    def record(error_type: type[Exception], cond: Any, message: Message) -> Any:
        if isinstance(cond, SymBool) and _is_of_values(cond) and _is_called_by_user():
            condition = str(cond.node.expr)
            truth = torch.scalar_tensor(torch.sym_ite(cond, 1, 0), dtype=torch.int64)
            words = _with_line(f"{error_type.__name__}: {_words_of(message)}")
            torch.ops.aten._assert_async.msg(truth, f"{words}\n{condition}")
        return cond  # which torch takes for true from here on

    return _changed_checks(record)


def asked_checks() -> AbstractContextManager[None]:
    """Within this, a check of values in the user's code is what `if not cond: raise` is: a trace that cannot follow it ends."""

    def ask(error_type: type[Exception], cond: Any, message: Message) -> Any:
        return bool(cond) if isinstance(cond, SymBool) and _is_of_values(cond) and _is_called_by_user() else cond

    return _changed_checks(ask)


def decided_checks() -> AbstractContextManager[None]:
    """Within this, a check may be of a tensor that is a number: whether it holds is asked of the tensor."""
    return _changed_checks(lambda error_type, cond, message: bool(cond) if isinstance(cond, Tensor) else cond)


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
    frame = sys._getframe(4)  # the change of a check, the check, and the object that looks at the thread
    while frame.f_back is not None and frame.f_code.co_filename == torch.__file__:
        frame = frame.f_back
    return runs_users_code(frame)


def _words_of(message: Message) -> str:
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
