"""Numbers that Python reads from tensors of floats which follow from sizes: no arithmetic of ours follows what torch computes.

    torch.sin(torch.tensor(float(n))).item() > 0.9999     true at n = 322 and 366; no comparison of whole numbers leads there

A read is a use of the sizes, as a text of one is: its text has the floats that it was made of, so that it differs from size to
size where a boolean does not. Integers that were made of integers alone are followed by captures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from anyshape.modules.unfollowed_uses import Seen, Watched
from anyshape.modules.user_code import source_of_running_code
from anyshape.modules.uses_in_code import Use
from anyshape.verify.reference import CallInputs
from anyshape.verify.size_steps import OfSizes, is_number, places_of

_READ = -2  # in place of a column
_FEW = 8  # numbers of a tensor that are kept


def watch_reads(call: Callable[[], Watched], inputs: CallInputs) -> Watched:
    """What `call` watches, with the reads of such numbers added to the uses; `inputs` are those of the call."""
    reading = _Reading(inputs)
    with reading:
        watched = call()
    return Watched({**watched.uses, **reading.uses}, watched.lines)


class _Reading(OfSizes):
    def __init__(self, inputs: CallInputs) -> None:
        super().__init__(inputs)
        self.uses: dict[Use, Seen] = {}
        self._made_of: dict[int, str] = {}  # by its memory, the floats that a tensor was made of

    def of_sizes(self, func: Any, given: Any, result: Any) -> Any:
        made_of = _floats_in(given) or " ".join(
            dict.fromkeys(text for place in places_of(given) if (text := self._made_of.get(place)))
        )
        for place in set(places_of(result)) - set(places_of(given)):
            self._made_of.pop(place, None)
        if made_of and is_number(result):
            self._note(made_of)
        elif made_of:
            self._made_of.update(dict.fromkeys(places_of(result), made_of))
        return result

    def _note(self, text: str) -> None:
        source = source_of_running_code()
        if source is not None:
            use = Use(source.file, source.line, _READ, source.function)
            before: Mapping[int, Any] = {}
            self.uses.setdefault(use, Seen(text, before))


def _floats_in(given: Any) -> str:
    """A text of the first numbers of each tensor of floats; "" where there is none."""
    floats = [leaf for leaf in tree_leaves(given) if type(leaf) is torch.Tensor and leaf.is_floating_point()]
    return " ".join(str(leaf.detach().reshape(-1)[:_FEW].tolist()) for leaf in floats)
