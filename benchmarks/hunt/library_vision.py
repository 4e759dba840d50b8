"""Blocks of timm, torchvision, diffusers, monai, vit_pytorch: windows, tables of positions, pads, slides."""

from __future__ import annotations

import contextlib

import torch
from registry import Registry
from torch import nn

import stand_ins

with contextlib.suppress(ImportError):  # it is not installed
    stand_ins.torchvision()

model = Registry("vision libraries")


def image(batch=2, height=24, width=20):
    return (torch.randn(batch, 3, height, width),)


def rows(batch=2, height=9, width=7):
    return (torch.randn(batch, height, width, 8),)


def maps(batch=2, height=9, width=7):
    return (torch.randn(batch, 8, height, width),)


@model(
    "positions are resampled for other sizes, images padded to whole patches",
    image,
    far={"height": (1, 16, 17, 32, 33, 64), "width": (3, 16, 31, 32, 65)},
    points=({"batch": 1, "height": 32, "width": 32}, {"batch": 3, "height": 16, "width": 64}),
)
class TimmVitDynamic(nn.Module):
    def __init__(self):
        super().__init__()
        from timm.models.vision_transformer import VisionTransformer

        self.net = VisionTransformer(
            img_size=32,
            patch_size=8,
            embed_dim=16,
            depth=1,
            num_heads=2,
            num_classes=3,
            dynamic_img_size=True,
            dynamic_img_pad=True,
        )

    def forward(self, x):
        return self.net(x)


@model(
    "the window table, the shift mask made anew for dynamic sizes, odd maps padded at the merge",
    image,
    far={"height": (4, 8, 14, 16, 18, 34, 64), "width": (4, 6, 16, 32, 34)},
    points=({"batch": 1, "height": 34, "width": 16},),
)
class TimmSwinDynamicMask(nn.Module):
    def __init__(self):
        super().__init__()
        from timm.models.swin_transformer import SwinTransformer

        self.net = SwinTransformer(
            img_size=32,
            patch_size=2,
            window_size=4,
            embed_dim=8,
            depths=(2, 1),
            num_heads=(2, 2),
            num_classes=3,
            strict_img_size=False,
        )

    def forward(self, x):
        return self.net(x)


@model(
    "fold and unfold with a stride: the values pooled with ceil mode for odd maps",
    rows,
    far={"height": (1, 2, 3, 16, 33), "width": (1, 2, 8, 64)},
    points=({"batch": 1, "height": 5, "width": 5},),
)
class VoloOutlook(nn.Module):
    def __init__(self):
        super().__init__()
        from timm.models.volo import OutlookAttention

        self.attention = OutlookAttention(8, 2, kernel_size=3, padding=1, stride=2)

    def forward(self, x):
        return self.attention(x)


@model(
    "pads to whole windows after the linear, mask by position of the padding",
    maps,
    far={"height": (1, 3, 4, 5, 8, 33), "width": (1, 4, 16, 17)},
    points=({"batch": 1, "height": 12, "width": 8},),
)
class TwinsLocalGroups(nn.Module):
    def __init__(self):
        super().__init__()
        from timm.models.twins import GlobalSubSampleAttn, LocallyGroupedAttn

        self.near = LocallyGroupedAttn(8, num_heads=2, ws=4)
        self.wide = GlobalSubSampleAttn(8, num_heads=2, sr_ratio=2)

    def forward(self, x):
        size = (x.shape[2], x.shape[3])
        tokens = x.flatten(2).transpose(1, 2)
        tokens = tokens + self.near(tokens, size)
        if min(size) > 1:
            tokens = tokens + self.wide(tokens, size)
        return tokens


@model(
    "a map that is no multiple of the patch is interpolated up, unfolded, folded and interpolated back",
    maps,
    far={"height": (1, 2, 3, 8, 33), "width": (1, 2, 16, 31)},
    points=({"batch": 1, "height": 10, "width": 10},),
)
class TimmMobileVit(nn.Module):
    def __init__(self):
        super().__init__()
        from timm.models.mobilevit import MobileVitBlock

        self.block = MobileVitBlock(8, transformer_dim=16, transformer_depth=1, patch_size=2, num_heads=2)

    def forward(self, x):
        return self.block(x)


@model(
    "normalized Fourier positions by cumulative rows, class attention after; sizes of the patches",
    image,
    where=["8 <= height <= 200", "8 <= width <= 200"],
    far={"height": (8, 16, 17, 33, 64), "width": (8, 15, 40, 99)},
    points=({"batch": 1, "height": 50, "width": 8},),
)
class XcitFourier(nn.Module):
    def __init__(self):
        super().__init__()
        from timm.models.xcit import Xcit

        self.net = Xcit(
            img_size=32, patch_size=8, embed_dim=16, depth=1, cls_attn_layers=1, num_heads=2, num_classes=3, eta=1.0
        )

    def forward(self, x):
        return self.net(x)


@model(
    "attention pool with a table of positions resized to the map, and a rotary one by a reference size",
    maps,
    far={"height": (1, 4, 5, 33), "width": (1, 4, 16)},
    points=({"batch": 1, "height": 4, "width": 4}, {"batch": 3, "height": 16, "width": 4}),
)
class RotaryAttentionPool(nn.Module):
    def __init__(self):
        super().__init__()
        from timm.layers import RotAttentionPool2d

        self.pool = RotAttentionPool2d(8, out_features=6, ref_feat_size=4, embed_dim=16, num_heads=2, head_dim=8)

    def forward(self, x):
        return self.pool(x)


@model(
    "windows fall away where the map is smaller than the window; global blocks with decomposed tables",
    lambda batch=2, height=24, width=32: (torch.randn(batch, 3, height, width),),
    where=["height % 8 == 0", "width % 8 == 0", "8 <= height <= 160", "8 <= width <= 160"],
    far={"height": (8, 24, 32, 40, 64, 72), "width": (8, 32, 56)},
    points=({"batch": 1, "height": 32, "width": 32}, {"batch": 1, "height": 48, "width": 40}),
)
class SamRelativeTable(nn.Module):
    def __init__(self):
        super().__init__()
        from timm.models.vision_transformer_sam import VisionTransformerSAM

        self.net = VisionTransformerSAM(
            img_size=32,
            patch_size=8,
            embed_dim=16,
            depth=2,
            num_heads=2,
            use_rel_pos=True,
            window_size=3,
            global_attn_indexes=(1,),
            num_classes=3,
            neck_chans=8,
            use_abs_pos=False,
        )

    def forward(self, x):
        return self.net.forward_features(x)


def shapes(batch=2, patches=10):
    coord = torch.stack([torch.arange(patches) // 4, torch.arange(patches) % 4], -1).expand(batch, patches, 2).clone()
    valid = torch.ones(batch, patches, dtype=torch.bool)
    valid[-1, (patches + 1) // 2 :] = False
    return (torch.randn(batch, patches, 48), coord, valid)


@model(
    "grids of each image found from the largest coordinates, one interpolation per grid size",
    shapes,
    far={"patches": (1, 3, 4, 16, 20, 33)},
    points=({"batch": 1, "patches": 12}, {"batch": 3, "patches": 7}),
    unproved=True,
)
class NaFlexCoordinates(nn.Module):
    def __init__(self):
        super().__init__()
        from timm.models.naflexvit import NaFlexVit, NaFlexVitCfg

        self.net = NaFlexVit(
            NaFlexVitCfg(patch_size=4, embed_dim=16, depth=1, num_heads=2, pos_embed_grid_size=(4, 4)),
            img_size=16,
            num_classes=3,
        )

    def forward(self, patches, coord, valid):
        return self.net(patches, patch_coord=coord, patch_valid=valid)


@model(
    "channel and window attention: windows padded at right and below, position by depthwise convolutions",
    image,
    where=["4 <= height <= 120", "4 <= width <= 120"],
    far={"height": (4, 16, 17, 33, 64), "width": (4, 12, 32, 63)},
    points=({"batch": 1, "height": 35, "width": 21},),
)
class DavitPadded(nn.Module):
    def __init__(self):
        super().__init__()
        from timm.models.davit import DaVit

        self.net = DaVit(depths=(1, 1), embed_dims=(8, 16), num_heads=(2, 2), window_size=3, num_classes=3)

    def forward(self, x):
        return self.net.forward_features(x)


@model(
    "shift is zeroed along an axis where the padded map is no larger than the window",
    rows,
    far={"height": (1, 3, 4, 5, 8, 33), "width": (1, 4, 5, 16)},
    points=({"batch": 1, "height": 4, "width": 4}, {"batch": 3, "height": 5, "width": 3}),
)
class VisionShiftedWindow(nn.Module):
    def __init__(self):
        super().__init__()
        from torchvision.models.swin_transformer import PatchMergingV2, SwinTransformerBlockV2

        self.block = SwinTransformerBlockV2(8, 2, [4, 4], [2, 2])
        self.merge = PatchMergingV2(8)

    def forward(self, x):
        return self.merge(self.block(x))


def clip(batch=1, frames=4, height=12, width=10):
    return (torch.randn(batch, 3, frames, height, width),)


@model(
    "three-dimensional windows: sizes and shifts cut to the clip, tables cut with them",
    clip,
    far={"frames": (1, 2, 3, 5, 8, 9), "height": (4, 7, 8, 16, 33), "width": (4, 8, 17)},
    points=({"batch": 2, "frames": 2, "height": 6, "width": 4},),
)
class VideoSwin(nn.Module):
    def __init__(self):
        super().__init__()
        from torchvision.models.video.swin_transformer import SwinTransformer3d

        self.net = SwinTransformer3d([2, 2, 2], 8, [2], [2], [2, 3, 3], num_classes=3, stochastic_depth_prob=0.0)

    def forward(self, x):
        return self.net(x)


@model(
    "flow by correlation lookups: a pyramid of pooled volumes sampled with a grid; the smallest level of one pixel",
    lambda batch=1, height=16, width=20: (
        torch.randn(batch, 4, height, width),
        torch.randn(batch, 4, height, width),
        torch.rand(batch, 2, height, width) * 5,
    ),
    far={"height": (4, 5, 7, 33), "width": (4, 6, 16)},
    points=({"batch": 2, "height": 5, "width": 9},),
)
class RaftLookup(nn.Module):
    def __init__(self):
        super().__init__()
        from torchvision.models.optical_flow.raft import CorrBlock

        self.block = CorrBlock(num_levels=2, radius=2)

    def forward(self, one, two, flow):
        from torchvision.models.optical_flow._utils import make_coords_grid

        self.block.build_pyramid(one, two)
        start = make_coords_grid(one.shape[0], one.shape[2], one.shape[3])
        return self.block.index_pyramid(centroids_coords=start + flow)


@model(
    "anchors from strides that are integer quotients of image and map sizes",
    lambda batch=1, height=33, width=40, rows=5, columns=6: (
        torch.randn(batch, 3, height, width),
        torch.randn(batch, 4, rows, columns),
    ),
    where=["1 <= rows <= height", "1 <= columns <= width"],
    far={"height": (5, 7, 16, 64, 99), "width": (6, 7, 41), "rows": (1, 2, 33), "columns": (1, 7, 40)},
    points=({"batch": 3, "height": 64, "width": 64, "rows": 7, "columns": 9},),
)
class DetectionAnchors(nn.Module):
    def __init__(self):
        super().__init__()
        from torchvision.models.detection.anchor_utils import AnchorGenerator

        self.anchors = AnchorGenerator(((8, 16),), ((0.5, 1.0),))

    def forward(self, images, maps):
        from torchvision.models.detection.image_list import ImageList

        size = (images.shape[2], images.shape[3])
        boxes = self.anchors(ImageList(images, [size] * images.shape[0]), [maps])
        return torch.stack(boxes)


@model(
    "the short side is scaled to 20 unless the long side would pass 32; then padded to a multiple of 8",
    lambda height=24, width=20: (torch.rand(3, height, width),),
    far={"height": (7, 16, 20, 32, 33, 64), "width": (7, 19, 21, 33, 64)},
    points=({"height": 64, "width": 20}, {"height": 16, "width": 33}),
)
class DetectionResize(nn.Module):
    def __init__(self):
        super().__init__()
        from torchvision.models.detection.transform import GeneralizedRCNNTransform

        self.transform = GeneralizedRCNNTransform(20, 32, [0.5] * 3, [0.2] * 3, size_divisible=8)

    def forward(self, image):
        images, _ = self.transform([image])
        return images.tensors, torch.tensor(images.image_sizes)


@model(
    "center crop of a size larger than the image pads first, with odd halves",
    image,
    far={"height": (1, 14, 15, 16, 33), "width": (1, 17, 18, 19, 64)},
    points=({"batch": 1, "height": 15, "width": 3},),
)
def crop_then_five(self, x):
    import torchvision.transforms.functional as tf

    middle = tf.center_crop(x, [15, 18])
    corners = tf.five_crop(middle, [7, 8])
    edge = tf.resize(x, 12, max_size=30, antialias=True)
    return middle, torch.stack(corners), edge


def latent(batch=1, height=8, width=8):
    return (torch.randn(batch, 4, height, width), torch.full((batch,), 7), torch.randn(batch, 5, 16))


@model(
    "a sample that is no multiple of the up factor makes every upsampling take a size; skip connections",
    latent,
    far={"height": (2, 3, 7, 9, 16, 17, 33), "width": (4, 5, 31)},
    points=({"batch": 2, "height": 5, "width": 7},),
)
class DiffusersUnetOdd(nn.Module):
    def __init__(self):
        super().__init__()
        from diffusers import UNet2DConditionModel

        self.net = UNet2DConditionModel(
            sample_size=8,
            in_channels=4,
            out_channels=4,
            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "UpBlock2D", "CrossAttnUpBlock2D"),
            block_out_channels=(8, 8, 16),
            layers_per_block=1,
            cross_attention_dim=16,
            attention_head_dim=4,
            norm_num_groups=4,
        )

    def forward(self, sample, timestep, states):
        return self.net(sample, timestep, states).sample


@model(
    "decoding by tiles as soon as a side passes the tile: overlapping tiles blended in loops",
    lambda batch=1, height=6, width=5: (torch.randn(batch, 4, height, width),),
    where=["1 <= height <= 40", "1 <= width <= 40"],
    far={"height": (1, 7, 8, 9, 12, 17, 24), "width": (1, 8, 9, 16, 33)},
    points=({"batch": 2, "height": 9, "width": 3}, {"batch": 1, "height": 16, "width": 16}),
    unproved=True,
)
class DiffusersTiledDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        from diffusers import AutoencoderKL

        self.net = AutoencoderKL(
            down_block_types=("DownEncoderBlock2D",) * 2,
            up_block_types=("UpDecoderBlock2D",) * 2,
            block_out_channels=(8, 8),
            latent_channels=4,
            sample_size=16,
            norm_num_groups=4,
        )
        self.net.enable_tiling()
        self.net.tile_latent_min_size, self.net.tile_sample_min_size = 8, 16

    def forward(self, z):
        return self.net.decode(z).sample


@model(
    "the middle of a larger table of positions is cut out: the offset is an integer quotient",
    lambda batch=1, height=8, width=6: (
        torch.randn(batch, 4, height, width),
        torch.randn(batch, 3, 12),
        torch.randn(batch, 12),
        torch.full((batch,), 7.0),
    ),
    where=["height % 2 == 0", "width % 2 == 0", "2 <= height <= 24", "2 <= width <= 24"],
    far={"height": (2, 10, 12, 22, 24), "width": (2, 14, 24)},
    points=({"batch": 2, "height": 24, "width": 2},),
)
class Sd3CroppedPositions(nn.Module):
    def __init__(self):
        super().__init__()
        from diffusers.models import SD3Transformer2DModel

        self.net = SD3Transformer2DModel(
            sample_size=8,
            patch_size=2,
            in_channels=4,
            num_layers=1,
            attention_head_dim=8,
            num_attention_heads=2,
            joint_attention_dim=12,
            caption_projection_dim=16,
            pooled_projection_dim=12,
            out_channels=4,
            pos_embed_max_size=12,
        )

    def forward(self, x, text, pooled, time):
        return self.net(hidden_states=x, encoder_hidden_states=text, pooled_projections=pooled, timestep=time).sample


@model(
    "causal video coding: the first frame alone, then groups; a cache of past frames between groups",
    lambda batch=1, frames=5, height=8, width=8: (torch.randn(batch, 3, frames, height, width),),
    where=[
        "frames % 4 == 1",
        "1 <= frames <= 17",
        "height % 8 == 0",
        "width % 8 == 0",
        "8 <= height <= 24",
        "8 <= width <= 24",
    ],
    far={"frames": (1, 9, 13, 17), "height": (16, 24)},
    points=({"batch": 2, "frames": 1, "height": 16, "width": 8},),
    unproved=True,
)
class WanCausalChunks(nn.Module):
    def __init__(self):
        super().__init__()
        from diffusers.models.autoencoders import AutoencoderKLWan

        self.net = AutoencoderKLWan(
            base_dim=4,
            z_dim=2,
            dim_mult=[1, 1, 1, 1],
            num_res_blocks=1,
            temperal_downsample=[False, True, True],
            latents_mean=[0.0, 0.0],
            latents_std=[1.0, 1.0],
        )

    def forward(self, x):
        return self.net.encode(x).latent_dist.mode()


@model(
    "windows slide over the image with overlap; an image smaller than the window is padded and cut back",
    lambda batch=1, height=20, width=14: (torch.randn(batch, 1, height, width),),
    where=["1 <= height <= 80", "1 <= width <= 80"],
    far={"height": (1, 7, 8, 9, 14, 33, 64), "width": (1, 8, 15, 31)},
    points=({"batch": 3, "height": 6, "width": 8}, {"batch": 1, "height": 33, "width": 33}),
    unproved=True,
)
class MonaiSliding(nn.Module):
    def __init__(self):
        super().__init__()
        from monai.inferers import SlidingWindowInferer

        self.slide = SlidingWindowInferer((8, 8), sw_batch_size=3, overlap=0.25, mode="gaussian")
        self.net = nn.Conv2d(1, 2, 3, padding=1)

    def forward(self, x):
        return self.slide(x, self.net)


@model(
    "decoder maps are padded by one where an odd size lost a pixel in pooling",
    lambda batch=1, height=40, width=33: (torch.randn(batch, 1, height, width),),
    where=["32 <= height <= 100", "32 <= width <= 100"],
    far={"height": (33, 47, 48, 63, 64, 99), "width": (32, 35, 64)},
    points=({"batch": 2, "height": 35, "width": 49},),
)
class MonaiBasicUnet(nn.Module):
    def __init__(self):
        super().__init__()
        from monai.networks.nets import BasicUNet

        self.net = BasicUNet(
            spatial_dims=2, in_channels=1, out_channels=2, features=(4, 4, 8, 8, 8, 4), upsample="nontrainable"
        )

    def forward(self, x):
        return self.net(x)


@model(
    "windows of three dims cut to the volume, odd volumes padded in merging",
    lambda batch=1, depth=8, height=6, width=10: (torch.randn(batch, 1, depth, height, width),),
    far={"depth": (4, 5, 7, 9, 16), "height": (4, 7, 8, 12), "width": (4, 5, 16)},
    points=({"batch": 2, "depth": 6, "height": 6, "width": 6},),
)
class MonaiSwin3d(nn.Module):
    def __init__(self):
        super().__init__()
        from monai.networks.nets.swin_unetr import SwinTransformer

        self.net = SwinTransformer(
            in_chans=1,
            embed_dim=4,
            window_size=(3, 3, 3),
            patch_size=(2, 2, 2),
            depths=(2, 1, 1, 1),
            num_heads=(2, 2, 2, 2),
            spatial_dims=3,
        )

    def forward(self, x):
        return self.net(x)[:3]


@model(
    "a Hilbert transform by FFT: the filter is written by slices that differ for even and odd lengths",
    lambda batch=2, time=12: (torch.randn(batch, 1, time),),
    far={"time": (1, 2, 3, 7, 16, 33, 64)},
    points=({"batch": 1, "time": 21},),
)
class MonaiEnvelope(nn.Module):
    def __init__(self):
        super().__init__()
        from monai.networks.layers import HilbertTransform, SavitzkyGolayFilter

        self.hilbert = HilbertTransform(axis=2)
        self.smooth = SavitzkyGolayFilter(5, 2, axis=2)

    def forward(self, x):
        wave = self.hilbert(x)
        return torch.view_as_real(wave), self.smooth(wave.abs())


@model(
    "images of any size become sequences packed into rows, masked by image",
    lambda height=16, width=12, other=8: ([[torch.randn(3, height, width), torch.randn(3, other, 8)]],),
    where=[
        "height % 4 == 0",
        "width % 4 == 0",
        "other % 4 == 0",
        "4 <= height <= 32",
        "4 <= width <= 32",
        "4 <= other <= 32",
    ],
    far={"height": (4, 8, 32), "width": (4, 32), "other": (4, 16, 32)},
    points=({"height": 8, "width": 8, "other": 8},),
)
class NaVitPacked(nn.Module):
    def __init__(self):
        super().__init__()
        from vit_pytorch.na_vit import NaViT

        self.net = NaViT(image_size=32, patch_size=4, num_classes=3, dim=16, depth=1, heads=2, mlp_dim=16, dim_head=8)

    def forward(self, images):
        return self.net(images)
