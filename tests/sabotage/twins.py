"""Pairs of a module and a right ONNX file for it, to be broken on purpose.

The files are written by hand, so that they hold every kind of node that a mutation wants to break, and so that no
exporter is under test here. A module's weights are the file's initializers, dots in their names made underscores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx
import torch
import torch.nn.functional as F
from torch import nn

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'


@dataclass(frozen=True)
class Call:
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


Make = Callable[[Mapping[str, int], torch.Generator], tuple[torch.Tensor, ...]]


@dataclass(frozen=True)
class Twin:
    """`text` is the graph of `module`, for the inputs of `make`; dims are b and s, or what `sizes` says."""

    name: str
    module: Callable[[], nn.Module]
    text: str
    make: Make
    sizes: tuple[tuple[int, int], ...] = ((2, 5), (1, 1), (3, 12), (4, 4), (1, 9))

    def build(self) -> nn.Module:
        torch.manual_seed(0)
        return self.module().eval()

    def file(self) -> onnx.ModelProto:
        model = onnx.parser.parse_model(HEAD + self.text)
        for name, weight in self.build().state_dict().items():
            model.graph.initializer.append(onnx.numpy_helper.from_array(weight.numpy(), name.replace(".", "_")))
        onnx.checker.check_model(model)
        return model

    def inputs(self, sizes: Mapping[str, int], seed: int) -> Call:
        return Call(self.make(sizes, torch.Generator().manual_seed(seed)))


class Of(nn.Module):
    """A module from a function and its parts."""

    def __init__(self, function: Callable[..., Any], **parts: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            self.add_module(name, part)

    def forward(self, *args: torch.Tensor) -> Any:
        return self.function(self, *args)


def floats(*axes: str | int) -> Make:
    def make(sizes: Mapping[str, int], generator: torch.Generator) -> tuple[torch.Tensor, ...]:
        return (torch.randn([sizes[a] if isinstance(a, str) else a for a in axes], generator=generator),)

    return make


def both(*makes: Make) -> Make:
    return lambda sizes, generator: tuple(tensor for make in makes for tensor in make(sizes, generator))


def ids(below: int, *axes: str) -> Make:
    return lambda sizes, generator: (torch.randint(0, below, [sizes[a] for a in axes], generator=generator),)


def mask(*axes: str) -> Make:
    def make(sizes: Mapping[str, int], generator: torch.Generator) -> tuple[torch.Tensor, ...]:
        drawn = torch.rand([sizes[a] for a in axes], generator=generator) > 0.4
        drawn[..., 0] = True
        return (drawn,)

    return make


def _attend(m: Any, x: torch.Tensor) -> torch.Tensor:
    q, k, v = m.q(x), m.k(x), m.v(x)
    return torch.softmax(q @ k.transpose(1, 2) / 2.0, -1) @ v


def _heads(m: Any, x: torch.Tensor) -> torch.Tensor:
    split = x.view(x.shape[0], x.shape[1], 2, 4).transpose(1, 2)
    return (split * 2).transpose(1, 2).reshape(x.shape[0], x.shape[1], 8)


def _pool(m: Any, x: torch.Tensor, keep: torch.Tensor) -> Any:
    total = (x * keep[..., None]).sum(1)
    return total / keep.sum(1, keepdim=True), keep.sum(1)


def _by_size(m: Any, x: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.shape[1] > 4 else x + 1


def _over_time(m: Any, x: torch.Tensor) -> torch.Tensor:
    state, out = torch.zeros(x.shape[0], 8), []
    for step in range(x.shape[1]):
        state = torch.tanh(m.w(state) + x[:, step])
        out.append(state)
    return torch.stack(out, 1)


def _pad_even(m: Any, x: torch.Tensor) -> torch.Tensor:
    padded = F.pad(x, (0, 0, 0, x.shape[1] % 2))
    return padded.view(x.shape[0], -1, 2, 8).mean(2)


def _causal(m: Any, x: torch.Tensor) -> torch.Tensor:
    scores = x @ x.transpose(1, 2)
    length = x.shape[1]
    return scores.masked_fill(torch.ones(length, length).triu(1).bool(), -1e9)


TWINS = (
    Twin(
        "linear",
        lambda: nn.Linear(8, 8),
        """g (float[b, s, 8] x) => (float[b, s, 8] y) { t = Transpose<perm = [1, 0]>(weight) p = MatMul(x, t)
          y = Add(p, bias) }""",
        floats("b", "s", 8),
    ),
    Twin(
        "mlp",
        lambda: Of(lambda m, x: m.b(F.leaky_relu(m.a(x), 0.1)), a=nn.Linear(8, 6), b=nn.Linear(6, 3)),
        """g (float[b, 8] x) => (float[b, 3] y) {
          h = Gemm<transB = 1>(x, a_weight, a_bias) r = LeakyRelu<alpha = 0.1>(h)
          y = Gemm<transB = 1>(r, b_weight, b_bias) }""",
        floats("b", 8),
    ),
    Twin(
        "attention",
        lambda: Of(
            _attend, q=nn.Linear(8, 4, bias=False), k=nn.Linear(8, 4, bias=False), v=nn.Linear(8, 4, bias=False)
        ),
        """g (float[b, s, 8] x) => (float[b, s, 4] y) {
          wq = Transpose<perm = [1, 0]>(q_weight) wk = Transpose<perm = [1, 0]>(k_weight)
          wv = Transpose<perm = [1, 0]>(v_weight)
          q = MatMul(x, wq) k = MatMul(x, wk) v = MatMul(x, wv)
          kt = Transpose<perm = [0, 2, 1]>(k) two = Constant<value_float = 2.0>()
          raw = MatMul(q, kt) scaled = Div(raw, two) p = Softmax<axis = -1>(scaled) y = MatMul(p, v) }""",
        floats("b", "s", 8),
    ),
    Twin(
        "layer norm",
        lambda: nn.LayerNorm(8),
        """g (float[b, s, 8] x) => (float[b, s, 8] y) {
          y = LayerNormalization<axis = -1, epsilon = 1e-05>(x, weight, bias) }""",
        floats("b", "s", 8),
    ),
    Twin(
        "masked pool",
        lambda: Of(_pool),
        """g (float[b, s, 8] x, bool[b, s] keep) => (float[b, 8] y, int64[b] n) {
          last = Constant<value_ints = [-1]>() one = Constant<value_ints = [1]>()
          k = Unsqueeze(keep, last) f = Cast<to = 1>(k) i = Cast<to = 7>(keep)
          kept = Mul(x, f) total = ReduceSum<keepdims = 0>(kept, one) count = ReduceSum<keepdims = 1>(i, one)
          c = Cast<to = 1>(count) y = Div(total, c) n = ReduceSum<keepdims = 0>(i, one) }""",
        both(floats("b", "s", 8), mask("b", "s")),
    ),
    Twin(
        "embedding",
        lambda: Of(
            lambda m, x: m.token(x) + m.place(torch.arange(x.shape[1])),
            token=nn.Embedding(11, 8),
            place=nn.Embedding(16, 8),
        ),
        """g (int64[b, s] x) => (float[b, s, 8] y) {
          zero = Constant<value_int = 0>() one = Constant<value_int = 1>() shape = Shape(x)
          n = Gather<axis = 0>(shape, one)
          places = Range(zero, n, one) t = Gather<axis = 0>(token_weight, x) p = Gather<axis = 0>(place_weight, places)
          y = Add(t, p) }""",
        ids(11, "b", "s"),
    ),
    Twin(
        "convolution",
        lambda: nn.Conv1d(4, 4, 3, padding=1),
        "g (float[b, 4, s] x) => (float[b, 4, s] y) { y = Conv<pads = [1, 1], kernel_shape = [3]>(x, weight, bias) }",
        floats("b", 4, "s"),
    ),
    Twin(
        "shift",
        lambda: Of(lambda m, x: torch.cat([x[:, 1:], x[:, :1]], 1) - x),
        """g (float[b, s] x) => (float[b, s] y) {
          zero = Constant<value_ints = [0]>() one = Constant<value_ints = [1]>() end = Constant<value_ints = [100]>()
          rest = Slice(x, one, end, one) first = Slice(x, zero, one, one) moved = Concat<axis = 1>(rest, first)
          y = Sub(moved, x) }""",
        floats("b", "s"),
    ),
    Twin(
        "heads",
        lambda: Of(_heads),
        """g (float[b, s, 8] x) => (float[b, s, 8] y) {
          split = Constant<value_ints = [0, 0, 2, 4]>() join = Constant<value_ints = [0, 0, 8]>()
          two = Constant<value_float = 2.0>()
          h = Reshape(x, split) t = Transpose<perm = [0, 2, 1, 3]>(h) d = Mul(t, two)
          u = Transpose<perm = [0, 2, 1, 3]>(d)
          y = Reshape(u, join) }""",
        floats("b", "s", 8),
    ),
    Twin(
        "by size",
        lambda: Of(_by_size),
        """g (float[b, s] x) => (float[b, s] y) {
          one = Constant<value_int = 1>() four = Constant<value_int = 4>() shape = Shape(x)
          n = Gather<axis = 0>(shape, one)
          long = Greater(n, four)
          y = If(long) <then_branch = t () => (float[b, s] a) { two = Constant<value_float = 2.0>() a = Mul(x, two) },
                        else_branch = e () => (float[b, s] c) { unit = Constant<value_float = 1.0>()
                        c = Add(x, unit) }> }""",
        floats("b", "s"),
    ),
    Twin(
        "over time",
        lambda: Of(_over_time, w=nn.Linear(8, 8)),
        """g (float[b, s, 8] x) => (float[b, s, 8] y) {
          shape = Shape<start = 0, end = 1>(x) eight = Constant<value_ints = [8]>()
          state = Concat<axis = 0>(shape, eight)
          h0 = ConstantOfShape(state) wt = Transpose<perm = [1, 0]>(w_weight)
          h, y = Scan<num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1],
            body = f (float[b, 8] h_in, float[b, 8] step) => (float[b, 8] h_out, float[b, 8] out) {
              p = MatMul(h_in, wt) q = Add(p, w_bias) r = Add(q, step) h_out = Tanh(r) out = Identity(h_out) }>(h0, x)
              }""",
        floats("b", "s", 8),
    ),
    Twin(
        "choice",
        lambda: Of(lambda m, x: (x.argmax(1), x.max(1).values, x.sort(1).values)),
        """g (float[b, s] x) => (int64[b] i, float[b] v, float[b, s] z) {
          one = Constant<value_ints = [1]>() shape = Shape<start = 1, end = 2>(x)
          i = ArgMax<axis = 1, keepdims = 0>(x) v = ReduceMax<keepdims = 0>(x, one)
          z, order = TopK<axis = 1, largest = 0, sorted = 1>(x, shape) }""",
        floats("b", "s"),
    ),
    Twin(
        "integers",
        lambda: Of(lambda m, x: ((x // 3) * 5 + x % 4, x > 6)),
        """g (int64[b, s] x) => (int64[b, s] y, bool[b, s] z) {
          three = Constant<value_int = 3>() five = Constant<value_int = 5>() four = Constant<value_int = 4>()
          six = Constant<value_int = 6>()
          m = Mod(x, three) w = Sub(x, m) d = Div(w, three)
          e = Mul(d, five) r = Mod(x, four) y = Add(e, r) z = Greater(x, six) }""",
        ids(50, "b", "s"),
    ),
    Twin(
        "pad to even",
        lambda: Of(_pad_even),
        """g (float[b, s, 8] x) => (float[b, h, 8] y) {
          one = Constant<value_ints = [1]>() two = Constant<value_ints = [2]>() shape = Shape(x)
          zeros = Constant<value_ints = [0, 0, 0, 0]>()
          n = Gather<axis = 0>(shape, one) odd = Mod(n, two) last = Constant<value_ints = [0]>()
          pads = Concat<axis = 0>(zeros, odd, last)
          p = Pad(x, pads) split = Constant<value_ints = [0, -1, 2, 8]>() q = Reshape(p, split)
          y = ReduceMean<keepdims = 0>(q, two) }""",
        floats("b", "s", 8),
    ),
    Twin(
        "causal",
        lambda: Of(_causal),
        """g (float[b, s, 8] x) => (float[b, s, s] y) {
          t = Transpose<perm = [0, 2, 1]>(x) scores = MatMul(x, t) n = Shape<start = 1, end = 2>(x)
          square = Concat<axis = 0>(n, n)
          unit = ConstantOfShape<value = float[1] {1}>(square) above = Constant<value_int = 1>()
          upper = Trilu<upper = 1>(unit, above)
          hide = Cast<to = 9>(upper) fill = Constant<value_float = -1000000000.0>() y = Where(hide, fill, scores) }""",
        floats("b", "s", 8),
    ),
    Twin(
        "two lengths",
        lambda: Of(lambda m, x, y: x @ y.transpose(1, 2)),
        """g (float[b, s, 8] x, float[b, b, 8] z) => (float[b, s, b] y) { t = Transpose<perm = [0, 2, 1]>(z)
          y = MatMul(x, t) }""",
        both(floats("b", "s", 8), floats("b", "b", 8)),
    ),
    Twin(
        "positive ones",
        lambda: Of(lambda m, x: x[x > 0]),
        """g (float[b, s] x) => (float[k] y) {
          zero = Constant<value_float = 0.0>() line = Constant<value_ints = [-1]>()
          more = Greater(x, zero) flat = Reshape(more, line) y = Compress(x, flat) }""",
        floats("b", "s"),
    ),
    Twin(
        "running total",
        lambda: Of(lambda m, x: torch.clamp(x.cumsum(1), -2.0, 2.0).to(torch.float16)),
        """g (float[b, s] x) => (float16[b, s] y) {
          one = Constant<value_int = 1>() low = Constant<value_float = -2.0>() high = Constant<value_float = 2.0>()
          c = CumSum<exclusive = 0, reverse = 0>(x, one) d = Clip(c, low, high) y = Cast<to = 10>(d) }""",
        floats("b", "s"),
    ),
)
