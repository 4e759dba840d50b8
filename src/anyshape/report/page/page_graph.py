"""The graph of a file as rows: parts, operators, weights, and the lines of the source from which nodes come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from anyshape.report.amounts import format_bytes
from anyshape.report.page.graph_map import Part, map_graph
from anyshape.report.page.source_excerpts import Excerpt, excerpt_of, source_called

if TYPE_CHECKING:
    import onnx_ir as ir

_MOST_LINES = 60
_MOST_WEIGHTS = 200


def graph_view(model: ir.Model | None) -> dict[str, Any]:
    """What the page shows of a model; nothing without one."""
    if model is None:
        return {"graph": None}
    graph = map_graph(model)
    parts_first = set(_lines_of(graph.parts))
    lines = sorted(graph.lines, key=lambda each: (each[0] not in parts_first, -each[1]))[:_MOST_LINES]
    places = [*(place for place, _ in lines), *parts_first]
    ids = {place: f"line-{number}" for number, place in enumerate(dict.fromkeys(places))}
    counts = dict(graph.lines)
    return {
        "graph": graph,
        "graph_inputs": [value.name or "" for value in model.graph.inputs],
        "graph_outputs": [value.name or "" for value in model.graph.outputs],
        "weights": [
            {"module": row.module, "tensors": row.tensors, "bytes": format_bytes(row.bytes)}
            for row in graph.weights[:_MOST_WEIGHTS]
        ],
        "lines": [
            {"id": number, "place": place, "nodes": counts.get(place, 0), "excerpt": _excerpt(place)}
            for place, number in sorted(ids.items(), key=lambda each: _order(each[0]))
        ],
        "line_ids": ids,
    }


def _lines_of(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        yield from part.lines
        for _, _, inside in part.bodies:
            yield from _lines_of(inside)


def _excerpt(place: str) -> Excerpt:
    source = source_called(place)
    return Excerpt(place, 0, "", ()) if source is None else excerpt_of(source)


def _order(place: str) -> tuple[str, int]:
    source = source_called(place)
    return (place, 0) if source is None else (source.file, source.line)
