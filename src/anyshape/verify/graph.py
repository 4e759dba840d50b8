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
    return any(node.op_type in _CHOOSING for graph in graphs_of(model) for node in graph.node)


def file_bytes(path: str) -> int:
    """Of the file and of what lies beside it: weights may be there."""
    return sum(each.stat().st_size for each in Path(path).parent.glob(f"{Path(path).name}*"))


def graphs_of(model: Any) -> Iterator[Any]:
    """Every graph and function of a model, those inside of nodes too."""
    return _with_inner([model.graph, *model.functions])


def _with_inner(graphs: Iterable[Any]) -> Iterator[Any]:
    for graph in graphs:
        yield graph
        for node in graph.node:
            yield from _with_inner([attribute.g for attribute in node.attribute if attribute.HasField("g")])
            yield from _with_inner([inner for attribute in node.attribute for inner in attribute.graphs])
