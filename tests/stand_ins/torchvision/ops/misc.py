"""FrozenBatchNorm2d, which timm compares classes with."""

import torch


class FrozenBatchNorm2d(torch.nn.Module):
    def __init__(self, *args, **kwargs):
        raise NotImplementedError("this is a stand-in for torchvision: install the real one")
