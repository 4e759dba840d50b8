"""Other packages, one to two models each: layers, losses, ops, text, time series, RL."""

from __future__ import annotations

import contextlib

import torch
from registry import Registry
from torch import nn

import stand_ins

with contextlib.suppress(ImportError):  # it is not installed
    stand_ins.torchvision()

model = Registry("other packages")


def ids(batch=2, seq=9):
    return (torch.randint(0, 20, (batch, seq)),)


def frames(batch=2, seq=9):
    return (torch.randn(batch, seq, 16),)


def with_mask(batch=2, seq=9):
    return (torch.randn(batch, seq, 16), torch.arange(seq).expand(batch, seq) < (seq + 1) // 2)


@model(
    "blocks of one to four characters, padded to their least common multiple, and pooled down by three",
    lambda batch=2, seq=9: (torch.randint(0, 20, (batch, seq)), torch.arange(seq).expand(batch, seq) < (seq + 1) // 2),
    far={"seq": (1, 2, 3, 7, 11, 12, 13, 24, 33)},
    points=({"batch": 1, "seq": 10},),
)
class CharBlocks(nn.Module):
    def __init__(self):
        super().__init__()
        from charformer_pytorch import GBST

        self.net = GBST(num_tokens=20, dim=8, max_block_size=4, downsample_factor=3, score_consensus_attn=True)

    def forward(self, ids, mask):
        return self.net(ids, mask)


@model(
    "as many heavy tokens as asked, unless the sequence is shorter; coordinate descent, scatter back",
    with_mask,
    far={"seq": (1, 3, 4, 5, 6, 16, 33)},
    points=({"batch": 1, "seq": 4},),
)
class HeavyTokens(nn.Module):
    def __init__(self):
        super().__init__()
        from colt5_attention import ConditionalRoutedFeedForward

        self.net = ConditionalRoutedFeedForward(16, num_heavy_tokens=4, light_ff_mult=0.5, heavy_ff_mult=2)

    def forward(self, x, mask):
        return self.net(x, mask=mask)


@model(
    "padded to the next power of two of blocks, levels by a logarithm, coarse keys by means",
    lambda batch=2, seq=9: (torch.randint(0, 20, (batch, seq)), torch.arange(seq).expand(batch, seq) < (seq + 1) // 2),
    where=["9 <= seq <= 64"],
    far={"seq": (9, 15, 16, 17, 31, 32, 33, 64)},
    points=({"batch": 1, "seq": 32},),
    unproved=True,
)
class HierarchicalLevels(nn.Module):
    def __init__(self):
        super().__init__()
        from h_transformer_1d import HTransformer1D

        self.net = HTransformer1D(
            num_tokens=20, dim=16, depth=1, max_seq_len=64, heads=2, dim_head=8, block_size=4, causal=False
        )

    def forward(self, ids, mask):
        return self.net(ids, mask=mask)


@model(
    "an associative scan that calls itself on halves until less than two are left; odd halves differ",
    frames,
    far={"seq": (1, 2, 3, 4, 5, 7, 8, 16, 33, 64)},
    points=({"batch": 1, "seq": 13},),
    unproved=True,
)
class GateLoopScan(nn.Module):
    def __init__(self):
        super().__init__()
        from gateloop_transformer import SimpleGateLoopLayer

        self.net = SimpleGateLoopLayer(16)

    def forward(self, x):
        return self.net(x)


@model(
    "a moving average by FFT over twice the length, biased by buckets of positions",
    frames,
    far={"seq": (1, 2, 16, 31, 33, 64, 127, 128, 130)},
    points=({"batch": 1, "seq": 17},),
)
class MegaAverage(nn.Module):
    def __init__(self):
        super().__init__()
        from mega_pytorch import MegaLayer

        self.net = MegaLayer(dim=16, ema_heads=4, attn_dim_qk=8, attn_dim_value=16, causal=False)

    def forward(self, x):
        return self.net(x)


@model(
    "capacity of an expert: the integer of length times a factor over experts, at least four, at most the length",
    frames,
    far={"seq": (1, 2, 3, 4, 5, 6, 7, 8, 16, 33, 64)},
    points=({"batch": 1, "seq": 20},),
)
class ExpertsCapacity(nn.Module):
    def __init__(self):
        super().__init__()
        from mixture_of_experts import MoE

        self.net = MoE(dim=16, num_experts=3, hidden_dim=8, second_policy_eval="all", capacity_factor_eval=1.3)

    def forward(self, x):
        out, loss = self.net(x)
        return out, loss


@model(
    "compressed blocks, chosen blocks and a sliding window: fewer blocks than are to be chosen",
    frames,
    far={"seq": (1, 3, 4, 5, 7, 8, 12, 16, 33)},
    points=({"batch": 1, "seq": 13},),
)
class NativeSparse(nn.Module):
    def __init__(self):
        super().__init__()
        from native_sparse_attention_pytorch import SparseAttention

        self.net = SparseAttention(
            dim=16,
            dim_head=8,
            heads=2,
            sliding_window_size=3,
            compress_block_size=4,
            compress_block_sliding_stride=2,
            selection_block_size=4,
            num_selected_blocks=2,
            causal=True,
        )

    def forward(self, x):
        return self.net(x)


@model(
    "a closed-form cell in a loop over time; its time span of a step is squeezed, which drops a batch of one",
    lambda batch=2, seq=6: (torch.randn(batch, seq, 4), torch.rand(batch, seq, 3) + 0.1),
    far={"seq": (1, 2, 7, 16, 33), "batch": (1, 3, 7)},
    points=({"batch": 1, "seq": 3},),
    unproved=True,
)
class LiquidLoop(nn.Module):
    def __init__(self):
        super().__init__()
        from ncps.torch import CfC

        self.net = CfC(4, 3, mixed_memory=True)

    def forward(self, x, spans):
        out, (h, c) = self.net(x, timespans=spans)
        return out, h, c


@model(
    "constant-Q kernels by convolution, reflection needs a longer signal than half the kernel",
    lambda batch=2, time=900: (torch.randn(batch, time),),
    where=["600 <= time <= 4000"],
    far={"time": (600, 640, 1000, 1024, 1999)},
    points=({"batch": 1, "time": 777},),
)
class ConstantQ(nn.Module):
    def __init__(self):
        super().__init__()
        from nnAudio.features import STFT, CQT1992v2

        self.cqt = CQT1992v2(sr=2000, hop_length=32, fmin=110, n_bins=12, bins_per_octave=6, verbose=False)
        self.stft = STFT(
            n_fft=64,
            hop_length=24,
            freq_bins=20,
            freq_scale="log",
            fmin=50,
            fmax=900,
            sr=2000,
            output_format="Magnitude",
            verbose=False,
        )

    def forward(self, x):
        return self.cqt(x), self.stft(x)


@model(
    "only the nearest four points, when there are more points than that: min of a count and a size",
    lambda batch=2, points=7: (
        torch.randn(batch, points, 8),
        torch.randn(batch, points, 3),
        torch.arange(points).expand(batch, points) < (points + 1) // 2,
    ),
    far={"points": (1, 2, 3, 4, 5, 16, 33)},
    points=({"batch": 1, "points": 4},),
)
class PointNeighbours(nn.Module):
    def __init__(self):
        super().__init__()
        from point_transformer_pytorch import PointTransformerLayer

        self.net = PointTransformerLayer(dim=8, pos_mlp_hidden_dim=8, attn_mlp_hidden_mult=2, num_neighbors=4)

    def forward(self, x, place, mask):
        return self.net(x, place, mask=mask)


@model(
    "five scales of halving with a pad of one where a side is odd: the pad is a remainder",
    lambda batch=1, height=40, width=37: (torch.rand(batch, 1, height, width), torch.rand(batch, 1, height, width)),
    where=["33 <= height <= 200", "33 <= width <= 200"],
    far={"height": (33, 47, 48, 64, 65, 99), "width": (33, 34, 64, 127)},
    points=({"batch": 3, "height": 35, "width": 63},),
)
class ManyScales(nn.Module):
    def __init__(self):
        super().__init__()
        from pytorch_msssim import MS_SSIM, SSIM

        self.many, self.one = (
            MS_SSIM(data_range=1.0, size_average=False, win_size=3, channel=1),
            SSIM(data_range=1.0, size_average=False, win_size=7, channel=1, nonnegative_ssim=True),
        )

    def forward(self, x, y):
        return self.many(x, y), self.one(x, y)


@model(
    "memories read before and written after the tokens, xl memories in front of keys, not causal among themselves",
    lambda batch=2, seq=6: (torch.randint(0, 20, (batch, seq)), torch.randn(batch, 3, 16)),
    where=["1 <= seq <= 16"],
    far={"seq": (1, 2, 7, 15, 16)},
    points=({"batch": 1, "seq": 16},),
)
class RecurrentMemory(nn.Module):
    def __init__(self):
        super().__init__()
        from recurrent_memory_transformer_pytorch import RecurrentMemoryTransformer

        self.net = RecurrentMemoryTransformer(
            16,
            num_tokens=20,
            depth=1,
            num_memory_tokens=3,
            seq_len=16,
            dim_head=8,
            heads=2,
            ff_mult=1,
            use_xl_memories=False,
        )

    def forward(self, ids, memories):
        logits, written, _ = self.net(ids, read_memories=memories)
        return logits, written


@model(
    "a cosine transform from an FFT of even samples and flipped odd samples, and its inverse",
    lambda batch=2, time=9: (torch.randn(batch, time),),
    far={"time": (1, 2, 3, 4, 7, 16, 33, 64)},
    points=({"batch": 1, "time": 5},),
)
def cosine_and_back(self, x):
    import torch_dct as dct

    y = dct.dct(x, norm="ortho")
    return y, dct.idct(y * torch.linspace(1, 0, x.shape[-1]), norm="ortho"), dct.dct1(torch.cat([x, x], 1))


@model(
    "an adaptive solver: the number of steps follows from values and tolerances",
    lambda batch=2: (torch.randn(batch, 3) * 3,),
    far={"batch": (1, 7, 33)},
    rare={
        "at rest": lambda batch=2: (torch.zeros(batch, 3),),
        "stiff": lambda batch=2: (torch.full((batch, 3), 30.0),),
    },
    unproved=True,
)
class AdaptiveSolver(nn.Module):
    def __init__(self):
        super().__init__()
        self.field = nn.Linear(3, 3)

    def forward(self, y):
        from torchdiffeq import odeint

        return odeint(
            lambda t, v: -v * v.abs() + self.field(v) * t,
            y,
            torch.tensor([0.0, 1.0]),
            method="dopri5",
            rtol=1e-4,
            atol=1e-4,
        )[-1]


def ranks(items=9):
    return (torch.randn(items), torch.randn(items))


@model(
    "ranks with ties averaged: a loop over the repeated values",
    ranks,
    where=["2 <= items <= 64"],
    far={"items": (2, 3, 16, 33, 64)},
    rare={
        "ties": lambda items=9: (torch.randint(0, 3, (items,)).float(), torch.randint(0, 2, (items,)).float()),
        "equal": lambda items=9: (torch.ones(items), torch.randn(items)),
    },
    unproved=True,
)
def spearman_of_ties(self, x, y):
    from torchmetrics.functional import kendall_rank_corrcoef, spearman_corrcoef

    return spearman_corrcoef(x, y), kendall_rank_corrcoef(x, y)


@model(
    "a bounded support: the top 4 are sorted first, more only where the support may be larger, by value",
    lambda batch=3, classes=9: (torch.randn(batch, classes) * 3,),
    far={"classes": (1, 2, 3, 4, 5, 8, 16, 33)},
    points=({"batch": 1, "classes": 20},),
    rare={
        "flat": lambda batch=3, classes=9: (torch.zeros(batch, classes),),
        "one peak": lambda batch=3, classes=9: (torch.eye(batch, classes) * 50,),
    },
    unproved=True,
)
def entmax_of_top(self, x):
    from entmax import entmax15, entmax_bisect, sparsemax

    return entmax15(x, dim=-1, k=4), sparsemax(x, dim=-1, k=4), entmax_bisect(x, alpha=1.3, dim=-1)


@model(
    "bands of filters by FFT convolution in blocks; resampling cuts to the floor of a quotient",
    lambda batch=2, time=120: (torch.randn(batch, 1, time),),
    where=["60 <= time <= 3000"],
    far={"time": (60, 64, 99, 127, 128, 511, 1001)},
    points=({"batch": 1, "time": 333},),
    unproved=True,
)
class JuliusBands(nn.Module):
    def __init__(self):
        super().__init__()
        import julius

        self.bands, self.low = julius.SplitBands(1000.0, n_bands=3), julius.LowPassFilter(0.2, stride=3, fft=True)
        self.rate = julius.ResampleFrac(9, 4, zeros=4)

    def forward(self, x):
        return self.bands(x), self.low(x), self.rate(x), self.rate(x, full=True)


@model(
    "nearest neighbours of a distance matrix, by rank of a mask and a radius; neighbours bounded by the count",
    lambda batch=2, atoms=7: (
        torch.randn(batch, atoms, 8),
        torch.randn(batch, atoms, 3),
        torch.arange(atoms).expand(batch, atoms) < (atoms + 2) // 2,
    ),
    far={"atoms": (4, 5, 16, 33)},
    points=({"batch": 1, "atoms": 4},),
)
class EquivariantNeighbours(nn.Module):
    def __init__(self):
        super().__init__()
        from egnn_pytorch import EGNN

        self.net = EGNN(
            dim=8, m_dim=4, num_nearest_neighbors=3, valid_radius=4.0, norm_coors=True, coor_weights_clamp_value=2.0
        )

    def forward(self, x, place, mask):
        return self.net(x, place, mask=mask)


@model(
    "a conditional random field: the score by a loop over time with a mask, and the best path",
    lambda batch=2, seq=5: (
        torch.randn(batch, seq, 4),
        torch.randint(0, 4, (batch, seq)),
        torch.arange(seq).expand(batch, seq) < torch.tensor([seq] + [(seq + 1) // 2] * (batch - 1))[:, None],
    ),
    far={"seq": (1, 2, 7, 16, 33)},
    points=({"batch": 1, "seq": 3},),
    unproved=True,
)
class CrfPaths(nn.Module):
    def __init__(self):
        super().__init__()
        from torchcrf import CRF

        self.crf = CRF(4, batch_first=True)

    def forward(self, scores, tags, mask):
        paths = self.crf.decode(scores, mask=mask)
        best = torch.full(tags.shape, -1)
        for row, path in enumerate(paths):
            best[row, : len(path)] = torch.tensor(path)
        return self.crf(scores, tags, mask=mask, reduction="none"), best


@model(
    "pooling in five ways at once: the last token is found from a flipped mask, empty masks are clamped",
    with_mask,
    far={"seq": (1, 2, 16, 33)},
    points=({"batch": 1, "seq": 3},),
    rare={
        "left padded": lambda batch=2, seq=9: (
            torch.randn(batch, seq, 16),
            torch.arange(seq).expand(batch, seq) >= seq // 2,
        ),
        "empty": lambda batch=2, seq=9: (torch.randn(batch, seq, 16), torch.zeros(batch, seq, dtype=torch.bool)),
    },
)
class FivePoolings(nn.Module):
    def __init__(self):
        super().__init__()
        from sentence_transformers.models import Pooling

        self.pool = Pooling(
            16, pooling_mode=("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
        )

    def forward(self, x, mask):
        return self.pool({"token_embeddings": x, "attention_mask": mask.long()})["sentence_embedding"]


@model(
    "batch is cut into virtual batches by a ceiling, sparse masks over features at each step",
    lambda batch=5: (torch.randn(batch, 6),),
    far={"batch": (1, 2, 3, 4, 7, 8, 9, 16, 33, 64)},
)
class TabnetChunks(nn.Module):
    def __init__(self):
        super().__init__()
        from pytorch_tabnet.tab_network import TabNet

        self.net = TabNet(
            6,
            2,
            n_d=4,
            n_a=4,
            n_steps=2,
            cat_idxs=[],
            cat_dims=[],
            virtual_batch_size=4,
            mask_type="entmax",
            group_attention_matrix=torch.eye(6),
        )

    def forward(self, x):
        out, loss = self.net(x)
        return out, loss


def spoken(batch=1, seq=3, past=2, memory=4):
    return (
        torch.randint(0, 20, (batch, seq)),
        torch.randn(batch, past, 16),
        torch.randn(batch, past, 16),
        torch.randn(batch, memory, 16),
    )


@model(
    "the offset into the positions is the length of a cache entry (0 without), filled by hooks",
    spoken,
    where=["past + seq <= 24", "seq >= 1"],
    far={"seq": (1, 2, 7, 16, 22), "past": (0, 1, 16, 21), "memory": (1, 33)},
    points=({"batch": 3, "seq": 1, "past": 23, "memory": 2},),
)
class WhisperOffset(nn.Module):
    def __init__(self):
        super().__init__()
        from whisper.model import TextDecoder

        self.net = TextDecoder(20, 24, 16, 2, 1)
        nn.init.normal_(self.net.positional_embedding)

    def forward(self, tokens, key, value, memory):
        cache = {}
        if key.shape[1]:
            attention = self.net.blocks[0].attn
            cache = {attention.key: key, attention.value: value}
        offset = next(iter(cache.values())).shape[1] if cache else 0
        x = self.net.token_embedding(tokens) + self.net.positional_embedding[offset : offset + tokens.shape[-1]]
        for block in self.net.blocks:
            x = block(x, memory, mask=self.net.mask)
        return self.net.ln(x), self.net(tokens, memory, kv_cache=cache or None)


@model(
    "codes by rounding, residual levels scaled, lookups of a codebook made from indices",
    lambda batch=2, seq=5: (torch.randn(batch, seq, 6), torch.arange(seq).expand(batch, seq) < (seq + 1) // 2),
    far={"seq": (1, 2, 16, 33)},
    points=({"batch": 1, "seq": 3},),
    rare={"ties": lambda batch=2, seq=5: (torch.zeros(batch, seq, 6), torch.ones(batch, seq, dtype=torch.bool))},
)
class QuantizedCodes(nn.Module):
    def __init__(self):
        super().__init__()
        from vector_quantize_pytorch import ResidualFSQ, VectorQuantize

        self.levels = ResidualFSQ(dim=6, levels=[5, 4, 3], num_quantizers=2)
        self.codes = VectorQuantize(dim=6, codebook_size=12, use_cosine_sim=True, heads=2, codebook_dim=3)

    def forward(self, x, mask):
        one, first = self.levels(x)
        two, second, _ = self.codes(x, mask=mask)
        return one, first, two, second


@model(
    "pairs by equal labels: loops over anchors, a loss of zero where no pair exists",
    lambda items=8: (torch.randn(items, 6), torch.arange(items) % 3),
    where=["1 <= items <= 40"],
    far={"items": (1, 2, 3, 4, 7, 16, 33)},
    rare={
        "all alike": lambda items=8: (torch.randn(items, 6), torch.zeros(items, dtype=torch.int64)),
        "all different": lambda items=8: (torch.randn(items, 6), torch.arange(items)),
    },
    unproved=True,
)
class MinedPairs(nn.Module):
    def __init__(self):
        super().__init__()
        from pytorch_metric_learning import losses, miners

        self.miner, self.near, self.three = (
            miners.MultiSimilarityMiner(),
            losses.NTXentLoss(),
            losses.TripletMarginLoss(),
        )

    def forward(self, x, labels):
        return self.near(x, labels, self.miner(x, labels)), self.three(x, labels)


@model(
    "a policy of images and vectors: observations scaled, actions squashed and clipped to bounds",
    lambda batch=2: (
        {"image": torch.randint(0, 256, (batch, 3, 36, 36), dtype=torch.uint8), "speed": torch.randn(batch, 4)},
    ),
    far={"batch": (1, 3, 16, 33)},
)
class PolicyOfDict(nn.Module):
    def __init__(self):
        super().__init__()
        import numpy as np
        from gymnasium import spaces
        from stable_baselines3.common.policies import MultiInputActorCriticPolicy

        seen = spaces.Dict(
            {"image": spaces.Box(0, 255, (3, 36, 36), np.uint8), "speed": spaces.Box(-1, 1, (4,), np.float32)}
        )
        self.policy = MultiInputActorCriticPolicy(
            seen,
            spaces.MultiDiscrete([3, 2]),
            lambda _: 1e-3,
            net_arch=[8],
            features_extractor_kwargs={"cnn_output_dim": 8},
        )

    def forward(self, obs):
        actions, values, likely = self.policy(obs, deterministic=True)
        return actions, values, likely
