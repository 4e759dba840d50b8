"""Values that every call writes, that stayed equal in all calls, and on which answers depend: rare inputs would change them.

self.peak = torch.maximum(self.peak, x.abs().max())     20 in all calls; from 0 on it is another number for each input
self.scale = self.scale.to(x.device)                    whatever it is, it stays: no state
self.length = x.shape[0]                                no answer depends on what it was before
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from anyshape.explore.random_draws import CallPoint
from anyshape.findings import Source
from anyshape.intercept.replay import Call, Replay
from anyshape.modules.kept_tensors import copied
from anyshape.modules.line_trace import find_writer
from anyshape.modules.same_values import is_same
from anyshape.modules.slots import Slot, Slots, putting

_MOST_SLOTS = 32


@dataclass(frozen=True, eq=False)
class KeptValue:
    """A slot with such a value, and the line that writes it, if it is known."""

    slot: Slot
    written: Source | None


def find_kept_values(
    replay: Replay, points: Sequence[CallPoint], before: Slots, changed: Sequence[Slot]
) -> list[KeptValue]:
    """Such slots among those that did not change; the first state is put back."""
    pair = [point for point in points if point.sizes == points[0].sizes][:2]
    if len(pair) < 2 or not replay.has_written:
        return []
    others = {slot.path for slot in changed}
    written = [slot for slot in _written_again(replay, pair[0].call, before) if slot.path not in others]
    return [found for slot in written[:_MOST_SLOTS] if (found := _try(replay, pair, slot)) is not None]


def _written_again(replay: Replay, call: Call, before: Slots) -> list[Slot]:
    """The slots that the second of two equal calls sets or writes into: a cache that is filled is not written again."""
    replay.reset()
    replay.onward(call)
    marks = {path: _mark(slot) for path, (slot, _) in before.items()}
    rebound = replay.rebinds(call)
    return [
        slot
        for path, (slot, _) in before.items()
        if _is_other(marks[path], _mark(slot)) or ((owner := slot.owner()) is not None and owner in rebound)
    ]


def _mark(slot: Slot) -> tuple[Any, int]:
    value = slot.get()
    return value, value._version if isinstance(value, torch.Tensor) and not value.is_inference() else 0


def _is_other(one: tuple[Any, int], other: tuple[Any, int]) -> bool:
    return one[0] is not other[0] or one[1] != other[1]


def _try(replay: Replay, pair: Sequence[CallPoint], slot: Slot) -> KeptValue | None:
    """Whether, from another value on, the answer is another one, and the next value depends on the inputs."""
    replay.reset()
    for value in _others(slot.get()):
        replies, after = [], []
        for point in pair:
            replay.reset()
            with putting([slot], [copied(value)]):
                replies.append(replay.onward(point.call))
                after.append(copied(slot.get()))
        answered = all(reply.raised is None for reply in replies)
        if answered and not is_same(*after) and not replies[0].is_like(pair[0].fresh):
            replay.reset()
            with putting([slot], [copied(value)]):
                written = find_writer(partial(replay.onward, pair[0].call), [slot])
            replay.reset()
            return KeptValue(slot, written)
    replay.reset()
    return None


def _others(value: Any) -> Iterator[Any]:
    """Other values of the same kind: nothing, and a bit more."""
    if isinstance(value, torch.Tensor) and value.layout is torch.strided and not value.is_quantized:
        yield torch.zeros_like(value)
        yield ~value if value.dtype is torch.bool else value + 1
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, (int, float)):
        yield type(value)(0)
        yield value + 1
