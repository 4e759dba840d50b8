"""Operators whose bodies are plain torch: anyshape looks inside, and nothing needs to be said."""

import torch

import anyshape


@torch.library.custom_op("mylib::scale_rows", mutates_args=())
def scale_rows(x: torch.Tensor) -> torch.Tensor:
    return x * torch.arange(x.shape[1], dtype=x.dtype)[None, :, None]


@scale_rows.register_fake
def _(x):
    return torch.empty_like(x)


# The older way to say the same.
library = torch.library.Library("mylib", "FRAGMENT")
library.define("halve_if_long(Tensor x) -> Tensor")
library.impl("halve_if_long", lambda x: x / 2 if x.shape[1] > 8 else x.clone(), "CompositeExplicitAutograd")
torch.library.register_fake("mylib::halve_if_long", lambda x: torch.empty_like(x))


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Model(torch.nn.Module):
    def forward(self, x):
        return Swish.apply(torch.ops.mylib.halve_if_long(scale_rows(x)))


def inputs(batch=3, seq=5):
    return {"x": torch.randn(batch, seq, 8)}


result = anyshape.export(Model(), inputs, "inlined.onnx")
print(result)
print("needs of a runtime:", list(result.contract.needs))

model, file = Model(), anyshape.load("inlined.onnx")
for seq in (5, 20):
    x = torch.randn(2, seq, 8)
    print(f"seq {seq}: right is", torch.allclose(file(x=x), model(x), atol=1e-5))
