"""Stage: files of one size -> files of many sizes: which constants hold a size, and what they are an expression of.

This file: the rule of every operator, and the search for readings of all numbers of a graph that fit together.

The dims are followed by the rules; where they cannot go on, the last number that has to do with it is read otherwise.

Files, in the order in which data flows:

    declared_words    `input: batch 3 224 224`, read against the file
    known_shapes      what is known of each value: axes, integers, constant
    known_constants   constants with a pattern
    followed_graph    follow declared dims through the graph, node by node
    broadcast_rules   element by element, matrices, along axes
    cutting_rules     Slice, Pad, Split
    layout_rules      moving, joining and picking axes
    network_rules     convolution, pooling, recurrent layers, attention
    reshaping_rules   Reshape, Expand, Tile, Resize, Range
    reshape_readings  which sizes a Reshape's constant can be
    written_sizes     edits -> nodes
    repair_findings   findings about repaired files
    source/           the same for a model's Python source
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import anyshape.repair.broadcast_rules as elementwise
import anyshape.repair.cutting_rules as cutting
import anyshape.repair.layout_rules as layout
import anyshape.repair.network_rules as network
import anyshape.repair.reshaping_rules as reshaping
from anyshape.repair.followed_graph import Follower, Rule
from anyshape.repair.known_shapes import Choice, Contradiction

_SAME = (
    "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Cast CastLike Ceil Celu Cos Cosh CumSum DequantizeLinear "
    "Dropout Elu Erf Exp EyeLike FastGelu Floor Gelu HardSigmoid HardSwish Hardmax Identity IsInf IsNaN LRN "
    "LeakyRelu Log LogSoftmax LpNormalization MeanVarianceNormalization Mish Neg Not QuantizeLinear QuickGelu "
    "Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softmax Softplus Softsign Sqrt Swish Tan Tanh "
    "ThresholdedRelu "
)
_BROADCAST = (
    "Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Clip Div Equal Greater GreaterOrEqual Less LessOrEqual Max "
    "Mean Min Mod Mul Or PRelu Pow Sub Sum Where Xor "
)
_REDUCE = (
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
    "ReduceSumSquare "
)

RULES: dict[str, Rule] = {
    **dict.fromkeys(_SAME.split(), elementwise.same),
    **dict.fromkeys(_BROADCAST.split(), elementwise.broadcast),
    **dict.fromkeys(_REDUCE.split(), elementwise.reduce_),
    **dict.fromkeys(("Bernoulli", "RandomNormalLike", "RandomUniformLike"), elementwise.same),
    **dict.fromkeys(("ArgMax", "ArgMin"), elementwise.arg_reduce),
    **dict.fromkeys(
        ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"), elementwise.norm_of_last
    ),
    **dict.fromkeys(
        ("BatchNormalization", "InstanceNormalization", "GroupNormalization"), elementwise.norm_of_channels
    ),
    **dict.fromkeys(("MatMul", "MatMulInteger"), elementwise.matmul),
    "Gemm": elementwise.gemm,
    "Einsum": elementwise.einsum,
    "Shape": layout.shape,
    "Size": layout.size,
    "Transpose": layout.transpose,
    "Squeeze": layout.squeeze,
    "Unsqueeze": layout.unsqueeze,
    "Flatten": layout.flatten,
    "Concat": layout.concat,
    "Gather": layout.gather,
    "GatherElements": layout.gather_elements,
    "GatherND": layout.gather_nd,
    **dict.fromkeys(("ScatterND", "ScatterElements", "Scatter"), layout.scatter),
    "TopK": layout.top_k,
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), layout.depth_to_space),
    "OneHot": layout.one_hot,
    "Trilu": layout.trilu,
    **dict.fromkeys(("Compress", "Unique", "NonZero", "NonMaxSuppression"), layout.picked_axes),
    "Reshape": reshaping.reshape,
    "Expand": reshaping.expand,
    "Tile": reshaping.tile,
    "Slice": cutting.slice_,
    "Pad": cutting.pad,
    "Split": cutting.split,
    **dict.fromkeys(("Resize", "Upsample"), reshaping.resize),
    "Range": reshaping.range_,
    "ConstantOfShape": reshaping.constant_of_shape,
    **dict.fromkeys(("Conv", "ConvInteger", "QLinearConv"), network.conv),
    "ConvTranspose": network.conv_transpose,
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), network.pool),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"), network.global_pool),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), network.recurrent),
    "Attention": network.attention,
    "GridSample": network.grid_sample,
    "If": network.if_,
    "Scan": network.scan,
    "Loop": network.loop,
}


Follow = Callable[[Mapping[str, int]], Follower]
_MOST_PASSES = 400
_MOST_VALUES = 60_000  # that are followed in all passes together: some seconds


class SearchEnded(Contradiction):
    """There was no time for all readings: none was found that fits, and one may."""


def find_reading(follow: Follow, fixed: Mapping[str, int], most: int = _MOST_PASSES) -> Follower:
    """The first pass without a contradiction in which `fixed` choices are taken. Raises the furthest Contradiction."""
    decisions: Mapping[str, int] | None = dict(fixed)
    furthest: Contradiction | None = None
    followed = 0
    for _ in range(most):
        if decisions is None or followed > _MOST_VALUES:
            break
        try:
            return follow(decisions)
        except Contradiction as found:
            followed += found.progress
            furthest = found if furthest is None or found.progress > furthest.progress else furthest
            decisions = next_decisions(found.choices, fixed, found.dims)
    assert furthest is not None
    if decisions is not None:
        raise SearchEnded(furthest.node, furthest.why, furthest.dims) from furthest
    raise furthest


def next_decisions(
    choices: tuple[Choice, ...], fixed: Mapping[str, int], dims: frozenset[str] = frozenset()
) -> dict[str, int] | None:
    """The last choice about these dims read otherwise, the choices before it as they were; None where none is left."""
    for place in range(len(choices) - 1, -1, -1):
        choice = choices[place]
        is_about = not choice.is_asked and (not dims or choice.dims & dims)
        if choice.key not in fixed and is_about and choice.taken + 1 < len(choice.readings):
            before = {each.key: each.taken for each in choices[:place]}
            return {**before, **fixed, choice.key: choice.taken + 1}
    return None
