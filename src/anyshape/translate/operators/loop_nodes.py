"""ONNX `Loop` and `If` with bodies written like any other translation.

A body's calls of `op` go to a recorder of their own. What it uses of the graph around it is used by reference.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir
import onnxscript.evaluator
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import Size, along, as_scalar, constant, count_halvings, count_up

Values = Sequence[ir.Value]


def repeat(
    count: Size,
    states: Sequence[tuple[ir.Value, ir.DataType]],
    body: Callable[..., Values],
    collected: int = 0,
) -> Values:
    """`body(number of the round, *states)` gives the new states, then `collected` values that are stacked on axis 0."""
    number, goes_on = _value("number", ir.DataType.INT64), _value("goes_on", ir.DataType.BOOL)
    number.shape = goes_on.shape = ir.Shape([])
    current = [_value(f"state_{place}", dtype) for place, (_, dtype) in enumerate(states)]
    nodes, results = _record(lambda: [op.Identity(goes_on), *body(number, *current)])
    graph = _graph("loop", [number, goes_on, *current], results, nodes)
    node = ir.node(
        "Loop",
        [as_scalar(count), constant(True, ir.DataType.BOOL), *(value for value, _ in states)],
        {"body": graph},
        num_outputs=len(states) + collected,
    )
    onnxscript.evaluator.default().nodes.append(node)  # torch.onnx's recorder; its own `Loop` has but one output
    return node.outputs


def choose(
    condition: ir.Value, then: Callable[[], Values], otherwise: Callable[[], Values], outputs: int = 1
) -> Values:
    """One of two ways, by a condition that is known at run time."""
    branches = {}
    for name, way in (("then_branch", then), ("else_branch", otherwise)):
        nodes, results = _record(way)
        branches[name] = _graph(name, [], results, nodes)
    node = ir.node("If", [condition], branches, num_outputs=outputs)
    onnxscript.evaluator.default().nodes.append(node)
    return node.outputs


def accumulate(
    states: Sequence[tuple[ir.Value, ir.DataType]],
    axis: int,
    size: Size,
    of_rank: int,
    combine: Callable[[Values, Values], Values],
) -> Values:
    """Every prefix of an axis combined: combine(combine(x0, x1), x2) ... for a `combine` that is associative.

    Each round combines what lies twice as far apart as in the round before: log2(size) rounds over the whole tensor.
    """
    places = count_up(size)

    def double(width: ir.Value, current: Values) -> Values:
        earlier = op.Max(op.Sub(places, width), constant(0, ir.DataType.INT64))
        has_earlier = along(op.GreaterOrEqual(places, width), axis, of_rank)
        combined = combine([op.Gather(value, earlier, axis=axis) for value in current], current)
        return [op.Where(has_earlier, new, old) for new, old in zip(combined, current, strict=True)]

    if isinstance(size, int):
        current: Values = [value for value, _ in states]
        width = 1
        while width < size:
            current = double(as_scalar(width), current)
            width *= 2
        return [op.Identity(value) for value in current]
    width_state = (as_scalar(1), ir.DataType.INT64)
    doubled = repeat(
        count_halvings(size),
        [width_state, *states],
        lambda number, width, *current: [op.Add(width, width), *double(width, current)],
    )
    return doubled[1:]


def _record(build: Callable[[], Values]) -> tuple[list[ir.Node], Values]:
    outer = onnxscript.evaluator.default()
    inner = type(outer)(outer.opset, {})
    with onnxscript.evaluator.default_as(inner):
        results = [op.Identity(result) for result in build()]  # an output must be made inside
    return inner.nodes, results


def _graph(name: str, inputs: Values, outputs: Values, nodes: Sequence[ir.Node]) -> ir.Graph:
    graph = ir.Graph(inputs, outputs, nodes=nodes, name=name)
    for number, value in enumerate([*inputs, *(output for node in nodes for output in node.outputs)]):
        value.name = f"{name}_{number}"  # a name of the graph around it would hide that value from ONNX
    return graph


def _value(name: str, dtype: ir.DataType) -> ir.Value:
    return ir.Value(name=name, type=ir.TensorType(dtype))
