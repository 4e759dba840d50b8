"""A linear layer with a dynamic batch.    anyshape export examples/01_linear/model.py -o linear.onnx"""

import torch


class DynamicLinear(torch.nn.Module):
    def __init__(self, input_dim, output_dim):
        super().__init__()
        self.linear = torch.nn.Linear(input_dim, output_dim)

    def forward(self, input):
        return self.linear(input)


def model():
    torch.manual_seed(0)
    return DynamicLinear(10, 5)


def inputs(batch_size=3):
    return torch.randn(batch_size, 10)
