"""PyPI libraries, part 3: images and sound."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from registry import Registry
from torch import nn

model = Registry("pypi signal")


def image(batch=2, height=10, width=13):
    return (torch.rand(batch, 3, height, width),)


def pair(batch=2, height=10, width=13):
    x = torch.rand(batch, 3, height, width)
    return (x, (x + 0.1 * torch.randn_like(x)).clamp(0, 1))


def wave(batch=2, samples=100):
    return (torch.randn(batch, samples),)


@model(
    "segmentation_models_pytorch: the decoder goes up to the size of each skip (odd sizes floor on the way down), scse attention",
    image,
    far={"height": (4, 8, 9, 33, 64), "width": (4, 5, 31, 32)},
    points=({"batch": 1, "height": 17, "width": 7}, {"height": 16, "width": 16}),
)
class UnetSkips(nn.Module):
    def __init__(self):
        super().__init__()
        import stand_ins

        stand_ins.torchvision()
        from segmentation_models_pytorch.base import SegmentationHead
        from segmentation_models_pytorch.decoders.unet.decoder import UnetDecoder

        self.stages = nn.ModuleList([nn.Conv2d(3, 16, 3, 2, 1), nn.Conv2d(16, 16, 3, 2, 1), nn.Conv2d(16, 20, 3, 2, 1)])
        self.decoder = UnetDecoder((3, 16, 16, 20), (16, 16, 16), n_blocks=3, attention_type="scse")
        self.head = SegmentationHead(16, 5, kernel_size=1, activation="softmax2d")

    def forward(self, x):
        features = [x]
        for stage in self.stages:
            features.append(F.relu(stage(features[-1])))
        return self.head(self.decoder(features))


@model(
    "segmentation_models_pytorch: pyramid pooling to 1, 2, 3, 6 cells of sizes that do not divide, interpolated back",
    image,
    far={"height": (6, 7, 12, 25), "width": (6, 11, 18, 33)},
    points=({"batch": 1, "height": 6, "width": 6}, {"height": 13, "width": 29}),
)
class PyramidPools(nn.Module):
    def __init__(self):
        super().__init__()
        import stand_ins

        stand_ins.torchvision()
        from segmentation_models_pytorch.decoders.pspnet.decoder import PSPModule

        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.psp = PSPModule(8, sizes=(1, 2, 3, 6))

    def forward(self, x):
        return self.psp(self.stem(x))


@model(
    "segmentation_models_pytorch: the Lovasz hinge sorts errors per image in a Python loop over the batch",
    lambda batch=2, height=4, width=5: (
        torch.randn(batch, 1, height, width),
        torch.randint(0, 2, (batch, 1, height, width)),
    ),
    far={"batch": (1, 3, 16), "height": (1, 33)},
    points=({"batch": 4, "height": 1, "width": 1},),
    rare={
        "nothing": lambda batch=2, height=4, width=5: (
            torch.randn(batch, 1, height, width),
            torch.zeros(batch, 1, height, width, dtype=torch.int64),
        )
    },
)
class LovaszPerImage(nn.Module):
    def __init__(self):
        super().__init__()
        import stand_ins

        stand_ins.torchvision()
        from segmentation_models_pytorch.losses import DiceLoss, LovaszLoss

        self.lovasz, self.dice = LovaszLoss("binary", per_image=True), DiceLoss("binary", from_logits=True)

    def forward(self, logits, target):
        return self.lovasz(logits, target) + self.dice(logits, target)


@model(
    "efficientnet_pytorch: blocks whose TensorFlow same padding is computed from the size, stride 2, squeeze and skip",
    image,
    far={"height": (1, 2, 3, 33, 64), "width": (1, 4, 5, 31)},
    points=({"batch": 1, "height": 7, "width": 8},),
)
class SamePaddings(nn.Module):
    def __init__(self):
        super().__init__()
        from efficientnet_pytorch.model import MBConvBlock
        from efficientnet_pytorch.utils import BlockDecoder, GlobalParams, get_same_padding_conv2d

        params = GlobalParams(
            width_coefficient=1.0,
            depth_coefficient=1.0,
            image_size=None,
            dropout_rate=0,
            num_classes=3,
            batch_norm_momentum=0.99,
            batch_norm_epsilon=1e-3,
            drop_connect_rate=0.2,
            depth_divisor=8,
            min_depth=None,
            include_top=True,
        )
        blocks = BlockDecoder.decode(
            ["r1_k3_s11_e1_i8_o8_se0.25", "r1_k5_s22_e2_i8_o12_se0.25", "r1_k3_s22_e2_i12_o12_se0.5"]
        )
        self.stem = get_same_padding_conv2d(image_size=None)(3, 8, kernel_size=3, stride=2, bias=False)
        self.blocks = nn.ModuleList(MBConvBlock(block, params) for block in blocks)

    def forward(self, x):
        x = self.stem(x)
        for i, block in enumerate(self.blocks):
            x = block(x, drop_connect_rate=0.2 * i / len(self.blocks))
        return x.mean((2, 3)), x


@model(
    "pytorchcv: QuartzNet convolutions mask frames beyond each length, lengths go down with the stride",
    lambda batch=2, frames=12: (torch.randn(batch, 8, frames), torch.randint(1, frames + 1, (batch,))),
    far={"frames": (1, 2, 3, 13, 33, 64)},
    points=({"batch": 3, "frames": 7}, {"batch": 1, "frames": 1}),
    rare={"whole": lambda batch=2, frames=12: (torch.randn(batch, 8, frames), torch.full((batch,), frames))},
)
class MaskedFrames(nn.Module):
    def __init__(self):
        super().__init__()
        import stand_ins

        stand_ins.torchvision()
        from pytorchcv.models.jasper import MaskConvBlock1d

        self.first = MaskConvBlock1d(8, 10, kernel_size=5, stride=2, padding=2)
        self.second = MaskConvBlock1d(10, 6, kernel_size=3, stride=2, padding=2, dilation=2)

    def forward(self, x, lengths):
        x, lengths = self.first(x, lengths)
        return self.second(x, lengths)


@model(
    "pytorchcv: SqueezeNet pools with ceil mode at odd sizes, squeeze-excitation",
    lambda batch=1, height=40, width=33: (torch.rand(batch, 3, height, width),),
    far={"height": (21, 29, 64), "width": (21, 35, 64)},
    points=({"batch": 3, "height": 23, "width": 31},),
)
class CeilPools(nn.Module):
    def __init__(self):
        super().__init__()
        import stand_ins

        stand_ins.torchvision()
        from pytorchcv.models.common.att import SEBlock
        from pytorchcv.models.squeezenet import FireUnit, SqueezeInitBlock

        self.net = nn.Sequential(
            SqueezeInitBlock(3, 8, kernel_size=7),
            nn.MaxPool2d(3, 2, ceil_mode=True),
            FireUnit(8, 4, 6, 6, residual=False),
            SEBlock(12, reduction=4),
            nn.MaxPool2d(3, 2, ceil_mode=True),
            FireUnit(12, 4, 6, 6, residual=True),
        )

    def forward(self, x):
        return self.net(x)


@model(
    "kornia: median blur (unfold by a one-hot kernel) and Sobel edges of float images",
    image,
    far={"height": (1, 2, 3, 33), "width": (1, 2, 64)},
    points=({"batch": 1, "height": 5, "width": 5},),
)
class MedianEdges(nn.Module):
    def __init__(self):
        super().__init__()
        from stand_ins import absent

        with absent("kornia_rs"):
            from kornia.filters import MedianBlur, Sobel
        self.blur, self.edges = MedianBlur((3, 5), border_type="replicate"), Sobel(normalized=True)

    def forward(self, x):
        return self.edges(self.blur(x))


@model(
    "kornia: Canny follows weak edges with a while loop until nothing changes",
    image,
    far={"height": (3, 4, 33), "width": (4, 64)},
    points=({"batch": 1, "height": 16, "width": 16},),
    rare={
        "flat": lambda batch=2, height=10, width=13: (torch.full((batch, 3, height, width), 0.5),),
        "ramp": lambda batch=2, height=10, width=13: (
            torch.linspace(0, 3, width).sin().expand(batch, 3, height, width).contiguous(),
        ),
    },
    unproved=True,
)
class CannyFollow(nn.Module):
    def __init__(self):
        super().__init__()
        from stand_ins import absent

        with absent("kornia_rs"):
            from kornia.filters import Canny
        self.net = Canny(low_threshold=0.2, high_threshold=0.5)

    def forward(self, x):
        magnitude, edges = self.net(x)
        return magnitude, edges


@model(
    "kornia: the distance transform repeats ceil(longest side / half kernel) convolutions",
    lambda batch=1, height=6, width=9: ((torch.rand(batch, 1, height, width) > 0.9).float(),),
    far={"height": (1, 2, 10, 33), "width": (1, 8, 17, 64)},
    points=({"batch": 2, "height": 12, "width": 3},),
    rare={"empty": lambda batch=1, height=6, width=9: (torch.zeros(batch, 1, height, width),)},
    unproved=True,
)
class DistanceRings(nn.Module):
    def __init__(self):
        super().__init__()
        from stand_ins import absent

        with absent("kornia_rs"):
            from kornia.contrib import distance_transform
        self.run = distance_transform

    def forward(self, x):
        return self.run(x, kernel_size=3, h=0.35)


@model(
    "kornia: CLAHE cuts the image into 2 by 3 tiles, pads to even tiles, equalizes and blends them",
    lambda batch=1, height=12, width=18: (torch.rand(batch, 1, height, width),),
    far={"height": (8, 13, 16, 33), "width": (12, 19, 23, 64)},
    points=({"batch": 2, "height": 9, "width": 25},),
    unproved=True,
)
class ClaheTiles(nn.Module):
    def __init__(self):
        super().__init__()
        from stand_ins import absent

        with absent("kornia_rs"):
            from kornia.enhance import equalize_clahe
        self.run = equalize_clahe

    def forward(self, x):
        return self.run(x, clip_limit=20.0, grid_size=(2, 3))


@model(
    "kornia: a pyramid goes down by bilinear sizes and up again; affine warp by an angle per image",
    lambda batch=2, height=8, width=12: (torch.rand(batch, 2, height, width), torch.randn(batch) * 30),
    far={"height": (4, 9, 33), "width": (5, 13, 64)},
    points=({"batch": 1, "height": 7, "width": 7},),
)
class PyramidWarp(nn.Module):
    def __init__(self):
        super().__init__()
        from stand_ins import absent

        with absent("kornia_rs"):
            import kornia.geometry as geometry
        self.down, self.up, self.rotate = geometry.PyrDown(), geometry.PyrUp(), geometry.rotate

    def forward(self, x, angle):
        return self.up(self.down(self.rotate(x, angle)))


@model(
    "pytorch_msssim: scales of 2 with odd padding; the smaller side must exceed (window - 1) * 16",
    lambda batch=1, height=40, width=52: pair(batch, height, width),
    far={"height": (33, 35, 65), "width": (33, 47, 64)},
    points=({"batch": 2, "height": 48, "width": 37},),
)
class ScalesOfSimilarity(nn.Module):
    def __init__(self):
        super().__init__()
        from pytorch_msssim import MS_SSIM

        self.net = MS_SSIM(data_range=1.0, win_size=3, size_average=False)

    def forward(self, x, y):
        return self.net(x, y)


@model(
    "pytorch_msssim: SSIM skips smoothing of a side shorter than its window, with a Python warning",
    pair,
    far={"height": (2, 6, 7, 8, 33), "width": (2, 6, 7, 64)},
    points=({"batch": 1, "height": 3, "width": 3}, {"height": 7, "width": 5}),
)
class ShortSides(nn.Module):
    def __init__(self):
        super().__init__()
        from pytorch_msssim import SSIM

        self.net = SSIM(data_range=1.0, win_size=7, size_average=False, nonnegative_ssim=True)

    def forward(self, x, y):
        return self.net(x, y)


@model(
    "piqa: MDSI pools by the rounded shorter side over 256: nothing below 384, two from there, three from 640",
    lambda batch=1, height=12, width=16: pair(batch, height, width),
    far={"width": (33, 64)},
    points=(
        {"height": 384, "width": 390},
        {"height": 383, "width": 400},
        {"height": 641, "width": 645},
        {"batch": 2, "height": 9, "width": 500},
    ),
    unproved=True,
)
class DownsampledColours(nn.Module):
    def __init__(self):
        super().__init__()
        import stand_ins

        stand_ins.torchvision()
        from piqa import MDSI

        self.net = MDSI(reduction="none")

    def forward(self, x, y):
        return self.net(x, y)


@model(
    "piqa: Haar wavelets pad odd images by one, similarity weighted over orientations",
    pair,
    far={"height": (4, 5, 33), "width": (5, 64)},
    points=({"batch": 1, "height": 17, "width": 9},),
)
class HaarSimilarity(nn.Module):
    def __init__(self):
        super().__init__()
        import stand_ins

        stand_ins.torchvision()
        from piqa import HaarPSI

        self.net = HaarPSI(reduction="none")

    def forward(self, x, y):
        return self.net(x, y)


@model(
    "torchmetrics: permutation invariant SI-SNR over three speakers, all permutations in a table, the best gathered",
    lambda batch=2, samples=20: (torch.randn(batch, 3, samples), torch.randn(batch, 3, samples)),
    far={"batch": (1, 3, 16), "samples": (2, 3, 64)},
    points=({"batch": 7, "samples": 33},),
)
class BestPermutation(nn.Module):
    def __init__(self):
        super().__init__()
        import stand_ins

        stand_ins.torchvision()
        import torchmetrics.functional.audio as audio

        self.train_on, self.permute, self.snr = (
            audio.permutation_invariant_training,
            audio.pit_permutate,
            audio.scale_invariant_signal_noise_ratio,
        )

    def forward(self, preds, target):
        metric, order = self.train_on(preds, target, self.snr, mode="speaker-wise", eval_func="max")
        return metric, order, self.permute(preds, order)


@model(
    "torchmetrics: NDCG with ties (unique consecutive scores, a loop over top k), average precision of one query",
    lambda docs=6: (torch.rand(docs).mul(4).round() / 4, torch.randint(0, 4, (docs,)).float()),
    far={"docs": (1, 2, 4, 5, 33)},
    unproved=True,
    rare={"ties": lambda docs=6: (torch.ones(docs), torch.arange(docs).float())},
)
class TiedGains(nn.Module):
    def __init__(self):
        super().__init__()
        import stand_ins

        stand_ins.torchvision()
        from torchmetrics.functional.retrieval import retrieval_normalized_dcg, retrieval_reciprocal_rank

        self.ndcg, self.mrr = retrieval_normalized_dcg, retrieval_reciprocal_rank

    def forward(self, scores, gains):
        return self.ndcg(scores, gains, top_k=min(4, len(scores))), self.mrr(scores, gains > 1)


@model(
    "torch_dct: DCT-II by an FFT of even and odd samples reversed, inverse with a tail that depends on parity; over both axes",
    lambda batch=2, height=6, width=9: (torch.randn(batch, height, width),),
    far={"height": (1, 2, 3, 33), "width": (1, 2, 64)},
    points=({"batch": 1, "height": 5, "width": 5},),
)
class CosineParity(nn.Module):
    def __init__(self):
        super().__init__()
        import torch_dct

        self.dct, self.dct2, self.idct2 = torch_dct.dct, torch_dct.dct_2d, torch_dct.idct_2d

    def forward(self, x):
        freq = self.dct2(x, norm="ortho")
        keep = (torch.arange(freq.shape[-1]) * 2 < freq.shape[-1]).to(freq)
        return self.idct2(freq * keep, norm="ortho"), self.dct(x)


@model(
    "julius: resampling 4 to 7, the output cut to a floor of length * 7 / 4 in Python floats",
    wave,
    far={"samples": (1, 2, 3, 4, 5, 99, 101, 1000)},
    points=({"batch": 1, "samples": 57},),
)
class FourToSeven(nn.Module):
    def __init__(self):
        super().__init__()
        from julius import ResampleFrac

        self.net = ResampleFrac(4, 7, zeros=6)

    def forward(self, x):
        return self.net(x), self.net(x, full=True)


@model(
    "julius: mel spaced bands by low pass filters, long filters by FFT blocks that depend on the length (unfold and overlap)",
    lambda batch=2, samples=600: (torch.randn(batch, samples),),
    far={"samples": (500, 511, 1024, 2049)},
    points=({"batch": 1, "samples": 1300},),
    unproved=True,
)
class FftBands(nn.Module):
    def __init__(self):
        super().__init__()
        from julius import SplitBands

        self.net = SplitBands(8000, cutoffs=[200, 1500], zeros=4, fft=True)

    def forward(self, x):
        return self.net(x)


@model(
    "asteroid_filterbanks: STFT as convolutions, a mask on magnitudes, decoded to the length of the input",
    lambda batch=2, samples=70: (torch.randn(batch, 1, samples),),
    far={"samples": (16, 17, 23, 24, 33, 64, 129)},
    points=({"batch": 1, "samples": 100},),
)
class StftMask(nn.Module):
    def __init__(self):
        super().__init__()
        from asteroid_filterbanks import make_enc_dec, transforms

        self.mag, self.apply_mask = transforms.mag, transforms.apply_mag_mask
        self.enc, self.dec = make_enc_dec("stft", n_filters=16, kernel_size=16, stride=8)

    def forward(self, x):
        spec = self.enc(x)
        mag = self.mag(spec)
        return self.dec(self.apply_mask(spec, torch.sigmoid(mag)), length=x.shape[-1])


@model(
    "nnAudio: constant Q by convolution with reflected edges, input of two or three dims broadcast inside",
    lambda batch=2, samples=700: (torch.randn(batch, samples),),
    far={"samples": (600, 639, 640, 641, 1024)},
    points=({"batch": 1, "samples": 900},),
)
class ConstantQ(nn.Module):
    def __init__(self):
        super().__init__()
        from nnAudio.features import CQT1992v2, MelSpectrogram

        self.cqt = CQT1992v2(sr=2000, hop_length=64, fmin=110, n_bins=18, bins_per_octave=12, verbose=False)
        self.mel = MelSpectrogram(sr=2000, n_fft=128, n_mels=10, hop_length=64, verbose=False)

    def forward(self, x):
        return self.cqt(x), self.mel(x)


@model(
    "denoiser: a waveform is padded to the length that all strides accept, resampled by 2 in sinc, LSTM within, cut at the end",
    lambda batch=2, samples=100: (torch.randn(batch, 1, samples),),
    far={"samples": (1, 2, 63, 64, 101, 1000)},
    points=({"batch": 1, "samples": 333},),
)
class ValidLength(nn.Module):
    def __init__(self):
        super().__init__()
        from denoiser.demucs import Demucs

        self.net = Demucs(hidden=4, depth=2, kernel_size=8, stride=4, resample=2, sample_rate=16000, causal=True)

    def forward(self, x):
        return self.net(x)


@model(
    "speechbrain: ECAPA-TDNN pools statistics with relative lengths turned into masks",
    lambda batch=2, frames=12: (torch.randn(batch, frames, 10), torch.rand(batch) * 0.9 + 0.1),
    far={"frames": (5, 7, 33, 64)},
    points=({"batch": 3, "frames": 25},),
    rare={"whole": lambda batch=2, frames=12: (torch.randn(batch, frames, 10), torch.ones(batch))},
)
class RelativeLengths(nn.Module):
    def __init__(self):
        super().__init__()
        from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN

        self.net = ECAPA_TDNN(
            10, lin_neurons=6, channels=[16, 16, 16, 16, 32], res2net_scale=4, se_channels=8, attention_channels=8
        )

    def forward(self, x, lengths):
        return self.net(x, lengths)


@model(
    "deformable_attention: offsets sample a coarse grid (a stride of 4 on height and width), continuous position bias",
    lambda batch=1, height=8, width=12: (torch.randn(batch, 16, height, width),),
    far={"height": (12, 13, 33), "width": (8, 15, 16)},
    points=({"batch": 2, "height": 16, "width": 16}, {"height": 9, "width": 10}),
)
class DeformedGrid(nn.Module):
    def __init__(self):
        super().__init__()
        from deformable_attention import DeformableAttention

        self.net = DeformableAttention(
            dim=16, dim_head=8, heads=2, downsample_factor=4, offset_kernel_size=6, offset_groups=2
        )

    def forward(self, x):
        return self.net(x)
