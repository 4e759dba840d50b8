"""Convolutional networks: classifiers, U-Nets, decoders, one and three dimensions."""

from __future__ import annotations

import torch
from repair_rows import Row, batches, image, pixels
from torch import Tensor, nn
from torch.nn import functional as F


class LeNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Conv2d(3, 6, 5), nn.Conv2d(6, 16, 5)
        self.head = nn.Sequential(nn.Linear(16 * 5 * 5, 32), nn.ReLU(), nn.Linear(32, 10))

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.one(x)), 2)
        x = F.max_pool2d(F.relu(self.two(x)), 2)
        return self.head(x.view(x.size(0), -1))


class Block(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int = 1) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inside, outside, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outside),
            nn.ReLU(),
            nn.Conv2d(outside, outside, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outside),
        )
        self.short = nn.Conv2d(inside, outside, 1, stride) if stride != 1 or inside != outside else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + self.short(x))


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.Sequential(Block(8, 8), Block(8, 16, 2), Block(16, 32, 2))
        self.pool, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.flatten(self.pool(self.blocks(self.stem(x))), 1))


class Excited(nn.Module):
    """Squeeze and excitation, as in EfficientNet and SENet."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)
        self.down, self.up = nn.Linear(16, 4), nn.Linear(4, 16)

    def forward(self, x: Tensor) -> Tensor:
        x = F.silu(self.conv(x))
        scale = torch.sigmoid(self.up(F.relu(self.down(x.mean((2, 3))))))
        return x * scale.view(x.size(0), -1, 1, 1)


class Separable(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.deep = nn.Conv2d(8, 8, 3, 2, 1, groups=8)
        self.first, self.wide = nn.Conv2d(3, 8, 1), nn.Conv2d(8, 24, 1)

    def forward(self, x: Tensor) -> Tensor:
        return F.hardswish(self.wide(F.relu6(self.deep(self.first(x)))))


class Shuffled(nn.Module):
    """Channel shuffle, as in ShuffleNet."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.out = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1, groups=2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        b, c, h, w = x.shape
        x = x.view(b, 2, c // 2, h, w).transpose(1, 2).reshape(b, c, h, w)
        return self.out(x)


class Dense(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(3 + 4 * index, 4, 3, padding=1) for index in range(3))
        self.last = nn.Conv2d(15, 8, 1)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.cat([x, F.relu(layer(x))], 1)
        return F.avg_pool2d(self.last(x), 2)


class UNet(nn.Module):
    """`up` is how the decoder finds its size: "scale", "size" of the skip, or "transposed" convolutions."""

    def __init__(self, up: str) -> None:
        super().__init__()
        self.up = up
        self.one, self.two, self.three = (
            nn.Conv2d(3, 8, 3, padding=1),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.Conv2d(16, 16, 3, padding=1),
        )
        self.raise_ = nn.ConvTranspose2d(16, 16, 2, 2)
        self.four, self.out = nn.Conv2d(32, 8, 3, padding=1), nn.Conv2d(16, 2, 1)
        self.last = nn.ConvTranspose2d(8, 8, 2, 2)

    def _larger(self, x: Tensor, skip: Tensor, layer: nn.Module) -> Tensor:
        if self.up == "transposed":
            return layer(x)
        if self.up == "size":
            return F.interpolate(x, size=skip.shape[2:], mode="bilinear", align_corners=False)
        return F.interpolate(x, scale_factor=2, mode="nearest")

    def forward(self, x: Tensor) -> Tensor:
        one = F.relu(self.one(x))
        two = F.relu(self.two(F.max_pool2d(one, 2)))
        three = F.relu(self.three(F.max_pool2d(two, 2)))
        x = torch.cat([self._larger(three, two, self.raise_), two], 1)
        x = F.relu(self.four(x))
        return self.out(torch.cat([self._larger(x, one, self.last), one], 1))


class Pyramid(nn.Module):
    """A feature pyramid: sizes of one level added to the next."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 2, 1)
        self.side = nn.Conv2d(8, 8, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        one = self.one(x)
        two = self.two(one)
        return self.side(one) + F.interpolate(two, size=one.shape[-2:], mode="nearest"), two


class Segmenter(nn.Module):
    """Logits resized to the size of the picture."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 4, 3, 2, 1))

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(self.body(x), size=x.shape[2:], mode="bilinear", align_corners=False)


class SuperResolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 12, 3, padding=1), nn.PixelShuffle(2)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x)


class Normed(nn.Module):
    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1), norm

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(self.norm(self.conv(x)))


class ConvNext(nn.Module):
    """A norm over channels, which are moved to the end and back."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.deep = nn.Conv2d(3, 16, 4, 4), nn.Conv2d(16, 16, 7, padding=3, groups=16)
        self.norm, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)
        self.scale = nn.Parameter(torch.rand(16))

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        y = self.norm(self.deep(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.down(F.gelu(self.up(y)))).permute(0, 3, 1, 2)


class Attended(nn.Module):
    """Self-attention over pixels, as in diffusion U-Nets."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.qkv, self.out = (
            nn.Conv2d(3, 8, 3, 2, 1),
            nn.GroupNorm(2, 8),
            nn.Conv2d(8, 24, 1),
            nn.Conv2d(8, 8, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(b, 3 * c, h * w).chunk(3, 1)
        scores = torch.softmax(q.transpose(1, 2) @ k * c**-0.5, -1)
        return x + self.out((v @ scores.transpose(1, 2)).reshape(b, c, h, w))


class WaveNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(4, 8, 3, dilation=2**index, padding=2**index) for index in range(3))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            one, two = layer(x).chunk(2, 1)
            x = x + torch.tanh(one) * torch.sigmoid(two)
        return x.mean(-1)


class Volume(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv3d(1, 4, 3, padding=1), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.max_pool3d(F.relu(self.conv(x)), 2).mean((2, 3, 4)))


class Vgg(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, padding=1), nn.MaxPool2d(2)
        )
        self.pool, self.head = nn.AdaptiveAvgPool2d((4, 4)), nn.Linear(8 * 16, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.flatten(self.pool(self.body(x)), 1))


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16 * 16, 12))
        self.decoder = nn.Linear(12, 8 * 16 * 16)
        self.up = nn.ConvTranspose2d(8, 3, 4, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        z = self.decoder(self.encoder(x))
        return torch.sigmoid(self.up(z.view(-1, 8, 16, 16)))


class Reflected(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return F.instance_norm(self.conv(F.pad(x, (1, 1, 1, 1), mode="reflect")))


class Detector(nn.Module):
    """Heads of two strides, flattened and joined, as in YOLO and SSD."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 2, 1)
        self.head = nn.Conv2d(8, 2 * 5, 1)

    def forward(self, x: Tensor) -> Tensor:
        one = F.leaky_relu(self.one(x), 0.1)
        two = F.leaky_relu(self.two(one), 0.1)
        found = [self.head(each).permute(0, 2, 3, 1).reshape(x.shape[0], -1, 5) for each in (one, two)]
        return torch.sigmoid(torch.cat(found, 1))


class Normalized(nn.Module):
    """The mean of a picture's own pixels, by their number."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sum((2, 3)) / (x.shape[2] * x.shape[3])


IMAGE = {"x": "batch 3 h w"}
BATCH = {"x": "batch 3 32 32"}

ROWS = (
    Row("lenet", LeNet, image(), BATCH, **batches()),
    Row("lenet-batch-4", LeNet, image(), BATCH, **batches(batch=4)),
    Row("resnet", ResNet, image(h=64, w=48), IMAGE, **pixels(h=64, w=48)),
    Row("resnet-batch", ResNet, image(), BATCH, **batches(batch=2)),
    Row("excited", Excited, image(), IMAGE, **pixels()),
    Row("separable", Separable, image(), IMAGE, **pixels(batch=2)),
    Row("shuffled", Shuffled, image(h=24, w=40), IMAGE, **pixels(h=24, w=40)),
    Row("dense", Dense, image(), IMAGE, **pixels(step=2)),
    Row("unet-scale", lambda: UNet("scale"), image(h=32, w=48), IMAGE, **pixels(h=32, w=48, step=4)),
    Row("unet-size", lambda: UNet("size"), image(h=32, w=48), IMAGE, **pixels(h=32, w=48, step=4)),
    Row("unet-transposed", lambda: UNet("transposed"), image(h=32, w=48), IMAGE, **pixels(h=32, w=48, step=4)),
    Row("unet-batch", lambda: UNet("size"), image(), BATCH, **batches()),
    Row("pyramid", Pyramid, image(h=32, w=56), IMAGE, **pixels(h=32, w=56, step=4)),
    Row("segmenter", Segmenter, image(h=40, w=56), {**IMAGE, "y": "batch 4 h w"}, **pixels(h=40, w=56, step=4)),
    Row("segmenter-batch", Segmenter, image(), BATCH, **batches()),
    Row("super-resolution", SuperResolution, image(h=20, w=28), IMAGE, **pixels(h=20, w=28)),
    Row("group-norm", lambda: Normed(nn.GroupNorm(4, 8)), image(h=20, w=28), IMAGE, **pixels(h=20, w=28)),
    Row("instance-norm", lambda: Normed(nn.InstanceNorm2d(8, affine=True)), image(), IMAGE, **pixels()),
    Row("convnext", ConvNext, image(h=32, w=48), IMAGE, **pixels(h=32, w=48, step=4)),
    Row("attended-pixels", Attended, image(h=20, w=28), IMAGE, **pixels(h=20, w=28, step=2)),
    Row(
        "wavenet",
        WaveNet,
        lambda batch=1, seq=40: {"x": torch.randn(batch, 4, seq)},
        {"x": "batch 4 seq"},
        {"batch": 1, "seq": 40},
        [{"batch": 3, "seq": 41}, {"batch": 2, "seq": 90}],
    ),
    Row(
        "volume",
        Volume,
        lambda batch=1, d=8: {"x": torch.randn(batch, 1, d, 8, 8)},
        {"x": "batch 1 d 8 8"},
        {"batch": 1, "d": 8},
        [{"batch": 3, "d": 10}, {"batch": 2, "d": 16}],
    ),
    Row("vgg-pool", Vgg, image(), BATCH, **batches()),
    Row("autoencoder", Autoencoder, image(), BATCH, **batches(batch=3)),
    Row("reflected", Reflected, image(), IMAGE, **pixels()),
    Row("detector", Detector, image(h=32, w=64), IMAGE, **pixels(h=32, w=64, step=4)),
    Row("normalized", Normalized, image(h=20, w=28), IMAGE, **pixels(h=20, w=28)),
    Row("normalized-batch", Normalized, image(), BATCH, **batches()),
)
