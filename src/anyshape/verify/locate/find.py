"""The first node of a file whose value is not one that the module computes.

From a wrong output back through values that the module does not know, until those it does know: the earliest node of
that stretch. Values that the file computes in its own way and that come out right again are passed by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from anyshape.runtime.dtypes import Array
from anyshape.verify.locate.known import KnownValues
from anyshape.verify.locate.opened import FileNode
from anyshape.verify.locate.sizes import Roles


@dataclass(frozen=True, eq=False)
class Seen:
    """A file's nodes and the values that they gave for some inputs, beside those of the module."""

    nodes: Sequence[FileNode]
    values: Mapping[str, Array]
    roles: Roles
    known: KnownValues
    wrong_weights: frozenset[str] = frozenset()

    def is_right(self, name: str) -> bool:
        """Whether a value raises no doubt: the module has it too, or it comes from elsewhere than a node on data."""
        if name not in self.roles.maker or name in self.roles.constant or name in self.roles.sizes:
            return True
        return name in self.values and self.known.find(self.values[name], name in self.roles.data) is not None

    def is_in_shape(self, name: str) -> bool:
        """Whether the module has such a value in this very shape."""
        if name not in self.roles.maker or name not in self.values:
            return True
        value = self.values[name]
        return any(self.known.steps[step].value.shape == value.shape for step in self.known.find_all(value))


def first_wrong(seen: Seen, wrong: Iterable[FileNode]) -> FileNode:
    """The earliest node from which doubtful values lead to one of these, which are wrong."""
    waiting = list(wrong)
    region: set[int] = set()
    position = {id(node): index for index, node in enumerate(seen.nodes)}
    answered: dict[str, bool] = {}
    while waiting:
        node = waiting.pop()
        if position[id(node)] in region:
            continue
        region.add(position[id(node)])
        for name in node.reads:
            if name not in answered:
                answered[name] = seen.is_right(name)
            if not answered[name]:
                waiting.append(seen.roles.maker[name])
    return seen.nodes[min(region)]


def first_out_of_shape(seen: Seen, node: FileNode) -> FileNode:
    """The earliest node before this one that gives the module's numbers in a shape that the module does not have.

    For failures of shapes only: a file may well compute in other shapes, and be right.
    """
    waiting, found = [node], [node]
    while waiting:
        for name in waiting.pop().reads:
            if name not in seen.roles.constant and name not in seen.roles.sizes and not seen.is_in_shape(name):
                found.append(seen.roles.maker[name])
                waiting.append(seen.roles.maker[name])
    return min(found, key=seen.nodes.index)


def first_wrong_constant(seen: Seen, node: FileNode) -> FileNode:
    """The earliest node that makes an unknown number for this one out of weights alone; else this one itself."""
    waiting = [name for name in node.reads if name in seen.roles.constant]
    found = [node]
    while waiting:
        name = waiting.pop()
        maker = seen.roles.maker.get(name)
        value = seen.values.get(name)
        if maker is not None and seen.wrong_weights.intersection(maker.reads):
            return maker
        if maker is None or maker.op_type == "Constant" or value is None or value.dtype.kind != "f":
            continue
        if seen.known.find(value) is None:
            found.append(maker)
            waiting.extend(maker.reads)
    return min(found, key=seen.nodes.index)
