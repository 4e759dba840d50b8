"""A reshape that takes its sizes from the input.    anyshape export examples/03_reshape/model.py -o reshape.onnx"""

import torch


class DynamicReshape(torch.nn.Module):
    def forward(self, input):
        batch_size = input.shape[0]
        feature_dim = input.shape[1]
        return input.view(batch_size, feature_dim)


def model():
    return DynamicReshape()


def inputs(batch_size=3):
    return torch.randn(batch_size, 10)
