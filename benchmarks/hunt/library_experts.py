"""PyPI libraries, part 2: experts, hierarchies, video, tables of time, codecs, clustering."""

from __future__ import annotations

import random

import torch
from registry import Registry
from torch import nn

model = Registry("pypi mixed")


def tokens(batch=2, seq=6):
    return (torch.randint(1, 20, (batch, seq)),)


def steps(batch=2, seq=6):
    return (torch.randn(batch, seq, 16),)


def masked(batch=2, seq=6):
    return (torch.randn(batch, seq, 16), torch.arange(seq)[None] < torch.randint(1, seq + 1, (batch, 1)))


@model(
    "soft_moe_pytorch: the number of slots is the length rounded to experts, found at run time; a mask",
    masked,
    far={"seq": (1, 2, 3, 4, 5, 8, 33)},
    points=({"batch": 3, "seq": 12},),
)
class DynamicSlots(nn.Module):
    def __init__(self):
        super().__init__()
        from soft_moe_pytorch import DynamicSlotsSoftMoE

        self.net = DynamicSlotsSoftMoE(16, num_experts=3)

    def forward(self, x, mask):
        return self.net(x, mask=mask)


@model(
    "soft_moe_pytorch: feature maps are packed, slots are fixed, layer norm on dispatch",
    lambda batch=2, height=4, width=5: (torch.randn(batch, 16, height, width),),
    far={"height": (1, 2, 33), "width": (1, 64)},
    points=({"batch": 1, "height": 1, "width": 1},),
)
class SoftExpertsImage(nn.Module):
    def __init__(self):
        super().__init__()
        from soft_moe_pytorch import SoftMoE

        self.net = SoftMoE(16, num_slots=2, num_experts=3, use_layernorm=True)

    def forward(self, x):
        return self.net(x)


@model(
    "st_moe_pytorch: the capacity of an expert is min(seq, int(seq * factor / experts)), never below 4",
    steps,
    far={"seq": (1, 3, 4, 5, 8, 9, 17, 65)},
    points=({"batch": 3, "seq": 40},),
    unproved=True,
)
class ExpertCapacity(nn.Module):
    def __init__(self):
        super().__init__()
        from st_moe_pytorch import MoE

        self.net = MoE(
            16,
            num_experts=4,
            expert_hidden_mult=1,
            gating_top_n=2,
            threshold_eval=0.0,
            capacity_factor_eval=1.5,
            is_distributed=False,
            allow_var_seq_len=True,
        )

    def forward(self, x):
        return self.net(x)[0]


@model(
    "mixture_of_experts: top two gating with cumulative sums of positions and overflow dropped by capacity",
    steps,
    far={"seq": (1, 2, 7, 8, 9, 33, 64)},
    points=({"batch": 1, "seq": 21},),
)
class TopTwoExperts(nn.Module):
    def __init__(self):
        super().__init__()
        from mixture_of_experts import MoE

        self.net = MoE(dim=16, num_experts=4, hidden_dim=8, second_policy_eval="all", capacity_factor_eval=1.0)

    def forward(self, x):
        return self.net(x)


@model(
    "mixture_of_experts: two levels of experts (2 by 2), the second sees the capacity of the first as its length",
    steps,
    far={"seq": (1, 7, 8, 16, 33)},
    points=({"batch": 3, "seq": 20},),
)
class NestedExperts(nn.Module):
    def __init__(self):
        super().__init__()
        from mixture_of_experts import HeirarchicalMoE

        self.net = HeirarchicalMoE(dim=16, num_experts=(2, 2), hidden_dim=8, second_policy_eval="all")

    def forward(self, x):
        return self.net(x)[0]


@model(
    "colt5_attention: heavy branch for the 4 tokens chosen by coordinate descent (fewer when the sequence is shorter)",
    steps,
    far={"seq": (1, 3, 4, 5, 33)},
    points=({"batch": 1, "seq": 4},),
)
class RoutedFeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        from colt5_attention import ConditionalRoutedFeedForward

        self.net = ConditionalRoutedFeedForward(
            16, num_heavy_tokens=4, light_ff_mult=0.5, heavy_ff_mult=2, use_triton=False
        )

    def forward(self, x):
        return self.net(x)


@model(
    "colt5_attention: local light attention with windows of 4, heavy attention over routed queries and keys",
    masked,
    far={"seq": (1, 4, 5, 8, 17)},
    points=({"batch": 3, "seq": 12},),
)
class RoutedAttention(nn.Module):
    def __init__(self):
        super().__init__()
        from colt5_attention import ConditionalRoutedAttention

        self.net = ConditionalRoutedAttention(
            16,
            num_heavy_tokens_q=3,
            num_heavy_tokens_kv=2,
            light_dim_head=4,
            light_heads=2,
            light_window_size=4,
            heavy_dim_head=8,
            heavy_heads=2,
            use_triton=False,
        )

    def forward(self, x, mask):
        return self.net(x, mask=mask)


@model(
    "h_transformer_1d: levels of halves, the number of levels is log2 of the padded length over blocks of 4; short ones are refused",
    lambda batch=2, seq=10: (torch.randint(1, 20, (batch, seq)),),
    far={"seq": (9, 15, 16, 17, 32)},
    points=({"batch": 1, "seq": 32}, {"batch": 3, "seq": 12}),
    unproved=True,
)
class HalvedLevels(nn.Module):
    def __init__(self):
        super().__init__()
        from h_transformer_1d import HTransformer1D

        self.net = HTransformer1D(
            num_tokens=20, dim=16, depth=1, max_seq_len=32, heads=2, dim_head=8, block_size=4, causal=False
        )

    def forward(self, ids):
        return self.net(ids)


@model(
    "simple_hierarchical_transformer: three streams compressed by 1, 2, 4; the shorter ones repeat and pad",
    tokens,
    far={"seq": (1, 3, 4, 5, 16, 17, 31)},
    points=({"batch": 3, "seq": 8},),
)
class StreamsOfThree(nn.Module):
    def __init__(self):
        super().__init__()
        from simple_hierarchical_transformer import HierarchicalTransformer

        self.net = HierarchicalTransformer(
            num_tokens=20,
            dim=16,
            depth=1,
            seq_len=32,
            dim_head=8,
            heads=2,
            hierarchies=(1, 2, 4),
            window_sizes=(8, 8, None),
            use_flash_attn=False,
            predict_hierarchy=1,
        )

    def forward(self, ids):
        out = self.net(ids)
        return out[0] if isinstance(out, tuple) else out


@model(
    "flash_pytorch: groups of 5 with rest padded, quadratic within and linear between groups; lengths mask",
    masked,
    far={"seq": (1, 4, 5, 6, 10, 11, 33)},
    points=({"batch": 1, "seq": 20},),
)
class GroupedGates(nn.Module):
    def __init__(self):
        super().__init__()
        from flash_pytorch import FLASH

        self.net = FLASH(dim=16, group_size=5, query_key_dim=8, causal=False, laplace_attn_fn=True, shift_tokens=True)

    def forward(self, x, mask):
        return self.net(x, mask=mask)


@model(
    "flash_pytorch: causal groups of 6, cumulative sums of group states shifted by one",
    steps,
    far={"seq": (1, 5, 6, 7, 12, 13, 64)},
    points=({"batch": 3, "seq": 25},),
)
class CausalGroups(nn.Module):
    def __init__(self):
        super().__init__()
        from flash_pytorch import FLASH

        self.net = FLASH(dim=16, group_size=6, query_key_dim=8, causal=True)

    def forward(self, x):
        return self.net(x)


@model(
    "flash_pytorch: T5 buckets of relative positions with logs beyond half of the distances",
    steps,
    far={"seq": (1, 15, 16, 17, 32, 33, 130)},
    points=({"batch": 3, "seq": 64},),
)
class GateBuckets(nn.Module):
    def __init__(self):
        super().__init__()
        from flash_pytorch import GAU

        self.net = GAU(dim=16, query_key_dim=8, causal=True, rel_pos_bias=True)

    def forward(self, x):
        return self.net(x)


@model(
    "mogrifier: a GRU cell is fed by rounds of mutual gating, the number of rounds is a Python number from the length",
    steps,
    far={"seq": (1, 2, 3, 4, 17)},
    points=({"batch": 1, "seq": 9},),
    unproved=True,
)
class GatedRounds(nn.Module):
    def __init__(self):
        super().__init__()
        from mogrifier import Mogrifier

        self.gate = Mogrifier(16, iters=5, factorize_k=4)
        self.cell = nn.GRUCell(16, 16)

    def forward(self, x):
        hidden = x.new_zeros(x.shape[0], 16)
        out = []
        for t in range(x.shape[1]):
            one, hidden = self.gate(x[:, t], hidden, iters=1 + t % 3)
            hidden = self.cell(one, hidden)
            out.append(hidden)
        return torch.stack(out, 1)


@model(
    "iTransformer: variates are tokens, the lookback is cut into a dict of horizons; histories are cut to the last 12 steps, long ones thinned by parity",
    lambda batch=2, history=15: (torch.randn(batch, history, 5),),
    far={"batch": (1, 3, 33), "history": (12, 13, 40, 100)},
    points=({"batch": 3, "history": 12},),
    where=["history >= 12"],
)
class InvertedForecast(nn.Module):
    def __init__(self):
        super().__init__()
        from iTransformer import iTransformer

        random.seed(0)
        self.net = iTransformer(
            num_variates=5,
            lookback_len=12,
            depth=1,
            dim=16,
            pred_length=(3, 6),
            dim_head=8,
            heads=2,
            num_tokens_per_variate=2,
            use_reversible_instance_norm=True,
            flash_attn=False,
        )

    def forward(self, x):
        if x.shape[1] >= 24:  # long histories are thinned
            x = x[:, x.shape[1] % 2 :: 2]
        out = self.net(x[:, -12:])
        return out[3], out[6]


@model(
    "bs_roformer: STFT to bands to attention over time and bands and back to a wave of another length",
    lambda batch=2, samples=160: (torch.randn(batch, samples),),
    far={"samples": (33, 63, 64, 65, 129, 400)},
    points=({"batch": 1, "samples": 97},),
)
class BandSplit(nn.Module):
    def __init__(self):
        super().__init__()
        from stand_ins import absent

        with absent("librosa"):
            from bs_roformer import BSRoformer
        random.seed(0)  # hyper-connections draw from it
        self.net = BSRoformer(
            16,
            depth=1,
            time_transformer_depth=1,
            freq_transformer_depth=1,
            freqs_per_bands=(3, 5, 9, 16),
            dim_head=8,
            heads=2,
            stft_n_fft=64,
            stft_hop_length=16,
            stft_win_length=64,
            flash_attn=False,
        )

    def forward(self, x):
        return self.net(x)


@model(
    "gateloop_transformer: an associative scan halves and interleaves until one step is left",
    steps,
    far={"seq": (1, 2, 3, 8, 9, 31, 65)},
    points=({"batch": 3, "seq": 20},),
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
    "gateloop_transformer: the log space scan of Heinsen run backwards (flip), with post norm",
    steps,
    far={"seq": (1, 2, 33, 64)},
    points=({"batch": 3, "seq": 7},),
)
class GateLoopHeinsen(nn.Module):
    def __init__(self):
        super().__init__()
        from gateloop_transformer import SimpleGateLoopLayer

        self.net = SimpleGateLoopLayer(16, use_heinsen=True, reverse=True, post_ln=True)

    def forward(self, x):
        return self.net(x)


@model(
    "taylor_series_linear_attention: second order features of heads, one headed keys, token shift, lengths mask",
    masked,
    far={"seq": (1, 2, 33, 100)},
    points=({"batch": 3, "seq": 12},),
)
class TaylorFeatures(nn.Module):
    def __init__(self):
        super().__init__()
        from taylor_series_linear_attention import TaylorSeriesLinearAttn

        self.net = TaylorSeriesLinearAttn(
            16, dim_head=4, heads=2, one_headed_kv=True, prenorm=True, shift_tokens=True, gate_value_heads=True
        )

    def forward(self, x, mask):
        return self.net(x, mask=mask)


@model(
    "geometric_vector_perceptron: edges of a graph with scalar and vector features, gathered by index and summed by node",
    lambda nodes=5, edges=9: (torch.randn(nodes, 6), torch.randn(nodes, 4, 3), torch.randint(0, nodes, (2, edges))),
    far={"nodes": (1, 2, 33), "edges": (1, 64)},
    points=({"nodes": 1, "edges": 1},),
)
class VectorMessages(nn.Module):
    def __init__(self):
        super().__init__()
        from geometric_vector_perceptron import GVP, GVPLayerNorm

        self.gvp = GVP(dim_vectors_in=8, dim_vectors_out=4, dim_feats_in=12, dim_feats_out=6, vector_gating=True)
        self.norm = GVPLayerNorm(6)

    def forward(self, feats, vectors, edges):
        src, dst = edges
        f, v = self.gvp((torch.cat([feats[src], feats[dst]], -1), torch.cat([vectors[src], vectors[dst]], 1)))
        feats = feats.index_add(0, dst, f)
        vectors = vectors.index_add(0, dst, v)
        return self.norm(feats, vectors)


@model(
    "timesformer_pytorch: patches attend over time then space; asserts on the patch; frames masked; rotary of both axes",
    lambda batch=1, frames=3, height=16, width=24: (
        torch.randn(batch, frames, 3, height, width),
        torch.arange(frames)[None] < torch.randint(1, frames + 1, (batch, 1)),
    ),
    far={"frames": (1, 2, 8), "height": (8, 24, 32), "width": (8, 32)},
    points=({"batch": 2, "frames": 4, "height": 32, "width": 8},),
)
class TimeThenSpace(nn.Module):
    def __init__(self):
        super().__init__()
        from timesformer_pytorch import TimeSformer

        self.net = TimeSformer(
            dim=16,
            num_frames=8,
            num_classes=5,
            image_size=32,
            patch_size=8,
            depth=1,
            heads=2,
            dim_head=8,
            rotary_emb=True,
        )

    def forward(self, video, mask):
        return self.net(video, mask=mask)


@model(
    "aoa_pytorch: attention on attention, context of another length",
    lambda batch=2, seq=6, ctx=4: (torch.randn(batch, seq, 16), torch.randn(batch, ctx, 16)),
    far={"seq": (1, 33), "ctx": (1, 64)},
    points=({"batch": 3, "seq": 4, "ctx": 4}, {"batch": 1, "seq": 1, "ctx": 1}),
)
class AttentionOnAttention(nn.Module):
    def __init__(self):
        super().__init__()
        from aoa_pytorch import AoA

        self.net = AoA(dim=16, heads=2, dim_head=8)

    def forward(self, x, context):
        return self.net(x, context=context) + self.net(x)


@model(
    "MEGABYTE_pytorch: a flat sequence becomes patches of 4, padded with pad_id and cut; starts are concatenated per stage",
    tokens,
    far={"seq": (1, 3, 4, 5, 8, 31, 32)},
    points=({"batch": 3, "seq": 13},),
)
class PatchesOfBytes(nn.Module):
    def __init__(self):
        super().__init__()
        from MEGABYTE_pytorch import MEGABYTE

        self.net = MEGABYTE(
            num_tokens=20, dim=(16, 8), depth=(1, 1), max_seq_len=(8, 4), dim_head=8, heads=2, pos_emb=True
        )

    def forward(self, ids):
        return self.net(ids)


@model(
    "speechbrain: a dual path model folds features into half overlapping segments of 6 (gap by remainder) and adds them back",
    lambda batch=1, frames=20: (torch.randn(batch, 8, frames),),
    far={"frames": (1, 5, 6, 7, 8, 9, 12, 33, 64)},
    points=({"batch": 2, "frames": 13},),
)
class OverlappedSegments(nn.Module):
    def __init__(self):
        super().__init__()
        from speechbrain.lobes.models.dual_path import Dual_Path_Model, SBTransformerBlock

        blocks = [
            SBTransformerBlock(1, 8, 2, d_ffn=8, use_positional_encoding=True, norm_before=True) for _ in range(2)
        ]
        self.net = Dual_Path_Model(
            8,
            8,
            *blocks,
            num_layers=1,
            norm="ln",
            K=6,
            num_spks=2,
            skip_around_intra=True,
            linear_layer_after_inter_intra=False,
        )

    def forward(self, x):
        return self.net(x)


@model(
    "isab_pytorch: given latents per batch, inverted attention, a mask of the set",
    lambda batch=2, points=6, latents=3: (
        torch.randn(batch, points, 16),
        torch.randn(batch, latents, 16),
        torch.arange(points)[None] < torch.randint(1, points + 1, (batch, 1)),
    ),
    far={"points": (1, 33), "latents": (1, 16)},
    points=({"batch": 3, "points": 4, "latents": 4},),
)
class InducedSet(nn.Module):
    def __init__(self):
        super().__init__()
        from isab_pytorch import ISAB

        self.net = ISAB(dim=16, heads=2, latent_self_attend=True)

    def forward(self, x, latents, mask):
        return self.net(x, latents, mask=mask)


@model(
    "mambapy: the parallel scan pads to a power of two and goes up and down a tree in place",
    steps,
    far={"seq": (1, 2, 3, 4, 5, 8, 9, 33, 64)},
    points=({"batch": 3, "seq": 12},),
    unproved=True,
)
class ScanTree(nn.Module):
    def __init__(self):
        super().__init__()
        from mambapy.mamba import Mamba, MambaConfig

        self.net = Mamba(MambaConfig(d_model=16, n_layers=1, d_state=4, pscan=True, use_cuda=False))

    def forward(self, x):
        return self.net(x)
