"""Vision and detection models as people write them for their jobs."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from registry import Registry
from torch import nn

model = Registry("vision")


def images(batch=2, h=32, w=40):
    return (torch.randn(batch, 3, h, w),)


def small(batch=1, h=13, w=10):
    return (torch.randn(batch, 3, h, w),)


def maps(batch=2, h=9, w=7):
    return (torch.randn(batch, 8, h, w),)


@model(
    "feature pyramid: odd sizes make the upsampled top larger than its neighbour, so it is resized to match",
    images,
    far={"h": (8, 9, 33, 47, 64), "w": (1, 15, 65)},
    points=({"batch": 1, "h": 33, "w": 17},),
)
class Fpn(nn.Module):
    def __init__(self):
        super().__init__()
        c = (3, 4, 6, 8)
        self.stages = nn.ModuleList(nn.Conv2d(c[i], c[i + 1], 3, 2, 1) for i in range(3))
        self.lateral = nn.ModuleList(nn.Conv2d(c, 5, 1) for c in c[1:])
        self.smooth = nn.ModuleList(nn.Conv2d(5, 5, 3, padding=1) for _ in range(3))

    def forward(self, x):
        feats = []
        for stage in self.stages:
            x = F.relu(stage(x))
            feats.append(x)
        lats = [f(x) for f, x in zip(self.lateral, feats)]
        for i in range(len(lats) - 1, 0, -1):
            lats[i - 1] = lats[i - 1] + F.interpolate(lats[i], size=lats[i - 1].shape[2:], mode="nearest")
        outs = [s(x) for s, x in zip(self.smooth, lats)]
        outs.append(F.max_pool2d(outs[-1], 1, stride=2))
        return {f"p{i + 3}": o for i, o in enumerate(outs)}


@model(
    "restoration: reflect pad to a multiple of 8, crop after; reflection wants more pixels than the padding",
    lambda batch=1, h=20, w=27: (torch.rand(batch, 3, h, w),),
    far={"h": (8, 9, 13, 15, 16, 17), "w": (5, 6, 12, 33)},
    rare={"already": lambda batch=1, h=20, w=27: (torch.ones(batch, 3, h, w),)},
)
class Restorer(nn.Module):
    def __init__(self, window=8):
        super().__init__()
        self.window = window
        self.body = nn.Sequential(nn.PixelUnshuffle(4), nn.Conv2d(48, 48, 1), nn.ReLU(), nn.PixelShuffle(4))
        self.register_buffer("mean", torch.tensor([0.4488, 0.4371, 0.4040]).view(1, 3, 1, 1))

    def check_image_size(self, x):
        _, _, h, w = x.size()
        mod_pad_h = (self.window - h % self.window) % self.window
        mod_pad_w = (self.window - w % self.window) % self.window
        return F.pad(x, (0, mod_pad_w, 0, mod_pad_h), "reflect")

    def forward(self, x):
        H, W = x.shape[2:]
        x = self.check_image_size(x)
        self.mean = self.mean.type_as(x)
        y = self.body(x - self.mean) + self.mean
        return y[:, :, :H, :W].clamp(0, 1)


@model(
    "anchors come from the sizes of the maps and from image size // map size as stride",
    images,
    far={"h": (4, 7, 31, 33, 64), "w": (4, 9, 66)},
    where=["h >= 4", "w >= 4"],
)
class AnchorHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(3, 6, 3, 2, 1), nn.Conv2d(6, 6, 3, 2, 1)
        self.cls, self.reg = nn.Conv2d(6, 3, 1), nn.Conv2d(6, 12, 1)

    def cell(self, size):
        ratios = torch.sqrt(torch.tensor([0.5, 1.0, 2.0]))
        ws, hs = size / ratios, size * ratios
        return torch.stack([-ws, -hs, ws, hs], 1).round() / 2

    def forward(self, x):
        ih, iw = x.shape[-2:]
        f1 = self.c1(x)
        f2 = self.c2(f1)
        boxes, scores = [], []
        for f, size in ((f1, 8.0), (f2, 16.0)):
            gh, gw = f.shape[-2:]
            stride_h, stride_w = ih // gh, iw // gw
            sy, sx = (
                torch.arange(0, gh, dtype=torch.int32) * stride_h,
                torch.arange(0, gw, dtype=torch.int32) * stride_w,
            )
            sy, sx = torch.meshgrid(sy, sx, indexing="ij")
            shifts = torch.stack((sx, sy, sx, sy), -1).view(-1, 1, 4)
            anchors = (shifts + self.cell(size)[None]).reshape(-1, 4)
            d = self.reg(f).view(x.size(0), 3, 4, gh, gw).permute(0, 3, 4, 1, 2).reshape(x.size(0), -1, 4)
            wh = anchors[:, 2:] - anchors[:, :2]
            ctr = anchors[:, :2] + 0.5 * wh + d[..., :2] * wh
            size_ = torch.exp(d[..., 2:].clamp(max=math.log(1000 / 16))) * wh
            b = torch.cat([ctr - size_ / 2, ctr + size_ / 2], -1)
            boxes.append(torch.stack([b[..., 0::2].clamp(0, iw), b[..., 1::2].clamp(0, ih)], -1).flatten(-2))
            scores.append(self.cls(f).permute(0, 2, 3, 1).flatten(1).sigmoid())
        return torch.cat(boxes, 1), torch.cat(scores, 1)


@model(
    "Swin: no shift if the map is not larger than the window, else a mask is painted by slices into padded sizes",
    lambda batch=2, h=9, w=10: (torch.randn(batch, h, w, 8),),
    far={"h": (1, 3, 4, 5, 8, 16, 17), "w": (2, 4, 7, 33)},
    points=({"h": 4, "w": 4}, {"h": 3, "w": 20}, {"h": 8, "w": 8, "batch": 1}),
)
class SwinBlock(nn.Module):
    def __init__(self, window=4, shift=2):
        super().__init__()
        self.window, self.shift = window, shift
        self.norm, self.qkv, self.proj = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)
        self.table = nn.Parameter(torch.randn((2 * window - 1) ** 2, 2))
        c = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        r = (c[:, :, None] - c[:, None]).permute(1, 2, 0) + window - 1
        self.register_buffer("index", r[..., 0] * (2 * window - 1) + r[..., 1])

    def partition(self, x):
        b, h, w, c = x.shape
        ws = self.window
        return x.view(b, h // ws, ws, w // ws, ws, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, ws * ws, c)

    def forward(self, x):
        b, h, w, c = x.shape
        ws, shift = self.window, self.shift
        y = self.norm(x)
        y = F.pad(y, (0, 0, 0, (ws - w % ws) % ws, 0, (ws - h % ws) % ws))
        _, hp, wp, _ = y.shape
        if min(hp, wp) <= ws:
            shift = 0
        mask = None
        if shift > 0:
            y = torch.roll(y, (-shift, -shift), (1, 2))
            img = torch.zeros(1, hp, wp, 1)
            cnt = 0
            for hs in (slice(0, -ws), slice(-ws, -shift), slice(-shift, None)):
                for vs in (slice(0, -ws), slice(-ws, -shift), slice(-shift, None)):
                    img[:, hs, vs, :] = cnt
                    cnt += 1
            m = self.partition(img).squeeze(-1)
            mask = (m[:, None] - m[:, :, None]).ne(0).float() * -100.0
        win = self.partition(y)
        q, k, v = self.qkv(win).view(-1, ws * ws, 3, 2, 4).permute(2, 0, 3, 1, 4)
        attn = q @ k.transpose(-2, -1) * 0.5 + self.table[self.index.view(-1)].view(ws * ws, ws * ws, 2).permute(
            2, 0, 1
        )
        if mask is not None:
            n = mask.shape[0]
            attn = (attn.view(-1, n, 2, ws * ws, ws * ws) + mask[None, :, None]).view(-1, 2, ws * ws, ws * ws)
        y = (attn.softmax(-1) @ v).transpose(1, 2).reshape(-1, ws, ws, c)
        y = self.proj(y).view(b, hp // ws, wp // ws, ws, ws, c).permute(0, 1, 3, 2, 4, 5).reshape(b, hp, wp, c)
        if shift > 0:
            y = torch.roll(y, (shift, shift), (1, 2))
        return x + y[:, :h, :w]


@model(
    "DINO: positions are resized by a scale factor with 0.1 added, bicubic, kept when the patch count is the trained square",
    images,
    where=["h % 8 == 0", "w % 8 == 0", "h >= 8", "w >= 8"],
    far={"h": (8, 24, 64), "w": (8, 16, 72)},
    points=({"h": 32, "w": 32}, {"h": 16, "w": 64}, {"h": 64, "w": 16}),
)
class DinoEmbeddings(nn.Module):
    def __init__(self, patch=8, n=16, dim=8):
        super().__init__()
        self.patch = patch
        self.proj = nn.Conv2d(3, dim, patch, patch)
        self.cls = nn.Parameter(torch.randn(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.randn(1, n + 1, dim))

    def interpolate_pos_encoding(self, x, w, h):
        npatch = x.shape[1] - 1
        N = self.pos_embed.shape[1] - 1
        if npatch == N and w == h:
            return self.pos_embed
        class_pos, patch_pos = self.pos_embed[:, 0], self.pos_embed[:, 1:]
        dim = x.shape[-1]
        w0, h0 = w // self.patch + 0.1, h // self.patch + 0.1
        sqrt_N = math.sqrt(N)
        patch_pos = F.interpolate(
            patch_pos.reshape(1, int(sqrt_N), int(sqrt_N), dim).permute(0, 3, 1, 2),
            scale_factor=(w0 / sqrt_N, h0 / sqrt_N),
            mode="bicubic",
        )
        assert int(w0) == patch_pos.shape[-2] and int(h0) == patch_pos.shape[-1]
        patch_pos = patch_pos.permute(0, 2, 3, 1).view(1, -1, dim)
        return torch.cat((class_pos.unsqueeze(0), patch_pos), dim=1)

    def forward(self, x):
        B, nc, w, h = x.shape
        x = self.proj(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls.expand(B, -1, -1), x), dim=1)
        return x + self.interpolate_pos_encoding(x, w, h)


def boxes(n=12, classes=3):
    xy = torch.rand(n, 2) * 50
    return torch.cat([xy, xy + torch.rand(n, 2) * 20 + 1], 1), torch.rand(n, classes)


@model(
    "class-aware nms in plain torch: offsets by the largest coordinate, a suppression loop over sorted boxes",
    boxes,
    where=["n <= 64"],
    far={"n": (1, 2, 33, 64), "classes": (1, 5)},
    rare={
        "equal": lambda n=12, classes=3: (
            torch.tensor([[0.0, 0, 10, 10]]).repeat(n, 1),
            torch.linspace(1, 0.1, n * classes).view(n, classes),
        )
    },
    unproved=True,
)
class BatchedNms(nn.Module):
    def __init__(self, iou=0.5, score=0.05, keep=5):
        super().__init__()
        self.iou, self.score, self.keep = iou, score, keep

    def forward(self, boxes, scores):
        conf, labels = scores.max(1)
        valid = conf > self.score
        boxes, conf, labels = boxes[valid], conf[valid], labels[valid]
        if boxes.numel() == 0:
            return boxes, conf, labels
        shifted = boxes + labels.to(boxes)[:, None] * (boxes.max() + 1)
        order = conf.argsort(descending=True, stable=True)
        b = shifted[order]
        lt, rb = torch.max(b[:, None, :2], b[None, :, :2]), torch.min(b[:, None, 2:], b[None, :, 2:])
        inter = (rb - lt).clamp(min=0).prod(-1)
        area = (b[:, 2:] - b[:, :2]).prod(-1)
        iou = inter / (area[:, None] + area[None] - inter)
        keep = torch.ones(len(b), dtype=torch.bool)
        for i in range(len(b)):
            if keep[i]:
                keep[i + 1 :] &= iou[i, i + 1 :] <= self.iou
        picked = order[keep][: self.keep]
        return boxes[picked], conf[picked], labels[picked]


@model(
    "RPN: min(1000-like limit, anchors of the level) per level with offsets into the concatenation",
    lambda batch=2, h=6, w=5: (torch.randn(batch, 8, h, w),),
    far={"h": (1, 2, 3, 10, 16), "w": (1, 2, 9)},
    points=({"h": 2, "w": 3}, {"h": 1, "w": 1, "batch": 1}, {"h": 4, "w": 5}),
)
class RpnTopK(nn.Module):
    def __init__(self, limit=20):
        super().__init__()
        self.limit = limit
        self.cls, self.box = nn.Conv2d(8, 2, 1), nn.Conv2d(8, 8, 1)

    def forward(self, f):
        levels = [f, F.max_pool2d(f, 2, 2, ceil_mode=True)]
        num = [lvl.shape[2] * lvl.shape[3] * 2 for lvl in levels]
        obj = torch.cat([self.cls(x).permute(0, 2, 3, 1).flatten(1) for x in levels], 1)
        reg = torch.cat(
            [
                self.box(x).view(x.size(0), 2, 4, *x.shape[2:]).permute(0, 3, 4, 1, 2).reshape(x.size(0), -1, 4)
                for x in levels
            ],
            1,
        )
        top, offset = [], 0
        for ob in obj.split(num, 1):
            n = ob.shape[1]
            _, idx = ob.topk(min(self.limit, n), dim=1)
            top.append(idx + offset)
            offset += n
        idx = torch.cat(top, dim=1)
        batch_idx = torch.arange(f.size(0))[:, None]
        levels_of = torch.cat([torch.full((n,), i, dtype=torch.int64) for i, n in enumerate(num)])
        return obj[batch_idx, idx], reg[batch_idx, idx], levels_of.expand(f.size(0), -1).gather(1, idx)


def multiscale(batch=2, queries=5, h=6, w=4):
    total = h * w + ((h + 1) // 2) * ((w + 1) // 2)
    return (
        torch.randn(batch, queries, 8),
        torch.rand(batch, queries, 2),
        torch.randn(batch, total, 8),
        torch.tensor([[h, w], [(h + 1) // 2, (w + 1) // 2]]),
    )


@model(
    "deformable attention: value is split by the rows of a tensor of spatial shapes",
    multiscale,
    far={"h": (1, 2, 7, 16), "w": (1, 5), "queries": (1, 17)},
    points=({"h": 1, "w": 1, "queries": 1},),
    unproved=True,
)
class MsDeformAttn(nn.Module):
    def __init__(self, heads=2, points=3, levels=2):
        super().__init__()
        self.heads, self.points, self.levels = heads, points, levels
        self.offsets = nn.Linear(8, heads * levels * points * 2)
        self.weights = nn.Linear(8, heads * levels * points)
        self.value, self.out = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, query, reference, src, spatial_shapes):
        b, lq, _ = query.shape
        m, l, p = self.heads, self.levels, self.points
        assert (spatial_shapes[:, 0] * spatial_shapes[:, 1]).sum() == src.shape[1]
        value = self.value(src).view(b, -1, m, 4)
        off = self.offsets(query).view(b, lq, m, l, p, 2)
        w = self.weights(query).view(b, lq, m, l * p).softmax(-1)
        normalizer = torch.stack([spatial_shapes[..., 1], spatial_shapes[..., 0]], -1)
        loc = reference[:, :, None, None, None, :] + off / normalizer[None, None, None, :, None, :]
        grids = 2 * loc - 1
        sampled = []
        values = value.split([int(h) * int(w_) for h, w_ in spatial_shapes], dim=1)
        for lid, (h, w_) in enumerate(spatial_shapes.tolist()):
            v = values[lid].flatten(2).transpose(1, 2).reshape(b * m, 4, h, w_)
            g = grids[:, :, :, lid].transpose(1, 2).flatten(0, 1)
            sampled.append(F.grid_sample(v, g, mode="bilinear", padding_mode="zeros", align_corners=False))
        w = w.transpose(1, 2).reshape(b * m, 1, lq, l * p)
        y = (torch.stack(sampled, dim=-2).flatten(-2) * w).sum(-1).view(b, m * 4, lq)
        return self.out(y.transpose(1, 2))


@model(
    "U-Net: the upsampled map is padded by diff // 2 left and the rest right to meet its skip",
    small,
    far={"h": (4, 5, 6, 7, 8, 9, 33), "w": (4, 11, 15, 64)},
    where=["h >= 4", "w >= 4"],
)
class SkipUnet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inc, self.d1, self.d2 = (
            nn.Conv2d(3, 4, 3, padding=1),
            nn.Conv2d(4, 6, 3, padding=1),
            nn.Conv2d(6, 8, 3, padding=1),
        )
        self.up1, self.up2 = nn.ConvTranspose2d(8, 6, 2, 2), nn.ConvTranspose2d(6, 4, 2, 2)
        self.c1, self.c2 = nn.Conv2d(12, 6, 3, padding=1), nn.Conv2d(8, 2, 3, padding=1)

    def _up(self, up, conv, x1, x2):
        x1 = up(x1)
        diffY = x2.size()[2] - x1.size()[2]
        diffX = x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [diffX // 2, diffX - diffX // 2, diffY // 2, diffY - diffY // 2])
        return conv(torch.cat([x2, x1], dim=1))

    def forward(self, x):
        a = F.relu(self.inc(x))
        b = F.relu(self.d1(F.max_pool2d(a, 2)))
        c = F.relu(self.d2(F.max_pool2d(b, 2)))
        return self._up(self.up2, self.c2, F.relu(self._up(self.up1, self.c1, c, b)), a)


@model(
    "pyramid pooling: adaptive bins 1, 2, 3, 6 do not divide the map; with maps smaller than the bins they repeat",
    maps,
    far={"h": (1, 2, 5, 6, 12, 13, 33), "w": (1, 6, 8, 18)},
    points=({"h": 6, "w": 6}, {"h": 1, "w": 1}),
)
class PyramidPooling(nn.Module):
    def __init__(self, bins=(1, 2, 3, 6)):
        super().__init__()
        self.features = nn.ModuleList(
            nn.Sequential(nn.AdaptiveAvgPool2d(b), nn.Conv2d(8, 2, 1, bias=False), nn.ReLU()) for b in bins
        )

    def forward(self, x):
        size = x.size()
        out = [x]
        for f in self.features:
            out.append(F.interpolate(f(x), size[2:], mode="bilinear", align_corners=True))
        return torch.cat(out, 1)


def crops(h=24, w=30, rois=3):
    xy = torch.stack([torch.randint(0, max(w // 2, 1), (rois,)), torch.randint(0, max(h // 2, 1), (rois,))], 1)
    wh = torch.stack([torch.randint(1, w // 2 + 2, (rois,)), torch.randint(1, h // 2 + 2, (rois,))], 1)
    return torch.randn(3, h, w), torch.cat([xy, xy + wh], 1)


@model(
    "crops are cut by integer boxes in a loop, resized to one size and stacked; boxes are clamped to the image",
    crops,
    far={"h": (1, 2, 33), "w": (1, 3, 64), "rois": (1, 7)},
    unproved=True,
    rare={
        "whole": lambda h=24, w=30, rois=3: (torch.randn(3, h, w), torch.tensor([[0, 0, w, h]]).repeat(rois, 1)),
        "outside": lambda h=24, w=30, rois=3: (
            torch.randn(3, h, w),
            torch.tensor([[-5, -5, w + 9, h + 9]]).repeat(rois, 1),
        ),
    },
)
class CropClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, 4, 3), nn.Linear(4, 5)

    def forward(self, image, boxes):
        _, H, W = image.shape
        patches = []
        for box in boxes:
            x1, y1, x2, y2 = [int(v) for v in box]
            x1, y1 = max(0, min(x1, W - 1)), max(0, min(y1, H - 1))
            x2, y2 = min(W, max(x2, x1 + 1)), min(H, max(y2, y1 + 1))
            crop = image[:, y1:y2, x1:x2].unsqueeze(0)
            patches.append(F.interpolate(crop, size=(8, 8), mode="bilinear", align_corners=False))
        x = F.relu(self.conv(torch.cat(patches)))
        return self.fc(x.mean((2, 3)))


@model(
    "SOLO's coordinate channels: linspace of both sizes, one pixel gives -1",
    maps,
    far={"h": (1, 2, 16), "w": (1, 2, 33)},
)
class CoordConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(11, 4, 3, padding=1)

    def forward(self, x):
        xr = torch.linspace(-1, 1, x.shape[-1], device=x.device)
        yr = torch.linspace(-1, 1, x.shape[-2], device=x.device)
        y, x_ = torch.meshgrid(yr, xr, indexing="ij")
        y, x_ = y.expand([x.shape[0], 1, -1, -1]), x_.expand([x.shape[0], 1, -1, -1])
        r = torch.sqrt((y - 0.5) ** 2 + (x_ - 0.5) ** 2)
        return self.conv(torch.cat([x, x_, y, r], 1))


@model(
    "patch merging: pad_input is set only for odd sizes, then strided slices are joined",
    lambda batch=2, h=7, w=6: (torch.randn(batch, h * w, 8), h, w),
    far={"h": (1, 2, 15, 16), "w": (1, 3, 33)},
    points=({"h": 1, "w": 1}, {"h": 6, "w": 7}),
)
class PatchMerging(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.reduction = nn.LayerNorm(32), nn.Linear(32, 16, bias=False)

    def forward(self, x, H: int, W: int):
        B, L, C = x.shape
        assert L == H * W, "input feature has wrong size"
        x = x.view(B, H, W, C)
        pad_input = (H % 2 == 1) or (W % 2 == 1)
        if pad_input:
            x = F.pad(x, (0, 0, 0, W % 2, 0, H % 2))
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
        return self.reduction(self.norm(x.view(B, -1, 4 * C))), (H + 1) // 2, (W + 1) // 2


@model(
    "halo attention: blocks of 4 with a halo of 1 by unfold, keys outside of the image are masked",
    lambda batch=1, h=8, w=12: (torch.randn(batch, 8, h, w),),
    where=["h % 4 == 0", "w % 4 == 0"],
    far={"h": (4, 16, 32), "w": (4, 8, 36)},
    points=({"h": 4, "w": 4, "batch": 3},),
)
class HaloAttention(nn.Module):
    def __init__(self, block=4, halo=1):
        super().__init__()
        self.block, self.halo = block, halo
        self.q, self.kv = nn.Conv2d(8, 8, 1), nn.Conv2d(8, 16, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        assert h % self.block == 0 and w % self.block == 0
        s, k = self.block, self.block + 2 * self.halo
        nh, nw = h // s, w // s
        q = self.q(x).view(b, c, nh, s, nw, s).permute(0, 2, 4, 3, 5, 1).reshape(b * nh * nw, s * s, c)
        kv = F.unfold(self.kv(x), kernel_size=k, stride=s, padding=self.halo)
        kv = kv.view(b, 2 * c, k * k, nh * nw).permute(0, 3, 2, 1).reshape(b * nh * nw, k * k, 2 * c)
        key, value = kv.chunk(2, -1)
        mask = F.unfold(torch.ones(1, 1, h, w), kernel_size=k, stride=s, padding=self.halo).transpose(1, 2)
        mask = mask.expand(b, -1, -1).reshape(b * nh * nw, 1, k * k) < 0.5
        sim = (q @ key.transpose(1, 2) * c**-0.5).masked_fill(mask, -torch.finfo(x.dtype).max)
        out = sim.softmax(-1) @ value
        return out.view(b, nh, nw, s, s, c).permute(0, 5, 1, 3, 2, 4).reshape(b, c, h, w)


@model(
    "tiled super-resolution: the tile count is a ceil, each tile is cut with a border that stops at the image",
    lambda h=18, w=21: (torch.rand(1, 3, h, w),),
    where=["h <= 64", "w <= 64"],
    far={"h": (1, 9, 10, 11, 20, 64), "w": (1, 10, 30, 33)},
)
class TiledUpscaler(nn.Module):
    def __init__(self, tile=10, pad=2, scale=2):
        super().__init__()
        self.tile, self.pad, self.scale = tile, pad, scale
        self.net = nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.PixelShuffle(scale))

    def forward(self, img):
        batch, channel, height, width = img.shape
        output = img.new_zeros((batch, channel, height * self.scale, width * self.scale))
        tiles_x, tiles_y = math.ceil(width / self.tile), math.ceil(height / self.tile)
        for y in range(tiles_y):
            for x in range(tiles_x):
                x0, y0 = x * self.tile, y * self.tile
                x1, y1 = min(x0 + self.tile, width), min(y0 + self.tile, height)
                px0, px1 = max(x0 - self.pad, 0), min(x1 + self.pad, width)
                py0, py1 = max(y0 - self.pad, 0), min(y1 + self.pad, height)
                out = self.net(img[:, :, py0:py1, px0:px1])
                ox, oy = (x0 - px0) * self.scale, (y0 - py0) * self.scale
                output[:, :, y0 * self.scale : y1 * self.scale, x0 * self.scale : x1 * self.scale] = out[
                    :, :, oy : oy + (y1 - y0) * self.scale, ox : ox + (x1 - x0) * self.scale
                ]
        return output


def masked_images(batch=2, h=7, w=9):
    mask = torch.zeros(batch, h, w, dtype=torch.bool)
    mask[0, :, max(w // 2, 1) :] = True
    return torch.randn(batch, 8, h, w), mask


@model(
    "DETR: sine positions from the cumulative sum of the mask, normalised by its last row; the mask is resized to the map",
    masked_images,
    far={"h": (1, 2, 16, 33), "w": (1, 2, 17)},
    points=({"h": 1, "w": 1},),
)
class SinePositions(nn.Module):
    def __init__(self, feats=4):
        super().__init__()
        self.feats = feats
        self.conv = nn.Conv2d(8, 8, 3, 2, 1)

    def forward(self, x, mask):
        x = self.conv(x)
        mask = F.interpolate(mask[None].float(), size=x.shape[-2:]).to(torch.bool)[0]
        not_mask = ~mask
        y_embed, x_embed = not_mask.cumsum(1, dtype=torch.float32), not_mask.cumsum(2, dtype=torch.float32)
        y_embed = y_embed / (y_embed[:, -1:, :] + 1e-6) * 2 * math.pi
        x_embed = x_embed / (x_embed[:, :, -1:] + 1e-6) * 2 * math.pi
        dim_t = torch.arange(self.feats, dtype=torch.float32)
        dim_t = 10000 ** (2 * torch.div(dim_t, 2, rounding_mode="floor") / self.feats)
        px, py = x_embed[..., None] / dim_t, y_embed[..., None] / dim_t
        px = torch.stack((px[..., 0::2].sin(), px[..., 1::2].cos()), 4).flatten(3)
        py = torch.stack((py[..., 0::2].sin(), py[..., 1::2].cos()), 4).flatten(3)
        return x + torch.cat((py, px), 3).permute(0, 3, 1, 2), mask


@model(
    "CenterNet: peaks by max pooling, top k of all classes; class, row and column by division with sizes",
    lambda batch=2, h=9, w=8: (torch.randn(batch, 8, h, w),),
    where=["h * w >= 5"],
    far={"h": (1, 2, 5, 33), "w": (2, 5, 16, 64)},
)
class CenterDecode(nn.Module):
    def __init__(self, K=5):
        super().__init__()
        self.K = K
        self.hm, self.wh = nn.Conv2d(8, 3, 1), nn.Conv2d(8, 2, 1)

    def forward(self, f):
        heat = self.hm(f).sigmoid()
        hmax = F.max_pool2d(heat, (3, 3), stride=1, padding=1)
        heat = heat * (hmax == heat).float()
        batch, cat, height, width = heat.size()
        scores, inds = torch.topk(heat.view(batch, cat, -1), self.K)
        inds = inds % (height * width)
        ys, xs = (inds / width).int().float(), (inds % width).int().float()
        score, ind = torch.topk(scores.view(batch, -1), self.K)
        clses = (ind / self.K).int()
        inds = inds.view(batch, -1).gather(1, ind)
        ys, xs = ys.view(batch, -1).gather(1, ind), xs.view(batch, -1).gather(1, ind)
        wh = self.wh(f).flatten(2).transpose(1, 2).gather(1, inds.unsqueeze(2).expand(-1, -1, 2))
        box = torch.stack([xs - wh[..., 0] / 2, ys - wh[..., 1] / 2, xs + wh[..., 0] / 2, ys + wh[..., 1] / 2], 2)
        # peaks of score 0 are ties: their boxes are dropped
        return score, torch.where(score[..., None] > 0, box, 0.0), torch.where(score > 0, clses, -1)


@model(
    "SAM preprocess: the long side becomes 64 with int(x + 0.5), the rest is padded; masks go back to the original size",
    lambda h=30, w=45: (torch.rand(1, 3, h, w) * 255,),
    far={"h": (1, 2, 44, 45, 46, 64, 65, 150), "w": (1, 29, 30, 31, 64, 128)},
)
class ResizeLongest(nn.Module):
    def __init__(self, size=64):
        super().__init__()
        self.size = size
        self.enc, self.dec = nn.Conv2d(3, 8, 16, 16), nn.ConvTranspose2d(8, 1, 4, 4)

    @staticmethod
    def get_preprocess_shape(oldh, oldw, long_side):
        scale = long_side * 1.0 / max(oldh, oldw)
        newh, neww = oldh * scale, oldw * scale
        return (max(int(newh + 0.5), 1), max(int(neww + 0.5), 1))

    def forward(self, image):
        original = image.shape[-2:]
        size = self.get_preprocess_shape(*original, self.size)
        x = F.interpolate(image, size, mode="bilinear", align_corners=False)
        x = (x - 120.0) / 58.0
        h, w = x.shape[-2:]
        x = F.pad(x, (0, self.size - w, 0, self.size - h))
        masks = self.dec(self.enc(x))
        masks = F.interpolate(masks, (self.size, self.size), mode="bilinear", align_corners=False)
        masks = masks[..., : size[0], : size[1]]
        return F.interpolate(masks, original, mode="bilinear", align_corners=False) > 0.0, torch.tensor(size)


@model(
    "temporal shift: frames are folded into the batch, a clip count is nt // segments",
    lambda clips=2, h=5, w=6: (torch.randn(clips * 4, 8, h, w),),
    far={"clips": (1, 3, 7), "h": (1, 16), "w": (1, 33)},
)
class TemporalShift(nn.Module):
    def __init__(self, segments=4, div=4):
        super().__init__()
        self.segments, self.div = segments, div
        self.net, self.fc = nn.Conv2d(8, 8, 3, padding=1), nn.Linear(8, 3)

    def forward(self, x):
        nt, c, h, w = x.size()
        n_batch = nt // self.segments
        v = x.view(n_batch, self.segments, c, h, w)
        fold = c // self.div
        out = torch.zeros_like(v)
        out[:, :-1, :fold] = v[:, 1:, :fold]
        out[:, 1:, fold : 2 * fold] = v[:, :-1, fold : 2 * fold]
        out[:, :, 2 * fold :] = v[:, :, 2 * fold :]
        y = F.relu(self.net(out.view(nt, c, h, w))).mean((2, 3))
        return self.fc(y).view((-1, self.segments) + (3,)).mean(dim=1)


@model(
    "stereo cost volume: one slice per disparity up to max(1, width // 4), shifted views of the right image",
    lambda batch=1, h=4, w=20: (torch.randn(batch, 6, h, w), torch.randn(batch, 6, h, w)),
    where=["w <= 64"],
    far={"w": (1, 3, 4, 7, 8, 33, 64), "h": (1, 9)},
)
class CostVolume(nn.Module):
    def __init__(self):
        super().__init__()
        self.agg = nn.Conv3d(1, 1, 3, padding=1)

    def forward(self, left, right):
        b, c, h, w = left.shape
        maxdisp = max(1, w // 4)
        volume = left.new_zeros([b, maxdisp, h, w])
        for i in range(maxdisp):
            if i > 0:
                volume[:, i, :, i:] = (left[:, :, :, i:] * right[:, :, :, :-i]).mean(dim=1)
            else:
                volume[:, i] = (left * right).mean(dim=1)
        prob = F.softmax(self.agg(volume.unsqueeze(1)).squeeze(1), dim=1)
        disp = torch.arange(0, maxdisp, dtype=prob.dtype).view(1, maxdisp, 1, 1)
        return torch.sum(prob * disp, 1), volume


@model(
    "YOLOv5's Detect keeps its grid between calls and rebuilds it when the map's shape differs",
    lambda batch=2, h=4, w=5: (torch.randn(batch, 8, h, w),),
    far={"h": (1, 3, 16), "w": (1, 7, 33)},
    points=({"h": 5, "w": 4}, {"h": 3, "w": 3}),
)
class YoloDetect(nn.Module):
    def __init__(self, nc=2):
        super().__init__()
        self.no, self.na = nc + 5, 2
        self.grid = torch.empty(0)
        self.anchor_grid = torch.empty(0)
        self.register_buffer("anchors", torch.tensor([[1.25, 1.6], [2.0, 3.75]]))
        self.stride = 8.0
        self.m = nn.Conv2d(8, self.no * self.na, 1)

    def _make_grid(self, nx, ny):
        shape = 1, self.na, ny, nx, 2
        yv, xv = torch.meshgrid(
            torch.arange(ny, dtype=torch.float32), torch.arange(nx, dtype=torch.float32), indexing="ij"
        )
        grid = torch.stack((xv, yv), 2).expand(shape) - 0.5
        anchor_grid = (self.anchors * self.stride).view((1, self.na, 1, 1, 2)).expand(shape)
        return grid, anchor_grid

    def forward(self, x):
        x = self.m(x)
        bs, _, ny, nx = x.shape
        x = x.view(bs, self.na, self.no, ny, nx).permute(0, 1, 3, 4, 2).contiguous()
        if self.grid.shape[2:4] != x.shape[2:4]:
            self.grid, self.anchor_grid = self._make_grid(nx, ny)
        xy, wh, conf = x.sigmoid().split((2, 2, self.no - 4), 4)
        xy = (xy * 2 + self.grid) * self.stride
        wh = (wh * 2) ** 2 * self.anchor_grid
        return torch.cat((xy, wh, conf), 4).view(bs, self.na * nx * ny, self.no)


@model(
    "GeM neck with a stem that depends on the size: small images keep their resolution, large ones are pooled first",
    images,
    far={"h": (1, 15, 16, 17, 47, 48, 49, 64), "w": (1, 16, 48, 50)},
    points=({"h": 48, "w": 48}, {"h": 49, "w": 15}, {"h": 64, "w": 1}),
)
class AdaptiveStem(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, padding=1)
        self.p = nn.Parameter(torch.ones(1) * 3)
        self.fc = nn.Linear(6, 4)

    def forward(self, x):
        h, w = x.shape[-2:]
        if max(h, w) > 48:
            if min(h, w) * 48 // max(h, w) >= 1:
                x = F.interpolate(
                    x, scale_factor=48 / max(h, w), mode="bilinear", align_corners=False, recompute_scale_factor=True
                )
            else:  # a very long strip
                x = F.adaptive_avg_pool2d(x, (max(1, min(h, 48)), max(1, min(w, 48))))
        elif min(h, w) < 16:
            x = F.interpolate(x, size=(max(h, 16), max(w, 16)), mode="nearest")
        x = F.relu(self.conv(x))
        x = F.avg_pool2d(x.clamp(min=1e-6).pow(self.p), (x.size(-2), x.size(-1))).pow(1.0 / self.p)
        return F.normalize(self.fc(x.flatten(1)), dim=-1)


@model(
    "Mask2Former head: masks by einsum at quarter size, resized to the image; empty queries attend everywhere",
    lambda batch=2, h=16, w=20: (torch.randn(batch, 3, h, w),),
    far={"h": (4, 5, 8, 15, 33), "w": (4, 9, 64)},
    where=["h >= 4", "w >= 4"],
)
class MaskedQueries(nn.Module):
    def __init__(self, queries=5):
        super().__init__()
        self.stem, self.down = nn.Conv2d(3, 8, 4, 4), nn.Conv2d(8, 8, 3, 2, 1)
        self.query = nn.Embedding(queries, 8)
        self.attn, self.norm = nn.MultiheadAttention(8, 2, batch_first=True), nn.LayerNorm(8)
        self.mask_embed, self.cls = nn.Linear(8, 8), nn.Linear(8, 4)

    def heads(self, q, mask_features, size):
        masks = torch.einsum("bqc,bchw->bqhw", self.mask_embed(q), mask_features)
        attn_mask = F.interpolate(masks, size=size, mode="bilinear", align_corners=False)
        attn_mask = (attn_mask.sigmoid().flatten(2).unsqueeze(1).repeat(1, 2, 1, 1).flatten(0, 1) < 0.5).bool()
        return masks, attn_mask

    def forward(self, x):
        size = x.shape[-2:]
        mask_features = self.stem(x)
        low = self.down(mask_features)
        q = self.query.weight.unsqueeze(0).repeat(x.shape[0], 1, 1)
        memory = low.flatten(2).transpose(1, 2)
        masks, attn_mask = self.heads(q, mask_features, low.shape[-2:])
        for _ in range(2):
            attn_mask[torch.where(attn_mask.sum(-1) == attn_mask.shape[-1])] = False
            q = self.norm(q + self.attn(q, memory, memory, attn_mask=attn_mask)[0])
            masks, attn_mask = self.heads(q, mask_features, low.shape[-2:])
        return self.cls(q), F.interpolate(masks, size=size, mode="bilinear", align_corners=False)


@model(
    "instance masks are pasted into a canvas of the caller's size, box by box, with boxes rounded outwards",
    lambda dets=3, h=20, w=24: (
        torch.rand(dets, 1, 7, 7),
        torch.rand(dets, 4).mul(torch.tensor([w / 2, h / 2, w / 2, h / 2])) + torch.tensor([0, 0, w / 2, h / 2]),
        h,
        w,
    ),
    far={"dets": (1, 2, 9), "h": (1, 2, 33), "w": (1, 7, 64)},
    unproved=True,
)
class PasteMasks(nn.Module):
    def forward(self, masks, boxes, im_h: int, im_w: int):
        masks = F.pad(masks, (1, 1, 1, 1))
        scale = float(masks.shape[-1]) / (masks.shape[-1] - 2)
        half, ctr = (boxes[:, 2:] - boxes[:, :2]) * 0.5 * scale, (boxes[:, 2:] + boxes[:, :2]) * 0.5
        boxes = torch.cat([ctr - half, ctr + half], 1).to(dtype=torch.int64)
        res = []
        for m, b in zip(masks, boxes):
            w, h = max(int(b[2] - b[0] + 1), 1), max(int(b[3] - b[1] + 1), 1)
            m = F.interpolate(m[None], size=(h, w), mode="bilinear", align_corners=False)[0][0]
            im = torch.zeros((im_h, im_w), dtype=m.dtype)
            x0, x1 = max(int(b[0]), 0), min(int(b[2]) + 1, im_w)
            y0, y1 = max(int(b[1]), 0), min(int(b[3]) + 1, im_h)
            if x1 > x0 and y1 > y0:
                im[y0:y1, x0:x1] = m[y0 - int(b[1]) : y1 - int(b[1]), x0 - int(b[0]) : x1 - int(b[0])]
            res.append(im)
        return torch.stack(res, 0)[:, None] >= 0.5


@model(
    "LiDAR pillars: points are scattered onto a grid, the cell by floor division, the feature by the maximum",
    lambda points=30, cells=6: (torch.rand(points, 4) * cells, cells),
    far={"points": (1, 2, 100), "cells": (1, 2, 16)},
    rare={"border": lambda points=30, cells=6: (torch.full((points, 4), float(cells)), cells)},
)
class Pillars(nn.Module):
    def __init__(self):
        super().__init__()
        self.pfn, self.conv = nn.Linear(6, 8), nn.Conv2d(8, 4, 3, padding=1)

    def forward(self, pts, grid: int):
        cell = torch.floor(pts[:, :2]).long()
        inside = ((cell >= 0) & (cell < grid)).all(1)
        cell = cell.clamp(0, grid - 1)
        index = cell[:, 1] * grid + cell[:, 0]
        center = pts[:, :2] - (cell.float() + 0.5)
        f = F.relu(self.pfn(torch.cat([pts, center], 1))) * inside.unsqueeze(1)
        canvas = torch.zeros(grid * grid, 8).index_reduce(0, index, f, "amax", include_self=True)
        return self.conv(canvas.t().view(1, 8, grid, grid))
