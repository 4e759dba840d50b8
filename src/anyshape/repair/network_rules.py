"""Rules for layers of networks: convolutions, pooling, recurrent layers, attention, and graphs inside nodes."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from anyshape.domain import Expr, Number, simplify
from anyshape.repair.broadcast_rules import follow_table
from anyshape.repair.followed_graph import Follower
from anyshape.repair.known_shapes import Axes, Contradiction, Known, dims_in, is_open

_SMALL_RESULT = 8


def conv(follower: Follower, node: ir.Node) -> list[Known]:
    source, weight = follower.axes(node, 0), follower.axes(node, 3 if node.op_type == "QLinearConv" else 1)
    group = follower.attribute(node, "group", 1)
    follower.require_same(node, source[1], simplify(weight[1] * group), "its weight has a number of channels")
    space = _windows(follower, node, source[2:], [follower.at(each) for each in weight[2:]])
    return [Known((source[0], weight[0], *space))]


def conv_transpose(follower: Follower, node: ir.Node) -> list[Known]:
    source, weight = follower.axes(node, 0), follower.axes(node, 1)
    group = follower.attribute(node, "group", 1)
    rank = len(source) - 2
    kernel = [follower.at(each) for each in weight[2:]]
    strides = follower.attribute(node, "strides") or [1] * rank
    dilations = follower.attribute(node, "dilations") or [1] * rank
    pads = follower.attribute(node, "pads") or [0] * (2 * rank)
    extra = follower.attribute(node, "output_padding") or [0] * rank
    if follower.attribute(node, "output_shape") or follower.attribute(node, "auto_pad", "NOTSET") not in (
        "NOTSET",
        "VALID",
    ):
        raise Contradiction(node, "its output's size is an attribute of the node.", dims_in(source[2:]))
    space = [
        simplify(
            (size - 1) * strides[index]
            + extra[index]
            + (kernel[index] - 1) * dilations[index]
            + 1
            - pads[index]
            - pads[index + rank]
        )
        for index, size in enumerate(source[2:])
    ]
    return [Known((source[0], simplify(weight[1] * group), *space))]


def pool(follower: Follower, node: ir.Node) -> list[Known]:
    source = follower.axes(node)
    kernel = list(follower.attribute(node, "kernel_shape"))
    strides = follower.attribute(node, "strides") or [1] * len(kernel)
    space = _windows(follower, node, source[2:], kernel)
    for have, made, width, stride in zip(source[2:], space, kernel, strides, strict=True):
        _check_adaptive(follower, node, have, made, width, stride)
    return [Known((*source[:2], *space)) for _ in node.outputs]


def _check_adaptive(follower: Follower, node: ir.Node, have: Expr, made: Expr, width: int, stride: int) -> None:
    """Windows that part an axis evenly into few pieces may be those of adaptive pooling, which follow its size."""
    if not is_open(have) or width == 1:
        return
    size = follower.at(have)
    is_even = width == stride and width * follower.at(made) == size
    is_whole = width == size
    few = follower.at(made) < _SMALL_RESULT and (width > 2 or node.op_type != "MaxPool")
    if is_whole or (is_even and few):
        why = f"its window of {width} parts {have} = {size} evenly: it may follow the size (adaptive pooling)."
        raise Contradiction(node, why, dims_in((have,)))


def _windows(follower: Follower, node: ir.Node, space: Axes, kernel: Sequence[int]) -> list[Expr]:
    rank = len(space)
    strides = follower.attribute(node, "strides") or [1] * rank
    dilations = follower.attribute(node, "dilations") or [1] * rank
    pads = follower.attribute(node, "pads") or [0] * (2 * rank)
    how = follower.attribute(node, "auto_pad", "NOTSET")
    is_ceil = follower.attribute(node, "ceil_mode", 0)
    made: list[Expr] = []
    for index, size in enumerate(space):
        stride = strides[index]
        if how in ("SAME_UPPER", "SAME_LOWER"):
            made.append(simplify((size + (stride - 1)) // stride))
            continue
        padded = size if how == "VALID" else size + (pads[index] + pads[index + rank])
        free = padded - (dilations[index] * (kernel[index] - 1) + 1)
        if is_ceil:
            count: Expr = simplify((free + (stride - 1)) // stride + 1)
            if stride > 1 and is_open(size) and (pads[index] or stride > kernel[index]):
                raise Contradiction(
                    node, f"it rounds the number of windows on {size} up, beside padding.", dims_in((size,))
                )
            made.append(count)
        else:
            made.append(simplify(free // stride + 1))
    return made


def global_pool(follower: Follower, node: ir.Node) -> list[Known]:
    source = follower.axes(node)
    return [Known((*source[:2], *[Number(1)] * (len(source) - 2)))]


def recurrent(follower: Follower, node: ir.Node) -> list[Known]:
    """LSTM, GRU and RNN: initial states are tables that follow the batch."""
    source = follower.axes(node)
    is_batch_first = bool(follower.attribute(node, "layout", 0))
    steps, batch = (source[1], source[0]) if is_batch_first else (source[0], source[1])
    directions, hidden = follower.axes(node, 2)[0], follower.axes(node, 2)[2]
    follower.require_same(node, source[2], follower.axes(node, 1)[2], "its weight has a number of inputs")
    state = (batch, directions, hidden) if is_batch_first else (directions, batch, hidden)
    for index in (5, 6):
        if follower.input(node, index) is not None:
            follow_table(follower, node, index, dict(enumerate(state)), may_broadcast=False)
    if follower.input(node, 4) is not None:
        _follow_lengths(follower, node, steps, batch)
    whole = (batch, steps, directions, hidden) if is_batch_first else (steps, directions, batch, hidden)
    return [Known(whole), Known(state), Known(state)][: max(len(node.outputs), 1)]


def _follow_lengths(follower: Follower, node: ir.Node, steps: Expr, batch: Expr) -> None:
    known = follower.input(node, 4)
    assert known is not None
    if known.is_constant and is_open(steps):
        raise Contradiction(
            node, f"the lengths of its sequences are constants, beside steps that follow {steps}.", dims_in((steps,))
        )
    follow_table(follower, node, 4, {0: batch}, may_broadcast=False)


def attention(follower: Follower, node: ir.Node) -> list[Known]:
    """ONNX's Attention on four axes: queries (batch, heads, length, width), and a mask that follows both lengths."""
    query, key, value = (follower.axes(node, index) for index in range(3))
    if len(query) != 4 or len(node.inputs) > 4:
        raise Contradiction(node, "attention on three axes, or with a cache, is not followed.", dims_in(query))
    if follower.input(node, 3) is not None:
        mask = follower.axes(node, 3)
        wanted = (query[0], query[1], query[2], key[2])[4 - len(mask) :]
        follow_table(follower, node, 3, dict(enumerate(wanted)))
    return [Known((*query[:3], value[3]))]


def grid_sample(follower: Follower, node: ir.Node) -> list[Known]:
    source, grid = follower.axes(node, 0), follower.axes(node, 1)
    follow_table(follower, node, 1, {0: source[0]}, may_broadcast=False)
    known = follower.input(node, 1)
    if known is not None and known.is_constant and any(map(is_open, source[2:])):
        raise Contradiction(
            node, "its grid is a constant, and may have been made for the size of the input.", dims_in(source[2:])
        )
    return [Known((*source[:2], *grid[1:-1]))]


def if_(follower: Follower, node: ir.Node) -> list[Known]:
    """Both branches, whose results have to have the same sizes."""
    found = []
    for name in ("then_branch", "else_branch"):
        graph = follower.attribute(node, name)
        follower.walk(graph)
        found.append([follower.of(value).axes for value in graph.outputs])
    made = []
    for one, other in zip(*found, strict=True):
        if len(one) != len(other):
            raise Contradiction(node, "its branches give values of different ranks.")
        made.append(
            Known(
                tuple(
                    follower.require_same(node, left, right, "its branches differ")
                    for left, right in zip(one, other, strict=True)
                )
            )
        )
    return made


def scan(follower: Follower, node: ir.Node) -> list[Known]:
    """A body over slices along the first axis; carried values keep their sizes."""
    body = follower.attribute(node, "body")
    count = follower.attribute(node, "num_scan_inputs")
    carried = len(node.inputs) - count
    directions = [follower.attribute(node, name) for name in ("scan_input_axes", "scan_output_axes")]
    if any(any(each) for each in directions if each):
        raise Contradiction(node, "it goes along other axes than the first.")
    length: Expr | None = None
    for index, value in enumerate(body.inputs):
        axes = follower.axes(node, index)
        if index >= carried:
            length = (
                axes[0]
                if length is None
                else follower.require_same(node, length, axes[0], "it goes over values together")
            )
            axes = axes[1:]
        follower.note(value, Known(axes))
    follower.walk(body)
    assert length is not None
    return _of_body(follower, node, body.outputs, carried, length)


def loop(follower: Follower, node: ir.Node) -> list[Known]:
    """A body a number of times: the number is a size, or a constant that is none."""
    body = follower.attribute(node, "body")
    count = follower.input(node, 0)
    times = None if count is None or count.ints is None else count.ints.reshape(-1)[0]
    if times is None or (
        not is_open(times) and times.value < 2**31 and any(follower.at(each) == times.value for each in follower.seen)
    ):
        raise Contradiction(node, "how often it runs is a constant that may be a size, or is computed from values.")
    follower.note(body.inputs[0], Known(()))
    follower.note(body.inputs[1], Known(()))
    for index, value in enumerate(body.inputs[2:]):
        follower.note(value, Known(follower.axes(node, index + 2)))
    follower.walk(body)
    return _of_body(follower, node, body.outputs[1:], len(body.inputs) - 2, times)


def _of_body(follower: Follower, node: ir.Node, outputs: Sequence[ir.Value], carried: int, times: Expr) -> list[Known]:
    made = []
    offset = len(node.inputs) - carried if node.op_type == "Loop" else 0
    for index, value in enumerate(outputs):
        axes = follower.of(value).axes
        if index >= carried:
            made.append(Known((times, *axes)))
            continue
        for own, before in zip(axes, follower.axes(node, index + offset), strict=True):
            follower.require_same(node, own, before, "a carried value changes its size")
        made.append(Known(axes))
    return made
