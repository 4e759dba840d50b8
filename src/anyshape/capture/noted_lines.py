"""Lines of the user's code on which a size leaves exact arithmetic while the module is captured.

    if str(x.shape[0]) in self.names                    of a symbolic size it is "s77", and leaves no condition
    torch.log(torch.tensor(float(n))).ceil().item()     a float32 of which torch's kernel need not give the last bit is rounded

Texts that are only printed, logged or raised are not noted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from anyshape.domain import Expr, dims_of
from anyshape.findings import Source
from anyshape.intercept.patching import Patch, patched
from anyshape.intercept.size_tensors import Rounding
from anyshape.modules.user_code import acts_for_caller, make_source, runs_users_code
from anyshape.modules.uses_in_code import is_only_told
from anyshape.records.captured import Note


def notes_of(
    texts: Sequence[Source], roundings: Sequence[Rounding], symbols: Mapping[str, Expr], sizes: Mapping[str, int]
) -> Iterator[Note]:
    """The lines of a capture on which a size leaves exact arithmetic; without symbols, the dims of a float are not known."""
    yield from (Note("text", source, dict(sizes)) for source in texts)
    for source, of in roundings:
        dims = dict.fromkeys(name for symbol in sorted(of) if symbol in symbols for name in dims_of(symbols[symbol]))
        yield Note("rounding", source, dict(sizes), dims=tuple(dims))


@contextmanager
def noted_texts() -> Iterator[list[Source]]:
    """Within this, lines of the user's code that turn a size into a text are added to the list that it gives."""
    from torch import SymBool, SymFloat, SymInt

    noted: list[Source] = []
    with patched([_noting(kind, noted) for kind in (SymInt, SymFloat, SymBool)]):
        yield noted


def _noting(kind: type, noted: list[Source]) -> Patch:
    own: Callable[[Any], str] = vars(kind)["__repr__"]

    def noting(size: Any) -> str:
        frame = sys._getframe(1)
        while acts_for_caller(frame) and frame.f_back is not None:  # `str(pair)` of a named tuple
            frame = frame.f_back
        file, line = frame.f_code.co_filename, frame.f_lineno
        if runs_users_code(frame) and not is_only_told(file, line):
            source = make_source(file, line, frame.f_code.co_qualname)
            noted.extend([source] if source not in noted else [])
        return own(size)

    return kind, "__repr__", noting
