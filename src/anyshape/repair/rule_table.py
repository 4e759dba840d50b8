"""The rule of every operator through which sizes can be followed."""

from __future__ import annotations

from anyshape.repair import broadcast_rules as elementwise
from anyshape.repair import cutting_rules as cutting
from anyshape.repair import layout_rules as layout
from anyshape.repair import network_rules as network
from anyshape.repair import reshaping_rules as reshaping
from anyshape.repair.followed_graph import Rule

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
