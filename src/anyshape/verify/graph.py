"""The little that verification must know about a file beside its answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

_CHOOSING = frozenset({"ArgMax", "ArgMin", "TopK", "Hardmax", "NonMaxSuppression", "Unique"})


def chooses_among_values(path: str) -> bool:
    """Whether an operator of the file picks positions by value, so that equal values leave it free which to pick."""
    import onnx

    model = onnx.load(path, load_external_data=False)
    return any(node.op_type in _CHOOSING for node in _nodes([model.graph, *model.functions]))


def file_bytes(path: str) -> int:
    """Of the file and of what lies beside it: weights may be there."""
    return sum(each.stat().st_size for each in Path(path).parent.glob(f"{Path(path).name}*"))


def _nodes(graphs: Iterable[Any]) -> Iterator[Any]:
    for graph in graphs:
        for node in graph.node:
            yield node
            yield from _nodes([attribute.g for attribute in node.attribute if attribute.HasField("g")])
            yield from _nodes([inner for attribute in node.attribute for inner in attribute.graphs])
