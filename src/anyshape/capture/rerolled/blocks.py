"""Repeated blocks in traces: x a b c a b c a b c y  ->  x (a b c)*3 y, from the inside out.

A block counts as a loop's body when the traces repeat it a different number of times; a layer that is called three times
at every size is no loop. Small blocks first, so that an inner loop is one entry when its outer loop is looked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from anyshape.capture.generalized.template import Rolled, Tree, Unaligned
from anyshape.capture.generalized.trace import Step, Trace

Entry = tuple[int, Any]
"""A letter, and what stands there: the position of a step, or a block that was rolled up."""


_MANY_RUNS = 4
_FEWEST = 3  # how often a block stands in a row in the longest trace


def roll_up(traces: Sequence[Trace]) -> list[Tree]:
    """Each trace as a tree of steps and repeated blocks, all of one form. Raises Unaligned where there is none."""
    letters = _Letters()
    rows = [[(letters.of(step.signature), index) for index, step in enumerate(trace.steps)] for trace in traces]
    while not _are_alike(rows):
        rolled = _roll_one(rows, letters)
        if rolled is None:
            break
        rows = rolled
    return [_tree(row) for row in _with_empty_loops(rows, letters, traces)]


class _Letters:
    """Small numbers for letters of steps, and for blocks."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self.blocks: set[int] = set()

    def of(self, letter: Any) -> int:
        return self._numbers.setdefault(letter, len(self._numbers))

    def of_block(self, block: tuple[int, ...]) -> int:
        number = self.of(("block", block))
        self.blocks.add(number)
        return number


def _are_alike(rows: list[list[Entry]]) -> bool:
    return len({tuple(letter for letter, _ in row) for row in rows}) == 1


def _roll_one(rows: list[list[Entry]], letters: _Letters) -> list[list[Entry]] | None:
    """All traces with the smallest block rolled up that the traces repeat differently often; None if there is none.

    A block that mostly stands alone is more likely a part of a larger one (a b)*33 (a b c)*k, which goes before it.
    """
    longest = max(rows, key=len)
    alone: tuple[int, ...] | None = None
    for block in _repeated(np.array([letter for letter, _ in longest], dtype=np.int64)):
        counts = [tuple(count for _, count in _runs(row, block)) for row in rows]
        if len(set(counts)) == 1:
            continue  # as often at every size, wherever it stands
        most = max(counts, key=len)
        if len(most) < _MANY_RUNS or 2 * most.count(1) <= len(most):
            return _all_rolled(rows, block, letters)
        alone = alone or block
    return None if alone is None else _all_rolled(rows, alone, letters)


def _all_rolled(rows: list[list[Entry]], block: tuple[int, ...], letters: _Letters) -> list[list[Entry]]:
    number = letters.of_block(block)
    return [_rolled(row, block, number) for row in rows]


def _repeated(letters: np.ndarray[Any, np.dtype[np.int64]]) -> Iterator[tuple[int, ...]]:
    """Blocks that stand `_FEWEST` times in a row or more, the smallest first, from the left."""
    count = len(letters)
    for period in range(1, count // _FEWEST + 1):
        same = letters[:-period] == letters[period:]
        edges = np.flatnonzero(np.diff(np.concatenate(([0], same.astype(np.int8), [0]))))
        for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            if end - start >= (_FEWEST - 1) * period:
                block = tuple(letters[start : start + period].tolist())
                if not _is_repetition(block):
                    yield block


def _is_repetition(block: tuple[int, ...]) -> bool:
    """Whether a block is itself a smaller one several times over."""
    size = len(block)
    return any(size % part == 0 and block == block[:part] * (size // part) for part in range(1, size // 2 + 1))


def _runs(row: list[Entry], block: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Where the block begins to stand in a row, and how many times."""
    letters = [letter for letter, _ in row]
    size, position = len(block), 0
    while position + size <= len(letters):
        count = 0
        while tuple(letters[position + count * size : position + (count + 1) * size]) == block:
            count += 1
        if count:
            yield position, count
        position += count * size or 1


def _rolled(row: list[Entry], block: tuple[int, ...], number: int) -> list[Entry]:
    result: list[Entry] = []
    position, size = 0, len(block)
    for start, count in _runs(row, block):
        result += row[position:start]
        parts = [row[start + index * size : start + (index + 1) * size] for index in range(count)]
        result.append((number, Rolled(tuple(_tree(part) for part in parts))))
        position = start + count * size
    return result + row[position:]


def _tree(row: Sequence[Entry]) -> Tree:
    return tuple(entry for _, entry in row)


def _with_empty_loops(rows: list[list[Entry]], letters: _Letters, traces: Sequence[Trace]) -> list[list[Entry]]:
    """A loop that did not run at all leaves no trace: put it where the longest trace has it."""
    pattern = max(rows, key=len)
    return [_filled(row, pattern, letters, trace) for row, trace in zip(rows, traces, strict=True)]


def _filled(row: list[Entry], pattern: list[Entry], letters: _Letters, trace: Trace) -> list[Entry]:
    result: list[Entry] = []
    rest = list(row)
    for letter, _ in pattern:
        if rest and rest[0][0] == letter:
            result.append(rest.pop(0))
        elif letter in letters.blocks:
            result.append((letter, Rolled(())))
        else:
            raise Unaligned(_step(rest[0], trace) if rest else trace.steps[-1], None)
    if rest:
        raise Unaligned(_step(rest[0], trace), None)
    return result


def _step(entry: Entry, trace: Trace) -> Step:
    found = entry[1]
    while isinstance(found, Rolled):
        found = found.repetitions[0][0]
    return trace.steps[found]
