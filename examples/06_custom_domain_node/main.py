"""An operator that ONNX cannot express, kept as a node of its own; a Python function runs it."""

import numpy as np
import torch

import anyshape


def bottleneck(distances):
    """The largest step that cannot be avoided on the way from the first point to each other one (Prim's algorithm)."""
    answer = np.zeros(len(distances), distances.dtype)
    reached, best = {0}, distances[0].copy()
    while len(reached) < len(distances):
        near = min((point for point in range(len(distances)) if point not in reached), key=lambda point: best[point])
        reached.add(near)
        answer[near] = best[near]
        best = np.minimum(best, np.maximum(distances[near], best[near]))
    return answer


@torch.library.custom_op("mylib::bottleneck", mutates_args=())
def bottleneck_op(distances: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(bottleneck(distances.numpy()))


@bottleneck_op.register_fake
def _(distances):
    return distances.new_empty(distances.shape[0])


class Paths(torch.nn.Module):
    def forward(self, points):
        return bottleneck_op(torch.cdist(points, points)) * 2


def inputs(points=5):
    return {"points": torch.randn(points, 3)}


# What the node does, in numpy: it is what anyshape compares with the model, and what anyshape.load runs.
anyshape.translation("mylib::bottleneck", bottleneck, node="mylib::Bottleneck")

result = anyshape.export(Paths(), inputs, "paths.onnx")
print(result)
print("needs of a runtime:", list(result.contract.needs))

points = torch.randn(7, 3)
print("right is", torch.allclose(anyshape.load("paths.onnx")(points=points), Paths()(points), atol=1e-5))

# Elsewhere, where nothing is registered, the function is given to `load`; other runtimes bring their own kernel.
file = anyshape.load("paths.onnx", operators={"mylib::Bottleneck": bottleneck})
print("answers", tuple(file(points=points).shape))
