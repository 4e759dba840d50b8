"""Numbers that Python reads from tensors which follow from sizes, where no arithmetic of ours follows what torch computes.

    torch.sin(torch.tensor(float(n))).item() > 0.9999     true at n = 322 and 366; no comparison of whole numbers leads there
    if (table == torch.tensor([h, w])).all(1).any():      true at the sizes in the table

A read is a use of the sizes, as a text of one is: its text has the floats that it was made of, or the integers that were
compared, so that it differs from size to size where a boolean does not. Integers that were computed from integers alone are
followed by captures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from anyshape.findings import Source
from anyshape.modules.look_ups import numbers_in, numbers_of_keys, read_look_up
from anyshape.modules.unfollowed_uses import Seen, Watched
from anyshape.modules.user_code import source_of_running_code
from anyshape.modules.uses_in_code import Use
from anyshape.verify.reference import CallInputs
from anyshape.verify.steps_of_sizes import OfSizes, is_number, places_of

_READ = -2  # in place of a column
_FEW = 8  # numbers of a tensor that are kept


def watch_reads(call: Callable[[], Watched], inputs: CallInputs) -> Watched:
    """What `call` watches, with the reads of such numbers added to the uses; `inputs` are those of the call."""
    reading = _Reading(inputs)
    with reading:
        watched = call()
    return Watched({**watched.uses, **reading.uses}, watched.lines)


def reads_at(watched: Watched, line: Source) -> bool:
    """Whether Python read such a number on this line."""
    return any((use.file, use.line, use.column) == (line.file, line.line, _READ) for use in watched.uses)


class _Reading(OfSizes):
    def __init__(self, inputs: CallInputs) -> None:
        super().__init__(inputs)
        self.uses: dict[Use, Seen] = {}
        self._made_of: dict[int, Seen] = {}  # by its memory, the numbers that a tensor was made of

    def of_sizes(self, func: Any, given: Any, result: Any) -> Any:
        places = list(places_of(given))
        made_of = _numbers_in(given, is_answer=_is_answer(result))
        if made_of is None:
            made_of = next((self._made_of[place] for place in places if place in self._made_of), None)
        for place in set(places_of(result)) - set(places):
            self._made_of.pop(place, None)
        if made_of is not None and is_number(result):
            self._note(made_of)
        elif made_of is not None:
            self._made_of.update(dict.fromkeys(places_of(result), made_of))
        return result

    def _note(self, seen: Seen) -> None:
        source = source_of_running_code()
        if source is not None:
            self.uses.setdefault(Use(source.file, source.line, _READ, source.function), seen)


def _is_answer(result: Any) -> bool:
    return isinstance(result, bool) or (isinstance(result, torch.Tensor) and result.dtype is torch.bool)


def _numbers_in(given: Any, is_answer: bool) -> Seen | None:
    """The first numbers of each tensor of floats, and with `is_answer` of integers: those may be looked up in one another."""
    tensors = [leaf for leaf in tree_leaves(given) if type(leaf) is torch.Tensor and leaf.dtype is not torch.bool]
    taken = [each for each in tensors if each.is_floating_point() or (is_answer and not each.is_complex())]
    if not taken:
        return None
    text = " ".join(str(each.detach().reshape(-1)[:_FEW].tolist()) for each in taken)
    whole = [each.detach().numpy() for each in taken if not each.is_floating_point()]
    pairs = enumerate(zip(whole, whole[::-1], strict=True) if len(whole) == 2 == len(taken) else ())
    found = {place: read_look_up(numbers_in(item), numbers_of_keys(table)) for place, (table, item) in pairs}
    return Seen(text, {place: look_up for place, look_up in found.items() if look_up is not None})
