"""An operator of a compiled library, written in ONNX by a translation of a few lines."""

import torch
from onnxscript import opset18 as op

import anyshape


# Stands for a kernel in C++ or CUDA: torch cannot look inside.
@torch.library.custom_op("mylib::soft_cap", mutates_args=())
def soft_cap(x: torch.Tensor, cap: float) -> torch.Tensor:
    return torch.from_numpy(cap * torch.tanh(x / cap).numpy())


@soft_cap.register_fake
def _(x, cap):
    return torch.empty_like(x)


class Scores(torch.nn.Module):
    def forward(self, query, key):
        return soft_cap(query @ key.mT, 30.0).softmax(-1)


def inputs(batch=2, seq=5, past=3):
    return {"query": torch.randn(batch, seq, 16), "key": torch.randn(batch, past + seq, 16)}


# The operator's own arguments come in: tensors are ONNX values, numbers are numbers.
@anyshape.translation("mylib::soft_cap")
def soft_cap_in_onnx(x, cap):
    limit = op.CastLike(op.Constant(value_float=cap), x)
    return op.Mul(op.Tanh(op.Div(x, limit)), limit)


result = anyshape.export(Scores(), inputs, "scores.onnx")
print(result)
print("operator nodes of mylib:", [node.op_type for node in result.model.graph if node.domain == "mylib"])

# A translation that is wrong is found like any other mistake: this one forgets to divide.
with anyshape.translation("mylib::soft_cap", lambda x, cap: op.Mul(op.Tanh(x), op.Constant(value_float=cap))):
    try:
        anyshape.export(Scores(), inputs, "wrong.onnx")
    except anyshape.PromiseBroken as broken:
        print(broken.finding.code, broken.finding.name)
