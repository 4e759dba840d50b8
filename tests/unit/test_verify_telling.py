"""What each size is stands on the node that computes it, and tells which node first went wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from anyshape.domain import evaluate, parse_expr
from anyshape.runtime import Session
from anyshape.verify.locate.opened import list_nodes
from anyshape.verify.locate.size_facts import Told
from anyshape.verify.size_annotations import SIZES, annotate_sizes

HEAD = '<ir_version: 10, opset_import: ["" : 18], producer_name: "anyshape">\n'


def told_model(body: str) -> ir.Model:
    text = f"g (float[b, s, 8] x) => (int64[n] y) {{ {body} }}"
    model = ir.from_proto(onnx.parser.parse_model(HEAD + text))
    annotate_sizes(model)
    return model


def told_by(model: ir.Model) -> dict[str, Any]:
    nodes = ir.traversal.RecursiveGraphIterator(model.graph)
    return {
        str(node.outputs[0].name): json.loads(node.metadata_props[SIZES])
        for node in nodes
        if SIZES in node.metadata_props
    }


ROWS = {
    "shape": ("y = Shape(x)", [["b", "s", 8]]),
    "part of a shape": ("y = Shape<start = 1, end = 2>(x)", [["s"]]),
    "negative end": ("y = Shape<end = -1>(x)", [["b", "s"]]),
    "picked": ("i = Constant<value_ints = [1, 0]>() h = Shape(x) y = Gather(h, i)", [["s", "b"]]),
    "sum": ("t = Constant<value_ints = [2]>() h = Shape<start = 1, end = 2>(x) y = Add(h, t)", [["s + 2"]]),
    "product": ("h = Shape<start = 0, end = 1>(x) k = Shape<start = 1, end = 2>(x) y = Mul(h, k)", [["b*s"]]),
    "half": ("t = Constant<value_ints = [2]>() h = Shape<start = 1, end = 2>(x) y = Div(h, t)", [["s//2"]]),
    "rest": ("t = Constant<value_ints = [4]>() h = Shape<start = 1, end = 2>(x) y = Mod(h, t)", [["s % 4"]]),
    "joined": ("t = Constant<value_ints = [-1, 8]>() h = Shape<end = 1>(x) y = Concat<axis = 0>(h, t)", [["b", -1, 8]]),
    "a table of one": ("t = Constant<value_ints = [7]>() h = Shape<end = 1>(x) y = Gather(t, h)", [[7]]),
    "largest": ("h = Shape(x) a = Constant<value_ints = [0]>() y = ReduceMax<keepdims = 1>(h, a)", [["max(b, s, 8)"]]),
    "cut": (
        "h = Shape(x) a = Constant<value_ints = [0]>() o = Constant<value_ints = [1]>() "
        "e = Constant<value_ints = [9223372036854775807]>() y = Slice(h, o, e, a)",
        [["s", 8]],
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_a_size_is_told_as_an_expression(row: str) -> None:
    body, expected = ROWS[row]
    assert told_by(told_model(body))["y"] == expected


def test_each_piece_of_a_split_is_told() -> None:
    model = told_model("h = Shape(x) o = Constant<value_ints = [2, 1]>() y, z = Split<axis = 0>(h, o)")
    assert told_by(model)["y"] == [["b", "s"], [8]]


@pytest.mark.parametrize(
    "body",
    [
        "h = Shape(x) f = Cast<to = 1>(h) y = Cast<to = 7>(f)",
        "z = NonZero(x) y = Shape(z)",
        "t = Constant<value_ints = [1]>() h = Shape<end = 1>(x) k = Sub(t, h) m = Shape<start = 1, end = 2>(x) y = Div(k, m)",
    ],
    ids=["through floats", "a size that depends on values", "divided by a dim, perhaps from below 0"],
)
def test_what_cannot_be_said_is_not_told(body: str) -> None:
    assert "y" not in told_by(told_model(body))


def test_a_dim_whose_name_is_no_expression_is_not_told() -> None:
    text = 'g (float["batch.1", s] x) => (int64[2] y) { y = Shape(x) z = Shape<start = 1>(x) }'
    model = ir.from_proto(onnx.parser.parse_model(HEAD + text))
    assert annotate_sizes(model) == 1
    assert told_by(model) == {"z": [["s"]]}


@pytest.mark.parametrize("s", [1, 3, 4, 9])
def test_division_rounds_as_the_runtime_does(s: int) -> None:
    body = """t = Constant<value_ints = [4]>() o = Constant<value_ints = [5]>() h = Shape<start = 1, end = 2>(x)
              k = Sub(o, h) y = Div(k, t)"""
    model = told_model(body)
    ((told,),) = told_by(model)["y"]
    (actual,) = Session(ir.to_proto(model).SerializeToString()).run({"x": np.zeros((2, s, 8), np.float32)})
    assert evaluate(parse_expr(str(told)), {"s": s}) == int(actual[0])


def seen(model: onnx.ModelProto, change: Callable[[onnx.ModelProto], None]) -> tuple[Told, dict[str, np.ndarray]]:
    change(model)
    feeds = {"x": np.zeros((3, 5, 8), np.float32)}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for node in model.graph.node[:-1] for name in node.output)
    session = Session(model.SerializeToString())
    values = dict(zip([info.name for info in session.outputs], session.run(feeds), strict=True))
    return Told(model, list_nodes(model, with_loops=False), feeds, {}), values


def test_a_size_is_right_until_its_node_is_changed() -> None:
    body = "t = Constant<value_ints = [2]>() h = Shape<start = 1, end = 2>(x) y = Add(h, t)"
    told, values = seen(ir.to_proto(told_model(body)), lambda model: None)
    assert [told.is_size_right(name, values[name]) for name in ("h", "y", "t")] == [True, True, None]

    def subtract(model: onnx.ModelProto) -> None:
        model.graph.node[-1].op_type = "Sub"

    told, values = seen(ir.to_proto(told_model(body)), subtract)
    assert [told.is_size_right(name, values[name]) for name in ("h", "y")] == [True, False]


def test_shapes_are_believed_of_our_own_files_alone() -> None:
    def declare(model: onnx.ModelProto, producer: str) -> None:
        model.producer_name = producer
        model.graph.value_info.append(onnx.helper.make_tensor_value_info("h", onnx.TensorProto.INT64, ["s"]))

    for producer, expected in (("anyshape", False), ("pytorch", None)):
        told, values = seen(
            ir.to_proto(told_model("h = Shape(x) y = Identity(h)")), lambda model, name=producer: declare(model, name)
        )
        assert told.is_shape_right("h", values["h"]) is expected
