"""Note the lines of the user's code that turn a symbolic size into a text: what they do with it leaves no condition behind.

    if str(x.shape[0]) in self.names:     torch: the text is "s77", and nothing says so     ->     here: the line is noted

Texts that are only printed, logged or raised are not noted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from anyshape.findings import Source
from anyshape.intercept.patching import Patch, patched
from anyshape.modules.unfollowed_uses import is_only_told
from anyshape.modules.user_code import is_users, make_source


@contextmanager
def noted_texts() -> Iterator[list[Source]]:
    """Within this, such lines are added to the list that it gives."""
    from torch import SymBool, SymFloat, SymInt

    noted: list[Source] = []
    with patched([_noting(kind, noted) for kind in (SymInt, SymFloat, SymBool)]):
        yield noted


def _noting(kind: type, noted: list[Source]) -> Patch:
    own: Callable[[Any], str] = vars(kind)["__repr__"]

    def noting(size: Any) -> str:
        frame = sys._getframe(1)
        file, line = frame.f_code.co_filename, frame.f_lineno
        if is_users(file) and not is_only_told(file, line):
            source = make_source(file, line, frame.f_code.co_qualname)
            noted.extend([source] if source not in noted else [])
        return own(size)

    return kind, "__repr__", noting
