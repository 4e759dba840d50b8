"""What the user's code does at each size of a dim that it uses as a text or a key: looked at once in an export, when needed.

Calls of the module under watch begin at the example, and wherever a program was captured: a path that only large sizes take has
uses of its own. They also show where a text of a size decides nothing, so that the note of a capture about it can be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch.overrides import TorchFunctionMode, resolve_name

from anyshape.domain import Compare, Number, Ref, Sizes, Undecided, holds, smallest_point
from anyshape.domain.solve import EFFORT, PATIENCE
from anyshape.explore import Costing, EachSize, Unfollowed, find_unfollowed
from anyshape.explore.each_size import others_of
from anyshape.exporting.number_reads import reads_at, watch_reads
from anyshape.findings import Source
from anyshape.findings.finding import shorten
from anyshape.inputs import Declared
from anyshape.modules.unfollowed_uses import Watched, watch_uses
from anyshape.records.captured import Note
from anyshape.verify import Reference

_SHARE = 4  # one part in so many of all work


@dataclass(frozen=True)
class SizeCensus:
    """Calls of the module for such dims. `is_affordable`: whether one more watched call is in proportion."""

    declared: Declared
    reference: Reference
    cost: Costing
    seed: int
    is_affordable: Callable[[Sizes], bool]
    _found: dict[tuple[int, ...], Mapping[str, Unfollowed]] = field(default_factory=dict)
    _watched: dict[tuple[int, ...], Watched] = field(default_factory=dict)

    def unfollowed(self, starts: Iterable[Sizes]) -> dict[str, Unfollowed]:
        """The dims that the user's code uses as nothing follows, each with a line: near the example and near these sizes."""
        merged: dict[str, Unfollowed] = {}
        for start in (self.declared.example_sizes, *starts):
            for name, use in self._near(start).items():
                merged[name] = merged[name].and_also(use) if name in merged else use
        return merged

    def _near(self, start: Sizes) -> Mapping[str, Unfollowed]:
        key = self._key(start)
        if key not in self._found:
            self._found[key] = find_unfollowed(self.declared, self._watch, self._may_watch, self._in_order(start))
        return self._found[key]

    def reads_sizes_at(self, line: Source) -> bool:
        """Whether the number that Python reads there in a call at the example's sizes follows from sizes, and from no value."""
        start = self._in_order(self.declared.example_sizes)
        return self._may_watch(start) and reads_at(self._watch(start), line)

    def refutes(self, note: Note) -> bool:
        """Whether calls on the way of the capture that noted it show that nothing depends on a text.

        They come to its line at several sizes of each dim that can vary on this way, and no use of a value there does.
        """
        start = self._in_order(note.met_at)
        if note.kind != "text" or self._near(start) or not self._comes_to(note, start):
            return False
        return all(self._varies_without_use(note, start, name) for name in self.declared.domain.names)

    def _varies_without_use(self, note: Note, start: Sizes, name: str) -> bool:
        domain = self.declared.domain
        is_other = Compare("!=", Ref(name), Number(start[name]))
        beside = [{**start, name: value} for value in others_of(start[name])]
        inside = [
            sizes for sizes in beside if domain.contains(sizes) and all(holds(each, sizes) for each in note.within)
        ]
        try:
            point = None if inside else smallest_point(domain, is_other, *note.within, steps=PATIENCE, each=EFFORT)
        except Undecided:
            return False
        if not inside and point is None:
            return True  # it is one number on this way
        before = self._watch(start).uses
        for sizes in (*inside, *([point] if point else [])):
            if self._comes_to(note, sizes):
                after = self._watch(sizes).uses
                return all(after.get(use, seen).text == seen.text for use, seen in before.items())
        return False

    def _comes_to(self, note: Note, sizes: Sizes) -> bool:
        """Whether a call at these sizes was watched to its end, and ran the line of the note."""
        if not self._may_watch(sizes):
            return False
        lines = self._watch(sizes).lines
        return lines is not None and any(
            line == note.source.line and shorten(file) == note.source.file for file, line in lines
        )

    def paths(self, unfollowed: Mapping[str, Unfollowed]) -> Mapping[str, Mapping[int, Hashable]]:
        """Which functions of torch a call comes to, by the sizes of each of these dims, the others as in the example."""
        each = EachSize(self.declared, self.cost, unfollowed)
        return {name: self._along(name, each) for name in unfollowed}

    def _in_order(self, sizes: Sizes) -> Sizes:
        return {name: sizes[name] for name in self.declared.domain.names}

    def _key(self, sizes: Sizes) -> tuple[int, ...]:
        return tuple(sizes[name] for name in self.declared.domain.names)

    def _along(self, name: str, each: EachSize) -> dict[int, Hashable]:
        found: dict[int, Hashable] = {}
        left = self.cost.all_work // _SHARE
        for value in each.values(name, each.ends[name]):
            sizes = {**self.declared.example_sizes, name: value}
            left -= self.cost(sizes)
            if left < 0:
                return {}
            if self.declared.domain.contains(sizes):
                found[value] = self._path(sizes)
        return found

    def _path(self, sizes: Sizes) -> Hashable:
        inputs = self.declared.make(sizes, self.seed)
        with _Path() as path:
            self.reference.run(inputs, watched=True)
        return tuple(path.called)

    def _may_watch(self, sizes: Sizes) -> bool:
        return self._key(sizes) in self._watched or self.is_affordable(sizes)

    def _watch(self, sizes: Sizes) -> Watched:
        key = self._key(sizes)
        if key not in self._watched:
            inputs = self.declared.make(sizes, self.seed)  # outside: how the user makes inputs is no part of the model
            self._watched[key] = watch_reads(
                lambda: watch_uses(lambda: self.reference.run(inputs, watched=True)), inputs
            )
        return self._watched[key]


class _Path(TorchFunctionMode):
    """Notes the names of the functions that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.called: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.called.append(resolve_name(func) or repr(func))
        return func(*args, **(kwargs or {}))
