"""Which input of a file is which leaf of the declaration: by name, else by position.

A file of another exporter may have dropped an input that it does not use; that is its own business, and not wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from anyshape.contract.metadata import read_model
from anyshape.findings import Finding, UsageError
from anyshape.graphs.needs import find_needs_of_proto
from anyshape.inputs import Declared
from anyshape.runtime.dtypes import Array


@dataclass(frozen=True)
class Matched:
    """The file's name of each leaf that the file takes, the file's outputs in order, and its custom nodes."""

    inputs: dict[str, str]
    outputs: tuple[str, ...]
    needs: tuple[str, ...] = ()

    def rename(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Feeds by the file's own names; what the file does not take is left out."""
        return {self.inputs[leaf]: array for leaf, array in feeds.items() if leaf in self.inputs}


def match_file(path: Path, declared: Declared) -> Matched:
    """Raises UsageError where the file's inputs are not those of the model."""

    model = read_model(path)
    graph, needs = model.graph, find_needs_of_proto(model)
    weights = {tensor.name for tensor in graph.initializer}
    names = [value.name for value in graph.input if value.name not in weights]
    leaves = declared.open_leaves
    outputs = tuple(value.name for value in graph.output)
    known = {leaf.name: leaf.name for leaf in leaves} | {leaf.path: leaf.name for leaf in leaves}
    if all(name in known for name in names):
        return Matched({known[name]: name for name in names}, outputs, needs)
    if len(names) == len(leaves):
        return Matched({leaf.name: name for leaf, name in zip(leaves, names, strict=True)}, outputs, needs)
    raise UsageError(_no_match(path, names, [leaf.name for leaf in leaves]))


def _no_match(path: Path, names: list[str], leaves: list[str]) -> Finding:
    return Finding(
        code="AS039",
        name="inputs-do-not-match",
        what=f"the inputs of {str(path)!r} are not those of the model.",
        why=f"the file takes {', '.join(names) or 'nothing'}; the model takes {', '.join(leaves) or 'nothing'}.",
        fix="give the model, and the inputs, from which the file was exported.",
    )
