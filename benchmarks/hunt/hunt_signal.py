"""Convolutions, pooling, interpolation, spectra and windows at odd, tiny and far sizes."""

# ruff: noqa: C408
from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from registry import Registry
from torch import nn

model = Registry("signal")


def wave(batch=2, seq=12):
    return (torch.randn(batch, 2, seq),)


def image(height=7, width=9):
    return (torch.randn(1, 2, height, width),)


WAVE = {"seq": (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 127, 128, 255, 256, 257, 300, 1001)}
LONG = {"seq": (12, 13, 14, 15, 16, 17, 31, 127, 128, 255, 256, 257, 300, 1001)}
PLANE = [
    dict(height=h, width=w) for h, w in ((1, 1), (1, 8), (8, 1), (2, 3), (5, 7), (16, 16), (17, 31), (64, 3), (33, 65))
]
LARGER = [dict(height=h, width=w) for h, w in ((4, 4), (4, 9), (9, 4), (5, 7), (16, 16), (17, 31), (33, 65))]


@model(
    "average pool with ceil mode: the last window is cut and its divisor too",
    image,
    points=LARGER,
    where=["height >= 4", "width >= 4"],
)
def average_ceil(self, x):
    return F.avg_pool2d(x, 3, stride=2, padding=1, ceil_mode=True)


@model("the same without counting the padding", image, points=LARGER, where=["height >= 4", "width >= 4"])
def average_ceil_unpadded(self, x):
    return F.avg_pool2d(x, 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False)


@model("max pool with ceil mode and dilation", image, points=LARGER, where=["height >= 5", "width >= 5"])
def max_ceil_dilated(self, x):
    return F.max_pool2d(x, 2, stride=3, dilation=2, ceil_mode=True)


@model("max pool whose last window starts in the padding: torch drops it", wave, far=LONG, where=["seq >= 2"])
def max_ceil_dropped(self, x):
    return F.max_pool1d(x, 2, stride=3, padding=1, ceil_mode=True)


@model(
    "max pool gives indices, and unpool puts back",
    lambda height=6, width=8: (torch.randn(1, 2, height, width),),
    points=[dict(height=h, width=w) for h, w in ((2, 2), (4, 6), (16, 8), (32, 2))],
    where=["height % 2 == 0", "width % 2 == 0"],
)
def pool_and_unpool(self, x):
    y, index = F.max_pool2d(x, 2, return_indices=True)
    return F.max_unpool2d(y, index, 2)


@model("adaptive average pool to 5 from sizes that are no multiple, and smaller ones", wave, far=WAVE)
def adaptive_five(self, x):
    return F.adaptive_avg_pool1d(x, 5)


@model("adaptive max pool to (3, 4)", image, points=PLANE)
def adaptive_max(self, x):
    return F.adaptive_max_pool2d(x, (3, 4))


@model("adaptive pool to a size that is half of the input's", wave, where=["seq >= 2"], far=LONG)
def adaptive_half(self, x):
    return F.adaptive_avg_pool1d(x, x.shape[-1] // 2)


@model("power-average pool", wave, where=["seq >= 3"], far=LONG)
def lp_pooled(self, x):
    return F.lp_pool1d(x.abs(), 2, 3, stride=2)


@model("nearest interpolation to a size that is no multiple", image, points=PLANE)
def nearest_to_ten(self, x):
    return F.interpolate(x, size=(10, 13), mode="nearest")


@model("nearest-exact: the other rounding", image, points=PLANE)
def nearest_exact(self, x):
    return F.interpolate(x, size=(x.shape[2] * 3 // 2 + 1, 11), mode="nearest-exact")


@model("bilinear with align_corners, output of one pixel", image, points=PLANE)
def aligned_corners(self, x):
    return F.interpolate(x, size=(x.shape[2] // 2 + 1, 1), mode="bilinear", align_corners=True)


@model("bilinear by scale 1.7: the scale, not the sizes, decides where to read", image, points=PLANE)
def scaled_bilinear(self, x):
    return F.interpolate(x, scale_factor=1.7, mode="bilinear", align_corners=False)


@model("the same with the scale computed anew from sizes", image, points=PLANE)
def recomputed_scale(self, x):
    return F.interpolate(x, scale_factor=1.3, mode="bilinear", recompute_scale_factor=True)


@model("bicubic beyond the borders", image, points=PLANE)
def bicubic(self, x):
    return F.interpolate(x, size=(x.shape[2] + 3, x.shape[3] * 2), mode="bicubic", align_corners=False)


@model("antialiased bilinear downscaling by a third", image, points=LARGER, where=["height >= 4", "width >= 4"])
def antialiased(self, x):
    return F.interpolate(x, size=(x.shape[2] // 3 + 1, x.shape[3] // 3 + 1), mode="bilinear", antialias=True)


@model("area interpolation is an adaptive pool", image, points=PLANE)
def area(self, x):
    return F.interpolate(x, size=(4, 5), mode="area")


@model(
    "up to the size of another input",
    lambda height=4, width=5, small=3: (torch.randn(1, 2, height, width), torch.randn(1, 2, small, small)),
    points=[dict(height=1, width=1, small=1), dict(height=16, width=9, small=5), dict(height=3, width=3, small=8)],
)
def to_other_size(self, x, y):
    return x + F.interpolate(y, size=x.shape[-2:], mode="bilinear", align_corners=False)


@model(
    "a pyramid: down by strided convolutions, up by nearest to each size",
    image,
    points=LARGER,
    where=["height >= 4", "width >= 4"],
)
class Pyramid(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([nn.Conv2d(2, 2, 3, 2, 1) for _ in range(2)])

    def forward(self, x):
        levels = [x]
        for layer in self.down:
            levels.append(layer(levels[-1]))
        y = levels.pop()
        for level in reversed(levels):
            y = level + F.interpolate(y, size=level.shape[-2:], mode="nearest")
        return y


@model("transposed convolution with output padding by parity", wave, far=WAVE, where=["seq >= 2"])
class BackToLength(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Conv1d(2, 3, 3, 2, 1), nn.ConvTranspose1d(3, 2, 3, 2, 1)

    def forward(self, x):
        return self.up(self.down(x), output_size=[x.shape[-1]])


@model("'same' padding with an even kernel and dilation", wave, far=WAVE)
class SameEven(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 2, 4, padding="same", dilation=3)

    def forward(self, x):
        return self.conv(x)


@model("causal convolution by left padding that is longer than the input", wave, far=WAVE)
class LongCausal(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 2, 3, dilation=20)

    def forward(self, x):
        return self.conv(F.pad(x, (40, 0)))


@model("depthwise convolution with reflect padding", wave, far=LONG, where=["seq >= 3"])
class Depthwise(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 4, 5, groups=2, padding=2, padding_mode="reflect")

    def forward(self, x):
        return self.conv(x)


@model(
    "weights of the convolution come from another input: one filter a sample",
    lambda batch=3, seq=8: (torch.randn(batch, 2, seq), torch.randn(batch, 2, 2, 3)),
    points=[dict(batch=1, seq=1), dict(batch=5, seq=257)],
)
def filters_per_sample(self, x, weight):
    b, c, n = x.shape
    y = F.conv1d(x.reshape(1, b * c, n), weight.reshape(b * 2, c, 3), padding=1, groups=b)
    return y.view(b, 2, n)


@model(
    "unfold and fold with overlap, divided by how often each pixel is covered",
    image,
    points=LARGER,
    where=["height >= 4", "width >= 4"],
)
def fold_overlap(self, x):
    size = x.shape[-2:]
    patches = F.unfold(x, 3, padding=1)
    cover = F.fold(torch.ones_like(patches), size, 3, padding=1)
    return F.fold(patches, size, 3, padding=1) / cover


@model(
    "pixel shuffle, then crop by a size", lambda height=3, width=4: (torch.randn(1, 4, height, width),), points=PLANE
)
def shuffled(self, x):
    return F.pixel_shuffle(x, 2)[..., : x.shape[2] + 1, 1:]


@model(
    "grid sample at borders, outside, and on exact pixels",
    lambda height=5, width=6, n=4: (torch.randn(1, 2, height, width), torch.rand(1, n, n, 2) * 3 - 1.5),
    points=[dict(height=1, width=1, n=1), dict(height=2, width=9, n=3)],
    rare={
        "exact": lambda height=5, width=6, n=4: (
            torch.randn(1, 2, height, width),
            torch.randint(-1, 2, (1, n, n, 2)).float(),
        )
    },
)
def grid_sampled(self, x, grid):
    return F.grid_sample(x, grid, align_corners=True), F.grid_sample(
        x, grid, padding_mode="border", align_corners=False
    )


@model(
    "grid sample by nearest with reflection",
    lambda height=5, width=6, n=4: (torch.randn(1, 2, height, width), torch.rand(1, n, n, 2) * 4 - 2),
    points=[dict(height=2, width=3, n=1), dict(height=7, width=2, n=5)],
)
def grid_reflected(self, x, grid):
    return F.grid_sample(x, grid, mode="bilinear", padding_mode="reflection", align_corners=False)


@model("affine grid at the sizes of the input", image, points=PLANE)
class Affine(nn.Module):
    def __init__(self):
        super().__init__()
        self.theta = nn.Parameter(torch.tensor([[[0.9, 0.1, 0.0], [-0.1, 0.8, 0.1]]]))

    def forward(self, x):
        return F.grid_sample(x, F.affine_grid(self.theta, list(x.shape), align_corners=False), align_corners=False)


@model("real FFT of odd and even lengths", wave, far=WAVE)
def spectrum(self, x):
    return torch.fft.rfft(x).abs()


@model("there and back: irfft with an odd length", wave, far=WAVE)
def there_and_back(self, x):
    spectrum = torch.fft.rfft(x)
    keep = torch.arange(spectrum.shape[-1]) < spectrum.shape[-1] // 2 + 1
    return torch.fft.irfft(spectrum * keep, n=x.shape[-1])


@model(
    "convolution by FFT with padding to the full length",
    lambda seq=8, taps=3: (torch.randn(2, seq), torch.randn(taps)),
    points=[dict(seq=1, taps=1), dict(seq=3, taps=9), dict(seq=257, taps=64)],
)
def fft_convolution(self, x, h):
    n = x.shape[-1] + h.shape[-1] - 1
    return torch.fft.irfft(torch.fft.rfft(x, n) * torch.fft.rfft(h, n), n)


@model("fftshift of odd sizes", image, points=PLANE)
def shifted_spectrum(self, x):
    return torch.fft.fftshift(torch.fft.fft2(x).abs(), dim=(-2, -1))


@model(
    "STFT with a window longer than the hop",
    lambda seq=40: (torch.randn(2, seq),),
    where=["16 <= seq"],
    far={"seq": (16, 17, 23, 24, 25, 255, 256, 400)},
)
def short_time(self, x):
    window = torch.hann_window(16)
    return torch.stft(x, 16, 6, window=window, return_complex=True).abs()


@model("Hann window of the length, periodic and symmetric", lambda seq=9: (torch.randn(2, seq),), far=WAVE)
def hann(self, x):
    n = x.shape[1]
    return x * torch.hann_window(n) + torch.hann_window(n, periodic=False)


@model("Kaiser and Blackman windows by sizes", lambda seq=9: (torch.randn(2, seq),), far=WAVE)
def blackman(self, x):
    return x * torch.blackman_window(x.shape[1]) + x * torch.hamming_window(x.shape[1])


@model(
    "cosine transform as a matrix of the size", lambda seq=9: (torch.randn(2, seq),), far={"seq": (1, 2, 16, 255, 257)}
)
def cosine_transform(self, x):
    n = x.shape[1]
    place = torch.arange(n)
    return x @ torch.cos(math.pi / n * (place[:, None] + 0.5) * place)


@model(
    "differences of order two, and a gradient with uneven ends",
    lambda seq=9: (torch.randn(2, seq),),
    where=["seq >= 3"],
    far={"seq": (3, 4, 256)},
)
def differences(self, x):
    return torch.diff(x, n=2), torch.gradient(x, dim=1)[0]


@model(
    "batch norm, group norm and instance norm of one pixel",
    lambda height=3, width=4: (torch.randn(2, 4, height, width),),
    points=PLANE[1:],
    where=["height * width >= 2"],
)
class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.batch, self.group, self.instance = nn.BatchNorm2d(4), nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, affine=True)

    def forward(self, x):
        return self.instance(self.group(self.batch(x)))


@model("local response norm over channels, and layer norm over a dim", image, points=PLANE)
def responses(self, x):
    return F.local_response_norm(x, 3) + F.layer_norm(x, x.shape[-2:])
